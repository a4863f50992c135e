/* SPDX-License-Identifier: GPL-2.0-only */
/* The few lines of KTAP that tests in user space need. */
#ifndef KTAP_H
#define KTAP_H

#include <stdbool.h>
#include <stdio.h>

static int ktap_bad;

#define CHECK(cond) do {						\
	if (!(cond)) {							\
		printf("# %s:%d: not true: %s\n", __FILE__, __LINE__,	\
		       #cond);						\
		ktap_bad++;						\
	}								\
} while (0)

struct ktap_test {
	const char *name;
	void (*run)(void);
};

static inline int ktap_main(const struct ktap_test *tests, int n)
{
	int i, failed = 0;

	setlinebuf(stdout);
	printf("KTAP version 1\n1..%d\n", n);
	for (i = 0; i < n; i++) {
		ktap_bad = 0;
		tests[i].run();
		printf("%s %d %s\n", ktap_bad ? "not ok" : "ok", i + 1,
		       tests[i].name);
		failed += !!ktap_bad;
	}
	return !!failed;
}

#define KTAP_MAIN(tests) \
	int main(void) \
	{ \
		return ktap_main(tests, sizeof(tests) / sizeof(tests[0])); \
	}

#endif /* KTAP_H */
