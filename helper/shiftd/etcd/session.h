/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the parts of the etcd client share: session.c is the connection,
 * publish.c what we write, watch.c what we read; etcd.c, on top of them, is the
 * order of steps.
 */
#ifndef SHIFT_ETCD_SESSION_H
#define SHIFT_ETCD_SESSION_H

#include "shiftd/etcd/etcd.h"
#include "shiftd/etcd/json.h"

#define ETCD_REQUEST_MS	5000
#define ETCD_PAGE_MAX	512
#define ETCD_DENIED	403	/* HTTP status: the user's role does not allow it */

struct etcd_item {
	char *key, *value;
	bool published;		/* in this session */
	bool foreign;		/* overwritten by someone else */
	bool removed;		/* to be deleted, then forgotten */
	bool refused;		/* this user may not write it; tried again later */
	bool told;		/* of that */
};

struct shift_etcd {
	sd_event *event;
	struct shift_http *http;
	const struct shift_etcd_ops *ops;
	void *arg;

	/* the configuration, copied */
	char *urls[SHIFT_ENDPOINTS_MAX];
	unsigned int n_urls;
	char *prefix, *prefix_end;	/* PREFIX/nics/ and its end, exclusive */
	char *user, *password;
	struct shift_http_tls tls;
	unsigned int ttl;

	struct etcd_item *items;
	size_t n_items;

	/* the session */
	unsigned int url;
	char *token;
	int64_t lease;
	int64_t revision;		/* of the list; 0: not begun */
	char *page_key;			/* where the next page begins */
	unsigned int page_size;
	bool listed, up;
	bool lease_lost;		/* and nothing published since */
	bool asked;			/* what this user may write */
	struct json_object *roles;	/* of this user, not looked at yet */
	uint64_t up_since;
	struct shift_http_req *op, *keepalive, *watch;
	struct etcd_item *op_item;		/* being put or deleted by op */

	/* across sessions */
	unsigned int failures;		/* endpoints tried since the last good */
	bool told_down;
	enum shift_etcd_rights rights, rights_before;
	char status[256];

	sd_event_source *step;		/* deferred: etcd_advance() is due */
	sd_event_source *retry_timer, *lease_timer, *guard_timer,
		*reclaim_timer;
	void (*withdrawn)(void *arg);
	void *withdrawn_arg;
};

/* session.c */
void etcd_step(struct shift_etcd *e);
void etcd_drop(struct shift_etcd *e);
void etcd_fail(struct shift_etcd *e, const char *why);
void etcd_up(struct shift_etcd *e);
void etcd_lease_over(struct shift_etcd *e);
void etcd_arm(sd_event_source *timer, uint64_t ms);
void etcd_disarm(sd_event_source *timer);
struct shift_http_req *etcd_post(struct shift_etcd *e, const char *path,
				 struct json_object *body, long timeout_ms,
				 shift_http_line_fn line,
				 shift_http_done_fn done);
struct json_object *etcd_answer(struct shift_etcd *e, const char *what,
				const struct shift_http_result *result);

/* publish.c */
void etcd_put_start(struct shift_etcd *e, struct etcd_item *item);
void etcd_item_seen(struct shift_etcd *e, const char *key, const char *value,
		    int64_t lease);
int etcd_on_reclaim(sd_event_source *source, uint64_t usec, void *arg);

/* rights.c */
void etcd_rights_start(struct shift_etcd *e);

/* watch.c */
void etcd_list_start(struct shift_etcd *e);
void etcd_watch_start(struct shift_etcd *e);

#endif /* SHIFT_ETCD_SESSION_H */
