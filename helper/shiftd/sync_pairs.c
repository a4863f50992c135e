// SPDX-License-Identifier: GPL-2.0-only
/*
 * Pairs: the kernel gets the backups of each device in the order in which the
 * configuration names them.
 *
 * It appends what it is given.  A backup that cannot be added yet, as its NIC is
 * not there, does not hold up those behind it: any backup is better than none.
 * When it comes at last it stands behind them, and the list is made anew as soon
 * as no application uses the device; the same mends a list that has something
 * that is not in the configuration any more.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lib/names.h"
#include "shiftd/log.h"
#include "shiftd/sync_pairs.h"

#define LIST_TEXT	(SHIFT_BACKUPS_MAX * SHIFT_DEV_MAX)

/* Where @backup stands in a list, or its length. */
static unsigned int find(const char (*list)[SHIFT_DEV_MAX], unsigned int n,
			 const char *backup)
{
	unsigned int i;

	for (i = 0; i < n; i++)
		if (!strcmp(list[i], backup))
			break;
	return i;
}

static const char *list_text(const char (*list)[SHIFT_DEV_MAX], unsigned int n,
			     char text[LIST_TEXT])
{
	unsigned int i;
	size_t len = 0;

	text[0] = '\0';
	for (i = 0; i < n; i++)
		len += snprintf(text + len, LIST_TEXT - len, "%s%s",
				i ? "," : "", list[i]);
	return text;
}

static bool has_backup(const struct shift_kernel_pair *have, const char *backup)
{
	return find(have->backups, have->n_backups, backup) < have->n_backups;
}

/* Is all that the kernel has wanted, and in the order in which it is? */
static bool in_order(const struct shift_kernel_pair *have,
		     const struct shift_config_pair *want)
{
	unsigned int i, at, next = 0;

	for (i = 0; i < have->n_backups; i++) {
		at = find(want->backups, want->n_backups, have->backups[i]);
		if (at == want->n_backups || at < next)
			return false;
		next = at + 1;
	}
	return true;
}

static bool has_any(const struct shift_kernel_pair *have,
		    const struct shift_config_pair *want)
{
	unsigned int i;

	for (i = 0; i < want->n_backups; i++)
		if (has_backup(have, want->backups[i]))
			return true;
	return false;
}

/*
 * Adds what the kernel does not have.  Return: how many backups are not there;
 * *@again is brought forward if one was refused: no event tells when its NIC is
 * there, memory is free, or what was in use is not any more.
 */
static unsigned int add_backups(uint32_t *told, struct shift_kernel *k,
				const struct shift_config_pair *want,
				uint64_t *again)
{
	unsigned int i, missing = 0;
	char num[SHIFT_NAME_NUMBER];
	int ret;

	for (i = 0; i < want->n_backups; i++, told++) {
		struct shift_kernel_pair *have = shift_kernel_pair(k, want->dev);
		const char *backup = want->backups[i];

		if (have && has_backup(have, backup)) {
			*told = 0;
			continue;
		}
		missing++;
		if (have && have->one_only) {
			/* The kernel has said so itself if it was asked. */
			if (!*told)
				log_warn_once(told, "pair %s %s: this kernel module takes one backup of a device, and has %s",
					      want->dev, backup,
					      have->backups[0]);
			continue;
		}
		ret = shift_kernel_pair_add(k, want->dev, backup, want->policy);
		if (!ret) {
			missing--;
			*told = 0;
			log_info("pair: %s stands in for %s, policy %s", backup,
				 want->dev, shift_name_of(&shift_policy_names,
							  want->policy, num));
			continue;
		}
		log_warn_once(told, "pair %s %s: %s", want->dev, backup,
			      shift_kernel_error(k));
		/* An older kernel keeps one backup and takes no other. */
		if (ret == -EEXIST && have)
			have->one_only = true;
		else if (*again > SHIFT_SYNC_RETRY_MS)
			*again = SHIFT_SYNC_RETRY_MS;
	}
	return missing;
}

static int set_policy(uint32_t *told, struct shift_kernel *k,
		      const struct shift_config_pair *want)
{
	const struct shift_kernel_pair *have = shift_kernel_pair(k, want->dev);
	char num[SHIFT_NAME_NUMBER];
	int ret;

	if (!have || have->policy == want->policy)
		return 0;
	ret = shift_kernel_pair_set(k, want->dev, want->policy);
	if (ret)
		log_warn_once(told, "pair %s: %s", want->dev,
			      shift_kernel_error(k));
	else
		log_info("pair: the policy of %s is %s now", want->dev,
			 shift_name_of(&shift_policy_names, want->policy, num));
	return ret;
}

/* Return: whether the kernel's list was taken away, to be given anew. */
static bool take_away(uint32_t *told, struct shift_kernel *k,
		      const struct shift_config_pair *want)
{
	const struct shift_kernel_pair *have = shift_kernel_pair(k, want->dev);
	char has[LIST_TEXT], wants[LIST_TEXT];

	if (!have || have->one_only || in_order(have, want)) {
		*told = 0;
		return false;
	}
	/* Nor is what works given up while nothing of what is wanted does. */
	if (have->drained || have->qps ||
	    (have->n_backups < SHIFT_PAIR_BACKUPS_MAX && !has_any(have, want)) ||
	    shift_kernel_pair_del(k, want->dev)) {
		log_warn_once(told, "pair %s: the kernel has the backups %s, not %s; this is changed when no application uses the device%s",
			      want->dev,
			      list_text(have->backups, have->n_backups, has),
			      list_text(want->backups, want->n_backups, wants),
			      have->drained ? " and the device is not drained" : "");
		return false;
	}
	log_info("pair: the backups of %s are added again in the configured order",
		 want->dev);
	*told = 0;
	return true;
}

/**
 * shift_sync_pairs() - give the kernel the pairs of the configuration
 * @s: what was said of them
 * @k: what it has
 * @config: what it should have
 * @again: in how many ms to come again; brought forward
 *
 * Pairs of devices that the configuration does not name are left alone.
 *
 * Return: how many backups are missing.
 */
unsigned int shift_sync_pairs(struct shift_sync_pairs *s,
			      struct shift_kernel *k,
			      const struct shift_config *config,
			      uint64_t *again)
{
	unsigned int i, n, missing = 0;

	for (i = 0; i < config->n_pairs; i++) {
		const struct shift_config_pair *want = &config->pairs[i];

		if (set_policy(&s->told[i], k, want)) {
			missing++;
			continue;
		}
		n = add_backups(s->backup_told[i], k, want, again);
		if (take_away(&s->told[i], k, want)) {
			n = add_backups(s->backup_told[i], k, want, again);
			if (n && *again > SHIFT_SYNC_RETRY_MS)
				*again = SHIFT_SYNC_RETRY_MS;
		}
		missing += n;
	}
	return missing;
}
