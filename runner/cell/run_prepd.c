/* SPDX-License-Identifier: MIT */
/*
 * The preparation service of a cell: one dispatcher and some workers of
 * gpemu-prepd on loopback addresses, with a key that only this cell knows.
 * Started after the mounts, which they read, and ended before them.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#include "common/json.h"
#include "common/units.h"
#include "common/util.h"
#include "runner/cell/run_cell_private.h"

/* arbitrary: they listen and dial, which takes milliseconds */
#define START_TIMEOUT_NS (10 * NS_PER_S)
/* arbitrary: they only write their records */
#define GRACE_NS (5 * NS_PER_S)

static int init_part(struct run *run, uint32_t i)
{
	struct run_prepd *p = &run->prepd;
	struct run_server *part = &p->parts[i];
	char name[32];
	int code;

	snprintf(name, sizeof(name), "%" PRIu32 ".json", i);
	code = run_init_server(run, part, RUN_PREPD, p->folder, name);
	return code < 0 ? code
			: command_prepd(&part->command, run->r, run->cell, i,
					&p->network, part->record);
}

int run_init_prepd(struct run *run, struct err *err)
{
	struct run_prepd *p = &run->prepd;
	uint32_t n;
	int code;

	if (!run->cell->prepd)
		return 0;
	n = (uint32_t)cell_prepd_workers(run->cell->prepd) + 1;
	p->folder = util_join(run->r->scratch, "prepd");
	if (!p->folder)
		return -ENOMEM;
	if (mkdir(p->folder, 0700) < 0 && errno != EEXIST)
		return err_set(err, -errno, "%s: %s", p->folder,
			       strerror(errno));
	code = network_open(&p->network, n, NETWORK_LOOPBACK, p->folder,
			    &run->r->stop, err);
	if (code < 0)
		return code;
	p->parts = calloc(n, sizeof(*p->parts));
	if (!p->parts)
		return -ENOMEM;
	p->n = n;
	for (uint32_t i = 0; code == 0 && i < n; i++)
		code = init_part(run, i);
	return code;
}

int run_start_prepd(struct run *run, struct err *err)
{
	struct run_prepd *p = &run->prepd;
	int code = 0;

	for (size_t i = 0; code == 0 && i < p->n; i++)
		code = run_start_server(run, &p->parts[i], START_TIMEOUT_NS,
					err);
	return code;
}

/* --- records ---------------------------------------------------------- */

/* Counters and seconds of a worker, added to those of all. */
static void add_up(json_t *sum, const json_t *worker)
{
	static const char *const keys[] = { "batches", "batches_made", "made_s",
					    "cpu_s", "bytes_sent" };

	run_add_numbers(sum, worker, keys, ARRAY_SIZE(keys));
}

/* null: it wrote none, because it died; then the cell failed. */
static json_t *record_of(const struct run_server *part)
{
	return part->stats ? json_incref(part->stats) : json_null();
}

static json_t *status_of(const struct run_prepd *p)
{
	json_t *workers = json_array();
	json_t *status = json_pack("{s:o, s:o}", "dispatcher",
				   record_of(&p->parts[0]), "workers", workers);

	for (size_t i = 1; status && i < p->n; i++) {
		json_t *one = record_of(&p->parts[i]);

		add_up(status, one);
		json_array_append_new(workers, one);
	}
	return status;
}

void run_end_prepd(struct run *run)
{
	struct run_prepd *p = &run->prepd;

	if (!p->n)
		return;
	/* the workers first: they would dial a dispatcher that has gone */
	for (size_t i = p->n; i-- > 0;)
		run_end_server(&p->parts[i], GRACE_NS);
	p->status = status_of(p);
}

void run_fini_prepd(struct run *run)
{
	struct run_prepd *p = &run->prepd;

	free(p->parts);
	network_close(&p->network);
	if (p->folder)
		rmdir(p->folder);
	free(p->folder);
	json_decref(p->status);
}
