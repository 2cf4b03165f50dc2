/* SPDX-License-Identifier: MIT */
#include "loader/comm/comm.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "common/util.h"

static const struct comm_ops alone = { 0 };

void comm_alone(struct comm *c)
{
	*c = (struct comm){ .ops = &alone, .size = 1, .all = &c->mine };
}

void comm_close(struct comm *c)
{
	if (c && c->ops->close)
		c->ops->close(c);
}

/* --- exchanges ------------------------------------------------------------ */

static void start_exchange(struct comm *c, int status, const void *mine,
			   size_t n)
{
	assert(n <= COMM_RECORD);
	c->mine.status = status;
	if (n)
		memcpy(c->mine.record, mine, n);
	c->open = true;
	if (c->ops->start)
		c->ops->start(c);
}

/* The rank whose status counts: an error before an interrupt. */
static const struct comm_cell *worst(const struct comm *c)
{
	const struct comm_cell *w = &c->all[0];

	for (uint32_t i = 1; i < c->size; i++)
		if (c->all[i].status < 0 &&
		    (w->status == 0 || (w->status == -ECANCELED &&
					c->all[i].status != -ECANCELED)))
			w = &c->all[i];
	return w;
}

int comm_finish(struct comm *c, void *all, size_t n, struct err *err)
{
	int r = c->ops->finish ? c->ops->finish(c, err) : 0;
	const struct comm_cell *w = worst(c);

	c->open = false;
	if (r < 0)
		return c->ended = r;
	for (uint32_t i = 0; all && i < c->size; i++)
		memcpy((uint8_t *)all + i * n, c->all[i].record, n);
	if (w->status == 0)
		return 0;
	c->ended = w->status;
	c->ended_by = (uint32_t)(w - c->all);
	return err_set(err, c->ended, "rank %" PRIu32 " %s", c->ended_by,
		       c->ended == -ECANCELED ? "was interrupted" : "failed");
}

void comm_start(struct comm *c, const void *mine, size_t n)
{
	start_exchange(c, 0, mine, n);
}

int comm_exchange(struct comm *c, const void *mine, void *all, size_t n,
		  struct err *err)
{
	start_exchange(c, 0, mine, n);
	return comm_finish(c, all, n, err);
}

static int agree(struct comm *c, int status, struct err *err)
{
	start_exchange(c, status, NULL, 0);
	return comm_finish(c, NULL, 0, err);
}

/* Open MPI fills one machine before the next, binds each process to a core and
 * refuses to start processes as root. What the user has set stays. */
static void set_launcher(void)
{
	setenv("OMPI_MCA_rmaps_base_mapping_policy", "node", 0);
	setenv("OMPI_MCA_rmaps_base_oversubscribe", "1", 0);
	setenv("OMPI_MCA_hwloc_base_binding_policy", "none", 0);
	/* the same of Open MPI 5 */
	setenv("PRTE_MCA_rmaps_default_mapping_policy", "node:oversubscribe",
	       0);
	setenv("PRTE_MCA_hwloc_default_binding_policy", "none", 0);
	/* its srun in a step of Slurm would wait for the end of that step */
	setenv("SLURM_OVERLAP", "1", 0);
	/* so that a rank's error is the last line of a failed run */
	setenv("OMPI_MCA_orte_execute_quiet", "1", 0);
	setenv("PRTE_MCA_prte_execute_quiet", "1", 0);
	if (geteuid() == 0) {
		setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 0);
		setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 0);
	}
}

int comm_launch(uint32_t size, int argc, char **argv, struct err *err)
{
	char n[16];
	_cleanup_free_ char *self = util_program();
	_cleanup_free_ char **v = calloc((size_t)argc + 4, sizeof(*v));

	if (!self || !v)
		return err_set(err, -errno, "mpirun: %s", strerror(errno));
	for (int i = 1; i < argc; i++)
		if (!strcmp(argv[i], ":"))
			return err_set(err, -EINVAL,
				       "--nodes: mpirun would take what "
				       "follows the argument ':' for another "
				       "program");
	snprintf(n, sizeof(n), "%" PRIu32, size);
	v[0] = (char *)"mpirun";
	v[1] = (char *)"-n";
	v[2] = n;
	v[3] = self;
	memcpy(v + 4, argv + 1, ((size_t)argc - 1) * sizeof(*v));
	set_launcher();
	execvp(v[0], v);
	return err_set(err, -errno, "mpirun: %s", strerror(errno));
}

int comm_end(struct comm *c, int status, struct err *err)
{
	if (c->open)
		comm_finish(c, NULL, 0, err);
	return c->ended ? c->ended : agree(c, status, err);
}

/* --- messages ------------------------------------------------------------- */

static int make_room(struct comm_blob *b)
{
	b->bytes = malloc(MAX(b->n, 1));
	return b->bytes ? 0 : -ENOMEM;
}

int comm_gather(struct comm *c, const struct comm_blob *mine,
		struct comm_blob *ret, struct err *err)
{
	uint64_t own = mine->n;
	_cleanup_free_ uint64_t *n = calloc(c->size, sizeof(*n));
	bool room = n && ret && mine->bytes;
	int r = agree(c, room ? 0 : -ENOMEM, err);

	if (r == 0)
		r = comm_exchange(c, &own, n, sizeof(own), err);
	if (r < 0)
		return r;
	for (uint32_t i = 0; c->rank == 0 && i < c->size; i++) {
		ret[i] = (struct comm_blob){ .n = n[i] };
		r = r < 0 ? r : make_room(&ret[i]);
	}
	r = agree(c, r, err);
	if (r < 0)
		return r;
	if (c->rank == 0)
		memcpy(ret[0].bytes, mine->bytes, mine->n);
	return c->ops->gather ? c->ops->gather(c, mine, ret, err) : 0;
}

int comm_bcast(struct comm *c, struct comm_blob *b, struct err *err)
{
	uint64_t own = b->n;
	_cleanup_free_ uint64_t *n = calloc(c->size, sizeof(*n));
	bool room = n && (c->rank || b->bytes);
	int r = agree(c, room ? 0 : -ENOMEM, err);

	if (r == 0)
		r = comm_exchange(c, &own, n, sizeof(own), err);
	if (r < 0)
		return r;
	if (c->rank) {
		*b = (struct comm_blob){ .n = n[0] };
		r = make_room(b);
	}
	r = agree(c, r, err);
	return r == 0 && c->ops->bcast ? c->ops->bcast(c, b, err) : r;
}
