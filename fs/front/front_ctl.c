/* SPDX-License-Identifier: MIT */
#include "fs/front/front_ctl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/log.h"
#include "common/util.h"
#include "fs/control/jobs.h"

struct command {
	struct job job;
	fuse_req_t req;
	struct ctl *ctl;
	enum ctl_file file;
	uint64_t offset;
	size_t n;
	char text[];
};

static int run(struct ctl *ctl, enum ctl_file file, uint64_t offset,
	       const char *text, size_t n)
{
	struct err err = { 0 };
	int r = ctl_write(ctl, file, offset, text, n, &err);

	if (r < 0)
		log_error("control: %s", err.text);
	return r;
}

static void answer(fuse_req_t req, size_t n, int r)
{
	if (r < 0)
		fuse_reply_err(req, -r);
	else
		fuse_reply_write(req, n);
}

static int command_work(struct job *job)
{
	struct command *c = container_of(job, struct command, job);

	return run(c->ctl, c->file, c->offset, c->text, c->n);
}

static void command_done(struct job *job, int r)
{
	struct command *c = container_of(job, struct command, job);

	answer(c->req, c->n, r);
}

static void command_free(struct job *job)
{
	free(container_of(job, struct command, job));
}

void front_ctl_write(struct front *f, fuse_req_t req, enum ctl_file file,
		     uint64_t offset, const char *text, size_t n)
{
	struct command *c;

	if (!ctl_may_wait(file, text, n)) {
		answer(req, n, run(f->c.ctl, file, offset, text, n));
		return;
	}
	c = malloc(sizeof(*c) + n);
	if (!c) {
		fuse_reply_err(req, ENOMEM);
		return;
	}
	c->job = (struct job){ .work = command_work,
			       .done = command_done,
			       .free = command_free };
	c->req = req;
	c->ctl = f->c.ctl;
	c->file = file;
	c->offset = offset;
	c->n = n;
	memcpy(c->text, text, n);
	jobs_add(f->c.jobs, &c->job);
}
