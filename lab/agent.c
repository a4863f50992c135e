// SPDX-License-Identifier: GPL-2.0
/*
 * The node's end of the exec channel: one TCP connection runs one command.
 *
 * Both directions carry frames: one type byte, a big-endian 32-bit length, the
 * payload. To the node:
 *   a  one word of the command        e  one NAME=value for its environment
 *   u  "uid:gid" to run as            r  run it
 *   i  bytes for its stdin, empty for end of file
 * and back:
 *   o  stdout bytes    e  stderr bytes    m  why it could not be started
 *   x  exit status as text, 128 + n for a command killed by signal n; last one
 *
 * Two commands are the agent's own, as an emulated node takes some 50 ms to start a program:
 *   lab-read PATH...   what files hold; of a folder each file's name and what it holds
 *   lab-write PATH     its stdin goes there by one write
 *
 * When the caller goes away, or closes its sending side, the command's process
 * group is ended: SIGTERM, then SIGKILL. What a command leaves running in the
 * background when it exits by itself is left alone.
 *
 * A line on stdout tells when connections are taken.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MAX_WORDS	8192
#define MAX_FRAME	(1u << 20)
#define CHUNK		(64u << 10)
#define GRACE_MS	500

struct request {
	char *argv[MAX_WORDS + 1];
	int argc;
	uid_t uid;
	gid_t gid;
};

struct command {
	pid_t pid;
	int pidfd;
	int in, out, err;	/* our ends of the pipes, -1 once closed */
	char *pending;		/* stdin bytes the command has not taken yet */
	size_t pending_len, pending_off;
	int caller_gone;
	int64_t kill_at;	/* when to send SIGKILL, 0: not asked to end */
	int killed;
};

static int conn;

static int64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000LL + t.tv_nsec / 1000000;
}

static int write_all(int fd, const void *buf, size_t len)
{
	const char *at = buf;

	while (len) {
		ssize_t n = write(fd, at, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return -1;
		at += n;
		len -= n;
	}
	return 0;
}

static int read_all(int fd, void *buf, size_t len)
{
	char *at = buf;

	while (len) {
		ssize_t n = read(fd, at, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return -1;
		at += n;
		len -= n;
	}
	return 0;
}

/* One write per frame, so that TCP_NODELAY does not cost a packet per header. */
static int send_frame(char type, const void *buf, size_t len)
{
	static char frame[5 + CHUNK];
	uint32_t be = htonl(len);

	frame[0] = type;
	memcpy(frame + 1, &be, 4);
	memcpy(frame + 5, buf, len);
	return write_all(conn, frame, 5 + len);
}

static void send_text(char type, const char *format, ...)
{
	char text[256];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	send_frame(type, text, strlen(text));
}

/* The payload is NUL-terminated and the caller's to free. */
static int read_frame(char *type, char **payload, size_t *len)
{
	unsigned char head[5];
	uint32_t be;

	if (read_all(conn, head, sizeof(head)))
		return -1;
	*type = head[0];
	memcpy(&be, head + 1, 4);
	*len = ntohl(be);
	if (*len > MAX_FRAME)
		return -1;
	*payload = malloc(*len + 1);
	if (!*payload || read_all(conn, *payload, *len))
		return -1;
	(*payload)[*len] = 0;
	return 0;
}

static int read_request(struct request *req)
{
	unsigned int uid, gid;
	char type, *text;
	size_t len;

	for (;;) {
		if (read_frame(&type, &text, &len))
			return -1;
		switch (type) {
		case 'a':
			if (req->argc == MAX_WORDS)
				return -1;
			req->argv[req->argc++] = text;
			break;
		case 'e':
			putenv(text);
			break;
		case 'u':
			if (sscanf(text, "%u:%u", &uid, &gid) != 2)
				return -1;
			req->uid = uid;
			req->gid = gid;
			break;
		case 'r':
			return req->argc ? 0 : -1;
		default:
			return -1;
		}
	}
}

static void run_child(const struct request *req, int in, int out, int err)
{
	struct sigaction dfl = { .sa_handler = SIG_DFL };
	int exec_errno;

	sigaction(SIGPIPE, &dfl, NULL);
	sigaction(SIGCHLD, &dfl, NULL);
	setsid();
	dup2(in, 0);
	dup2(out, 1);
	dup2(err, 2);
	closefrom(3);
	if (chdir("/root"))
		_exit(126);
	if (req->uid || req->gid) {
		if (setgroups(0, NULL) || setgid(req->gid) || setuid(req->uid))
			_exit(126);
	}
	execvp(req->argv[0], req->argv);
	exec_errno = errno;
	dprintf(2, "%s: %s\n", req->argv[0], strerror(exec_errno));
	_exit(exec_errno == ENOENT ? 127 : 126);
}

static int start(const struct request *req, struct command *cmd)
{
	int in[2], out[2], err[2];

	if (pipe2(in, O_CLOEXEC) || pipe2(out, O_CLOEXEC) ||
	    pipe2(err, O_CLOEXEC))
		return -1;
	cmd->pid = fork();
	if (cmd->pid < 0)
		return -1;
	if (!cmd->pid)
		run_child(req, in[0], out[1], err[1]);
	close(in[0]);
	close(out[1]);
	close(err[1]);
	cmd->in = in[1];
	cmd->out = out[0];
	cmd->err = err[0];
	fcntl(cmd->in, F_SETFL, O_NONBLOCK);
	fcntl(cmd->out, F_SETFL, O_NONBLOCK);
	fcntl(cmd->err, F_SETFL, O_NONBLOCK);
	cmd->pidfd = syscall(SYS_pidfd_open, cmd->pid, 0);
	return cmd->pidfd < 0 ? -1 : 0;
}

static void end_command(struct command *cmd)
{
	cmd->caller_gone = 1;
	if (cmd->kill_at)
		return;
	kill(-cmd->pid, SIGTERM);
	cmd->kill_at = now_ms() + GRACE_MS;
}

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

/* Pass on what is there. False once the pipe is at its end or empty for now. */
static int relay(struct command *cmd, int *fd, char type)
{
	static char buf[CHUNK];
	ssize_t n = read(*fd, buf, sizeof(buf));

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (n <= 0) {
		close_fd(fd);
		return 0;
	}
	if (send_frame(type, buf, n))
		end_command(cmd);
	return 1;
}

static void take_input(struct command *cmd)
{
	char type, *data;
	size_t len;

	if (read_frame(&type, &data, &len) || type != 'i') {
		end_command(cmd);
		return;
	}
	if (!len)
		close_fd(&cmd->in);
	if (cmd->in < 0) {
		free(data);
		return;
	}
	cmd->pending = data;
	cmd->pending_len = len;
	cmd->pending_off = 0;
}

static void feed_input(struct command *cmd)
{
	ssize_t n = write(cmd->in, cmd->pending + cmd->pending_off,
			  cmd->pending_len - cmd->pending_off);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n < 0)
		close_fd(&cmd->in);
	else
		cmd->pending_off += n;
	if (cmd->in < 0 || cmd->pending_off == cmd->pending_len) {
		free(cmd->pending);
		cmd->pending = NULL;
	}
}

static int poll_timeout(const struct command *cmd)
{
	int64_t left;

	if (!cmd->kill_at || cmd->killed)
		return -1;
	left = cmd->kill_at - now_ms();
	return left > 0 ? left : 0;
}

static void watch(struct command *cmd)
{
	for (;;) {
		struct pollfd p[] = {
			{ cmd->pidfd, POLLIN, 0 },
			{ cmd->out, POLLIN, 0 },
			{ cmd->err, POLLIN, 0 },
			{ cmd->pending ? cmd->in : -1, POLLOUT, 0 },
			{ cmd->caller_gone ? -1 : conn,
			  (cmd->pending ? 0 : POLLIN) | POLLRDHUP, 0 },
		};

		if (poll(p, 5, poll_timeout(cmd)) < 0 && errno != EINTR)
			break;
		if (cmd->kill_at && !cmd->killed && now_ms() >= cmd->kill_at) {
			kill(-cmd->pid, SIGKILL);
			cmd->killed = 1;
		}
		if (p[1].revents)
			relay(cmd, &cmd->out, 'o');
		if (p[2].revents)
			relay(cmd, &cmd->err, 'e');
		if (p[3].revents)
			feed_input(cmd);
		if (p[4].revents & POLLIN)
			take_input(cmd);
		else if (p[4].revents)
			end_command(cmd);
		if (p[0].revents)
			break;
	}
}

static void report(struct command *cmd)
{
	int status = 0;

	/* All the command wrote itself is in the pipes by now. */
	while (cmd->out >= 0 && relay(cmd, &cmd->out, 'o'))
		;
	while (cmd->err >= 0 && relay(cmd, &cmd->err, 'e'))
		;
	/* Its children must not outlive a command that was told to end. */
	if (cmd->kill_at)
		kill(-cmd->pid, SIGKILL);
	while (waitpid(cmd->pid, &status, 0) < 0 && errno == EINTR)
		;
	send_text('x', "%d", WIFSIGNALED(status) ? 128 + WTERMSIG(status) :
		  WEXITSTATUS(status));
}

/* All that the caller gives, up to its end; what is not read would cut our answer off. */
static int take_all(char *text, size_t size, size_t *len)
{
	char type, *data;
	size_t n;

	for (*len = 0;; *len += n) {
		if (read_frame(&type, &data, &n) || type != 'i' || n > size - *len)
			return -1;
		memcpy(text + *len, data, n);
		free(data);
		if (!n)
			return 0;
	}
}

/* Up to a frame of it: these files are small. */
static int pass_file(int folder, const char *path, const char *name)
{
	static char text[CHUNK];
	int begin = name ? snprintf(text, 300, "%s ", name) : 0;
	int fd = openat(folder, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	ssize_t n = fd < 0 ? -1 : 1;

	for (; n > 0 && begin < (int)sizeof(text); begin += n > 0 ? n : 0)
		n = read(fd, text + begin, sizeof(text) - begin);
	if (n < 0)
		send_text('e', "%s: %s\n", path, strerror(errno));
	else
		send_frame('o', text, begin);
	if (fd >= 0)
		close(fd);
	return n < 0;
}

static int pass_folder(DIR *folder)
{
	struct dirent *entry;
	int failed = 0;

	while ((entry = readdir(folder)))
		if (entry->d_type == DT_REG)
			failed |= pass_file(dirfd(folder), entry->d_name, entry->d_name);
	closedir(folder);
	return failed;
}

static int pass(const char *path)
{
	DIR *folder = opendir(path);

	return folder ? pass_folder(folder) : pass_file(AT_FDCWD, path, NULL);
}

static int put(const char *path, const char *text, size_t len)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	int failed = fd < 0 || write(fd, text, len) != (ssize_t)len;

	if (failed)
		send_text('e', "%s: %s\n", path, strerror(errno));
	if (fd >= 0)
		close(fd);
	return failed;
}

/* True if it was a command of the agent's own. */
static int own_command(const struct request *req)
{
	int reads = !strcmp(req->argv[0], "lab-read"), failed = 0;
	static char text[CHUNK];
	size_t len;

	if (!reads && strcmp(req->argv[0], "lab-write"))
		return 0;
	if (take_all(text, sizeof(text), &len))
		return 1;
	for (int i = 1; i < req->argc; i++)
		failed |= reads ? pass(req->argv[i]) : put(req->argv[i], text, len);
	send_text('x', "%d", failed);
	return 1;
}

static void serve(void)
{
	static struct request req;
	static struct command cmd = { .in = -1, .out = -1, .err = -1 };

	if (read_request(&req)) {
		send_text('m', "malformed request");
		return;
	}
	if (own_command(&req))
		return;
	if (start(&req, &cmd)) {
		send_text('m', "cannot start: %s", strerror(errno));
		return;
	}
	watch(&cmd);
	report(&cmd);
}

int main(int argc, char **argv)
{
	const struct rlimit memlock = { RLIM_INFINITY, RLIM_INFINITY };
	const struct rlimit files = { 65536, 65536 };
	struct sockaddr_in addr = { .sin_family = AF_INET };
	static const char ready[] = "lab: READY\n";
	int one = 1, listener;

	if (argc != 2) {
		fprintf(stderr, "usage: agent PORT\n");
		return 2;
	}
	setrlimit(RLIMIT_MEMLOCK, &memlock);
	setrlimit(RLIMIT_NOFILE, &files);
	signal(SIGPIPE, SIG_IGN);
	addr.sin_port = htons(atoi(argv[1]));
	listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(listener, (struct sockaddr *)&addr, sizeof(addr)) ||
	    listen(listener, 128)) {
		perror("agent");
		return 1;
	}
	/* who waits for this line may connect at once; stdio does not know /dev/kmsg */
	if (write(STDOUT_FILENO, ready, sizeof(ready) - 1) < 0)
		perror("agent");
	dup2(STDIN_FILENO, STDOUT_FILENO);
	dup2(STDIN_FILENO, STDERR_FILENO);
	signal(SIGCHLD, SIG_IGN);
	for (;;) {
		conn = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
		if (conn < 0)
			continue;
		if (!fork()) {
			signal(SIGCHLD, SIG_DFL);
			setsockopt(conn, IPPROTO_TCP, TCP_NODELAY, &one,
				   sizeof(one));
			serve();
			_exit(0);
		}
		close(conn);
	}
}
