// SPDX-License-Identifier: GPL-2.0
/* What the peer sends: HELLOs, nonces and proofs, right, nearly right, or anything. */
#include "core/node.h"
#include "fuzz.h"
#include "peer.h"

static void fill(void *to, u32 len)
{
	u8 *p = to;

	while (len--)
		*p++ = fuzz_byte();
}

/* Mostly not at all; else some bytes of it are anything. */
void fuzz_spoil(void *what, u32 len)
{
	u8 n = fuzz_byte();

	if (n < 0xc0)
		return;
	for (n &= 3, n++; n; n--)
		((u8 *)what)[fuzz_byte() % len] = fuzz_byte();
}

/* The proof of one side, whose nonce is the other one's. */
void fuzz_prove(const struct shift_conn *c, bool own, const u8 *nonce, u32 key, u8 *proof)
{
	const u8 *mine = own ? shift_boot_id : c->boot_id, *other = own ? c->boot_id : shift_boot_id;
	struct claim claim = { .label = "rdma_shift link" };

	claim.connects = own ? fuzz_link.active : !fuzz_link.active;
	memcpy(claim.nonce, nonce, sizeof(claim.nonce));
	memcpy(claim.boot_id, mine, sizeof(claim.boot_id));
	memcpy(claim.other_boot_id, other, sizeof(claim.other_boot_id));
	claim.local = own ? fuzz_link.local : fuzz_link.remote;
	claim.remote = own ? fuzz_link.remote : fuzz_link.local;
	fuzz_hash(&fuzz_key[key], &claim, sizeof(claim), proof);
}

/* A key that is too short proves nothing. */
bool fuzz_proves(u32 key)
{
	return fuzz_key[key].datalen >= 16;
}

struct hello fuzz_hello(void)
{
	struct hello h = {
		.magic = cpu_to_be32(HELLO_MAGIC), .version = 3, .oldest = SHIFT_MSG_OLDEST,
		.newest = SHIFT_MSG_NEWEST, .caps = fuzz_byte(), .boot_id = "the peer",
		.local = fuzz_link.remote, .remote = fuzz_link.local,
	};

	h.boot_id[15] = fuzz_byte() & 1;
	fuzz_spoil(&h, sizeof(h));
	return h;
}

/* Also what is right on another connection, for another question, or from the other side. */
u32 fuzz_frame(struct fuzz_id *f, u8 *to)
{
	struct frame *frame = (struct frame *)to;
	const struct shift_conn *c = f->conn;
	u8 how = fuzz_byte(), key = fuzz_byte() % FUZZ_KEYS, nonce[32];
	struct fuzz_id *other;

	frame->magic = cpu_to_be32(FRAME_MAGIC);
	frame->version = 1;
	/* of a module that knows one version, or more */
	frame->newest = fuzz_byte() & 3;
	switch (how % 8) {
	case 0: case 1:
		frame->kind = 1;
		memset(frame->bytes, fuzz_byte(), sizeof(frame->bytes));
		break;
	case 2: case 3:
		frame->kind = 2;
		fuzz_prove(c, false, c->auth.nonce, key, frame->bytes);
		break;
	case 4:
		frame->kind = 2;
		memset(nonce, fuzz_byte(), sizeof(nonce));
		fuzz_prove(c, how & 0x80, nonce, key, frame->bytes);
		break;
	case 5:
		frame->kind = 2;
		fuzz_prove(c, true, c->auth.nonce, key, frame->bytes);
		break;
	case 6:
		other = fuzz_pick() ?: f;
		memcpy(to, other->last.bytes, sizeof(*frame));
		break;
	default:
		fill(to, fuzz_byte());
		break;
	}
	fuzz_spoil(frame, sizeof(*frame));
	how = fuzz_byte();
	if (how < 0xe0)
		return sizeof(*frame);
	return how & 1 ? fuzz_byte() : (fuzz_byte() << 8 | fuzz_byte()) % 1025;
}

/* Note what a frame says, if it is one. */
void fuzz_note(struct fuzz_id *f, const u8 *bytes, u32 len)
{
	const struct frame *frame = (const struct frame *)bytes;
	u8 right[32];
	u32 key;

	if (len != sizeof(*frame) || frame->magic != cpu_to_be32(FRAME_MAGIC))
		return;
	/* the range of versions has to have the only one that is known here in it */
	if (frame->kind == 1 && frame->version <= 1 &&
	    (frame->newest >= 1 || frame->version == 1) && f->num_nonces < ARRAY_SIZE(f->nonce))
		memcpy(f->nonce[f->num_nonces++], frame->bytes, 32);
	for (key = 0; frame->kind == 2 && frame->version == 1 && key < FUZZ_KEYS; key++) {
		fuzz_prove(f->conn, false, f->conn->auth.nonce, key, right);
		if (fuzz_proves(key) && !memcmp(right, frame->bytes, sizeof(right)))
			f->proofs |= BIT(key);
	}
}
