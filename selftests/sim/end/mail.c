// SPDX-License-Identifier: GPL-2.0
/*
 * Between a link and the QPs: messages are lost here, or late, or come once more.  A link does none
 * of this while it lasts, but the protocol is not to depend on that.
 */
#include <stdio.h>
#include "core/qp.h"
#include "end/inside.h"
#include "failover/failover.h"
#include "link/link.h"
#include "link/link_priv.h"
#include "proxy/proxy.h"

#define OLD_MAX		16u

enum kind { LOST, LATE, TWICE, OLD, DEAF };

struct late { struct shift_link *link; struct shift_msg m; u64 ns; u8 boot_id[16]; };

/* that have come before */
static struct { struct shift_msg m; u8 boot_id[16]; } old[OLD_MAX];
static u32 n_old;
static u32 late;			/* messages that are still to come */
static u64 deaf_until;

static void late_thread(void *arg)
{
	struct late *l = arg;

	sim_sleep(l->ns);
	/* never behind one of the next kernel, whatever a link does */
	if (!memcmp(l->boot_id, l->link->peer_boot_id, 16))
		shift_receive_link_ops.received(l->link, &l->m);
	shift_link_unref(l->link);
	kfree(l);
	late--;
}

static void comes_after(struct shift_link *link, const struct shift_msg *m, u64 ns)
{
	struct late *l = sim_alloc(sizeof(*l), SIM_GFP_WORLD);

	kref_get(&link->ref);
	*l = (struct late) { .link = link, .m = *m, .ns = ns };
	memcpy(l->boot_id, link->peer_boot_id, 16);
	late++;
	sim_thread_start(sim_this_end, "late message", late_thread, l, false);
}

static void comes_late(struct shift_link *link, const struct shift_msg *m)
{
	comes_after(link, m, sim_draw(4) ? sim_draw_between(US(100), MS(300)) :
					   sim_draw_between(MS(300), MS(3000)));
}

/* One for the same QP, of an earlier epoch, mostly of the same kind; NULL: there is none. */
static const struct shift_msg *draw_old(const struct shift_link *link, const struct shift_msg *m)
{
	const struct shift_msg *may[OLD_MAX];
	bool any = !sim_draw(4);
	u32 i, n = 0;

	for (i = 0; i < min(n_old, OLD_MAX); i++)
		if (old[i].m.dst_cookie == m->dst_cookie && old[i].m.epoch < m->epoch &&
		    (any || old[i].m.type == m->type) &&
		    !memcmp(old[i].boot_id, link->peer_boot_id, 16))
			may[n++] = &old[i].m;
	return n ? may[sim_draw(n)] : NULL;
}

/* What happens to it; false: nothing. */
static bool happens(const struct shift_msg *m, enum kind kind, u64 ms)
{
	static const char *const names[] = {
		"is lost", "is late", "comes once more, late", "comes once more",
		"and all the others are lost for ",
	};
	char text[100];

	snprintf(text, sizeof(text), "a %s of epoch %u to %c %s", shift_msg_name(m->type), m->epoch,
		 'a' + sim_this_end, names[kind]);
	if (kind == DEAF)
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "%llu ms",
			 (unsigned long long)ms);
	if (sim_now < sim_mail.calm_until || !sim_upset(sim_mail.odds, text))
		return false;
	sim_mail.calm_until = sim_now + sim_mail.calm;
	return true;
}

static void received(struct shift_link *link, const struct shift_msg *m)
{
	enum kind kind = sim_draw(sim_mail.calm ? DEAF : DEAF + 1);
	u64 ms = 20 + sim_draw(sim_draw(2) ? 300 : 1500);
	const struct shift_msg *before = kind == OLD ? draw_old(link, m) : NULL;

	if (m->type == SHIFT_MSG_REQ)
		sim_asked(m->src_cookie, m->dst_cookie, m->epoch, m->req.to, m->req.t_detect);
	if (m->type == SHIFT_MSG_READY)
		sim_begins(m->src_cookie, m->dst_cookie, m->epoch,
			   shift_start_psn(m->src_cookie, m->epoch));
	if (sim_now < deaf_until)
		return;
	if (kind == OLD && !before)
		kind = TWICE;
	old[n_old % OLD_MAX].m = *m;
	memcpy(old[n_old++ % OLD_MAX].boot_id, link->peer_boot_id, 16);
	if (!happens(before ?: m, kind, ms)) {
		shift_receive_link_ops.received(link, m);
		return;
	}
	switch (kind) {
	case DEAF:
		deaf_until = sim_now + MS(ms);
		fallthrough;
	case LOST:
		sim_mail.lost = true;
		break;
	case OLD:
		/* a mailbox keeps the newer one of two that come together */
		shift_receive_link_ops.received(link, before);
		comes_after(link, m, sim_draw_between(US(20), MS(2)));
		break;
	case TWICE:
		shift_receive_link_ops.received(link, m);
		fallthrough;
	case LATE:
		comes_late(link, m);
	}
}

const struct shift_link_ops sim_mail_ops = { .received = received };

void sim_mail_start(void)
{
	n_old = 0;
	deaf_until = 0;
}

void sim_mail_wait(void)
{
	while (late)
		sim_sleep(MS(1));
}
