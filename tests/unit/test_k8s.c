/* SPDX-License-Identifier: MIT */
#include "tests/unit/test.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/rng.h"
#include "common/units.h"
#include "common/util.h"
#include "platform/k8s/methods.h"
#include "platform/k8s/devices.h"
#include "platform/k8s/grant_files.h"
#include "platform/k8s/grants.h"
#include "platform/k8s/health.h"

struct rig {
	struct node node;
	struct k8s_devices devices;
};

static void open_rig(struct rig *r, const char *yaml)
{
	struct err err = { 0 };

	if (node_parse(yaml, strlen(yaml), "n.yaml", &r->node, &err) < 0)
		fail_msg("%s", err.text);
	assert_int_equal(k8s_devices_init(&r->devices, &r->node,
					  node_kind(&r->node, 0)->resource),
			 0);
}

static void close_rig(struct rig *r)
{
	k8s_devices_fini(&r->devices);
	node_free(&r->node);
}

/* Words of a text as devices. */
static size_t find(const struct rig *r, const char *ids,
		   const struct k8s_device *ret[64])
{
	_cleanup_free_ char *copy = strdup(ids);
	size_t n = 0;

	for (char *at = copy, *id; (id = strsep(&at, " "));) {
		if (!id[0])
			continue;
		ret[n] = k8s_devices_find(&r->devices, id);
		assert_non_null(ret[n]);
		assert_string_equal(ret[n++]->id, id);
	}
	return n;
}

/* Of `available` ("": all), with `must`: exactly `want`. */
static void prefers(const struct rig *r, const char *available,
		    const char *must, const char *want)
{
	const struct k8s_device *all[64], *in[64], *expected[64], *got[64];
	size_t n = find(r, available, all), n_in = find(r, must, in),
	       size = find(r, want, expected);

	for (size_t i = 0; !available[0] && i < r->devices.n; i++)
		all[n++] = &r->devices.items[i];
	assert_int_equal(k8s_prefer(&r->devices, all, n, in, n_in, size, got),
			 0);
	for (size_t i = 0; i < size; i++)
		if (got[i] != expected[i])
			fail_msg("%s, not %s, of %s", got[i]->id,
				 expected[i]->id, want);
}

static void whole_gpus_of_one_numa_node_and_model(void **state)
{
	struct rig r;
	const struct k8s_device *all[64], *got[64];

	(void)state;
	open_rig(&r, "gpus:\n"
		     "  v100: {count: 6, server: /v, numa: [0,0,0,1,1,1]}\n"
		     "  a100: {count: 2, server: /a, numa: [0, 1],\n"
		     "    resource: gpemu.io/v100}\n");
	assert_int_equal(r.devices.n, 8);
	/* the smallest set that is large enough */
	prefers(&r, "", "", "a100-0");
	prefers(&r, "", "", "v100-0 v100-1");
	prefers(&r, "v100-0 v100-1 v100-2 v100-3 v100-4", "", "v100-3 v100-4");
	prefers(&r, "v100-1 v100-2 v100-4", "", "v100-1 v100-2");
	/* of what it has to have */
	prefers(&r, "", "v100-4", "v100-3 v100-4");
	prefers(&r, "", "a100-1", "a100-0 a100-1");
	/* NUMA nodes are left before models */
	prefers(&r, "", "", "v100-0 v100-1 v100-2 v100-3");
	prefers(&r, "v100-2 v100-3 v100-4 a100-0 a100-1", "",
		"v100-2 v100-3 v100-4");
	prefers(&r, "", "", "v100-0 v100-1 v100-2 v100-3 v100-4 v100-5 a100-0");
	/* there are not so many, or it has to have more */
	assert_int_equal(find(&r, "v100-0 v100-1", all), 2);
	assert_int_equal(k8s_prefer(&r.devices, all, 2, all, 0, 3, got),
			 -EINVAL);
	assert_int_equal(k8s_prefer(&r.devices, all, 2, all, 2, 1, got),
			 -EINVAL);
	assert_null(k8s_devices_find(&r.devices, "v100-6"));
	assert_null(k8s_devices_find(&r.devices, ""));
	close_rig(&r);
}

static void slices_of_memory_are_of_one_gpu(void **state)
{
	struct rig r;

	(void)state;
	/* of 29.5 GiB */
	open_rig(&r, "gpus:\n  v100: {count: 3, server: /v, slice: 9G}\n");
	assert_int_equal(r.devices.n, 9);
	prefers(&r, "", "", "v100-0-0 v100-0-1");
	/* where it leaves least */
	prefers(&r, "v100-0-0 v100-0-1 v100-0-2 v100-2-1 v100-2-2", "",
		"v100-2-1 v100-2-2");
	prefers(&r, "v100-0-0 v100-1-1 v100-1-2 v100-2-2", "",
		"v100-1-1 v100-1-2");
	/* as few GPUs as possible */
	prefers(&r, "v100-0-0 v100-1-1 v100-1-2 v100-2-2", "",
		"v100-0-0 v100-1-1 v100-1-2");
	close_rig(&r);
}

static void replicas_are_of_the_gpus_with_most_room(void **state)
{
	struct rig r;

	(void)state;
	open_rig(&r, "gpus:\n  v100: {count: 3, server: /v, replicas: 3}\n");
	assert_int_equal(r.devices.n, 9);
	prefers(&r, "", "", "v100-0-0 v100-1-0 v100-2-0");
	prefers(&r, "v100-0-0 v100-1-1 v100-1-2 v100-2-2", "", "v100-1-1");
	prefers(&r, "", "", "v100-0-0 v100-0-1 v100-1-0 v100-2-0");
	close_rig(&r);
}

/* So many, different, available, all that must be. */
static void ask_at_random(const struct k8s_devices *d, struct rng *rng)
{
	const struct k8s_device *all[64], *must[64], *got[64];
	size_t n = 0, n_must = 0, size, had = 0;

	for (size_t i = 0; i < d->n; i++) {
		if (rng_below(rng, 2) == 0)
			continue;
		all[n++] = &d->items[i];
		if (rng_below(rng, 6) == 0)
			must[n_must++] = all[n - 1];
	}
	size = n_must + rng_below(rng, n - n_must + 1);
	assert_int_equal(k8s_prefer(d, all, n, must, n_must, size, got), 0);
	for (size_t i = 0, a = 0; i < size; i++) {
		assert_true(i == 0 || got[i] > got[i - 1]);
		while (a < n && all[a] != got[i])
			a++;
		assert_true(a < n);
		for (size_t m = 0; m < n_must; m++)
			had += must[m] == got[i];
	}
	assert_int_equal(had, n_must);
}

static void any_request_gets_what_it_asked_for(void **state)
{
	static const char *const yaml[] = {
		"gpus: {v100: {count: 9, server: /v, numa: "
		"[0,0,1,1,2,2,3,3,0]}}",
		"gpus: {v100: {count: 4, server: /v, replicas: 5}}",
		"gpus: {v100: {count: 7, server: /v, slice: 9G}, p100: {count: "
		"3, server: /p, slice: 9G, resource: gpemu.io/v100}}",
	};
	struct rng rng = rng_stream(1, "prefer", 0);

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(yaml); i++) {
		struct rig r;

		open_rig(&r, yaml[i]);
		for (int k = 0; k < 1000; k++)
			ask_at_random(&r.devices, &rng);
		close_rig(&r);
	}
}

static void health_changes_once(void **state)
{
	const struct node_kind *v;
	struct rig r;

	(void)state;
	open_rig(&r, "gpus:\n  v100: {count: 2, server: /v, replicas: 2}\n"
		     "  a100: {count: 1, server: /a, replicas: 2,\n"
		     "    resource: gpemu.io/v100}\n");
	v = node_kind(&r.node, 0);
	assert_false(r.devices.items[0].healthy);
	assert_true(k8s_devices_mark(&r.devices, v, 2));
	assert_false(k8s_devices_mark(&r.devices, v, 2));
	for (size_t i = 0; i < r.devices.n; i++)
		assert_int_equal(r.devices.items[i].healthy, i == 2 || i == 3);
	close_rig(&r);
}

static void a_container_gets_each_gpu_once(void **state)
{
	Kubelet__ContainerAnswer *a = malloc(sizeof(*a));
	const struct k8s_device *all[64];
	struct rig r;
	size_t n;

	(void)state;
	open_rig(&r,
		 "gpus:\n"
		 "  v100: {count: 12, server: /run/v/s, replicas: 2,\n"
		 "    server_user: nobody, cdi: lab.org/gpu, device: /dev/v}\n"
		 "  a100: {count: 1, server: /run/a/s, replicas: 2,\n"
		 "    resource: gpemu.io/v100, env: [X=, Y=1=2]}\n");
	n = find(&r, "v100-2-0 v100-10-0 v100-10-1 a100-0-1", all);
	kubelet__container_answer__init(a);
	assert_int_equal(k8s_answer(all, n, "k8s-x", a), 0);
	assert_int_equal(a->n_envs, 9);
	assert_string_equal(a->envs[0]->key, "GPEMU_DEVICES");
	assert_string_equal(a->envs[0]->value,
			    "v100-2-0,v100-10-0,v100-10-1,a100-0-1");
	assert_string_equal(a->envs[1]->key, "CUDA_VISIBLE_DEVICES");
	assert_string_equal(a->envs[1]->value, "2,10");
	assert_string_equal(a->envs[2]->value,
			    "/run/gpemu/v100/s:/run/gpemu/a100/s");
	assert_string_equal(a->envs[4]->key, "GPEMU_GPUS");
	assert_string_equal(a->envs[4]->value, "2");
	assert_string_equal(a->envs[5]->key, "GPEMU_GPU_MEMORY_MIB");
	/* half of a V100, of which the other GPU is there twice */
	assert_int_equal(atoi(a->envs[5]->value),
			 node_kind(&r.node, 0)->memory_bytes / 2 / MIB);
	assert_string_equal(a->envs[6]->key, "GPEMU_SERVER_USER");
	assert_string_equal(a->envs[6]->value, "65534");
	assert_string_equal(a->envs[7]->key, "X");
	assert_string_equal(a->envs[7]->value, "");
	assert_string_equal(a->envs[8]->value, "1=2");
	assert_int_equal(a->n_mounts, 2);
	assert_string_equal(a->mounts[1]->host_path, "/run/a/s.d/k8s-x");
	assert_string_equal(a->mounts[1]->container_path, "/run/gpemu/a100");
	assert_int_equal(a->n_devices, 2);
	assert_string_equal(a->devices[1]->host_path, "/dev/v10");
	assert_int_equal(a->n_cdi_devices, 2);
	assert_string_equal(a->cdi_devices[0]->name, "lab.org/gpu=v100-2");
	kubelet__container_answer__free_unpacked(a, NULL);
	close_rig(&r);
}

/* --- grants and health ---------------------------------------------------- */

/* A node whose server is not there, and a kubelet's folder. */
struct grants_rig {
	struct rig rig;
	struct health health;
	struct grants grants;
	char dir[32], folder[64];
};

static void open_grants(struct grants_rig *r, const char *yaml)
{
	open_rig(&r->rig, yaml);
	r->health = (struct health){ .kind = node_kind(&r->rig.node, 0),
				     .event.fd = -1 };
	snprintf(r->dir, sizeof(r->dir), "/tmp/test_k8s.XXXXXX");
	assert_non_null(mkdtemp(r->dir));
	snprintf(r->folder, sizeof(r->folder), "%s/" GRANT_FILES, r->dir);
	r->grants = (struct grants){ .folder = r->folder,
				     .health = &r->health,
				     .n_health = 1 };
}

/* All grants end: nothing is left on disk. */
static void close_grants(struct grants_rig *r)
{
	while (r->grants.first)
		grants_settle(&r->grants, r->grants.first, false);
	rmdir(r->folder); /* there was none, or one */
	assert_int_equal(rmdir(r->dir), 0);
	close_rig(&r->rig);
}

/* A container has it. */
static struct k8s_grant *added(struct grants_rig *r, const char *ids)
{
	const struct k8s_device *all[64];
	size_t n = find(&r->rig, ids, all);
	struct k8s_grant *grant;

	assert_int_equal(grants_add(&r->grants, "r", all, n, &grant), 0);
	assert_int_equal(grant->error, EHOSTDOWN);
	assert_true(grants_done(&r->grants, grant));
	grants_settle(&r->grants, grant, true);
	return grant;
}

static const struct k8s_device *device_of(void *ctx, const char *resource,
					  const char *id)
{
	assert_string_equal(resource, "r");
	return k8s_devices_find(&((struct rig *)ctx)->devices, id);
}

static void load(struct grants_rig *r)
{
	struct err err = { 0 };

	grants_fini(&r->grants);
	if (grants_load(&r->grants, device_of, &r->rig, &err) < 0)
		fail_msg("%s", err.text);
}

static void a_device_that_is_named_twice_counts_once(void **state)
{
	struct k8s_grant *one, *two;
	struct grants_rig r;

	(void)state;
	open_grants(&r, "gpus: {v100: {count: 1, server: /s, slice: 4G}}");
	one = added(&r, "v100-0-3 v100-0-1 v100-0-3");
	assert_int_equal(one->n, 2);
	assert_string_equal(one->devices[1]->id, "v100-0-3");
	/* of the same devices, and another container's */
	two = added(&r, "v100-0-3 v100-0-1");
	assert_string_not_equal(one->name, two->name);
	close_grants(&r);
}

static bool is_live(void *ctx, const struct k8s_grant *grant)
{
	(void)grant;
	return *(bool *)ctx;
}

/* So many lists of the kubelet's, with other pods or none. */
static void prune(struct grants_rig *r, int times, bool live, bool any)
{
	while (times-- > 0)
		grants_prune(&r->grants, is_live, &live, any, NS_PER_S * 100);
}

static void a_grant_outlives_a_kubelet_that_starts(void **state)
{
	struct k8s_grant *grant;
	struct grants_rig r;

	(void)state;
	open_grants(&r, "gpus: {v100: {count: 1, server: /s, slice: 4G}}");
	grant = added(&r, "v100-0-3");
	prune(&r, 1, true, true);
	/* it lists no pods before its socket is there, and after that */
	prune(&r, 1, false, false);
	grants_doubt(&r.grants);
	prune(&r, 9, false, true);
	assert_ptr_equal(r.grants.first, grant);
	/* what it lists stays as it is */
	prune(&r, 1, true, true);
	assert_true(r.grants.first == grant && grant->listed);
	prune(&r, 1, false, false);
	assert_ptr_equal(r.grants.first, grant);
	prune(&r, 1, false, false);
	assert_null(r.grants.first);
	close_grants(&r);
}

static void a_plugin_that_starts_knows_the_grants(void **state)
{
	char name[GRANT_NAME], path[128];
	struct grants_rig r;
	FILE *f;

	(void)state;
	open_grants(&r, "gpus: {v100: {count: 2, server: /s}}");
	memcpy(name, added(&r, "v100-0 v100-1")->name, sizeof(name));
	load(&r);
	assert_string_equal(r.grants.first->name, name);
	assert_int_equal(r.grants.first->n, 2);
	assert_string_equal(r.grants.first->devices[1]->id, "v100-1");
	/* lists without pods say nothing */
	prune(&r, 9, false, false);
	assert_non_null(r.grants.first);
	prune(&r, 2, false, true);
	assert_null(r.grants.first);
	load(&r);
	assert_null(r.grants.first);

	/* half a file, and one of a device that the node had */
	snprintf(path, sizeof(path), "%s/%s", r.folder, name);
	for (int i = 0; i < 2; i++) {
		f = fopen(path, "w");
		fputs(i ? "r\nv100-2\nend\n" : "r\nv100-0\n", f);
		fclose(f);
		load(&r);
		assert_null(r.grants.first);
		assert_int_equal(access(path, F_OK), -1);
	}
	close_grants(&r);
}

/* Nothing ends what a call waits for. */
static void a_held_grant_stays(void **state)
{
	const struct k8s_device *all[64];
	struct k8s_grant *held;
	struct grants_rig r;

	(void)state;
	open_grants(&r, "gpus: {v100: {count: 1, server: /s}}");
	find(&r.rig, "v100-0", all);
	assert_int_equal(grants_add(&r.grants, "r", all, 1, &held), 0);
	held->added_ns = held->since_ns = 0;
	held->listed = true;
	prune(&r, 3, false, true);
	added(&r, "v100-0");
	assert_ptr_equal(r.grants.first->next, held);
	grants_settle(&r.grants, held, false);
	assert_null(r.grants.first->next);
	close_grants(&r);
}

static void an_allocation_ends_the_grants_of_former_containers(void **state)
{
	struct k8s_grant *both, *init, *last;
	char name[GRANT_NAME];
	struct grants_rig r;

	(void)state;
	open_grants(&r, "gpus: {v100: {count: 3, server: /none/s}}");
	last = added(&r, "v100-2");
	memcpy(name, last->name, sizeof(name));
	both = added(&r, "v100-0 v100-1");
	/* an init container's, of the same pod */
	init = added(&r, "v100-0 v100-1");
	assert_true(init->next == both && both->next == last);
	/* later they are another pod's */
	both->added_ns -= 6 * NS_PER_S;
	init->added_ns -= 6 * NS_PER_S;
	both = added(&r, "v100-1");
	assert_true(r.grants.first == both && both->next == last);
	/* by another plugin, too */
	load(&r);
	last = added(&r, "v100-2");
	assert_string_not_equal(last->name, name);
	assert_ptr_equal(r.grants.first, last);
	assert_string_equal(last->next->devices[0]->id, "v100-1");
	assert_null(last->next->next);
	close_grants(&r);
}

static void on_changed(void *ctx, const struct node_kind *kind,
		       uint64_t healthy)
{
	(void)kind;
	*(uint64_t *)ctx = healthy;
}

static void ignore(void *ctx, const struct node_kind *kind)
{
	(void)ctx;
	(void)kind;
}

/* A server that sends these messages, and then reads none of so many grants:
 * its healthy GPUs. */
static uint64_t healthy_after(struct gpud_msg *messages, size_t n,
			      unsigned n_grants)
{
	char dir[] = "/tmp/gpemu-k8s-XXXXXX", yaml[128], buf[1024];
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	uint64_t healthy = UINT64_MAX;
	struct events events;
	struct health h;
	struct rig r;
	int fd, listener = socket(AF_UNIX, SOCK_STREAM, 0);

	assert_non_null(mkdtemp(dir));
	snprintf(a.sun_path, sizeof(a.sun_path), "%s/s", dir);
	assert_int_equal(bind(listener, (struct sockaddr *)&a, sizeof(a)), 0);
	assert_int_equal(listen(listener, 1), 0);
	snprintf(yaml, sizeof(yaml), "gpus: {v100: {count: 4, server: %s/s}}",
		 dir);
	open_rig(&r, yaml);
	assert_int_equal(events_init(&events), 0);
	h = (struct health){ .kind = node_kind(&r.node, 0),
			     .events = &events,
			     .interval_ns = 100 * NS_PER_S,
			     .changed = on_changed,
			     .connected = ignore,
			     .lost = ignore,
			     .ctx = &healthy };
	health_begin(&h);
	fd = accept(listener, NULL, NULL);
	for (size_t i = 0; i < n; i++) {
		if (messages[i].type == GPUD_WELCOME)
			snprintf(messages[i].welcome.gpu, GPUD_NAME, "%s",
				 h.kind->gpu);
		gpud_encode(&messages[i], buf);
		assert_int_equal(send(fd, buf, gpud_size(&messages[i]),
				      MSG_NOSIGNAL),
				 gpud_size(&messages[i]));
	}
	while (events_turn(&events, false) > 0)
		;
	while (n_grants-- > 0)
		health_grant(&h, "k8s-x", 0, 1);
	while (events_turn(&events, false) > 0)
		;
	health_end(&h);
	events_fini(&events);
	close_rig(&r);
	close(fd);
	close(listener);
	unlink(a.sun_path);
	rmdir(dir);
	return healthy;
}

static void a_server_that_lies_or_is_deaf_has_no_healthy_gpus(void **state)
{
	struct gpud_msg welcome = { .type = GPUD_WELCOME, .welcome.n_gpus = 4 },
			none = { .type = GPUD_WELCOME },
			health = { .type = GPUD_HEALTH,
				   .health = { .failed = 2, .n_gpus = 3 } };
	struct gpud_msg right[] = { welcome, health }, early[] = { health },
			empty[] = { none, health },
			twice[] = { welcome, health, welcome };

	(void)state;
	assert_int_equal(healthy_after(right, ARRAY_SIZE(right), 1), 5);
	/* more than its socket holds */
	assert_int_equal(healthy_after(right, ARRAY_SIZE(right), 100000), 0);
	assert_int_equal(healthy_after(early, ARRAY_SIZE(early), 0), 0);
	assert_int_equal(healthy_after(empty, ARRAY_SIZE(empty), 0), 0);
	assert_int_equal(healthy_after(twice, ARRAY_SIZE(twice), 0), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(whole_gpus_of_one_numa_node_and_model),
		cmocka_unit_test(slices_of_memory_are_of_one_gpu),
		cmocka_unit_test(replicas_are_of_the_gpus_with_most_room),
		cmocka_unit_test(any_request_gets_what_it_asked_for),
		cmocka_unit_test(health_changes_once),
		cmocka_unit_test(a_container_gets_each_gpu_once),
		cmocka_unit_test(a_device_that_is_named_twice_counts_once),
		cmocka_unit_test(a_grant_outlives_a_kubelet_that_starts),
		cmocka_unit_test(a_plugin_that_starts_knows_the_grants),
		cmocka_unit_test(a_held_grant_stays),
		cmocka_unit_test(
			an_allocation_ends_the_grants_of_former_containers),
		cmocka_unit_test(
			a_server_that_lies_or_is_deaf_has_no_healthy_gpus),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
