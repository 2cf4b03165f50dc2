/* SPDX-License-Identifier: MIT */
#include "service/dispatcher/fleet.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/eventfd.h>

#include "common/log.h"
#include "common/tick.h"
#include "common/units.h"
#include "common/util.h"

/* arbitrary: a command that fails at once does not take a core */
#define AGAIN_NS (1 * NS_PER_S)
/* arbitrary: more than --drain of a worker usually is */
#define GRACE_NS (60 * NS_PER_S)

int fleet_init(struct fleet *f, const char *command)
{
	*f = (struct fleet){ .command = command };
	f->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	return f->wake < 0 ? -errno : 0;
}

void fleet_fini(struct fleet *f)
{
	if (f->wake >= 0)
		close(f->wake);
	f->wake = -1;
}

void fleet_wake(struct fleet *f)
{
	eventfd_write(f->wake, 1);
}

static bool is_running(const struct fleet_slot *s)
{
	return s->child.pid > 0;
}

static void start_worker(struct fleet *f, int i)
{
	struct fleet_slot *s = &f->slot[i];
	char env[32], shell[] = "/bin/sh", flag[] = "-c";
	_cleanup_free_ char *line = NULL;
	struct err err = { 0 };

	s->not_before = tick_wall() + AGAIN_NS;
	snprintf(env, sizeof(env), "GPEMU_WORKER=%d", i + 1);
	/* the shell itself becomes the worker, and gets its signals; it is not
	 * what a service manager waits for */
	if (asprintf(&line, "unset NOTIFY_SOCKET; exec %s", f->command) < 0) {
		line = NULL;
		return;
	}
	if (child_start(&s->child, (char *[]){ shell, flag, line, NULL },
			(char *[]){ env, NULL }, STDOUT_FILENO, STDERR_FILENO,
			&err) < 0) {
		log_warn("--worker-command: %s", err.text);
		return;
	}
	s->leaving = s->ended = false;
	f->n_started++;
	log_info("worker process %d: started", i + 1);
}

static void drain(struct fleet_slot *s)
{
	kill(-s->child.pid, SIGTERM);
	s->leaving = true;
}

/* Those that have ended. */
static void reap(struct fleet *f)
{
	struct stop none = { .fd = -1 };
	int status;

	for (int i = 0; i < FLEET_MOST; i++) {
		struct fleet_slot *s = &f->slot[i];

		if (!is_running(s) || !s->ended ||
		    child_wait(&s->child, &none, 0, &status) < 0)
			continue;
		if (!s->leaving)
			log_warn("worker process %d ended with status %d",
				 i + 1, status);
	}
}

/* Until one ends, or fleet_wake, or `deadline` on tick_wall's clock. */
static void wait_until(struct fleet *f, uint64_t deadline)
{
	struct pollfd fd[FLEET_MOST + 1];
	int slot[FLEET_MOST + 1], n_fds = 0;
	eventfd_t n;

	/* those that run alone: poll(2) refuses more than RLIMIT_NOFILE */
	for (int i = 0; i < FLEET_MOST; i++)
		if (is_running(&f->slot[i])) {
			slot[n_fds] = i;
			fd[n_fds++] =
				(struct pollfd){ .fd = f->slot[i].child.pidfd,
						 .events = POLLIN };
		}
	fd[n_fds] = (struct pollfd){ .fd = f->wake, .events = POLLIN };
	if (tick_poll(fd, (size_t)n_fds + 1, deadline) <= 0)
		return;
	if (fd[n_fds].revents)
		eventfd_read(f->wake, &n);
	for (int i = 0; i < n_fds; i++)
		f->slot[slot[i]].ended = fd[i].revents != 0;
	reap(f);
}

void fleet_step(struct fleet *f, uint32_t n)
{
	uint64_t due = TICK_NEVER;
	uint32_t running = 0;

	for (int i = 0; i < FLEET_MOST; i++)
		running += is_running(&f->slot[i]) && !f->slot[i].leaving;
	for (int i = 0; f->command && i < FLEET_MOST && running < n; i++) {
		if (is_running(&f->slot[i]))
			continue;
		if (tick_wall() >= f->slot[i].not_before)
			start_worker(f, i);
		if (!is_running(&f->slot[i]))
			due = MIN(due, f->slot[i].not_before);
		running++; /* or is the next to be */
	}
	for (int i = FLEET_MOST; i > 0 && running > n; i--) {
		if (!is_running(&f->slot[i - 1]) || f->slot[i - 1].leaving)
			continue;
		drain(&f->slot[i - 1]);
		running--;
	}
	wait_until(f, due);
}

void fleet_end(struct fleet *f)
{
	uint64_t deadline = tick_wall() + GRACE_NS;
	bool any = true;

	for (int i = 0; i < FLEET_MOST; i++)
		if (is_running(&f->slot[i]) && !f->slot[i].leaving)
			drain(&f->slot[i]);
	while (any && tick_wall() < deadline) {
		any = false;
		for (int i = 0; i < FLEET_MOST; i++)
			any = any || is_running(&f->slot[i]);
		if (any)
			wait_until(f, deadline);
	}
	for (int i = 0; i < FLEET_MOST; i++)
		if (is_running(&f->slot[i]))
			child_end(&f->slot[i].child, 0);
}
