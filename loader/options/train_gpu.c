/* SPDX-License-Identifier: MIT */
#include "loader/options/train_gpu.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "common/units.h"
#include "common/util.h"
#include "emu/gpu/gpud_client.h"
#include "emu/profile/profile_gpu.h"
#include "emu/profile/profile_rate.h"
#include "loader/options/train_model.h"

/* The number of GPUs that came with the job, of the first kind. */
static int given_gpus(uint64_t *ret, struct err *err)
{
	const char *text = secure_getenv("GPEMU_GPUS");
	double n = 1;

	if (text && text[0] &&
	    (units_parse_double(text, &n) < 0 || n < 1 || n > GPUS_MAX ||
	     n != (uint32_t)n))
		return err_set(err, -EINVAL, "GPEMU_GPUS=%s: not 1 to %d", text,
			       GPUS_MAX);
	*ret = (uint64_t)n;
	return 0;
}

int train_gpu_given(struct train_options *o, struct err *err)
{
	char *user;
	int r;

	if (o->gpu_server || o->gpu || o->gpu_rate > 0 || o->node ||
	    o->simulate || o->together)
		return 0;
	r = gpud_given(&o->gpu_server, &user, err);
	if (o->server_user)
		free(user);
	else
		o->server_user = user;
	if (r == 0 && o->gpu_server && o->gpus == 0)
		r = given_gpus(&o->gpus, err);
	return r;
}

/* Is the GPU that was named the server's? Its profile may be in another folder
 * there, so its name decides. */
static int check_same(const struct train_options *o, const char *profile,
		      struct err *err)
{
	struct gpu_profile want = { 0 }, have = { 0 };
	int r = gpu_profile_load(o->gpu, &want, err);

	if (r == 0)
		r = gpu_profile_load(profile, &have, err);
	if (r == 0 && strcmp(want.name, have.name) != 0)
		r = err_set(err, -EINVAL,
			    "--gpu %s: %s has GPUs of another kind, %s; leave "
			    "out --gpu to train on them",
			    o->gpu, o->gpu_server, have.name);
	gpu_profile_free(&want);
	gpu_profile_free(&have);
	return r;
}

/* A GPU of which only the rate is known. */
static int from_rate(const struct train_options *o, const char *source,
		     struct gpu_profile *ret, struct err *err)
{
	_cleanup_free_ char *model = NULL;
	struct gpu_rate rate = { .name = "a GPU of the given rate",
				 .source = source,
				 .samples_per_s = o->gpu_rate,
				 .precision = o->precision };

	*ret = (struct gpu_profile){ 0 };
	if (o->sequence_length && !strstr(o->model, ":seq")) {
		model = util_text("%s:seq%" PRIu64, o->model,
				  o->sequence_length);
		if (!model)
			return err_set(err, -ENOMEM, "out of memory");
	}
	rate.model = model ? model : o->model;
	return gpu_profile_from_rate(&rate, ret, err);
}

/* Steps take what --gpu-rate says. */
static int set_rate(const struct train_options *o, const char *source,
		    struct gpu_profile *p, struct err *err)
{
	const struct gpu_model *m = train_model_find(o, p, err);
	struct gpu_model *own = p->models.items;

	if (!m && o->gpu)
		err_prefix(err, "without --gpu the rate needs no profile");
	return m ? gpu_model_set_rate(&own[m - own], o->gpu_rate, o->inference,
				      source)
		 : -ENOENT;
}

static int load(const struct train_options *o, struct gpu_profile *ret,
		struct err *err)
{
	char source[128];
	int r;

	if (o->gpu_rate <= 0)
		return gpu_profile_load(o->gpu, ret, err);
	snprintf(source, sizeof(source),
		 "--gpu-rate %.10g samples per s: the user's number",
		 o->gpu_rate);
	r = o->gpu ? gpu_profile_load(o->gpu, ret, err)
		   : from_rate(o, source, ret, err);
	return r == 0 ? set_rate(o, source, ret, err) : r;
}

int train_gpu_load(const struct train_options *o, struct gpu_profile *ret,
		   struct err *err)
{
	int r = load(o, ret, err);

	if (r == 0 && o->gpu_memory)
		gpu_profile_resize(ret, (double)o->gpu_memory / MIB);
	return r;
}

int train_gpu_open(struct train_options *o, struct device **ret,
		   struct err *err)
{
	_cleanup_free_ char *profile = NULL;
	int r;

	if (!o->gpu_server) {
		*ret = device_local_new();
		return *ret ? 0 : err_set(err, -ENOMEM, "out of memory");
	}
	r = device_server_open(o->gpu_server, o->server_user, o->time_scale,
			       ret, &profile, err);
	if (r < 0)
		return r;
	r = o->gpu ? check_same(o, profile, err) : 0;
	if (r < 0) {
		device_close(TAKE_PTR(*ret));
		return r;
	}
	free(o->gpu);
	o->gpu = TAKE_PTR(profile);
	return 0;
}
