// SPDX-License-Identifier: GPL-2.0
/*
 * A hostile peer: what comes over a link that is up is changed, or invented.  The bytes are those
 * of messages on the wire; what the decoder refuses gets no further.
 */
#include <stdio.h>
#include "end/inside.h"
#include "link/link.h"
#include "pure/msg.h"

#define KEPT	64u
#define FIXED	8u		/* magic, version, type and length: the decoder is fuzzed elsewhere */

struct wire_copy { u8 byte[SHIFT_MSG_MAX]; u32 len; };

static struct wire_copy kept[KEPT];
static u32 n_kept;

void sim_liar_start(void)
{
	n_kept = 0;
}

static const struct wire_copy *any_kept(void)
{
	return &kept[sim_draw(min(n_kept, KEPT))];
}

/* One field, or a part of it: another value, or what stood there in another message. */
static void change_field(struct wire_copy *w)
{
	u32 size = 1u << sim_draw(4), fields = (w->len - FIXED) / size, i;
	u8 *at = w->byte + FIXED + size * sim_draw(fields);
	const struct wire_copy *other = any_kept();

	switch (sim_draw(5)) {
	case 0:
		memset(at, sim_draw(2) ? 0xff : 0, size);
		break;
	case 1:
		at[size - 1] += sim_draw(2) ? 1 : -1;
		break;
	case 2:
		at[sim_draw(size)] ^= 1u << sim_draw(8);
		break;
	case 3:
		for (i = 0; i < size; i++)
			at[i] = sim_draw(256);
		break;
	default:
		if (at + size <= w->byte + other->len)
			memcpy(at, other->byte + (at - w->byte), size);
	}
}

static void deliver(struct shift_link *link, const struct wire_copy *w,
		    void (*received)(struct shift_link *link, const struct shift_msg *m))
{
	struct shift_msg m;

	sim_lies++;
	if (!shift_msg_decode(w->byte, w->len, &m))
		received(link, &m);
}

/* Something like one of the last messages, of whatever QP. */
static void invent(struct wire_copy *w)
{
	u32 n = sim_draw(4);

	*w = *any_kept();
	while (n--)
		change_field(w);
}

/* @received: what is called with messages that are true. */
void sim_lie(struct shift_link *link, const struct shift_msg *m,
	     void (*received)(struct shift_link *link, const struct shift_msg *m))
{
	struct wire_copy *w = &kept[n_kept++ % KEPT], lie;
	char text[80];
	u32 n;
	static const struct shift_msg_form form = {
		.version = SHIFT_MSG_NEWEST, .caps = SHIFT_MSG_CAPS,
	};
	int len = shift_msg_encode(m, &form, w->byte, sizeof(w->byte));

	if (len < 0)
		sim_fail("a message cannot be sent (%d)", len);
	w->len = len;
	snprintf(text, sizeof(text), "a %s is changed", shift_msg_name(m->type));
	lie = *w;
	if (sim_upset(3, text)) {
		do
			change_field(&lie);
		while (sim_draw(3));
	}
	deliver(link, &lie, received);
	while (sim_upset(3, "messages are invented"))
		for (n = sim_draw(sim_draw(4) ? 10 : 200); n; n--) {
			invent(&lie);
			deliver(link, &lie, received);
		}
}
