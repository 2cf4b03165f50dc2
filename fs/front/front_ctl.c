/* SPDX-License-Identifier: MIT */
#include "fs/front/front_ctl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/log.h"
#include "common/util.h"
#include "fs/control/jobs.h"

/* A write; without a request, the end of the writes. */
struct command {
	struct job job;
	fuse_req_t req;
	struct ctl *ctl;
	enum ctl_file file;
	const void *writer;
	uint64_t offset;
	size_t n;
	const char *text;
	char copy[];
};

static int run(const struct command *c)
{
	struct err err = { 0 };
	int r = c->req ? ctl_write(c->ctl, c->file, c->writer, c->offset,
				   c->text, c->n, &err)
		       : ctl_end(c->ctl, c->writer, &err);

	if (r < 0)
		log_error(CTL_DIR_NAME "/%s: %s", ctl_name(c->file), err.text);
	return r;
}

static void answer(const struct command *c, int r)
{
	if (r < 0)
		fuse_reply_err(c->req, -r);
	else
		fuse_reply_write(c->req, c->n);
}

static int command_work(struct job *job)
{
	return run(container_of(job, struct command, job));
}

static void command_done(struct job *job, int r)
{
	const struct command *c = container_of(job, struct command, job);

	if (c->req)
		answer(c, r);
}

static void command_free(struct job *job)
{
	free(container_of(job, struct command, job));
}

/* -ENOMEM. */
static int run_later(struct front *f, const struct command *what)
{
	struct command *c = malloc(sizeof(*c) + what->n);

	if (!c)
		return -ENOMEM;
	*c = *what;
	c->job = (struct job){ .work = command_work,
			       .done = command_done,
			       .free = command_free };
	c->text = memcpy(c->copy, what->text, what->n);
	jobs_add(f->c.jobs, &c->job);
	return 0;
}

void front_ctl_write(struct front *f, fuse_req_t req, enum ctl_file file,
		     const void *writer, uint64_t offset, const char *text,
		     size_t n)
{
	const struct command c = { .req = req,
				   .ctl = f->c.ctl,
				   .file = file,
				   .writer = writer,
				   .offset = offset,
				   .n = n,
				   .text = text };

	if (!ctl_may_wait(file, text, n))
		answer(&c, run(&c));
	else if (run_later(f, &c) < 0)
		fuse_reply_err(req, ENOMEM);
}

void front_ctl_end(struct front *f, enum ctl_file file, const void *writer)
{
	const struct command c = {
		.ctl = f->c.ctl, .file = file, .writer = writer, .text = ""
	};

	if (ctl_ends(file))
		run_later(f, &c);
}
