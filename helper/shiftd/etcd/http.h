/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * HTTP POST inside an sd-event loop, by libcurl's multi interface.
 */
#ifndef SHIFT_HTTP_H
#define SHIFT_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <systemd/sd-event.h>

struct shift_http;
struct shift_http_req;

/* Kept by the caller for as long as requests run. */
struct shift_http_tls {
	const char *ca_file, *cert_file, *key_file;
};

struct shift_http_result {
	/* NULL, or why there is no answer: a text for a log line */
	const char *error;
	bool too_large;
	long status;
	const char *body;	/* NUL-terminated */
	size_t len;
};

/*
 * Both run from the loop, never from inside shift_http_post().  They may
 * cancel any request and start others.
 */
typedef void (*shift_http_line_fn)(const char *line, size_t len, void *arg);
typedef void (*shift_http_done_fn)(const struct shift_http_result *result,
				   void *arg);

struct shift_http *shift_http_new(sd_event *event);
void shift_http_free(struct shift_http *http);
struct shift_http_req *shift_http_post(struct shift_http *http, const char *url,
				       const char *body, const char *token,
				       const struct shift_http_tls *tls,
				       long timeout_ms, shift_http_line_fn line,
				       shift_http_done_fn done, void *arg);
void shift_http_cancel(struct shift_http_req *req);

#endif /* SHIFT_HTTP_H */
