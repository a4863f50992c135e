// SPDX-License-Identifier: GPL-2.0
/*
 * Messages of the shift family with random commands, attributes and nests.
 *
 * usage: netlink_fuzz SEED COUNT
 * Uses a plain socket, as a library would refuse to build most of them.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <linux/genetlink.h>
#include <linux/netlink.h>
#include <linux/shift.h>

#define BUFFER 8192

static uint64_t state;

static uint32_t rnd(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state >> 11;
}

static size_t put(uint8_t *at, uint16_t type, const void *data, uint16_t len)
{
	struct nlattr attr = { .nla_len = NLA_HDRLEN + len, .nla_type = type };

	memcpy(at, &attr, sizeof(attr));
	memcpy(at + NLA_HDRLEN, data, len);
	return NLA_ALIGN(attr.nla_len);
}

static int transact(int fd, const void *msg, size_t len, uint8_t *answer)
{
	struct timeval wait = { .tv_usec = 500000 };

	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait));
	if (send(fd, msg, len, 0) < 0)
		return -1;
	return recv(fd, answer, BUFFER, 0);
}

static int family(int fd)
{
	static uint8_t buf[BUFFER], answer[BUFFER];
	struct nlmsghdr *h = (void *)buf, *got = (void *)answer;
	struct genlmsghdr *g = NLMSG_DATA(h);
	size_t at = NLMSG_HDRLEN + GENL_HDRLEN;
	int len, end;

	h->nlmsg_type = GENL_ID_CTRL;
	h->nlmsg_flags = NLM_F_REQUEST;
	g->cmd = CTRL_CMD_GETFAMILY;
	g->version = 1;
	h->nlmsg_len = at + put(buf + at, CTRL_ATTR_FAMILY_NAME, SHIFT_GENL_NAME,
				sizeof(SHIFT_GENL_NAME));
	len = transact(fd, buf, h->nlmsg_len, answer);
	if (len < (int)at || got->nlmsg_type == NLMSG_ERROR)
		return -1;
	for (end = len, len = at; len + NLA_HDRLEN <= end;) {
		struct nlattr *attr = (void *)(answer + len);

		if (attr->nla_type == CTRL_ATTR_FAMILY_ID)
			return *(uint16_t *)(answer + len + NLA_HDRLEN);
		len += NLA_ALIGN(attr->nla_len);
	}
	return -1;
}

static uint16_t value(uint8_t *data)
{
	static const char * const words[] = {
		"rxe0", "rxe1", "rxe2", "node1", "", "../..", "nosuch", "%s%n",
	};
	static const uint16_t lengths[] = { 0, 1, 3, 4, 8, 15, 16, 17, 64, 300 };
	uint16_t len, i;

	if (rnd() % 4 == 0) {
		const char *word = words[rnd() % 8];

		len = strlen(word) + (rnd() % 4 ? 1 : 0);
		memcpy(data, word, len);
		return len;
	}
	len = lengths[rnd() % 10];
	for (i = 0; i < len; i++)
		data[i] = rnd();
	return len;
}

static size_t attributes(uint8_t *at, size_t room, int depth)
{
	uint8_t data[512], nest[1024];
	unsigned int n = rnd() % 7;
	size_t used = 0, len;

	while (n--) {
		uint16_t type = rnd() % (SHIFT_A_MAX + 3);

		if (type == SHIFT_A_NIC && depth < 3 && rnd() % 4) {
			len = attributes(nest, sizeof(nest) - 600, depth + 1);
			if (used + len + 8 > room)
				break;
			used += put(at + used, type | (rnd() & 1 ? NLA_F_NESTED : 0),
				    nest, len);
			continue;
		}
		len = value(data);
		if (used + len + 8 > room)
			break;
		used += put(at + used, depth ? type % 4 : type, data, len);
	}
	return used;
}

int main(int argc, char **argv)
{
	static uint8_t buf[BUFFER], answer[BUFFER];
	struct nlmsghdr *h = (void *)buf;
	struct genlmsghdr *g = NLMSG_DATA(h);
	size_t head = NLMSG_HDRLEN + GENL_HDRLEN;
	unsigned int i, count;
	int fd, id;

	if (argc != 3)
		return 2;
	state = strtoull(argv[1], NULL, 0) * 0x9e3779b97f4a7c15ULL + 1;
	count = strtoul(argv[2], NULL, 0);
	fd = socket(AF_NETLINK, SOCK_RAW, NETLINK_GENERIC);
	id = family(fd);
	if (id < 0) {
		fprintf(stderr, "no family %s\n", SHIFT_GENL_NAME);
		return 2;
	}
	for (i = 0; i < count; i++) {
		memset(buf, 0, sizeof(buf));
		h->nlmsg_type = id;
		h->nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK |
				 (rnd() % 4 ? 0 : NLM_F_DUMP);
		g->cmd = rnd() % (SHIFT_CMD_MAX + 3);
		g->version = SHIFT_GENL_VERSION;
		h->nlmsg_len = head + attributes(buf + head, 4000, 0);
		/* The last attribute is cut short now and then. */
		if (rnd() % 8 == 0 && h->nlmsg_len > head + 8)
			h->nlmsg_len -= 1 + rnd() % 7;
		if (transact(fd, buf, h->nlmsg_len, answer) < 0)
			break;
		while (recv(fd, answer, BUFFER, MSG_DONTWAIT) > 0)
			;
	}
	printf("sent %u\n", i);
	close(fd);
	return 0;
}
