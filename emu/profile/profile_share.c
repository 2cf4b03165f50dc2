/* SPDX-License-Identifier: MIT */
#include "emu/profile/profile_share.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "common/util.h"
#include "emu/profile/profile.h"

static const struct conf_field row_fields[] = {
	{ CONF_KEY(jobs, CONF_UINT, struct share_row), .min = 1, .max = 1024,
	  .required = true },
	{ CONF_KEY(speedup, CONF_DOUBLE, struct share_row), .min = 0.01,
	  .max = 1024, .required = true },
	{ 0 },
};

static const struct conf_field fields[] = {
	PROFILE_HEAD(struct share_profile),
	{ CONF_KEY(gpus, CONF_LIST, struct share_profile), .item = CONF_STRING,
	  .item_size = sizeof(char *) },
	{ CONF_KEY(rows, CONF_LIST, struct share_profile), .required = true,
	  .fields = row_fields, .item = CONF_ROW,
	  .item_size = sizeof(struct share_row) },
	{ 0 },
};

static int check_share(const void *object, const struct conf_node *root,
		       const char *name, struct err *err)
{
	const struct share_profile *p = object;
	const struct share_row *row = p->rows.items;

	(void)root;
	if (p->rows.n == 0)
		return err_set(err, -EINVAL, "%s: no rows", name);
	if (row[0].speedup != 1)
		return err_set(err, -EINVAL,
			       "%s: rows: the speedup of 1 job must be 1",
			       name);
	for (size_t i = 0; i < p->rows.n; i++) {
		if (row[i].jobs != i + 1)
			return err_set(err, -EINVAL,
				       "%s: rows: %zu jobs expected, not "
				       "%" PRIu64,
				       name, i + 1, row[i].jobs);
		if (row[i].speedup > (double)row[i].jobs)
			return err_set(err, -EINVAL,
				       "%s: rows: the speedup of %" PRIu64
				       " jobs exceeds their number",
				       name, row[i].jobs);
		if (p->gpus.n && row[i].speedup > 1)
			return err_set(err, -EINVAL,
				       "%s: rows: %" PRIu64 " jobs that take "
				       "turns on its 'gpus' gain nothing: the "
				       "speedup must be at most 1",
				       name, row[i].jobs);
	}
	return 0;
}

PROFILE_FUNCTIONS(share, PROFILE_SHARE, check_share, 0, 0)

int share_profile_of_gpu(const char *gpu, struct share_profile *ret,
			 struct err *err)
{
	_cleanup_(profile_names_freep) char **names = NULL;
	int r = profile_names(PROFILE_SHARE, &names, err);

	*ret = (struct share_profile){ 0 };
	for (size_t i = 0; r == 0 && names[i]; i++) {
		char *const *gpus;

		r = share_profile_load(names[i], ret, err);
		gpus = ret->gpus.items;
		for (size_t k = 0; r == 0 && k < ret->gpus.n; k++)
			r = !strcmp(gpus[k], gpu);
		if (r != 1)
			share_profile_free(ret);
	}
	return r;
}

double share_profile_speedup(const struct share_profile *p, uint64_t jobs)
{
	const struct share_row *row = p->rows.items;

	return p->rows.n ? row[MIN(jobs, p->rows.n) - 1].speedup : 1;
}
