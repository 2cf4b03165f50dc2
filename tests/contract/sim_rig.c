/* SPDX-License-Identifier: MIT */
#include "loader/options/train_resolve.h"
#include "loader/options/train_table.h"
#include "tests/unit/test.h"

#include "tests/contract/sim_rig.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/util.h"
#include "fs/cache/cache.h"

char sim_rig_dir[] = "/tmp/gpemu-sim-XXXXXX";

static void put(const char *name, const char *text)
{
	char path[64];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", sim_rig_dir, name);
	f = fopen(path, "w");
	assert_non_null(f);
	fputs(text, f);
	assert_int_equal(fclose(f), 0);
}

#define S "{source: test, verified: true"
#define STORAGE(channels, link, read)                                      \
	"name: t\nsource: test\nchannels: " S channels "}\nlink: " S link  \
	"}\niops: " S "}\nopen: " S "}\nlookup: " S "}\nreaddir: " S "}\n" \
	"read: " S read "}\n"

#define CARD(rate)                                                    \
	"name: t\nsource: test\nverified: true\ngpus: 1\ngpu: v100\n" \
	"cores: 4\nmemory: 1G\npcie: {source: test}\n"                \
	"nic: {gb_per_s: " rate ", source: test}\n"

static void put_file(const char *path, off_t bytes)
{
	int fd = open(path, O_CREAT | O_WRONLY, 0600);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, bytes), 0);
	close(fd);
}

int sim_rig_make_data(void **state)
{
	char path[64];

	(void)state;
	assert_non_null(mkdtemp(sim_rig_dir));
	snprintf(path, sizeof(path), "%s/data", sim_rig_dir);
	assert_int_equal(mkdir(path, 0700), 0);
	for (int i = 0; i < N; i++) {
		snprintf(path, sizeof(path), "%s/data/%03d", sim_rig_dir, i);
		put_file(path, SIZE);
	}
	snprintf(path, sizeof(path), "%s/mixed", sim_rig_dir);
	assert_int_equal(mkdir(path, 0700), 0);
	for (int i = 0; i < N_MIXED; i++) {
		snprintf(path, sizeof(path), "%s/mixed/%02d", sim_rig_dir, i);
		put_file(path, 1000 + i * i * i);
	}
	snprintf(path, sizeof(path), "%s/large", sim_rig_dir);
	assert_int_equal(mkdir(path, 0700), 0);
	for (int i = 0; i < N_LARGE; i++) {
		snprintf(path, sizeof(path), "%s/large/%d", sim_rig_dir, i);
		put_file(path, LARGE);
	}
	put("seek.yaml", STORAGE(", count: 1", "",
				 ", occupancy: {kind: const, value: 5ms}"));
	put("four.yaml", STORAGE(", count: 4", "",
				 ", occupancy: {kind: const, value: 20ms}"));
	put("link.yaml", STORAGE("", ", mb_per_s: 20", ""));
	put("node.yaml", CARD("0.01"));
	put("card.yaml", CARD("0.1"));
	put("other.yaml", CARD("0.1000001"));
	return 0;
}

int sim_rig_remove_data(void **state)
{
	char command[64];

	(void)state;
	snprintf(command, sizeof(command), "rm -r %s", sim_rig_dir);
	return system(command);
}

static void set(struct session *s, const char *text)
{
	const char *value = strchr(text, '=') + 1;
	size_t n = (size_t)(value - text - 1);
	char full[128];
	struct err err = { 0 };

	/* %: the folder of the test */
	snprintf(full, sizeof(full), "%s", value);
	if (strchr(value, '%') && strchr(value, '%')[1] == '/')
		snprintf(full, sizeof(full), "%.*s%s%s",
			 (int)(strchr(value, '%') - value), value, sim_rig_dir,
			 strchr(value, '%') + 1);
	for (const struct conf_field *f = train_fields; f->key; f++)
		if (strlen(f->key) == n && !strncmp(f->key, text, n)) {
			if (conf_set(f, &s->options, full, &err) < 0)
				fail_msg("%s: %s", text, err.text);
			return;
		}
	fail_msg("no option %s", text);
}

void sim_rig_choose(struct session *s, const char *const options[])
{
	static const char *const common[] = { "simulate=on",   "data=%/data",
					      "model=alexnet", "gpu=v100",
					      "batch=16",      "prep=none",
					      "loader=sync",   "workers=4",
					      "epochs=1",      NULL };
	struct err err = { 0 };

	session_init(s);
	for (int i = 0; common[i]; i++)
		set(s, common[i]);
	for (int i = 0; options[i]; i++)
		set(s, options[i]);
	if (simulate_options(&s->options, NULL, &err) < 0 ||
	    train_options_resolve(&s->options, &s->choice, &err) < 0)
		fail_msg("%s", err.text);
}

void sim_rig_run(struct sim_rig *r, const char *const options[])
{
	struct err err = { 0 };

	memset(r, 0, sizeof(*r));
	sim_rig_choose(&r->s, options);
	if (simulate_open(&r->m, &r->s, &err) < 0)
		fail_msg("%s", err.text);
	while (session_more(&r->s))
		if (simulate_epoch(&r->m, &err) < 0)
			fail_msg("%s", err.text);
	assert_int_equal(simulate_report(&r->m, &err), 0);
	r->record = report_json(session_report(&r->s));
	assert_non_null(r->record);
}

void sim_rig_done(struct sim_rig *r)
{
	json_decref(r->record);
	simulate_close(&r->m);
	session_close(&r->s);
}

double sim_rig_epoch(const struct sim_rig *r, size_t i, const char *key)
{
	return json_number_value(json_object_get(
		json_array_get(json_object_get(r->record, "epochs"), i), key));
}

double sim_rig_fs(const struct sim_rig *r, size_t i, const char *key)
{
	return json_number_value(json_object_get(
		json_array_get(json_object_get(json_object_get(r->record, "fs"),
					       "epochs"),
			       i),
		key));
}

double sim_rig_number(const struct sim_rig *r, const char *path)
{
	const json_t *j = r->record;
	char key[32];
	int n;

	for (; sscanf(path, "%31[^/]%n", key, &n) == 1; path += n) {
		n += path[n] == '/';
		j = json_is_array(j)
			    ? json_array_get(j, (size_t)strtoul(key, NULL, 10))
			    : json_object_get(j, key);
	}
	return json_number_value(j);
}

double sim_rig_ahead(const struct sim_rig *r, size_t i, const char *key)
{
	return json_number_value(json_object_get(
		json_object_get(
			json_array_get(json_object_get(
					       json_object_get(r->record, "fs"),
					       "epochs"),
				       i),
			"prefetch"),
		key));
}

double sim_rig_mean(const struct sim_rig *r, size_t i, const char *key)
{
	return json_number_value(json_object_get(
		json_object_get(
			json_array_get(json_object_get(r->record, "epochs"), i),
			key),
		"mean"));
}

void sim_rig_replay(const struct sim_rig *r, const char *policy,
		    double fraction, uint64_t ret[EPOCHS])
{
	struct plugin_choice choice = { 0 };
	struct policy_params p = {
		.capacity_bytes = (uint64_t)(fraction * N * SIZE),
		.seed = r->s.options.common.seed,
	};
	struct cache *c;

	assert_int_equal(plugin_choose(policy_table, "policy", policy, &choice,
				       NULL),
			 0);
	assert_int_equal(cache_new(container_of(choice.plugin,
						const struct policy_ops,
						plugin),
				   &p, NULL, NULL, &c, NULL),
			 0);
	for (uint64_t e = 0; e < EPOCHS; e++) {
		struct rng rng =
			rng_stream(r->s.options.common.seed, "order", e);
		uint32_t order[N];

		for (uint32_t i = 0; i < N; i++)
			order[i] = i;
		rng_shuffle_u32(&rng, order, N);
		for (uint32_t i = 0; i < N; i++) {
			struct cache_object o = { .key = 1 + order[i],
						  .bytes = SIZE,
						  .file_bytes = SIZE };
			struct cache_entry *entry;

			cache_access(c, &o, &entry);
		}
		ret[e] = cache_counts(c)->hits;
		cache_reset_counts(c);
	}
	cache_free(c);
	plugin_choice_fini(&choice);
}
