/* SPDX-License-Identifier: MIT */
#include "runner/run/run_failure.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>

#include "common/util.h"

enum { LINE = 300 };

int failure_init(struct run_failure *f, const char *folder, char *log,
		 struct err *err)
{
	int fd;

	*f = (struct run_failure){ .log = log,
				   .errors = util_join(folder, "errors") };
	if (!f->log || !f->errors)
		return -ENOMEM;
	fd = util_new_file(f->errors, 0);
	if (fd < 0)
		return err_set(err, fd, "%s: %s", f->errors, strerror(-fd));
	close(fd);
	/* the programs of the cell inherit it */
	return setenv("GPEMU_ERRORS", f->errors, 1) < 0 ? -ENOMEM : 0;
}

void failure_fini(struct run_failure *f)
{
	if (f->errors)
		unlink(f->errors);
	free(f->errors);
	free(f->foreign);
	free(f->log);
}

const char *failure_status(int status, const struct host_load *before,
			   char buf[FAILURE_STATUS])
{
	const char *signal = status > 128 ? sigabbrev_np(status - 128) : NULL;
	struct host_load now;

	if (!signal) {
		snprintf(buf, FAILURE_STATUS, "exit status %d", status);
		return buf;
	}
	host_sample(&now);
	snprintf(buf, FAILURE_STATUS, "killed by SIG%s%s", signal,
		 status == 128 + SIGKILL && now.oom_kills > before->oom_kills
			 ? ", as the kernel had no memory left"
			 : "");
	return buf;
}

int failure_blame(struct run_failure *f, const char *program, const char *when,
		  const char *foreign, int status,
		  const struct host_load *before, int code, struct err *err)
{
	char text[FAILURE_STATUS];

	snprintf(f->program, sizeof(f->program), "%s", program);
	f->killed = status > 128;
	if (foreign && !f->foreign) {
		f->foreign = strdup(foreign);
		code = f->foreign ? code : -ENOMEM;
	}
	return err_set(err, code, "%s: %s%s", program,
		       failure_status(status, before, text), when);
}

/* --- the cause -------------------------------------------------------- */

static bool starts(const char *line, const char *with)
{
	return !strncmp(line, with, strlen(with));
}

static bool says_something(const char *line)
{
	while (*line && !isalnum((unsigned char)*line))
		line++;
	return *line;
}

/* The beginning of the next line that says something. */
static bool next_line(FILE *f, char line[LINE])
{
	while (f && fgets(line, LINE, f)) {
		int c = strchr(line, '\n') ? '\n' : 0;

		while (c != '\n' && c != EOF)
			c = fgetc(f);
		line[strcspn(line, "\n")] = 0;
		if (says_something(line))
			return true;
	}
	return false;
}

static bool is_server(const char *line)
{
	return starts(line, "gpemu-fs") || starts(line, "gpemu-gpud") ||
	       starts(line, "gpemu-prepd") || starts(line, "gpemu-s3");
}

/* Of the culprit; without one, of any. One that is not ours may have started
 * some of ours, but no servers. */
static bool first_error(const struct run_failure *f, char line[LINE])
{
	_cleanup_fclose_ FILE *in = fopen(f->errors, "re");

	while (next_line(in, line))
		if (f->foreign ? !is_server(line) : starts(line, f->program))
			return true;
	return false;
}

static bool last_line(const char *path, char line[LINE])
{
	_cleanup_fclose_ FILE *f = util_open_stream(path);
	char next[LINE];
	bool found = false;

	for (; next_line(f, next); found = true)
		strcpy(line, next);
	return found;
}

/*
 * What is not an error of log.h: the last line in the log that has the name of
 * the program, else what mpirun prints below a line of dashes.
 */
static bool logged(const struct run_failure *f, char line[LINE])
{
	_cleanup_fclose_ FILE *in = util_open_stream(f->log);
	char next[LINE];
	bool found = false, framed = false;

	while (in && fgets(next, sizeof(next), in)) {
		bool own = starts(next, f->program);

		next[strcspn(next, "\n")] = 0;
		if (own || (framed && !found))
			strcpy(line, next);
		found |= own || framed;
		framed = starts(next, "----------");
	}
	return found;
}

void failure_add_cause(const struct run_failure *f, struct err *err)
{
	char line[LINE] = "";
	struct err why = *err;
	bool found;

	if (!f->errors)
		return;
	found = first_error(f, line);
	if (!found && f->foreign)
		found = last_line(f->foreign, line);
	else if (!found && f->program[0] && !f->killed)
		found = logged(f, line);
	if (!found)
		return;
	err->text[0] = 0;
	err_set(err, -EIO, "%.150s (%s)", why.text, line);
}

void failure_append(const char *foreign, int log_fd)
{
	_cleanup_close_ int fd = foreign ? open(foreign, O_RDONLY | O_CLOEXEC)
					 : -1;
	char buf[4096];
	ssize_t n;

	while (fd >= 0 && (n = read(fd, buf, sizeof(buf))) > 0)
		if (util_write_all(log_fd, buf, (size_t)n) < 0)
			return;
}
