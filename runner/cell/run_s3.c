/* SPDX-License-Identifier: MIT */
/*
 * The object store of a cell: gpemu-s3 with the dataset of its first mount, at
 * a loopback address, with a key that only this cell knows.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "common/json.h"
#include "common/units.h"
#include "runner/cell/run_cell_private.h"
#include "runner/run/run_dataset.h"
#include "runner/run/run_warm.h"

/* arbitrary: a million files are scanned in a few seconds */
#define START_TIMEOUT_NS (60 * NS_PER_S)
/* it may have requests in its timer queue */
#define GRACE_NS (10 * NS_PER_S)

static int make_secret(char secret[STORE_SECRET], struct err *err)
{
	uint8_t bytes[STORE_SECRET / 2];

	if (getrandom(bytes, sizeof(bytes), 0) != sizeof(bytes))
		return err_set(err, -errno, "getrandom: %s", strerror(errno));
	for (size_t i = 0; i < (STORE_SECRET - 1) / 2; i++)
		snprintf(secret + 2 * i, 3, "%02x", bytes[i]);
	return 0;
}

int run_init_s3(struct run *run, struct err *err)
{
	struct run_s3 *s = &run->s3;
	int code;

	if (!run->cell->s3)
		return 0;
	code = run_init_server(run, &s->server, RUN_S3, run->r->scratch,
			       "s3.json");
	if (code == 0)
		code = make_secret(s->store.secret, err);
	if (code == 0)
		code = network_open(&s->network, 1, NETWORK_LOOPBACK, NULL,
				    &run->r->stop, err);
	if (code < 0)
		return code;
	network_address(&s->network, 0, s->store.address);
	return command_s3(&s->server.command, run->r, run->cell, &s->store,
			  s->server.record, err);
}

int run_start_s3(struct run *run, struct err *err)
{
	const struct cell *cell = run->cell;
	int code = 0;

	if (!cell->s3)
		return 0;
	if (dataset_is_folder(cell->mounts[0].dataset))
		code = warm_folder(run->mounts[0].folder, &run->r->stop, err);
	return code < 0 ? code
			: run_start_server(run, &run->s3.server,
					   START_TIMEOUT_NS, err);
}

void run_end_s3(struct run *run)
{
	run_end_server(&run->s3.server, GRACE_NS);
}

void run_fini_s3(struct run *run)
{
	network_close(&run->s3.network);
}
