// SPDX-License-Identifier: GPL-2.0
/* The trace, and how a run fails. */
#include <stdio.h>
#include "sim.h"

bool sim_tracing;
static u64 hash;

void sim_log_start(void)
{
	hash = 0xcbf29ce484222325ull;
}

void sim_fail(const char *format, ...)
{
	char text[512];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	sim_failed(text);
}

/* One conversion of a format, as printf() has it, or %pI6c: the address of a peer. */
static int convert(char *to, size_t size, const char *one, size_t length, va_list *args)
{
	char spec[16] = "";
	const u8 *gid;

	memcpy(spec, one, min(length, sizeof(spec) - 1));
	switch (one[length - 1]) {
	case 'p':
		gid = va_arg(*args, const u8 *);
		return snprintf(to, size, "%u.%u.%u.%u", gid[12], gid[13], gid[14], gid[15]);
	case 's':
		return snprintf(to, size, spec, va_arg(*args, const char *));
	case 'f':
		return snprintf(to, size, spec, va_arg(*args, double));
	case '%':
		return snprintf(to, size, "%%");
	}
	if (strstr(spec, "ll"))
		return snprintf(to, size, spec, va_arg(*args, long long));
	if (strchr(spec, 'l') || strchr(spec, 'z'))
		return snprintf(to, size, spec, va_arg(*args, long));
	return snprintf(to, size, spec, va_arg(*args, int));
}

static void print(char *text, size_t size, const char *format, va_list *args)
{
	size_t at = 0, length;

	while (*format && at + 1 < size) {
		if (*format != '%') {
			text[at++] = *format++;
			continue;
		}
		length = 1 + strcspn(format + 1, "%cdifpsux") + 1;
		at += convert(text + at, size - at, format, length, args);
		format += length;
		if (format[-1] == 'p')
			format += strlen("I6c");
	}
	text[min(at, size - 1)] = 0;
}

static void mix(const char *text)
{
	for (; *text; text++)
		hash = (hash ^ (u8)*text) * 0x100000001b3ull;
}

static void write_line(const char *format, va_list *args, char *text, size_t size)
{
	print(text, size, format, args);
	text[strcspn(text, "\n")] = 0;
	mix(text);
	if (sim_tracing)
		printf("%10.6f %s\n", sim_now / 1e9, text);
}

void sim_log(const char *format, ...)
{
	char text[512];
	va_list args;

	va_start(args, format);
	write_line(format, &args, text, sizeof(text));
	va_end(args);
}

/* The module warns of what a peer that tells the truth never does. */
void sim_warns(const char *format, ...)
{
	char text[512];
	va_list args;

	va_start(args, format);
	write_line(format, &args, text, sizeof(text));
	va_end(args);
	if (strstr(text, "progress unknown") && !sim_hostile)
		sim_fail("%s", text + strspn(text, " "));
}

u64 sim_hash(void)
{
	return hash ^ sim_now;
}
