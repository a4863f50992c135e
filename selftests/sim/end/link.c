// SPDX-License-Identifier: GPL-2.0
/* What the world asks of links, and what it sees of them. */
#include "core/object.h"
#include "core/qp.h"
#include "end/inside.h"
#include "failover/failover.h"
#include "link/link.h"
#include "link/link_priv.h"

#define LINKS_MAX	64u	/* lanes have numbers, too */

/* what operators were told of a link */
static bool told_up[LINKS_MAX];

/* link.c calls this instead of shift_conn_post_send() */
int sim_conn_post_send(struct shift_conn *c, const struct shift_msg *m)
{
	if (sim_upset(400, "a link is full"))
		return -EAGAIN;
	return shift_conn_post_send(c, m);
}

static void heeded(struct shift_link *link, const struct shift_msg *m)
{
	sim_message(sim_this_end, link->peer_boot_id, m->src_cookie);
	sim_mail_ops.received(link, m);
}

static void link_received(struct shift_link *link, const struct shift_msg *m)
{
	if (sim_hostile && !sim_this_end)
		sim_lie(link, m, heeded);
	else
		heeded(link, m);
}

/* It comes up and goes down by turns. */
static void link_changed(struct shift_link *link)
{
	bool *was = &told_up[link->id % LINKS_MAX], up = !*was;

	sim_log("%c link %s: %s", 'a' + sim_this_end, link->name, up ? "up" : "down");
	if (up)
		sim_session(sim_this_end, link->name[1] - '0', link->peer_boot_id);
	*was = up;
	shift_receive_link_ops.changed(link);
}

static const struct shift_link_ops ops = { .received = link_received, .changed = link_changed };

void sim_links_start(const union ib_gid *peer, const union ib_gid *peer_backup)
{
	struct shift_peer_nic nic = { .gid = *peer, .num_backups = 1, .backup[0] = *peer_backup };
	int err = shift_link_init(&ops) ?: shift_peer_set("peer", &nic, 1, NULL);

	if (err)
		sim_fail("links cannot be started (%d)", err);
	memset(told_up, 0, sizeof(told_up));
}

/* Is each link up that this end is to connect?  That of a device that was removed never is. */
bool sim_links_up(const struct shift_qp *sqp)
{
	const struct shift_link *link;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(sqp->peer.link); i++) {
		link = sqp->peer.link[i];
		if (link && link->active && link->dev && shift_link_state(link) != SHIFT_LINK_UP)
			return false;
	}
	return true;
}

/* link/dreq.c: applications here have no connections of RDMA CM's */
void shift_connection_ends(const struct ib_device *dev, u32 qpn, u32 remote_qpn, bool mute) { }
void shift_dreq_init(void) { }
void shift_dreq_uninit(void) { }
