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

/* One more in an array of pointers to messages. */
static int append(void *items, size_t *n, void *message)
{
	void **all, **grown;

	/* the caller's pointer is of another type */
	memcpy(&all, items, sizeof(all));
	grown = realloc(all, (*n + 1) * sizeof(void *));
	if (!grown) {
		free(message);
		return -ENOMEM;
	}
	memcpy(items, &grown, sizeof(grown));
	grown[(*n)++] = message;
	return 0;
}

static int add_pair(Kubelet__Pair ***items, size_t *n, const char *key,
		    size_t n_key, const char *value)
{
	Kubelet__Pair *p = malloc(sizeof(*p));

	if (!p)
		return -ENOMEM;
	kubelet__pair__init(p);
	if (append(items, n, p) < 0)
		return -ENOMEM;
	p->key = strndup(key, n_key);
	p->value = strdup(value);
	return p->key && p->value ? 0 : -ENOMEM;
}

static int add_env(Kubelet__ContainerAnswer *a, const char *key,
		   const char *value)
{
	return add_pair(&a->envs, &a->n_envs, key, strlen(key), value);
}

/* KEY=VALUE of the node's file. */
static int add_words(Kubelet__Pair ***items, size_t *n,
		     const struct conf_list *words)
{
	char *const *word = words->items;
	int r = 0;

	for (size_t i = 0; r == 0 && i < words->n; i++) {
		const char *is = strchr(word[i], '=');

		r = add_pair(items, n, word[i], (size_t)(is - word[i]), is + 1);
	}
	return r;
}

static int add_mount(Kubelet__ContainerAnswer *a, const char *host,
		     const char *container, bool read_only)
{
	Kubelet__Mount *m = malloc(sizeof(*m));

	if (!m)
		return -ENOMEM;
	kubelet__mount__init(m);
	if (append(&a->mounts, &a->n_mounts, m) < 0)
		return -ENOMEM;
	m->host_path = strdup(host);
	m->container_path = strdup(container);
	m->read_only = read_only;
	return m->host_path && m->container_path ? 0 : -ENOMEM;
}

static int add_device_file(Kubelet__ContainerAnswer *a, const char *prefix,
			   uint32_t gpu)
{
	Kubelet__DeviceFile *f = malloc(sizeof(*f));

	if (!f)
		return -ENOMEM;
	kubelet__device_file__init(f);
	if (append(&a->devices, &a->n_devices, f) < 0)
		return -ENOMEM;
	if (asprintf(&f->host_path, "%s%" PRIu32, prefix, gpu) < 0)
		f->host_path = NULL;
	f->container_path = f->host_path ? strdup(f->host_path) : NULL;
	f->permissions = strdup("rw");
	return f->container_path && f->permissions ? 0 : -ENOMEM;
}

static int add_cdi(Kubelet__ContainerAnswer *a, const struct node_kind *k,
		   uint32_t gpu)
{
	Kubelet__CdiDevice *d = malloc(sizeof(*d));

	if (!d)
		return -ENOMEM;
	kubelet__cdi_device__init(d);
	if (append(&a->cdi_devices, &a->n_cdi_devices, d) < 0)
		return -ENOMEM;
	if (asprintf(&d->name, "%s=%s-%" PRIu32, k->cdi, k->name, gpu) < 0)
		d->name = NULL;
	return d->name ? 0 : -ENOMEM;
}

/* --- the whole ------------------------------------------------------------ */

/* The devices of a container, in the order of the resource. */
struct set {
	const struct k8s_device *const *items;
	size_t n;
	const char *grant;
};

/* Does a device begin another kind, another GPU? */
static bool first_of(const struct set *s, size_t i, enum k8s_level level)
{
	return i == 0 || s->items[i]->at[level] != s->items[i - 1]->at[level];
}

/* Memory that the set has of each GPU of a kind, at least. */
static int add_memory(Kubelet__ContainerAnswer *a, const struct set *s,
		      const struct node_kind *k)
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
	return add_env(a, "GPEMU_GPU_MEMORY_MIB", mib);
}

static int add_number_of_gpus(Kubelet__ContainerAnswer *a, const struct set *s,
			      const struct node_kind *k)
{
	char number[24];
	size_t n = 0;

	for (size_t i = 0; i < s->n; i++)
		n += s->items[i]->kind == k && first_of(s, i, K8S_CARD);
	snprintf(number, sizeof(number), "%zu", n);
	return add_env(a, "GPEMU_GPUS", number);
}

/* The user that clients trust: names are the host's. */
static int add_user(Kubelet__ContainerAnswer *a, const struct node_kind *k)
{
	char number[24];
	uid_t uid;

	if (!k->server_user || gpud_user(k->server_user, &uid) < 0)
		return 0;
	snprintf(number, sizeof(number), "%u", (unsigned)uid);
	return add_env(a, "GPEMU_SERVER_USER", number);
}

/* The kind of the device at `i`. */
static int add_kind(Kubelet__ContainerAnswer *a, const struct set *s, size_t i)
{
	const struct node_kind *k = s->items[i]->kind;
	_cleanup_free_ char *folder = gpud_grant_folder(k->server, s->grant);
	_cleanup_free_ char *inside = NULL;
	const struct node_mount *mount = k->mounts.items;
	int r;

	if (asprintf(&inside, "%s/%s", K8S_CONTAINER_DIR, k->name) < 0) {
		inside = NULL;
		return -ENOMEM;
	}
	r = folder ? add_mount(a, folder, inside, true) : -ENOMEM;
	if (r == 0 && i == 0)
		r = add_env(a, "GPEMU_GPU_PROFILE", k->profile);
	if (r == 0 && i == 0)
		r = add_number_of_gpus(a, s, k);
	if (r == 0 && i == 0)
		r = add_memory(a, s, k);
	if (r == 0 && i == 0)
		r = add_user(a, k);
	if (r == 0)
		r = add_words(&a->envs, &a->n_envs, &k->env);
	if (r == 0)
		r = add_words(&a->annotations, &a->n_annotations,
			      &k->annotations);
	for (size_t m = 0; r == 0 && m < k->mounts.n; m++)
		r = add_mount(a, mount[m].host, mount[m].container,
			      mount[m].read_only);
	return r;
}

static int add_gpu(Kubelet__ContainerAnswer *a, const struct k8s_device *d)
{
	int r = 0;

	if (d->kind->device)
		r = add_device_file(a, d->kind->device, d->gpu);
	if (r == 0 && d->kind->cdi)
		r = add_cdi(a, d->kind, d->gpu);
	return r;
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

static int add_lists(Kubelet__ContainerAnswer *a, const struct set *s)
{
	_cleanup_free_ char *ids = write_list(put_ids, s),
			    *gpus = write_list(put_gpus, s),
			    *servers = write_list(put_servers, s);
	int r = ids && gpus && servers ? 0 : -ENOMEM;

	if (r == 0)
		r = add_env(a, "GPEMU_DEVICES", ids);
	if (r == 0)
		r = add_env(a, "CUDA_VISIBLE_DEVICES", gpus);
	if (r == 0)
		r = add_env(a, "GPEMU_GPU_SERVER", servers);
	if (r == 0)
		r = add_pair(&a->annotations, &a->n_annotations,
			     "gpemu.io/devices", strlen("gpemu.io/devices"),
			     ids);
	return r;
}

int k8s_answer(const struct k8s_device *const *devices, size_t n,
	       const char *grant, Kubelet__ContainerAnswer *ret)
{
	struct set s = { .items = devices, .n = n, .grant = grant };
	int r = n ? add_lists(ret, &s) : 0;

	for (size_t i = 0; r == 0 && i < n; i++) {
		const struct k8s_device *d = s.items[i];

		if (first_of(&s, i, K8S_KIND))
			r = add_kind(ret, &s, i);
		if (r == 0 && first_of(&s, i, K8S_CARD))
			r = add_gpu(ret, d);
	}
	return r;
}
