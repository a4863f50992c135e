// SPDX-License-Identifier: GPL-2.0
/*
 * Messages of UCX with every byte checked, until the client reads "stop":
 *
 *	ucx_verify MODE[,MODE...] [SERVER]
 *
 * With the address of a server it is the client.  They connect by UCX's client-server API.  In
 * each round both ends send COUNT messages of one size, from one that fits a work request to some
 * that need a rendezvous, and then a note.  What is sent is a function of (end, round, message,
 * place), so that a message of another round, one that comes twice and one out of order are seen.
 * Rounds are of the modes in turn:
 *
 * - tag: all messages have one tag, so that they match receives in the order of posting.
 * - put: they are written to the other end's memory; the note is sent after a flush.
 * - am (active messages): each has its number in its header, and may come only once.
 */
#include <arpa/inet.h>
#include <poll.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <ucp/api/ucp.h>

#define PORT	18516
#define COUNT	8
#define MOST	65536
#define TOLD	20	/* rounds per line of progress */
#define AM_ID	1

enum { TAG_DATA = 1, TAG_NOTE, TAG_KEY };
enum mode { TAG, PUT, AM };

static const char * const names[] = { "tag", "put", "am" };
static enum mode modes[8];
static int num_modes;
static const size_t sizes[] = { 1, 40, 500, 6000, 20000, MOST };

struct note {
	uint64_t round;
	uint64_t stop;
};

struct number {
	uint64_t round;
	uint64_t message;
};

struct key {
	uint64_t address;
	uint64_t length;
	uint8_t bytes[256];
};

/* A round may begin at the other end before this one has seen all of the last: two of each. */
static uint8_t out[COUNT][MOST], in[2][COUNT][MOST];
static int arrived[2][COUNT];	/* messages of mode am */
static int client, closing;
static uint64_t rounds;
static ucp_context_h context;
static ucp_worker_h worker;
static ucp_ep_h ep;
static ucp_conn_request_h asked;
static ucp_listener_h listener;
static ucp_mem_h memory;
static ucp_rkey_h rkey;
static uint64_t there;		/* where the other end has its in[][] */

static void die(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	printf("error: ");
	vprintf(format, args);
	printf(" (round %llu)\n", (unsigned long long)rounds);
	fflush(stdout);
	_exit(2);
}

static void must(ucs_status_t status, const char *what)
{
	if (status != UCS_OK)
		die("%s: %s", what, ucs_status_string(status));
}

static void wait_request(void *request, const char *what)
{
	ucs_status_t status;

	if (!request)
		return;
	if (UCS_PTR_IS_ERR(request))
		must(UCS_PTR_STATUS(request), what);
	while ((status = ucp_request_check_status(request)) == UCS_INPROGRESS)
		ucp_worker_progress(worker);
	must(status, what);
	ucp_request_free(request);
}

static void failed(void *arg, ucp_ep_h which, ucs_status_t status)
{
	(void)arg;
	(void)which;
	/* the other end may close first */
	if (!closing)
		die("endpoint: %s", ucs_status_string(status));
}

static const ucp_request_param_t plain;

static void send_tag(ucp_tag_t tag, const void *data, size_t length)
{
	wait_request(ucp_tag_send_nbx(ep, data, length, tag, &plain), "send");
}

static void recv_tag(ucp_tag_t tag, void *data, size_t length)
{
	wait_request(ucp_tag_recv_nbx(worker, data, length, tag, ~0ull, &plain), "receive");
}

static uint8_t value(int who, uint64_t round, uint64_t message, uint64_t place)
{
	uint64_t x = ((round * COUNT + message) * MOST + place) * 0x9e3779b97f4a7c15ull + who;

	return (x ^ x >> 29) * 0xbf58476d1ce4e5b9ull >> 56;
}

static void fill(size_t size)
{
	for (int i = 0; i < COUNT; i++)
		for (size_t n = 0; n < size; n++)
			out[i][n] = value(client, rounds, i, n);
}

static void check(size_t size)
{
	for (int i = 0; i < COUNT; i++) {
		uint8_t *got = in[rounds % 2][i];

		for (size_t n = 0; n < size; n++)
			if (got[n] != value(!client, rounds, i, n))
				die("wrong: message %d of %zu bytes, place %zu: %#x, not %#x", i,
				    size, n, got[n], value(!client, rounds, i, n));
		memset(got, 0x5a, size);
	}
}

/* The data of a long message has come. */
static void am_fetched(void *request, ucs_status_t status, size_t length, void *arrival)
{
	(void)length;
	must(status, "active message's data");
	++*(int *)arrival;
	ucp_request_free(request);
}

static ucs_status_t am_arrived(void *arg, const void *header, size_t header_length, void *data,
			       size_t length, const ucp_am_recv_param_t *param)
{
	const struct number *number = header;
	ucp_request_param_t fetch = {
		.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA |
				UCP_OP_ATTR_FLAG_NO_IMM_CMPL,
		.cb.recv_am = am_fetched,
	};
	int *arrival;
	void *place;

	(void)arg;
	if (header_length != sizeof(*number) || number->message >= COUNT || length > MOST ||
	    number->round < rounds || number->round > rounds + 1)
		die("active message that nobody waits for");
	arrival = &arrived[number->round % 2][number->message];
	place = in[number->round % 2][number->message];
	if (*arrival)
		die("active message %llu of round %llu twice",
		    (unsigned long long)number->message, (unsigned long long)number->round);
	if (param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) {
		void *request;

		fetch.user_data = arrival;
		request = ucp_am_recv_data_nbx(worker, data, place, length, &fetch);
		if (UCS_PTR_IS_ERR(request))
			must(UCS_PTR_STATUS(request), "active message's data");
		return UCS_INPROGRESS;
	}
	memcpy(place, data, length);
	++*arrival;
	return UCS_OK;
}

/* Begin to send a message; for those of mode am the header is needed until it has gone. */
static void *give(enum mode mode, int i, size_t size, struct number *header)
{
	size_t place = ((rounds % 2) * COUNT + i) * MOST;

	switch (mode) {
	case PUT:
		return ucp_put_nbx(ep, out[i], size, there + place, rkey, &plain);
	case AM:
		*header = (struct number){ rounds, i };
		return ucp_am_send_nbx(ep, AM_ID, header, sizeof(*header), out[i], size, &plain);
	default:
		return ucp_tag_send_nbx(ep, out[i], size, TAG_DATA, &plain);
	}
}

static int told_to_stop(void)
{
	struct pollfd input = { .fd = 0, .events = POLLIN };

	return client && poll(&input, 1, 0) > 0;
}

/* Returns true if it was the last round. */
static int play(void)
{
	size_t size = sizes[rounds / num_modes % (sizeof(sizes) / sizeof(sizes[0]))];
	enum mode mode = modes[rounds % num_modes];
	struct note mine = { rounds, told_to_stop() }, theirs = {};
	void *sends[COUNT], *recvs[COUNT] = {};
	struct number headers[COUNT];
	int i;

	fill(size);
	for (i = 0; mode == TAG && i < COUNT; i++)
		recvs[i] = ucp_tag_recv_nbx(worker, in[rounds % 2][i], size, TAG_DATA, ~0ull,
					    &plain);
	for (i = 0; i < COUNT; i++)
		sends[i] = give(mode, i, size, &headers[i]);
	for (i = 0; i < COUNT; i++)
		wait_request(sends[i], "message");
	if (mode == PUT)
		wait_request(ucp_ep_flush_nbx(ep, &plain), "flush");
	send_tag(TAG_NOTE, &mine, sizeof(mine));
	recv_tag(TAG_NOTE, &theirs, sizeof(theirs));
	if (theirs.round != rounds)
		die("note of round %llu", (unsigned long long)theirs.round);
	for (i = 0; i < COUNT; i++) {
		wait_request(recvs[i], "message");
		while (mode == AM && !arrived[rounds % 2][i])
			ucp_worker_progress(worker);
		arrived[rounds % 2][i] = 0;
	}
	check(size);
	return mine.stop || theirs.stop;
}

static void exchange_keys(void)
{
	ucp_mem_map_params_t params = {
		.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH,
		.address = in,
		.length = sizeof(in),
	};
	struct key mine = { .address = (uintptr_t)in }, theirs = {};
	size_t length;
	void *packed;

	must(ucp_mem_map(context, &params, &memory), "memory");
	must(ucp_rkey_pack(context, memory, &packed, &length), "key");
	if (length > sizeof(mine.bytes))
		die("a key of %zu bytes", length);
	memcpy(mine.bytes, packed, length);
	ucp_rkey_buffer_release(packed);
	send_tag(TAG_KEY, &mine, sizeof(mine));
	recv_tag(TAG_KEY, &theirs, sizeof(theirs));
	there = theirs.address;
	must(ucp_ep_rkey_unpack(ep, theirs.bytes, &rkey), "the other end's key");
}

static void begin(void)
{
	ucp_params_t params = {
		.field_mask = UCP_PARAM_FIELD_FEATURES,
		.features = UCP_FEATURE_TAG | UCP_FEATURE_RMA | UCP_FEATURE_AM,
	};
	ucp_am_handler_param_t handler = {
		.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB,
		.id = AM_ID,
		.cb = am_arrived,
	};
	ucp_worker_params_t worker_params = {};
	ucp_config_t *config;

	must(ucp_config_read(NULL, NULL, &config), "configuration");
	must(ucp_init(&params, config, &context), "context");
	ucp_config_release(config);
	must(ucp_worker_create(context, &worker_params, &worker), "worker");
	must(ucp_worker_set_am_recv_handler(worker, &handler), "handler");
}

static void connection_asked(ucp_conn_request_h request, void *arg)
{
	(void)arg;
	asked = request;
}

static void connect_ends(const char *server)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons(PORT) };
	ucs_sock_addr_t where = { (struct sockaddr *)&address, sizeof(address) };
	ucp_ep_params_t params = {
		.field_mask = UCP_EP_PARAM_FIELD_ERR_HANDLER |
			      UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE,
		.err_mode = UCP_ERR_HANDLING_MODE_PEER,
		.err_handler.cb = failed,
	};
	ucp_listener_params_t listening = {
		.field_mask = UCP_LISTENER_PARAM_FIELD_SOCK_ADDR |
			      UCP_LISTENER_PARAM_FIELD_CONN_HANDLER,
		.sockaddr = where,
		.conn_handler.cb = connection_asked,
	};

	if (server) {
		if (inet_pton(AF_INET, server, &address.sin_addr) != 1)
			die("'%s' is not an address", server);
		params.field_mask |= UCP_EP_PARAM_FIELD_FLAGS | UCP_EP_PARAM_FIELD_SOCK_ADDR;
		params.flags = UCP_EP_PARAMS_FLAGS_CLIENT_SERVER;
		params.sockaddr = where;
	} else {
		must(ucp_listener_create(worker, &listening, &listener), "listener");
		printf("listening\n");
		fflush(stdout);
		while (!asked)
			ucp_worker_progress(worker);
		params.field_mask |= UCP_EP_PARAM_FIELD_CONN_REQUEST;
		params.conn_request = asked;
	}
	must(ucp_ep_create(worker, &params, &ep), "endpoint");
}

static void end(void)
{
	closing = 1;
	ucp_rkey_destroy(rkey);
	wait_request(ucp_ep_close_nbx(ep, &plain), "close");
	must(ucp_mem_unmap(context, memory), "memory");
	if (listener)
		ucp_listener_destroy(listener);
	ucp_worker_destroy(worker);
	ucp_cleanup(context);
}

/* Returns false if there is another word in the list. */
static int read_modes(char *list)
{
	int mode;

	for (char *name = strtok(list, ","); name; name = strtok(NULL, ",")) {
		for (mode = TAG; mode <= AM && strcmp(name, names[mode]); mode++)
			;
		if (mode > AM || num_modes == sizeof(modes) / sizeof(modes[0]))
			return 0;
		modes[num_modes++] = mode;
	}
	return num_modes > 0;
}

int main(int argc, char **argv)
{
	int stop = 0;

	if (argc < 2 || argc > 3 || !read_modes(argv[1])) {
		fprintf(stderr, "usage: ucx_verify tag|put|am[,...] [SERVER]\n");
		return 1;
	}
	client = argc == 3;
	begin();
	connect_ends(argv[2]);
	exchange_keys();
	while (!stop) {
		stop = play();
		if (++rounds % TOLD == 0) {
			printf("progress %llu\n", (unsigned long long)rounds);
			fflush(stdout);
		}
	}
	end();
	printf("done: %llu rounds\n", (unsigned long long)rounds);
	return 0;
}
