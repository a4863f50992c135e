// SPDX-License-Identifier: GPL-2.0-only
/*
 * libcurl does not let a handle be removed from within its own callbacks.  So
 * these only store what came; lines and results are handed out afterwards, by
 * dispatch(), where a request may be cancelled by anyone.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <curl/curl.h>

#include "shiftd/etcd/http.h"
#include "shiftd/log.h"

/* Largest answer, and largest line of a stream: they come from the network. */
#define BODY_MAX	(8 << 20)
#define CONNECT_MS	3000L

struct shift_http {
	sd_event *event;
	CURLM *multi;
	sd_event_source *timer;
	struct shift_http_req *reqs;
	bool dispatching;
};

struct shift_http_req {
	struct shift_http_req *next;
	struct shift_http *http;
	CURL *curl;
	struct curl_slist *headers;
	char *body;		/* sent */
	char *buf;		/* received, not yet handed out */
	size_t len, size;
	char error[CURL_ERROR_SIZE];
	CURLcode code;
	bool finished, dead, too_large;
	shift_http_line_fn line;
	shift_http_done_fn done;
	void *arg;
};

static void dispatch(struct shift_http *http);

static size_t on_data(char *data, size_t one, size_t len, void *arg)
{
	struct shift_http_req *req = arg;
	size_t size;
	char *grown;

	(void)one;
	if (req->len + len > BODY_MAX) {
		req->too_large = true;
		return 0;
	}
	if (req->len + len + 1 > req->size) {
		size = (req->len + len + 1) * 2;
		grown = realloc(req->buf, size);
		if (!grown)
			return 0;
		req->buf = grown;
		req->size = size;
	}
	memcpy(req->buf + req->len, data, len);
	req->len += len;
	req->buf[req->len] = '\0';
	return len;
}

static void action(struct shift_http *http, curl_socket_t fd, int events)
{
	int running;

	curl_multi_socket_action(http->multi, fd, events, &running);
	dispatch(http);
}

static int on_io(sd_event_source *source, int fd, uint32_t revents, void *arg)
{
	int events = 0;

	(void)source;
	if (revents & EPOLLIN)
		events |= CURL_CSELECT_IN;
	if (revents & EPOLLOUT)
		events |= CURL_CSELECT_OUT;
	if (revents & (EPOLLERR | EPOLLHUP))
		events |= CURL_CSELECT_ERR;
	action(arg, fd, events);
	return 0;
}

static int on_timer(sd_event_source *source, uint64_t usec, void *arg)
{
	(void)source;
	(void)usec;
	action(arg, CURL_SOCKET_TIMEOUT, 0);
	return 0;
}

static int set_socket(CURL *curl, curl_socket_t fd, int what, void *arg,
		      void *socket_arg)
{
	sd_event_source *source = socket_arg;
	struct shift_http *http = arg;
	uint32_t events = 0;

	(void)curl;
	if (what == CURL_POLL_REMOVE) {
		curl_multi_assign(http->multi, fd, NULL);
		/* Off at once: the fd may be closed and its number reused. */
		sd_event_source_disable_unref(source);
		return 0;
	}
	if (what & CURL_POLL_IN)
		events |= EPOLLIN;
	if (what & CURL_POLL_OUT)
		events |= EPOLLOUT;
	if (source)
		return sd_event_source_set_io_events(source, events) < 0 ?
			-1 : 0;
	if (sd_event_add_io(http->event, &source, fd, events, on_io, http) < 0)
		return -1;
	curl_multi_assign(http->multi, fd, source);
	return 0;
}

static int set_timer(CURLM *multi, long ms, void *arg)
{
	struct shift_http *http = arg;
	int ret;

	(void)multi;
	if (ms < 0)
		return sd_event_source_set_enabled(http->timer,
						   SD_EVENT_OFF) < 0 ? -1 : 0;
	ret = sd_event_source_set_time_relative(http->timer, ms * 1000ULL);
	if (ret >= 0)
		ret = sd_event_source_set_enabled(http->timer,
						  SD_EVENT_ONESHOT);
	return ret < 0 ? -1 : 0;
}

struct shift_http *shift_http_new(sd_event *event)
{
	struct shift_http *http = calloc(1, sizeof(*http));

	if (!http || curl_global_init(CURL_GLOBAL_DEFAULT))
		goto err_free;
	http->event = sd_event_ref(event);
	if (sd_event_add_time(event, &http->timer, CLOCK_MONOTONIC, 0, 1000,
			      on_timer, http) < 0)
		goto err_unref;
	sd_event_source_set_enabled(http->timer, SD_EVENT_OFF);
	http->multi = curl_multi_init();
	if (!http->multi)
		goto err_unref;
	curl_multi_setopt(http->multi, CURLMOPT_SOCKETFUNCTION, set_socket);
	curl_multi_setopt(http->multi, CURLMOPT_SOCKETDATA, http);
	curl_multi_setopt(http->multi, CURLMOPT_TIMERFUNCTION, set_timer);
	curl_multi_setopt(http->multi, CURLMOPT_TIMERDATA, http);
	return http;

err_unref:
	sd_event_source_unref(http->timer);
	sd_event_unref(http->event);
err_free:
	free(http);
	return NULL;
}

static void free_req(struct shift_http_req *req)
{
	struct shift_http_req **p = &req->http->reqs;

	while (*p != req)
		p = &(*p)->next;
	*p = req->next;
	curl_multi_remove_handle(req->http->multi, req->curl);
	curl_easy_cleanup(req->curl);
	curl_slist_free_all(req->headers);
	/* It may hold a password. */
	explicit_bzero(req->body, strlen(req->body));
	free(req->body);
	free(req->buf);
	free(req);
}

void shift_http_free(struct shift_http *http)
{
	if (!http)
		return;
	while (http->reqs)
		free_req(http->reqs);
	curl_multi_cleanup(http->multi);
	sd_event_source_disable_unref(http->timer);
	sd_event_unref(http->event);
	free(http);
	curl_global_cleanup();
}

/* Neither callback of @req runs after this. */
void shift_http_cancel(struct shift_http_req *req)
{
	if (!req || req->dead)
		return;
	req->dead = true;
	if (!req->http->dispatching)
		free_req(req);
}

/* Hands out whole lines; a callback may cancel the request. */
static void hand_out_lines(struct shift_http_req *req)
{
	char *start = req->buf, *end;
	size_t left = req->len;

	while (!req->dead && left && (end = memchr(start, '\n', left))) {
		*end = '\0';
		req->line(start, end - start, req->arg);
		left -= end + 1 - start;
		start = end + 1;
	}
	if (start != req->buf) {
		memmove(req->buf, start, left);
		req->len = left;
		req->buf[left] = '\0';
	}
}

static void finish(struct shift_http_req *req)
{
	struct shift_http_result result = {
		.body = req->buf ? req->buf : "",
		.len = req->len,
		.too_large = req->too_large,
	};

	if (req->too_large)
		result.error = "the answer is too large";
	else if (req->code)
		result.error = *req->error ? req->error :
			curl_easy_strerror(req->code);
	curl_easy_getinfo(req->curl, CURLINFO_RESPONSE_CODE, &result.status);
	req->dead = true;
	req->done(&result, req->arg);
}

static void dispatch(struct shift_http *http)
{
	struct shift_http_req *req, *next;
	CURLMsg *msg;
	int left;

	if (http->dispatching)
		return;
	while ((msg = curl_multi_info_read(http->multi, &left))) {
		if (msg->msg != CURLMSG_DONE)
			continue;
		curl_easy_getinfo(msg->easy_handle, CURLINFO_PRIVATE,
				  (char **)&req);
		req->code = msg->data.result;
		req->finished = true;
	}
	/* New requests go to the head: this sees each that was there once. */
	http->dispatching = true;
	for (req = http->reqs; req; req = req->next) {
		if (!req->dead && req->line)
			hand_out_lines(req);
		if (!req->dead && req->finished)
			finish(req);
	}
	http->dispatching = false;
	for (req = http->reqs; req; req = next) {
		next = req->next;
		if (req->dead)
			free_req(req);
	}
}

/**
 * shift_http_post() - send a request
 * @http: from shift_http_new()
 * @url: where to
 * @body: JSON; copied
 * @token: value of the Authorization header, or NULL
 * @tls: files for https, or NULL
 * @timeout_ms: for all of it, 0: for the connection only
 * @line: called for each line of a stream, or NULL
 * @done: called once, at the end, unless cancelled
 * @arg: passed to both
 *
 * Return: the request, valid until @done returns, or NULL.
 */
struct shift_http_req *shift_http_post(struct shift_http *http, const char *url,
				       const char *body, const char *token,
				       const struct shift_http_tls *tls,
				       long timeout_ms, shift_http_line_fn line,
				       shift_http_done_fn done, void *arg)
{
	struct shift_http_req *req = calloc(1, sizeof(*req));
	char header[512];
	CURL *curl;

	if (!req)
		return NULL;
	req->http = http;
	req->line = line;
	req->done = done;
	req->arg = arg;
	req->body = strdup(body);
	req->curl = curl = curl_easy_init();
	if (!req->body || !curl)
		goto err_free;
	req->headers = curl_slist_append(NULL,
					 "Content-Type: application/json");
	if (token) {
		snprintf(header, sizeof(header), "Authorization: %s", token);
		req->headers = curl_slist_append(req->headers, header);
	}
	curl_easy_setopt(curl, CURLOPT_URL, url);
	curl_easy_setopt(curl, CURLOPT_POSTFIELDS, req->body);
	curl_easy_setopt(curl, CURLOPT_HTTPHEADER, req->headers);
	curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_data);
	curl_easy_setopt(curl, CURLOPT_WRITEDATA, req);
	curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, req->error);
	curl_easy_setopt(curl, CURLOPT_PRIVATE, req);
	curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 0L);
	curl_easy_setopt(curl, CURLOPT_HTTP_VERSION,
			 (long)CURL_HTTP_VERSION_1_1);
	/* A proxy from somebody's environment is never meant for this. */
	curl_easy_setopt(curl, CURLOPT_PROXY, "");
	curl_easy_setopt(curl, CURLOPT_USERAGENT, "shiftd");
	curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, CONNECT_MS);
	curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, timeout_ms);
	/* A stream says nothing for hours; a dead one must still be noticed. */
	curl_easy_setopt(curl, CURLOPT_TCP_KEEPALIVE, 1L);
	curl_easy_setopt(curl, CURLOPT_TCP_KEEPIDLE, 10L);
	curl_easy_setopt(curl, CURLOPT_TCP_KEEPINTVL, 3L);
	if (tls && tls->ca_file)
		curl_easy_setopt(curl, CURLOPT_CAINFO, tls->ca_file);
	if (tls && tls->cert_file) {
		curl_easy_setopt(curl, CURLOPT_SSLCERT, tls->cert_file);
		curl_easy_setopt(curl, CURLOPT_SSLKEY, tls->key_file);
	}
	req->next = http->reqs;
	http->reqs = req;
	if (curl_multi_add_handle(http->multi, curl)) {
		free_req(req);
		return NULL;
	}
	return req;

err_free:
	if (curl)
		curl_easy_cleanup(curl);
	free(req->body);
	free(req);
	return NULL;
}
