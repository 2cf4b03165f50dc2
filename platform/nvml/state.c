/* SPDX-License-Identifier: MIT */
/*
 * NVML has one state for each process, and so has this library: the servers
 * that nvmlInit found, and the last status of each, which is refreshed when a
 * call finds it old. No connection is kept, so that a program that forks, or a
 * server that is started again, needs no care.
 */
#include "platform/nvml/state.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "common/json.h"
#include "common/tick.h"
#include "common/units.h"
#include "common/util.h"
#include "emu/gpu/gpud_client.h"
#include "emu/gpu/gpud_query.h"

enum {
	SERVERS = 16,	  /* arbitrary: kinds of GPUs on a node */
	SERVER_GPUS = 64, /* of one, at most. Source: SHARE_MAX_GPUS */
	DEVICES = SERVERS * SERVER_GPUS,
	UUID = sizeof(((struct gpu_now *)NULL)->uuid),
	/* For an answer, wall time. arbitrary: a running server needs less
	 * than a millisecond; a monitor that waits longer looks dead */
	PATIENCE_S = 2,
};
/* Age of a status, wall time. NVML's samples are older: 1/6 s to 1 s.
 * Source: NVML API reference, nvmlUtilization_t */
#define FRESH_NS (50 * NS_PER_MS)

/* Only its address is used. */
struct nvml_device {
	char nothing;
};

struct server {
	char *path;
	json_t *status;	   /* NULL: the last query failed */
	int error;	   /* of the last query */
	uint64_t until_ns; /* wall: no query before */
};

/* Where a device was found. */
struct place {
	uint32_t server, index;
	char uuid[UUID];
};

static struct {
	pthread_mutex_t lock; /* guards all of this */
	uint32_t n_open, n_servers, n_devices;
	struct server servers[SERVERS];
	struct place places[DEVICES];
} nvml = { .lock = PTHREAD_MUTEX_INITIALIZER };

static struct nvml_device handles[DEVICES];

static void lock(void)
{
	pthread_mutex_lock(&nvml.lock);
}

static void unlock(void)
{
	pthread_mutex_unlock(&nvml.lock);
}

/* A child must not inherit the lock of a thread that it does not have. Before
 * any call: one that is the first may be within the lock when another thread
 * forks. */
__attribute__((constructor)) static void watch_forks(void)
{
	pthread_atfork(lock, unlock, unlock);
}

/* --- the status of a server ---------------------------------------------- */

static int error_of(int r)
{
	switch (r) {
	case -ENODEV:
	case -ECONNRESET: return NVML_GPU_IS_LOST;
	case -EACCES:
	case -EPERM: return NVML_NO_PERMISSION;
	case -EAGAIN: return NVML_TIMEOUT;
	case -ENOMEM: return NVML_MEMORY;
	default: return NVML_UNKNOWN;
	}
}

/* A server that did not answer is left alone for as long as it was waited for:
 * a monitor has many questions at once. */
static void query(struct server *s)
{
	json_t *status = NULL;
	struct err err = { 0 };
	int r = gpud_query(s->path, secure_getenv("GPEMU_SERVER_USER"),
			   PATIENCE_S, &status, &err);

	json_decref(s->status);
	s->status = status;
	s->error = r < 0 ? error_of(r) : NVML_SUCCESS;
	s->until_ns =
		tick_wall() + (r == -EAGAIN ? PATIENCE_S * NS_PER_S : FRESH_NS);
}

static json_int_t whole(const json_t *j, const char *key)
{
	return json_integer_value(json_object_get(j, key));
}

static uint64_t bytes(const json_t *j, const char *key)
{
	double b = json_get_number(j, key) * (double)MIB;

	return b > 0 && b < 0x1p60 ? (uint64_t)b : 0;
}

#define COPY(to, from) snprintf(to, sizeof(to), "%s", from)

static void read_gpu(const json_t *j, struct gpu_now *ret)
{
	COPY(ret->name, json_get_text(j, "name"));
	COPY(ret->uuid, json_get_text(j, "uuid"));
	COPY(ret->serial, json_get_text(j, "serial"));
	COPY(ret->pci_bus_id, json_get_text(j, "pci_bus_id"));
	COPY(ret->brand, json_get_text(json_object_get(j, "board"), "brand"));
	ret->memory_total = bytes(j, "memory_total_mib");
	ret->memory_usable =
		MIN(bytes(j, "memory_usable_mib"), ret->memory_total);
	ret->memory_used = MIN(bytes(j, "memory_used_mib"), ret->memory_total);
	ret->utilisation = json_get_number(j, "utilisation");
	ret->running = whole(j, "running") > 0;
}

/* --- opening ------------------------------------------------------------- */

static void close_server(struct server *s)
{
	free(s->path);
	json_decref(s->status);
	*s = (struct server){ 0 };
}

static void close_all(void)
{
	for (uint32_t i = 0; i < nvml.n_servers; i++)
		close_server(&nvml.servers[i]);
	nvml.n_servers = nvml.n_devices = 0;
}

static int open_server(const char *path)
{
	struct server *s = &nvml.servers[nvml.n_servers];
	const json_t *gpus;
	int r;

	*s = (struct server){ .path = strdup(path) };
	if (!s->path)
		return NVML_MEMORY;
	query(s);
	r = s->error;
	if (r != NVML_SUCCESS) {
		close_server(s);
		return r;
	}
	gpus = json_object_get(s->status, "gpus");
	for (uint32_t i = 0; i < MIN(json_array_size(gpus), SERVER_GPUS); i++) {
		struct place *p = &nvml.places[nvml.n_devices++];

		*p = (struct place){ .server = nvml.n_servers, .index = i };
		COPY(p->uuid, json_get_text(json_array_get(gpus, i), "uuid"));
	}
	nvml.n_servers++;
	return NVML_SUCCESS;
}

/* The servers that answer; those that do not have no devices. */
static int open_all(void)
{
	const char *given = secure_getenv("GPEMU_GPU_SERVER");
	_cleanup_free_ char *paths = given && given[0] ? strdup(given)
						       : gpud_default_path();
	int r, error = NVML_GPU_IS_LOST;
	char *at = NULL;

	if (!paths)
		return NVML_MEMORY;
	for (char *p = strtok_r(paths, ":", &at); p && nvml.n_servers < SERVERS;
	     p = strtok_r(NULL, ":", &at)) {
		r = open_server(p);
		if (error == NVML_GPU_IS_LOST && r != NVML_SUCCESS)
			error = r;
	}
	if (nvml.n_devices)
		return NVML_SUCCESS;
	close_all();
	return error == NVML_GPU_IS_LOST ? NVML_DRIVER_NOT_LOADED : error;
}

int state_open(void)
{
	int r = NVML_SUCCESS;

	lock();
	if (nvml.n_open == 0)
		r = open_all();
	nvml.n_open += r == NVML_SUCCESS;
	unlock();
	return r;
}

int state_close(void)
{
	int r = NVML_UNINITIALIZED;

	lock();
	if (nvml.n_open) {
		r = NVML_SUCCESS;
		if (--nvml.n_open == 0)
			close_all();
	}
	unlock();
	return r;
}

/* --- devices ------------------------------------------------------------- */

int state_count(unsigned *ret)
{
	int r;

	lock();
	r = nvml.n_open ? NVML_SUCCESS : NVML_UNINITIALIZED;
	*ret = nvml.n_devices;
	unlock();
	return r;
}

int state_check(void)
{
	unsigned n;

	return state_count(&n);
}

int state_handle(unsigned index, struct nvml_device **ret)
{
	unsigned n;
	int r = state_count(&n);

	if (r == NVML_SUCCESS && index >= n)
		r = NVML_INVALID_ARGUMENT;
	if (r == NVML_SUCCESS)
		*ret = &handles[index];
	return r;
}

/* Under the lock; the JSON is valid until it is released. */
static int find_gpu(const struct nvml_device *d, uint32_t *ret_index,
		    const json_t **ret_status, const json_t **ret_gpu)
{
	uintptr_t i = (uintptr_t)d - (uintptr_t)handles;
	const struct place *p;
	struct server *s;

	if (!nvml.n_open)
		return NVML_UNINITIALIZED;
	if (i >= nvml.n_devices)
		return NVML_INVALID_ARGUMENT;
	p = &nvml.places[i];
	s = &nvml.servers[p->server];
	if (tick_wall() >= s->until_ns)
		query(s);
	if (s->error != NVML_SUCCESS)
		return s->error;
	*ret_index = (uint32_t)i;
	*ret_status = s->status;
	*ret_gpu = json_array_get(json_object_get(s->status, "gpus"), p->index);
	if (strcmp(json_get_text(*ret_gpu, "uuid"), p->uuid) ||
	    json_is_false(json_object_get(*ret_gpu, "healthy")))
		return NVML_GPU_IS_LOST;
	return NVML_SUCCESS;
}

int state_gpu(const struct nvml_device *d, struct gpu_now *ret)
{
	const json_t *status, *gpu = NULL;
	int r;

	lock();
	r = find_gpu(d, &ret->index, &status, &gpu);
	if (r == NVML_SUCCESS)
		read_gpu(gpu, ret);
	unlock();
	return r;
}

int state_fact(const struct nvml_device *d, const char *key, double *ret)
{
	const json_t *status, *gpu = NULL, *fact;
	uint32_t device;
	int r;

	lock();
	r = find_gpu(d, &device, &status, &gpu);
	if (r == NVML_SUCCESS) {
		fact = json_object_get(json_object_get(gpu, "board"), key);
		*ret = json_is_true(fact) ? 1 : json_number_value(fact);
		if (!(*ret > 0))
			r = NVML_NOT_SUPPORTED;
	}
	unlock();
	return r;
}

static bool runs_on(const json_t *process, json_int_t gpu)
{
	const json_t *g;
	size_t i;

	json_array_foreach (json_object_get(process, "gpus"), i, g)
		if (json_integer_value(g) == gpu)
			return true;
	return false;
}

int state_processes(const struct nvml_device *d, bool mps, unsigned *count,
		    struct nvml_process *ret)
{
	const json_t *status = NULL, *gpu = NULL, *p;
	unsigned n = 0, room = *count;
	uint32_t device;
	size_t i;
	int r;

	lock();
	r = find_gpu(d, &device, &status, &gpu);
	if (r == NVML_SUCCESS && mps &&
	    strcmp(json_get_text(json_object_get(status, "server"), "share"),
		   "mps"))
		status = NULL;
	if (r != NVML_SUCCESS)
		status = NULL;
	json_array_foreach (json_object_get(status, "processes"), i, p) {
		if (!runs_on(p, whole(gpu, "index")))
			continue;
		if (n < room)
			ret[n] = (struct nvml_process){
				.pid = (uint32_t)whole(p, "pid"),
				.memory_bytes = bytes(p, "peak_mib"),
				.gpu_instance = NVML_NO_INSTANCE,
				.compute_instance = NVML_NO_INSTANCE,
			};
		n++;
	}
	unlock();
	if (r != NVML_SUCCESS)
		return r;
	*count = n;
	return n > room ? NVML_INSUFFICIENT_SIZE : NVML_SUCCESS;
}
