/* SPDX-License-Identifier: MIT */
/*
 * Messages of a client, as gpemu-gpud parses them: a running server with a
 * permanent job. It continues with the next input, and reports its status after
 * any input.
 */
#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/socket.h>
#include <unistd.h>

#include "emu/gpu/gpud_client.h"
#include "emu/profile/profile.h"
#include "share/server.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/smi.h"

extern const struct scheduler_ops scheduler_fair;

/* Pointers that the server's threads pass through a pipe are nowhere else
 * meanwhile. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
	return "detect_leaks=0";
}

static char path[64];
static sem_t listening;
static struct gpud_client always;

/* A thread of its own: the server blocks the signals of the fuzzer. */
static void *serve(void *arg)
{
	static struct gpu_profile gpu;
	static struct server s;
	static struct server_config c = {
		.slicing = { .reason = "a test" },
		.path = path,
		.mode = 0600,
		.max_clients = 8,
		.max_per_user = 8,
		.time_scale = 1e-6,
		.profile = "/gpu.yaml",
		.gpu = &gpu,
		.share = { .scheduler = &scheduler_fair, .n_gpus = 2 },
	};
	struct err err = { 0 };

	(void)arg;
	PROMISED(gpu_profile_load("v100", &gpu, &err) == 0);
	PROMISED(server_init(&s, &c, &err) == 0);
	sem_post(&listening);
	PROMISED(server_run(&s, &err) == 0);
	return NULL;
}

static void tidy(void)
{
	unlink(path);
}

static void connect_to(struct gpud_client *c)
{
	struct err err = { 0 };

	if (gpud_open(path, NULL, c, &err) < 0) {
		fprintf(stderr, "not so: %s\n", err.text);
		abort();
	}
}

static void join(void)
{
	struct gpud_msg m = { .type = GPUD_HELLO,
			      .hello = { .name = "always",
					 .model = "resnet50",
					 .batch = 64,
					 .n_gpus = 2 } };
	struct err err = { 0 };

	connect_to(&always);
	PROMISED(gpud_send(&always, &m, &err) == 0);
}

static void ask(struct gpud_client *c, struct gpud_msg *m)
{
	struct err err = { 0 };

	PROMISED(gpud_send(c, m, &err) == 0);
	PROMISED(gpud_receive(c, m, &err) == 0);
}

/* Revoke all grants. */
static void revoke_all(struct gpud_client *c)
{
	char *folder = gpud_grant_folder(path, "");
	DIR *dir = opendir(folder);
	const struct dirent *e;

	while (dir && (e = readdir(dir))) {
		struct gpud_msg m = { .type = GPUD_REVOKE };

		if (e->d_name[0] == '.')
			continue;
		snprintf(m.revoke.name, sizeof(m.revoke.name), "%.63s",
			 e->d_name);
		ask(c, &m);
		PROMISED(m.type == GPUD_ACK && m.ack.error == 0);
	}
	if (dir)
		closedir(dir);
	rmdir(folder);
	free(folder);
}

/* A GPU that was marked may have ended the permanent job. */
static void repair(void)
{
	struct gpud_client c;

	gpud_close(&always);
	connect_to(&c);
	revoke_all(&c);
	for (uint32_t gpu = 0; gpu < 2; gpu++) {
		struct gpud_msg m = { .type = GPUD_MARK, .mark.gpu = gpu };

		ask(&c, &m);
		PROMISED(m.type == GPUD_HEALTH);
	}
	gpud_close(&c);
	join();
}

static void start(void)
{
	pthread_t thread;

	if (path[0])
		return;
	snprintf(path, sizeof(path), "/tmp/gpemu-fuzz-%d.sock", (int)getpid());
	sem_init(&listening, 0, 0);
	PROMISED(pthread_create(&thread, NULL, serve, NULL) == 0);
	sem_wait(&listening);
	atexit(tidy);
	join();
}

static void show(const struct gpud_status *s, bool marked)
{
	json_t *j = json_loadb(s->json, s->n, 0, NULL);

	PROMISED(marked ||
		 json_array_size(json_object_get(j, "processes")) >= 1);
	smi_show(j);
	json_decref(j);
}

/* Until the status, or until the server hangs up. */
static void hear(struct gpud_client *c, bool marked)
{
	struct err err = { 0 };
	struct gpud_msg m;
	int r;

	while ((r = gpud_receive(c, &m, &err)) == 0 && m.type != GPUD_STATUS)
		;
	PROMISED(r != -EAGAIN); /* the target would hang */
	if (r == 0)
		show(&m.status, marked);
}

/* Does the server accept all of it as messages, whatever its answers? Do they
 * mark or grant GPUs? */
static bool is_whole(const uint8_t *data, size_t n, bool *ret_marked)
{
	while (n) {
		struct gpud_msg m;
		int r = gpud_decode(data, n, GPUD_MAX_REQUEST, &m, NULL);

		if (r <= 0)
			return r < 0; /* it hangs up */
		*ret_marked |= m.type == GPUD_MARK || m.type == GPUD_GRANT;
		data += r;
		n -= (size_t)r;
	}
	return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct gpud_msg query = { .type = GPUD_QUERY };
	bool marked = false, whole = is_whole(data, n, &marked);
	uint8_t ask[GPUD_HEADER];
	struct gpud_client c;

	start();
	connect_to(&c);
	gpud_encode(&query, ask);
	/* it may have hung up before the end */
	send(c.fd, data, n, MSG_NOSIGNAL);
	send(c.fd, ask, sizeof(ask), MSG_NOSIGNAL);
	/* half a message would absorb the query */
	if (whole)
		hear(&c, marked);
	gpud_close(&c);
	if (marked)
		repair();
	return 0;
}
