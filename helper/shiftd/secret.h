/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef SHIFT_SECRET_H
#define SHIFT_SECRET_H

#include "shiftd/config.h"

#define SHIFT_CREDENTIAL	"credential:"

void shift_secrets_warn(const struct shift_config *config);
int shift_secrets_load(struct shift_config *config, const char *folder, char *err,
		       size_t errlen);

#endif /* SHIFT_SECRET_H */
