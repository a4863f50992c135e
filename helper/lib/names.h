/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef SHIFT_NAMES_H
#define SHIFT_NAMES_H

#include <linux/shift.h>

#define SHIFT_NAME_NUMBER	20	/* room for the name of an unknown value */

/* Names of the uapi enums, as printed; the same words as in shift.yaml. */
struct shift_names {
	const char * const *name;
	unsigned int n;
	const char *unknown;	/* what precedes the number of one not known */
};

extern const struct shift_names shift_link_state_names;
extern const struct shift_names shift_qp_state_names;
extern const struct shift_names shift_reason_names;
extern const struct shift_names shift_cause_names;
extern const struct shift_names shift_qp_event_names;
extern const struct shift_names shift_port_state_names;
extern const struct shift_names shift_policy_names;

const char *shift_name_of(const struct shift_names *names, unsigned int value,
			  char buf[SHIFT_NAME_NUMBER]);
int shift_policy_find(const char *word);

#endif /* SHIFT_NAMES_H */
