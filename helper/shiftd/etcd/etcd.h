/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A leased set of keys in etcd, kept there, and a watch on all keys beside
 * them, through whatever happens to the connection.
 */
#ifndef SHIFT_ETCD_H
#define SHIFT_ETCD_H

#include <stdbool.h>
#include <stdint.h>

#include "shiftd/config.h"
#include "shiftd/etcd/http.h"

struct shift_etcd;

struct shift_etcd_ops {
	void (*put)(const char *key, size_t key_len, const char *value,
		    size_t value_len, int64_t create_rev, int64_t mod_rev,
		    void *arg);
	void (*del)(const char *key, size_t key_len, void *arg);
	void (*list_begin)(void *arg);
	void (*list_end)(void *arg);
	void (*changed)(void *arg);	/* shift_etcd_status() did */
};

struct shift_etcd_item {
	const char *key;	/* below PREFIX/nics/ */
	const char *value;
};

/* What the user of this node may write below PREFIX/nics/. */
enum shift_etcd_rights {
	SHIFT_RIGHTS_UNKNOWN,
	SHIFT_RIGHTS_OWN,	/* not what is not its own */
	SHIFT_RIGHTS_ALL,
};

struct shift_etcd *shift_etcd_new(sd_event *event, struct shift_http *http,
				  const struct shift_config *config,
				  const struct shift_etcd_ops *ops, void *arg);
void shift_etcd_free(struct shift_etcd *etcd);
int shift_etcd_publish(struct shift_etcd *etcd,
		       const struct shift_etcd_item *items, size_t n);
int shift_etcd_withdraw(struct shift_etcd *etcd, void (*done)(void *arg),
			void *arg);
const char *shift_etcd_status(const struct shift_etcd *etcd);
bool shift_etcd_is_up(const struct shift_etcd *etcd);
enum shift_etcd_rights shift_etcd_rights(const struct shift_etcd *etcd);
const char *shift_etcd_refused(const struct shift_etcd *etcd);

#endif /* SHIFT_ETCD_H */
