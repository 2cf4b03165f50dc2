/* SPDX-License-Identifier: MIT */
/*
 *	{"fastflow_profiles": [
 *		{"pipeline": ..., "model": ..., "remote": ..., "gpu": 410.0,
 *		 "local": 120.0, "prep_cpu": 8.1, "remote_nodes": 1,
 *		 "splits": [[rate, receive_cpu], ...]},
 *		... the newest last ]}
 */
#include "service/decide/fastflow_cache.h"

#include <errno.h>
#include <stdbool.h>

#include "common/json.h"

#define LIST "fastflow_profiles"

/* The list of the file, empty where there is none; NULL: no memory. */
static json_t *load(const char *path)
{
	json_auto_t *j = NULL;
	json_t *list = NULL;

	if (json_read(path, &j, NULL) == 0)
		list = json_object_get(j, LIST);
	return json_is_array(list) ? json_incref(list) : json_array();
}

static bool is_text(const json_t *j, const char *key, const char *value)
{
	json_auto_t *want = json_bytes(value);

	return want && json_equal(json_object_get(j, key), want);
}

static bool is_for(const json_t *j, const struct fastflow_key *key)
{
	return is_text(j, "pipeline", key->pipeline) &&
	       is_text(j, "model", key->model) &&
	       is_text(j, "remote", key->remote);
}

/* Not a number: negative, which no profile may have. */
static double number(const json_t *j)
{
	return json_is_number(j) ? json_number_value(j) : -1;
}

static bool decode(const json_t *j, struct fastflow_profile *ret)
{
	const json_t *splits = json_object_get(j, "splits");
	double nodes = number(json_object_get(j, "remote_nodes"));
	struct fastflow_decision d;

	*ret = (struct fastflow_profile){
		.gpu = number(json_object_get(j, "gpu")),
		.local = number(json_object_get(j, "local")),
		.prep_cpu = number(json_object_get(j, "prep_cpu")),
		.remote_nodes =
			nodes >= 1 && nodes <= UINT32_MAX ? (uint32_t)nodes : 0,
	};
	for (size_t i = 0; i < FASTFLOW_SPLITS; i++) {
		const json_t *s = json_array_get(splits, i);

		ret->split[i].rate = number(json_array_get(s, 0));
		ret->split[i].receive_cpu = number(json_array_get(s, 1));
	}
	return fastflow_decide(ret, FASTFLOW_PAPER, &d) == 0;
}

int fastflow_cache_get(const char *path, const struct fastflow_key *key,
		       struct fastflow_profile *ret)
{
	json_auto_t *list = load(path);

	if (!list)
		return -ENOMEM;
	for (size_t i = json_array_size(list); i-- > 0;) {
		const json_t *j = json_array_get(list, i);

		if (is_for(j, key) && decode(j, ret))
			return 0;
	}
	return -ENOENT;
}

/* NULL: no memory. */
static json_t *encode(const struct fastflow_key *key,
		      const struct fastflow_profile *p)
{
	json_t *splits = json_array();

	for (size_t i = 0; i < FASTFLOW_SPLITS; i++)
		json_array_append_new(splits,
				      json_pack("[f, f]", p->split[i].rate,
						p->split[i].receive_cpu));
	return json_pack("{s:o, s:o, s:o, s:f, s:f, s:f, s:I, s:o}", "pipeline",
			 json_bytes(key->pipeline), "model",
			 json_bytes(key->model), "remote",
			 json_bytes(key->remote), "gpu", p->gpu, "local",
			 p->local, "prep_cpu", p->prep_cpu, "remote_nodes",
			 (json_int_t)p->remote_nodes, "splits", splits);
}

int fastflow_cache_put(const char *path, const struct fastflow_key *key,
		       const struct fastflow_profile *p, struct err *err)
{
	json_auto_t *list = load(path), *file = NULL;
	struct fastflow_decision d;

	if (fastflow_decide(p, FASTFLOW_PAPER, &d) < 0)
		return err_set(err, -EINVAL, "%s: not a profile", path);
	if (!list)
		return err_set(err, -ENOMEM, "%s: out of memory", path);
	for (size_t i = json_array_size(list); i-- > 0;)
		if (is_for(json_array_get(list, i), key))
			json_array_remove(list, i);
	while (json_array_size(list) >= FASTFLOW_CACHED)
		json_array_remove(list, 0);
	if (json_array_append_new(list, encode(key, p)) == 0)
		file = json_pack("{s:O}", LIST, list);
	return file ? json_replace(file, path, err)
		    : err_set(err, -ENOMEM, "%s: out of memory", path);
}
