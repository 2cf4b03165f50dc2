/* SPDX-License-Identifier: MIT */
#include "loader/options/train_prep.h"

#include <errno.h>
#include <inttypes.h>

#include "common/thread.h"
#include "common/util.h"
#include "loader/pipeline/pipeline.h"

/* Where workers own batches, each is a core; elsewhere the numbers are
 * independent. */
static int check_cores(struct train_options *o, const struct train_choice *c,
		       struct err *err)
{
	if (o->cores && c->engine->whole_batches) {
		if (o->workers && o->workers != o->cores)
			return err_set(err, -EINVAL,
				       "with --loader %s each worker is a "
				       "core: --workers %" PRIu64
				       " contradicts --cores %" PRIu64,
				       o->loader, o->workers, o->cores);
		o->workers = o->cores;
	}
	if (o->workers == 0)
		o->workers = thread_cpus();
	if (o->cores == 0)
		o->cores = o->workers;
	return 0;
}

int train_prep_check(struct train_options *o, const struct train_choice *c,
		     struct err *err)
{
	enum prep_output output;
	int r = prep_output_parse(o->prep_output, &output, err);

	if (r < 0)
		return r;
	if (o->prep_profile && o->prep_time)
		return err_set(err, -EINVAL,
			       "--prep-time replaces a --prep-profile: give "
			       "one of them");
	if (c->prep->cost)
		return check_cores(o, c, err);
	if (o->cores)
		return err_set(err, -EINVAL,
			       "--cores needs --prep emulated; --prep %s runs "
			       "on the real cores, in --workers threads",
			       o->prep);
	if (o->prep_profile || o->prep_time)
		return err_set(err, -EINVAL,
			       "--prep-%s needs --prep emulated; --prep %s "
			       "takes its real time",
			       o->prep_time ? "time" : "profile", o->prep);
	return 0;
}

/* The cost of emulated transforms. */
static int load_profile(const struct train_options *o, struct train_prep *p,
			struct err *err)
{
	const char *name = o->prep_profile ? o->prep_profile : PREP_DEFAULT;
	int r = o->prep_time
			? prep_profile_given(o->prep_time, &p->profile, err)
			: prep_profile_load(name, &p->profile, err);

	p->cores = (uint32_t)o->cores;
	p->config.profile = &p->profile;
	if (r == 0 && !p->profile.sample.body.kind_name)
		r = err_set(err, -EINVAL,
			    "%s: has no CPU cost; use it with --prep-gpu",
			    name);
	return r;
}

int train_prep_open(const struct train_options *o, const struct train_choice *c,
		    struct train_prep *ret, struct err *err)
{
	const struct pipeline_config config = { .prep = c->prep,
						.prep_config = &ret->config };
	int r = prep_output_parse(o->prep_output, &ret->config.output, err);

	ret->config.side = (uint32_t)o->image_size;
	ret->config.options = c->prep_choice.options;
	ret->int64_rows = c->prep->int64_rows;
	if (r == 0 && c->prep->cost)
		r = load_profile(o, ret, err);
	return r < 0 ? r
		     : pipeline_sample_bytes(&config, &ret->sample_bytes, err);
}

void train_prep_close(struct train_prep *p)
{
	prep_profile_free(&p->profile);
}

json_t *train_prep_json(const struct train_prep *p,
			const struct train_options *o)
{
	uint64_t cores = p->cores ? p->cores : o->workers;
	bool image = p->sample_bytes && !p->int64_rows;
	json_t *profile = p->cores ? prep_profile_json(&p->profile)
				   : json_null();

	return json_pack("{s:s, s:s, s:s, s:I, s:I, s:I, s:o}", "name", o->prep,
			 "kind", p->cores ? "EMULATED" : "REAL", "output",
			 image		 ? o->prep_output
			 : p->int64_rows ? "int64"
					 : "raw",
			 "image_size", (json_int_t)(image ? p->config.side : 0),
			 "sample_bytes", (json_int_t)p->sample_bytes, "cores",
			 (json_int_t)cores, "profile", profile);
}

void train_prep_summary(const struct train_prep *p,
			const struct train_options *o,
			const struct train_account *a, FILE *f)
{
	double ms = hist_mean(&a->work.prep) / 1e6;

	if (ms <= 0)
		return;
	fprintf(f,
		"Preprocessing: %.4g ms a sample, %.0f samples/s per core, on "
		"%" PRIu64 " %s.\n",
		ms, 1e3 / ms, p->cores ? p->cores : o->workers,
		p->cores ? "virtual cores (emulated)" : "threads");
}
