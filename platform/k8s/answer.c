/* SPDX-License-Identifier: MIT */
/*
 * Messages are malloc'ed piece by piece, as protobuf-c frees them.
 */
#include "platform/k8s/answer.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "common/units.h"
#include "common/util.h"
#include "emu/gpu/gpud_client.h"
#include "emu/gpu/gpud_proto.h"

/* --- pieces --------------------------------------------------------------- */

/* The devices of a container, in the order of the resource, and what it gets.
 */
struct set {
	const struct k8s_device *const *items;
	size_t n;
	const char *grant;
	Kubelet__ContainerAnswer *a;
	bool failed; /* there was no memory for a piece */
};

/* What a piece has; NULL: no memory. */
static char *keep(struct set *s, char *text)
{
	s->failed |= !text;
	return text;
}

/* One more in an array of pointers to messages; NULL: no memory. */
static void *append(struct set *s, void *items, size_t *n, size_t size)
{
	void *message = malloc(size), **all, **grown;

	/* the caller's pointer is of another type */
	memcpy(&all, items, sizeof(all));
	grown = message ? realloc(all, (*n + 1) * sizeof(void *)) : NULL;
	if (!grown) {
		s->failed = true;
		free(message);
		return NULL;
	}
	memcpy(items, &grown, sizeof(grown));
	grown[(*n)++] = message;
	return message;
}

static void add_pair(struct set *s, Kubelet__Pair ***items, size_t *n,
		     const char *key, size_t n_key, const char *value)
{
	Kubelet__Pair *p = append(s, items, n, sizeof(*p));

	if (!p)
		return;
	kubelet__pair__init(p);
	p->key = keep(s, strndup(key, n_key));
	p->value = keep(s, value ? strdup(value) : NULL);
}

static void add_env(struct set *s, const char *key, const char *value)
{
	add_pair(s, &s->a->envs, &s->a->n_envs, key, strlen(key), value);
}

/* KEY=VALUE of the node's file. */
static void add_words(struct set *s, Kubelet__Pair ***items, size_t *n,
		      const struct conf_list *words)
{
	char *const *word = words->items;

	for (size_t i = 0; i < words->n; i++) {
		const char *is = strchr(word[i], '=');

		add_pair(s, items, n, word[i], (size_t)(is - word[i]), is + 1);
	}
}

static void add_mount(struct set *s, const char *host, const char *container,
		      bool read_only)
{
	Kubelet__Mount *m =
		append(s, &s->a->mounts, &s->a->n_mounts, sizeof(*m));

	if (!m)
		return;
	kubelet__mount__init(m);
	m->host_path = keep(s, strdup(host));
	m->container_path = keep(s, strdup(container));
	m->read_only = read_only;
}

static void add_device_file(struct set *s, const char *prefix, uint32_t gpu)
{
	Kubelet__DeviceFile *f =
		append(s, &s->a->devices, &s->a->n_devices, sizeof(*f));

	if (!f)
		return;
	kubelet__device_file__init(f);
	if (asprintf(&f->host_path, "%s%" PRIu32, prefix, gpu) < 0)
		f->host_path = keep(s, NULL);
	f->container_path = keep(s, f->host_path ? strdup(f->host_path) : NULL);
	f->permissions = keep(s, strdup("rw"));
}

static void add_cdi(struct set *s, const struct node_kind *k, uint32_t gpu)
{
	Kubelet__CdiDevice *d =
		append(s, &s->a->cdi_devices, &s->a->n_cdi_devices, sizeof(*d));

	if (!d)
		return;
	kubelet__cdi_device__init(d);
	if (asprintf(&d->name, "%s=%s-%" PRIu32, k->cdi, k->name, gpu) < 0)
		d->name = keep(s, NULL);
}

/* --- the whole ------------------------------------------------------------ */

/* Does a device begin another kind, another GPU? */
static bool first_of(const struct set *s, size_t i, enum k8s_level level)
{
	return i == 0 || s->items[i]->at[level] != s->items[i - 1]->at[level];
}

/* Memory that the set has of each GPU of a kind, at least. */
static void add_memory(struct set *s, const struct node_kind *k)
{
	size_t least = SIZE_MAX, n = 0;
	char mib[24];

	for (size_t i = 0; i < s->n; i++) {
		if (s->items[i]->kind != k)
			continue;
		n = first_of(s, i, K8S_CARD) ? 1 : n + 1;
		if (i + 1 == s->n || first_of(s, i + 1, K8S_CARD))
			least = MIN(least, n);
	}
	snprintf(mib, sizeof(mib), "%" PRIu64,
		 (uint64_t)(least * node_slice_bytes(k) / MIB));
	add_env(s, "GPEMU_GPU_MEMORY_MIB", mib);
}

static void add_number_of_gpus(struct set *s, const struct node_kind *k)
{
	char number[24];
	size_t n = 0;

	for (size_t i = 0; i < s->n; i++)
		n += s->items[i]->kind == k && first_of(s, i, K8S_CARD);
	snprintf(number, sizeof(number), "%zu", n);
	add_env(s, "GPEMU_GPUS", number);
}

/* The user that clients trust: names are the host's. */
static void add_user(struct set *s, const struct node_kind *k)
{
	char number[24];
	uid_t uid;

	if (!k->server_user || gpud_user(k->server_user, &uid) < 0)
		return;
	snprintf(number, sizeof(number), "%u", (unsigned)uid);
	add_env(s, "GPEMU_SERVER_USER", number);
}

/* The kind of the device at `i`. */
static void add_kind(struct set *s, size_t i)
{
	const struct node_kind *k = s->items[i]->kind;
	_cleanup_free_ char *folder =
		keep(s, gpud_grant_folder(k->server, s->grant));
	_cleanup_free_ char *inside =
		keep(s, util_join(K8S_CONTAINER_DIR, k->name));
	const struct node_mount *mount = k->mounts.items;

	if (folder && inside)
		add_mount(s, folder, inside, true);
	if (i == 0) {
		add_env(s, "GPEMU_GPU_PROFILE", k->profile);
		add_number_of_gpus(s, k);
		add_memory(s, k);
		add_user(s, k);
	}
	add_words(s, &s->a->envs, &s->a->n_envs, &k->env);
	add_words(s, &s->a->annotations, &s->a->n_annotations, &k->annotations);
	for (size_t m = 0; m < k->mounts.n; m++)
		add_mount(s, mount[m].host, mount[m].container,
			  mount[m].read_only);
}

static void put_ids(FILE *f, const struct set *s)
{
	for (size_t i = 0; i < s->n; i++)
		fprintf(f, "%s%s", i ? "," : "", s->items[i]->id);
}

static void put_gpus(FILE *f, const struct set *s)
{
	for (size_t i = 0; i < s->n; i++)
		if (s->items[i]->kind == s->items[0]->kind &&
		    first_of(s, i, K8S_CARD))
			fprintf(f, "%s%" PRIu32, i ? "," : "",
				s->items[i]->gpu);
}

static void put_servers(FILE *f, const struct set *s)
{
	for (size_t i = 0; i < s->n; i++) {
		const struct node_kind *k = s->items[i]->kind;

		if (first_of(s, i, K8S_KIND))
			fprintf(f, "%s" K8S_CONTAINER_DIR "/%s%s", i ? ":" : "",
				k->name, strrchr(k->server, '/'));
	}
}

/* A text; NULL: no memory. */
static char *write_list(void (*put)(FILE *f, const struct set *s),
			const struct set *s)
{
	char *text = NULL;
	size_t n;
	FILE *f = open_memstream(&text, &n);

	if (!f)
		return NULL;
	put(f, s);
	if (fclose(f) == 0)
		return text;
	free(text);
	return NULL;
}

static void add_lists(struct set *s)
{
	_cleanup_free_ char *ids = write_list(put_ids, s),
			    *gpus = write_list(put_gpus, s),
			    *servers = write_list(put_servers, s);

	add_env(s, "GPEMU_DEVICES", ids);
	add_env(s, "CUDA_VISIBLE_DEVICES", gpus);
	add_env(s, "GPEMU_GPU_SERVER", servers);
	add_pair(s, &s->a->annotations, &s->a->n_annotations,
		 "gpemu.io/devices", strlen("gpemu.io/devices"), ids);
}

int k8s_answer(const struct k8s_device *const *devices, size_t n,
	       const char *grant, Kubelet__ContainerAnswer *ret)
{
	struct set s = { .items = devices, .n = n, .grant = grant, .a = ret };

	if (n)
		add_lists(&s);
	for (size_t i = 0; i < n; i++) {
		const struct k8s_device *d = devices[i];

		if (first_of(&s, i, K8S_KIND))
			add_kind(&s, i);
		if (!first_of(&s, i, K8S_CARD))
			continue;
		if (d->kind->device)
			add_device_file(&s, d->kind->device, d->gpu);
		if (d->kind->cdi)
			add_cdi(&s, d->kind, d->gpu);
	}
	return s.failed ? -ENOMEM : 0;
}
