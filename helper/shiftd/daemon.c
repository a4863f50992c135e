// SPDX-License-Identifier: GPL-2.0-only
/*
 * Joins the parts: what the directory says and what the configuration wants
 * goes to the kernel, what this node has goes to the directory.
 *
 * Each event of a pair is a sync, and each sync looks at the order in which the
 * kernel has the backups, so that the directory follows that order.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "shiftd/daemon.h"
#include "shiftd/directory.h"
#include "shiftd/etcd/etcd.h"
#include "shiftd/local.h"
#include "shiftd/log.h"
#include "shiftd/notify.h"
#include "shiftd/report.h"
#include "shiftd/rtnl.h"
#include "shiftd/secret.h"
#include "shiftd/sync.h"

/* Events come in bursts; a burst is one sync. */
#define SETTLE_MS	100
/* What no event tells is found by then. */
#define RESYNC_MS	30000

struct daemon {
	const struct shift_daemon_options *options;
	struct shift_config *config;
	sd_event *event;
	sd_event_source *sync_timer, *gid_timer;
	struct shift_http *http;
	struct shift_etcd *etcd;	/* NULL: no directory */
	struct shift_dir *dir;
	struct shift_sync *sync;
	struct shift_local *local;
	struct shift_report *report;	/* NULL: there is nobody to tell */
	bool listed;			/* the directory was read once */
	bool stopping;
};

static uint64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000ULL + ts.tv_nsec / 1000000;
}

static void update_status(struct daemon *d)
{
	shift_notify_status("%s; %s", shift_sync_status(d->sync),
			    d->etcd ? shift_etcd_status(d->etcd) :
			    "no directory");
	shift_report_write(d->report, d->config, d->etcd);
}

/* Brings the next sync forward to @ms from now, never back. */
static void sync_within(struct daemon *d, uint64_t ms)
{
	uint64_t due, at = (now_ms() + ms) * 1000;

	if (sd_event_source_get_enabled(d->sync_timer, NULL) > 0 &&
	    sd_event_source_get_time(d->sync_timer, &due) >= 0 && due <= at)
		return;
	sd_event_source_set_time(d->sync_timer, at);
	sd_event_source_set_enabled(d->sync_timer, SD_EVENT_ONESHOT);
}

static void kick(void *arg)
{
	sync_within(arg, SETTLE_MS);
}

static int add_static_peers(struct daemon *d, struct shift_peers *peers)
{
	unsigned int i;
	int ret = 0;

	/* After the directory's: what the administrator wrote here stands. */
	for (i = 0; !ret && i < d->config->n_peers; i++)
		ret = shift_peers_add(peers, d->config->peers[i]);
	return ret;
}

/* Tells the directory, and ours of it, what this node has. */
static void publish(struct daemon *d)
{
	struct shift_etcd_item items[SHIFT_ENTRIES_MAX] = {};
	char keys[SHIFT_ENTRIES_MAX][SHIFT_KEY_TEXT];
	char *values[SHIFT_ENTRIES_MAX] = {};
	struct shift_entry *entries;
	struct shift_gid *gids;
	size_t i, n = 0, n_gids;
	bool failed;

	n_gids = shift_local_gids(d->local, &gids);
	if (gids)
		shift_dir_self(d->dir, d->config->node,
			       shift_local_boot_id(d->local), gids, n_gids);
	free(gids);
	entries = calloc(SHIFT_ENTRIES_MAX, sizeof(*entries));
	failed = !entries;
	if (entries)
		n = shift_local_entries(d->local, d->config, entries);
	for (i = 0; i < n; i++) {
		values[i] = shift_entry_encode(&entries[i]);
		items[i].key = shift_entry_key(&entries[i], keys[i]);
		items[i].value = values[i];
		failed |= !values[i];
	}
	if (failed || (d->etcd && shift_etcd_publish(d->etcd, items, n)))
		log_err("out of memory; nothing was published");
	for (i = 0; i < n; i++)
		free(values[i]);
	free(entries);
}

/* The kernel may use another backup than before: peers have to know. */
static void publish_in_use(struct daemon *d)
{
	const struct shift_kernel *k = shift_sync_kernel(d->sync);

	if (!k || !shift_local_in_use(d->local, d->config, k))
		return;
	shift_local_refresh(d->local, d->config);
	publish(d);
}

static int on_sync(sd_event_source *source, uint64_t usec, void *arg)
{
	struct shift_peers peers = {};
	struct daemon *d = arg;
	struct shift_sync_want want = {
		.config = d->config,
		.peers = &peers,
		.complete = d->etcd && d->listed,
		.now_ms = now_ms(),
		.hold_ms = d->config->hold * 1000ULL,
	};
	uint64_t next, again;
	unsigned int i;

	(void)source;
	(void)usec;
	next = shift_dir_expire(d->dir, want.now_ms, want.hold_ms);
	next = next == UINT64_MAX ? RESYNC_MS : next - want.now_ms;
	if (shift_dir_peers(d->dir, &peers) || add_static_peers(d, &peers)) {
		/* Half a set would remove the other half. */
		log_err("out of memory; the kernel keeps what it has");
		shift_peers_clear(&peers);
		sync_within(d, RESYNC_MS);
		return 0;
	}
	for (i = 0; i < d->config->n_expelled; i++)
		shift_peers_remove(&peers, d->config->expelled[i]);
	again = shift_sync_run(d->sync, &want);
	publish_in_use(d);
	shift_peers_clear(&peers);
	if (again < next)
		next = again;
	sync_within(d, next < RESYNC_MS ? next : RESYNC_MS);
	update_status(d);
	return 0;
}

static void dir_put(const char *key, size_t key_len, const char *value,
		    size_t value_len, int64_t create_rev, int64_t mod_rev,
		    void *arg)
{
	struct daemon *d = arg;

	shift_dir_put(d->dir, key, key_len, value, value_len, create_rev,
		      mod_rev, now_ms());
	kick(d);
}

static void dir_del(const char *key, size_t key_len, void *arg)
{
	struct daemon *d = arg;

	shift_dir_delete(d->dir, key, key_len, now_ms());
	kick(d);
}

static void dir_list_begin(void *arg)
{
	struct daemon *d = arg;

	shift_dir_list_begin(d->dir);
}

static void dir_list_end(void *arg)
{
	struct daemon *d = arg;

	shift_dir_list_end(d->dir, now_ms());
	d->listed = true;
	kick(d);
}

static void etcd_changed(void *arg)
{
	update_status(arg);
}

static const struct shift_etcd_ops etcd_ops = {
	.put = dir_put,
	.del = dir_del,
	.list_begin = dir_list_begin,
	.list_end = dir_list_end,
	.changed = etcd_changed,
};

static int on_gid_timer(sd_event_source *source, uint64_t usec, void *arg)
{
	struct daemon *d = arg;

	(void)usec;
	if (shift_local_refresh(d->local, d->config)) {
		publish(d);
		kick(d);
	}
	sd_event_source_set_time_relative(source, RESYNC_MS * 1000ULL);
	sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
	return 0;
}

static void on_addresses(void *arg)
{
	uint64_t due, at = (now_ms() + 5 * SETTLE_MS) * 1000;
	struct daemon *d = arg;

	/* The GID table follows the address a little later. */
	if (sd_event_source_get_time(d->gid_timer, &due) < 0 || due > at)
		sd_event_source_set_time(d->gid_timer, at);
}

static int start_etcd(struct daemon *d)
{
	if (!d->config->n_endpoints)
		return 0;
	d->etcd = shift_etcd_new(d->event, d->http, d->config, &etcd_ops, d);
	return d->etcd ? 0 : -ENOMEM;
}

static bool has_pair(const struct shift_config *config, const char *dev)
{
	unsigned int i;

	for (i = 0; i < config->n_pairs; i++)
		if (!strcmp(config->pairs[i].dev, dev))
			return true;
	return false;
}

static void reload(struct daemon *d)
{
	struct shift_config *config, *old = d->config;
	unsigned int i;
	char err[512];

	config = shift_config_load(d->options->config_path, err, sizeof(err));
	if (config && shift_secrets_load(config, getenv("CREDENTIALS_DIRECTORY"), err,
					 sizeof(err))) {
		shift_config_free(config);
		config = NULL;
	}
	if (!config) {
		log_err("%s; the old configuration stays in use", err);
		return;
	}
	for (i = 0; i < old->n_pairs; i++)
		if (!has_pair(config, old->pairs[i].dev))
			shift_sync_pair_del(d->sync, old->pairs[i].dev);
	d->config = config;
	if (!shift_config_same_etcd(old, config)) {
		shift_etcd_free(d->etcd);
		d->etcd = NULL;
		d->listed = false;
		if (start_etcd(d))
			log_err("out of memory; going on without a directory");
	}
	shift_config_free(old);
	shift_local_refresh(d->local, config);
	publish(d);
	kick(d);
	log_info("configuration read again");
}

static int on_hup(sd_event_source *source, const struct signalfd_siginfo *si,
		  void *arg)
{
	(void)source;
	(void)si;
	shift_notify_reloading();
	reload(arg);
	shift_notify_reloaded();
	return 0;
}

static void on_withdrawn(void *arg)
{
	struct daemon *d = arg;

	sd_event_exit(d->event, 0);
}

static int on_term(sd_event_source *source, const struct signalfd_siginfo *si,
		   void *arg)
{
	struct daemon *d = arg;

	(void)source;
	(void)si;
	shift_notify_stopping();
	/*
	 * The lease is left to run out: a restart is back before that, and
	 * peers hold what they know.  Twice asked, no more waiting.
	 */
	if (!d->stopping && d->etcd &&
	    (d->options->withdraw || d->config->withdraw)) {
		d->stopping = true;
		if (!shift_etcd_withdraw(d->etcd, on_withdrawn, d))
			return 0;
	}
	return sd_event_exit(d->event, 0);
}

static int add_signal(struct daemon *d, int sig, sd_event_signal_handler_t fn)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, sig);
	if (sigprocmask(SIG_BLOCK, &set, NULL))
		return -errno;
	return sd_event_add_signal(d->event, NULL, sig, fn, d);
}

static int init_events(struct daemon *d)
{
	int ret;

	ret = sd_event_default(&d->event);
	if (ret < 0)
		return ret;
	ret = add_signal(d, SIGTERM, on_term);
	if (ret >= 0)
		ret = add_signal(d, SIGINT, on_term);
	if (ret >= 0)
		ret = add_signal(d, SIGHUP, on_hup);
	if (ret >= 0)
		ret = sd_event_add_time_relative(d->event, &d->sync_timer,
						 CLOCK_MONOTONIC, 0, 1000,
						 on_sync, d);
	if (ret >= 0)
		ret = sd_event_add_time_relative(d->event, &d->gid_timer,
						 CLOCK_MONOTONIC,
						 RESYNC_MS * 1000ULL, 1000,
						 on_gid_timer, d);
	return ret < 0 ? ret : 0;
}

/**
 * shift_daemon_run() - all of shiftd after its options
 * @options: from the command line
 * @config: the configuration; freed here
 *
 * Return: exit status.
 */
int shift_daemon_run(const struct shift_daemon_options *options,
		     struct shift_config *config)
{
	struct daemon d = { .options = options, .config = config };
	int ret;

	ret = init_events(&d);
	if (ret)
		goto out_event;
	ret = -ENOMEM;
	d.http = shift_http_new(d.event);
	if (!d.http)
		goto out_event;
	d.dir = shift_dir_new();
	if (!d.dir)
		goto out_http;
	d.local = shift_local_new(options->sysfs);
	if (!d.local)
		goto out_dir;
	d.sync = shift_sync_new(d.event, options->dry_run, kick, &d);
	if (!d.sync)
		goto out_local;
	d.report = shift_report_new(getenv("RUNTIME_DIRECTORY"));
	ret = start_etcd(&d);
	if (ret)
		goto out_sync;
	if (shift_rtnl_watch(d.event, on_addresses, &d))
		log_warn("cannot watch for changed addresses; they are noticed within 30 s");
	shift_local_refresh(d.local, d.config);
	publish(&d);
	shift_notify_ready(d.event);
	log_info("node %s: %u pair(s), %u static peer(s), %s", d.config->node,
		 d.config->n_pairs, d.config->n_peers,
		 d.etcd ? "directory in etcd" : "no directory");
	ret = sd_event_loop(d.event);

	shift_etcd_free(d.etcd);
out_sync:
	shift_report_free(d.report);
	shift_sync_free(d.sync);
out_local:
	shift_local_free(d.local);
out_dir:
	shift_dir_free(d.dir);
out_http:
	shift_http_free(d.http);
out_event:
	sd_event_source_disable_unref(d.sync_timer);
	sd_event_source_disable_unref(d.gid_timer);
	sd_event_unref(d.event);
	shift_config_free(d.config);
	if (ret < 0)
		log_err("%s", strerror(-ret));
	return ret ? 1 : 0;
}
