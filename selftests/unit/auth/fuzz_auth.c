// SPDX-License-Identifier: GPL-2.0
/*
 * One link of which the peer is anybody: it connects, answers, sends frames, ends connections, as
 * it likes, while keys and the directory change and memory is short.  A connection that needs a
 * proof is established only after one that is right; no message is delivered before; no proof is
 * sent that was not asked for.  In the end nothing may be allocated, locked or referenced.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sanitizer/asan_interface.h>
#include "core/node.h"
#include "fuzz.h"
#include "peer.h"

#define STEPS	40

int LLVMFuzzerTestOneInput(const u8 *data, size_t size);

struct shift_link fuzz_link;
struct ib_device fuzz_device = { .dev = { "rxe0" } };
static const u8 *input, *input_end;
static u32 odds;		/* of 256: how often something is refused */
static unsigned long long connections, established, proven, frames;

u8 fuzz_byte(void)
{
	return input < input_end ? *input++ : 0;
}

bool fuzz_refuses(void)
{
	return odds && fuzz_byte() < odds;
}

static u32 loaded(void)
{
	u32 keys = 0;

	if (fuzz_first < FUZZ_KEYS)
		keys |= BIT(fuzz_first);
	if (fuzz_second < FUZZ_KEYS)
		keys |= BIT(fuzz_second);
	return keys;
}

static struct fuzz_id *id_of(const struct shift_conn *c)
{
	return container_of(c->cm_id, struct fuzz_id, id);
}

/* What this end sends: a question of its own, or an answer to one of the peer's. */
void fuzz_check_sent(struct fuzz_id *f)
{
	const struct frame *frame = (const struct frame *)f->last.bytes;
	u8 right[32];
	u32 i, key;

	if (f->last.len != sizeof(*frame) || frame->magic != cpu_to_be32(FRAME_MAGIC))
		sim_fail("what is sent is no frame");
	if (frame->version != 1)
		sim_fail("a frame of version %u is sent", frame->version);
	if (frame->kind == 1 && frame->newest >= 1 &&
	    !memcmp(frame->bytes, f->conn->auth.nonce, 32))
		return;
	for (key = 0; frame->kind == 2 && key < FUZZ_KEYS; key++)
		for (i = 0; fuzz_proves(key) && loaded() & BIT(key) && i < f->num_nonces; i++) {
			fuzz_prove(f->conn, true, f->nonce[i], key, right);
			if (!memcmp(right, frame->bytes, sizeof(right)))
				return;
		}
	sim_fail("a frame of kind %u is sent that nobody has asked for", frame->kind);
}

void fuzz_check_item(const struct shift_link_item *item)
{
	struct shift_conn *c = item->conn;
	struct fuzz_id *f = id_of(c);

	if (item->type == SHIFT_LINK_ITEM_MSG && (!c->established || c->closing))
		sim_fail("a message is delivered before its connection is established");
	if (item->type != SHIFT_LINK_ITEM_UP)
		return;
	established++;
	if (!c->hello || c->closing || !fuzz_known)
		sim_fail("a connection is established without a HELLO, or with a stranger");
	if (!c->auth.wanted)
		return;
	proven++;
	if (!(f->proofs & f->keys))
		sim_fail("a connection is established without a proof");
}

/* Steps */

/* Each new connection has to ask for a proof if there was a key when it was made. */
static void look_at_new(void)
{
	struct fuzz_id *f;

	for (f = fuzz_ids; f < fuzz_ids + FUZZ_IDS; f++) {
		if (!f->state || f->keys & BIT(31) || !f->id.context)
			continue;
		f->keys = BIT(31) | loaded();
		connections++;
		if (((struct shift_conn *)f->id.context)->auth.wanted != !!loaded())
			sim_fail("a connection does not know that there is a key");
	}
}

/* RDMA CM tells of something that came with private data, or with none. */
static int tell(struct rdma_cm_id *id, enum rdma_cm_event_type type, struct hello *sent)
{
	struct rdma_cm_event event = { .event = type };
	u8 cut = fuzz_byte();
	u32 len = cut < 0xf0 ? sizeof(*sent) : cut & 1 ? fuzz_byte() % sizeof(*sent) : 0;
	struct hello h = fuzz_hello();
	void *data = len ? malloc(len) : NULL;
	int err;

	if (data)
		memcpy(data, &h, len);
	event.param.conn.private_data = data;
	event.param.conn.private_data_len = len;
	err = id->event_handler(id, &event);
	free(data);
	memset(sent, 0, sizeof(*sent));
	memcpy(sent, &h, len);
	return err;
}

static void request(void)
{
	struct fuzz_id *f = fuzz_new_id();
	struct shift_msg_form form;
	struct sockaddr_in *from;
	struct hello h;
	u16 port = 1023;

	if (!f)
		return;
	if (fuzz_byte() >= 0xf0)
		port = fuzz_byte() << 8 | fuzz_byte();
	from = (struct sockaddr_in *)&f->id.route.addr.dst_addr;
	from->sin_port = htons(port);
	f->id.route.path_rec = fuzz_byte() < 0xfa ? &f->path : NULL;
	fuzz_spoil(&f->path, sizeof(f->path));
	f->id.event_handler = fuzz_listener.event_handler;
	if (tell(&f->id, RDMA_CM_EVENT_CONNECT_REQUEST, &h)) {
		if (f->id.qp)
			sim_fail("a request is refused that has a QP");
		f->state = FUZZ_FREE;
		return;
	}
	if (fuzz_link.active || !fuzz_known || !port || port >= 1024 || !f->id.route.path_rec ||
	    h.magic != cpu_to_be32(HELLO_MAGIC) || h.version != 3 ||
	    memcmp(&h.local, &fuzz_link.remote, sizeof(h.local)) ||
	    memcmp(&h.remote, &fuzz_link.local, sizeof(h.remote)) ||
	    memcmp(&h.local, &f->path.dgid, sizeof(h.local)) ||
	    memcmp(&h.remote, &f->path.sgid, sizeof(h.remote)) ||
	    !memchr_inv(h.boot_id, 0, sizeof(h.boot_id)) ||
	    !shift_msg_agree(h.oldest, h.newest, h.caps, &form))
		sim_fail("a request is accepted that must be refused");
}

static void ask(void)
{
	if (!fuzz_link.active)
		return;
	shift_conn_connect(&fuzz_link);
}

struct fuzz_id *fuzz_pick(void)
{
	struct fuzz_id *f = &fuzz_ids[fuzz_byte() % FUZZ_IDS];
	u32 i;

	for (i = 0; i < FUZZ_IDS; i++, f = f == fuzz_ids + FUZZ_IDS - 1 ? fuzz_ids : f + 1)
		if (f->state && f->id.context)
			return f;
	return NULL;
}

static void event(void)
{
	static const enum rdma_cm_event_type ends[] = {
		RDMA_CM_EVENT_DISCONNECTED, RDMA_CM_EVENT_REJECTED, RDMA_CM_EVENT_UNREACHABLE,
		RDMA_CM_EVENT_DEVICE_REMOVAL, RDMA_CM_EVENT_TIMEWAIT_EXIT,
	};
	struct rdma_cm_event e = {};
	struct fuzz_id *f = fuzz_pick();
	struct hello h;
	u8 how = fuzz_byte();

	if (!f)
		return;
	if (how >= 0xe0) {
		e.event = ends[how % ARRAY_SIZE(ends)];
		f->id.event_handler(&f->id, &e);
		return;
	}
	switch (f->state) {
	case FUZZ_ADDR:
		e.event = RDMA_CM_EVENT_ADDR_RESOLVED;
		if (fuzz_byte() >= 0xf0)
			f->id.device = NULL;
		f->id.event_handler(&f->id, &e);
		f->id.device = &fuzz_device;
		break;
	case FUZZ_ROUTE:
		e.event = RDMA_CM_EVENT_ROUTE_RESOLVED;
		f->id.route.path_rec = &f->path;
		fuzz_spoil(&f->path, sizeof(f->path));
		f->id.event_handler(&f->id, &e);
		break;
	case FUZZ_ASKED:
		f->state = FUZZ_CONNECTED;
		tell(&f->id, RDMA_CM_EVENT_ESTABLISHED, &h);
		break;
	default:
		break;
	}
}

static void receive(void)
{
	struct fuzz_id *f = fuzz_pick();
	struct shift_link_buf *buf;
	struct ib_wc wc = {};
	u32 i;

	if (!f || f->state < FUZZ_ASKED || !f->num_recv)
		return;
	buf = f->recv[0];
	for (i = 1; i < f->num_recv; i++)
		f->recv[i - 1] = f->recv[i];
	f->num_recv--;
	wc.wr_cqe = &buf->cqe;
	if (fuzz_byte() >= 0xf8) {
		wc.status = IB_WC_LOC_LEN_ERR;
	} else {
		ASAN_UNPOISON_MEMORY_REGION(buf->data, SHIFT_LINK_BUF_SIZE);
		wc.byte_len = fuzz_frame(f, buf->data);
		fuzz_note(f, buf->data, wc.byte_len);
		frames++;
		/* what is behind it was never sent */
		ASAN_POISON_MEMORY_REGION(buf->data + wc.byte_len,
					  SHIFT_LINK_BUF_SIZE - wc.byte_len);
	}
	buf->cqe.done(NULL, &wc);
}

static void sent(void)
{
	struct fuzz_id *f = fuzz_pick();
	struct shift_link_buf *buf;
	struct ib_wc wc = {};
	u32 i;

	if (!f || !f->num_sent)
		return;
	buf = f->sent[0];
	for (i = 1; i < f->num_sent; i++)
		f->sent[i - 1] = f->sent[i];
	f->num_sent--;
	wc.wr_cqe = &buf->cqe;
	wc.status = fuzz_byte() < 0xf8 ? IB_WC_SUCCESS : IB_WC_RETRY_EXC_ERR;
	buf->cqe.done(NULL, &wc);
}

static void work(void)
{
	fuzz_run_work(fuzz_byte());
}

static void change_keys(void)
{
	struct fuzz_id *f;
	u8 how = fuzz_byte();

	fuzz_first = how & 3;
	fuzz_second = how >> 2 & 3;
	for (f = fuzz_ids; f < fuzz_ids + FUZZ_IDS; f++)
		if (f->state)
			f->keys |= loaded();
}

static void change_directory(void)
{
	fuzz_known = fuzz_byte() & 3;
}

/* The delivery work takes one item out. */
static void deliver(void)
{
	struct shift_link_item *item;
	struct shift_link_buf *buf;
	struct shift_conn *c;

	spin_lock_irq(&fuzz_link.lock);
	item = list_first_entry_or_null(&fuzz_link.inbox, struct shift_link_item, entry);
	if (item) {
		list_del(&item->entry);
		c = item->conn;
		buf = container_of(item, struct shift_link_buf, item);
		if (item->type == SHIFT_LINK_ITEM_MSG && !c->closing &&
		    shift_buf_post_recv(c, buf))
			shift_conn_retire(c, "post receive", -ENOMEM);
	}
	spin_unlock_irq(&fuzz_link.lock);
	if (item)
		shift_conn_put(c);
}

static void step(void)
{
	static void (*const steps[])(void) = {
		request, ask, event, event, event, receive, receive, receive, receive, work,
		work, work, sent, change_keys, change_directory, deliver,
	};

	steps[fuzz_byte() % ARRAY_SIZE(steps)]();
	fuzz_locks_are_free();
	look_at_new();
}

static void begin(void)
{
	u8 how = fuzz_byte();

	memset(&fuzz_link, 0, sizeof(fuzz_link));
	kref_init(&fuzz_link.ref);
	spin_lock_init(&fuzz_link.lock);
	INIT_LIST_HEAD(&fuzz_link.inbox);
	init_waitqueue_head(&fuzz_link.idle);
	fuzz_link.dev = &fuzz_device;
	fuzz_link.id = 1;
	fuzz_link.active = how & 1;
	memset(fuzz_link.local.raw, how & 1 ? 1 : 2, sizeof(fuzz_link.local));
	memset(fuzz_link.remote.raw, how & 1 ? 2 : 1, sizeof(fuzz_link.remote));
	fuzz_first = how >> 1 & 3;
	fuzz_second = how >> 3 & 3;
	fuzz_known = true;
	fuzz_kernel_reset();
	odds = how & 0x80 ? 8 : 0;
}

static void end(void)
{
	u32 i;

	odds = 0;
	spin_lock_irq(&fuzz_link.lock);
	if (fuzz_link.pending)
		shift_conn_retire(fuzz_link.pending, "the end", 0);
	if (fuzz_link.conn)
		shift_conn_retire(fuzz_link.conn, "the end", 0);
	spin_unlock_irq(&fuzz_link.lock);
	while (fuzz_run_work(0))
		;
	while (!list_empty(&fuzz_link.inbox))
		deliver();
	for (i = 0; i < FUZZ_IDS; i++)
		if (fuzz_ids[i].state)
			sim_fail("a cm_id is left");
	if (fuzz_link.conns || fuzz_link.ref.n != 1 || fuzz_memory)
		sim_fail("%u connections, %d references, %ld pieces of memory are left",
			 fuzz_link.conns, fuzz_link.ref.n, fuzz_memory);
}

static void report(void)
{
	fprintf(stderr, "%llu connections, %llu frames; %llu established, %llu with a proof\n",
		connections, frames, established, proven);
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	static bool begun;
	u32 i;

	input = data;
	input_end = data + size;
	if (!begun) {
		fuzz_kernel_reset();
		if (shift_auth_init() || shift_listener_start())
			abort();
		atexit(report);
		begun = true;
	}
	begin();
	(fuzz_link.active ? ask : request)();
	look_at_new();
	for (i = 0; i < STEPS && input < input_end; i++)
		step();
	end();
	return 0;
}
