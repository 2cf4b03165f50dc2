/* SPDX-License-Identifier: MIT */
#include "platform/k8s/methods.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/log.h"
#include "common/units.h"
#include "common/util.h"
#include "emu/gpu/gpud_client.h"
#include "emu/gpu/gpud_proto.h"
#include "platform/k8s/devices.h"
#include "platform/k8s/kubelet.pb-c.h"

/* --- answers -------------------------------------------------------------- */

/* What a container gets with its devices. Pure. */

/* Where servers are in a container: a folder of this one for each kind. */
#define K8S_CONTAINER_DIR "/run/gpemu"

/*
 * Messages are malloc'ed piece by piece, as protobuf-c frees them.
 */

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
static char *keep_text(struct set *s, char *text)
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
	p->key = keep_text(s, strndup(key, n_key));
	p->value = keep_text(s, value ? strdup(value) : NULL);
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
	m->host_path = keep_text(s, strdup(host));
	m->container_path = keep_text(s, strdup(container));
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
		f->host_path = keep_text(s, NULL);
	f->container_path =
		keep_text(s, f->host_path ? strdup(f->host_path) : NULL);
	f->permissions = keep_text(s, strdup("rw"));
}

static void add_cdi(struct set *s, const struct node_kind *k, uint32_t gpu)
{
	Kubelet__CdiDevice *d =
		append(s, &s->a->cdi_devices, &s->a->n_cdi_devices, sizeof(*d));

	if (!d)
		return;
	kubelet__cdi_device__init(d);
	if (asprintf(&d->name, "%s=%s-%" PRIu32, k->cdi, k->name, gpu) < 0)
		d->name = keep_text(s, NULL);
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
		keep_text(s, gpud_grant_folder(k->server, s->grant));
	_cleanup_free_ char *inside =
		keep_text(s, util_join(K8S_CONTAINER_DIR, k->name));
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

/* After the last watcher has gone, before the resource registers again.
 * arbitrary: a kubelet that restarts makes its socket anew in that time, which
 * is noticed at once */
#define ALONE_NS NS_PER_S

/* --- messages ------------------------------------------------------------- */

void *methods_pack(const ProtobufCMessage *m, size_t *ret_n)
{
	size_t n = protobuf_c_message_get_packed_size(m);
	uint8_t *bytes = malloc(n + 1);

	if (bytes)
		protobuf_c_message_pack(m, bytes);
	*ret_n = n;
	return bytes;
}

static int send_message(struct grpc_call *c, const ProtobufCMessage *m)
{
	size_t n;
	_cleanup_free_ void *bytes = methods_pack(m, &n);

	return bytes ? grpc_send(c, bytes, n) : -ENOMEM;
}

/* The answer, if `r` is not an error. */
static void reply(struct grpc_call *c, int r, const struct err *err,
		  const ProtobufCMessage *m)
{
	if (r == 0)
		r = send_message(c, m);
	if (r == 0)
		grpc_end(c, GRPC_OK, "");
	else if (r == -ENOMEM)
		grpc_end(c, GRPC_RESOURCE_EXHAUSTED, "out of memory");
	else
		grpc_end(c,
			 r == -EHOSTDOWN ? GRPC_FAILED_PRECONDITION
			 : r == -ENOENT	 ? GRPC_NOT_FOUND
					 : GRPC_INVALID_ARGUMENT,
			 err->text);
}

/* As protobuf-c decodes it; NULL: malformed, and the call has ended. */
static void *unpack(struct grpc_call *c, const ProtobufCMessageDescriptor *type,
		    const void *bytes, size_t n)
{
	void *m = protobuf_c_message_unpack(type, NULL, n, bytes);

	if (!m)
		grpc_end(c, GRPC_INVALID_ARGUMENT, "a malformed message");
	return m;
}

/* The devices of a request. -ENOENT: unknown; *ret is malloc'ed. */
static int find_all(const struct resource *r, char *const *ids, size_t n,
		    const struct k8s_device ***ret, struct err *err)
{
	_cleanup_free_ const struct k8s_device **all =
		calloc(n + 1, sizeof(struct k8s_device *));

	if (!all)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		all[i] = k8s_devices_find(&r->devices, ids[i]);
		if (!all[i])
			return err_set(err, -ENOENT, "%s has no device '%.*s'",
				       r->devices.resource, K8S_ID, ids[i]);
	}
	*ret = TAKE_PTR(all);
	return 0;
}

static int check_healthy(const struct k8s_device *const *all, size_t n,
			 struct err *err)
{
	for (size_t i = 0; i < n; i++)
		if (!all[i]->healthy)
			return err_set(err, -EHOSTDOWN, "%s is unhealthy",
				       all[i]->id);
	return 0;
}

/* --- options, lists ------------------------------------------------------- */

Kubelet__Options methods_options(void)
{
	Kubelet__Options o = KUBELET__OPTIONS__INIT;

	o.pre_start_required = true;
	o.get_preferred_allocation_available = true;
	return o;
}

static void get_options(struct grpc_call *c, const void *request, size_t n)
{
	Kubelet__Options o = methods_options();

	(void)request;
	(void)n;
	reply(c, 0, NULL, &o.base);
}

/* A device in a list. */
struct row {
	Kubelet__Device device;
	Kubelet__Topology topology;
	Kubelet__NumaNode node, *nodes[1];
};

static void fill_row(struct row *row, struct k8s_device *d)
{
	/* Source: constants.go of v1beta1 */
	static char healthy[] = "Healthy", unhealthy[] = "Unhealthy";

	kubelet__device__init(&row->device);
	row->device.id = d->id;
	row->device.health = d->healthy ? healthy : unhealthy;
	if (d->numa < 0)
		return;
	kubelet__numa_node__init(&row->node);
	kubelet__topology__init(&row->topology);
	row->node.id = d->numa;
	row->nodes[0] = &row->node;
	row->topology.n_nodes = 1;
	row->topology.nodes = row->nodes;
	row->device.topology = &row->topology;
}

static void *pack_list(struct resource *r, size_t *ret_n)
{
	size_t n = r->devices.n;
	_cleanup_free_ struct row *rows = calloc(n + 1, sizeof(*rows));
	_cleanup_free_ Kubelet__Device **devices =
		calloc(n + 1, sizeof(Kubelet__Device *));
	Kubelet__DeviceList list = KUBELET__DEVICE_LIST__INIT;

	if (!rows || !devices)
		return NULL;
	for (size_t i = 0; i < n; i++) {
		fill_row(&rows[i], &r->devices.items[i]);
		devices[i] = &rows[i].device;
	}
	list.n_devices = n;
	list.devices = devices;
	return methods_pack(&list.base, ret_n);
}

static void methods_send_list(struct resource *r, struct grpc_call *c)
{
	size_t n;
	_cleanup_free_ void *bytes = pack_list(r, &n);

	/* without memory the watcher keeps the list that it has */
	if (bytes && grpc_send(c, bytes, n) == 0)
		r->n_lists++;
}

void methods_send_lists(struct resource *r)
{
	for (size_t i = 0; i < r->n_watchers; i++)
		methods_send_list(r, r->watchers[i]);
}

static void list_and_watch(struct grpc_call *c, const void *request, size_t n)
{
	struct resource *r = grpc_call_ctx(c);

	(void)request;
	(void)n;
	if (r->n_watchers == ARRAY_SIZE(r->watchers)) {
		grpc_end(c, GRPC_RESOURCE_EXHAUSTED, "too many watchers");
		return;
	}
	r->watchers[r->n_watchers++] = c;
	methods_send_list(r, c);
}

/* --- allocation ----------------------------------------------------------- */

/* What a node cannot have costs no work: there are no more containers than
 * devices, and they have no more than all. */
static int check_size(const struct resource *r, size_t n_containers,
		      uint64_t n_devices, struct err *err)
{
	if (n_containers <= r->devices.n && n_devices <= r->devices.n)
		return 0;
	return err_set(err, -EINVAL,
		       "%" PRIu64 " devices for %zu containers: %s has %zu",
		       n_devices, n_containers, r->devices.resource,
		       r->devices.n);
}

static int check_preferred(const struct resource *r,
			   const Kubelet__PreferredRequest *q, struct err *err)
{
	uint64_t n = 0;

	/* a negative size, as the number that it was on the wire */
	for (size_t i = 0; i < q->n_containers; i++)
		n += (uint32_t)q->containers[i]->size;
	return check_size(r, q->n_containers, n, err);
}

static int check_allocate(const struct resource *r,
			  const Kubelet__AllocateRequest *q, struct err *err)
{
	uint64_t n = 0;

	for (size_t i = 0; i < q->n_containers; i++)
		n += q->containers[i]->n_ids;
	return check_size(r, q->n_containers, n, err);
}

static int prefer(const struct resource *r,
		  const Kubelet__PreferredContainer *q, Kubelet__DeviceIds *ret,
		  struct err *err)
{
	_cleanup_free_ const struct k8s_device **available = NULL,
					       **must = NULL, **chosen = NULL;
	size_t size = (size_t)q->size; /* at most all: check_preferred */
	int res = find_all(r, q->available, q->n_available, &available, err);

	if (res == 0)
		res = find_all(r, q->must_include, q->n_must_include, &must,
			       err);
	if (res < 0)
		return res;
	chosen = calloc(size + 1, sizeof(struct k8s_device *));
	ret->ids = calloc(size + 1, sizeof(char *));
	if (!chosen || !ret->ids)
		return -ENOMEM;
	res = k8s_prefer(&r->devices, available, q->n_available, must,
			 q->n_must_include, size, chosen);
	if (res == -EINVAL)
		err_set(err, res, "%zu devices of %zu available ones", size,
			q->n_available);
	for (; res == 0 && ret->n_ids < size; ret->n_ids++) {
		ret->ids[ret->n_ids] = strdup(chosen[ret->n_ids]->id);
		if (!ret->ids[ret->n_ids])
			return -ENOMEM;
	}
	return res;
}

static void get_preferred(struct grpc_call *c, const void *request, size_t n)
{
	Kubelet__PreferredResponse answer = KUBELET__PREFERRED_RESPONSE__INIT;
	Kubelet__PreferredRequest *q =
		unpack(c, &kubelet__preferred_request__descriptor, request, n);
	_cleanup_free_ Kubelet__DeviceIds *ids = NULL, **each = NULL;
	struct err err = { 0 };
	int r;

	if (!q)
		return;
	r = check_preferred(grpc_call_ctx(c), q, &err);
	ids = calloc(q->n_containers + 1, sizeof(*ids));
	each = calloc(q->n_containers + 1, sizeof(Kubelet__DeviceIds *));
	if (r == 0 && (!ids || !each))
		r = -ENOMEM;
	answer.containers = each;
	for (size_t i = 0; r == 0 && i < q->n_containers; i++) {
		kubelet__device_ids__init(&ids[i]);
		each[answer.n_containers++] = &ids[i];
		r = prefer(grpc_call_ctx(c), q->containers[i], &ids[i], &err);
	}
	reply(c, r, &err, &answer.base);
	for (size_t i = 0; i < answer.n_containers; i++) {
		for (size_t k = 0; k < ids[i].n_ids; k++)
			free(ids[i].ids[k]);
		free(ids[i].ids);
	}
	kubelet__preferred_request__free_unpacked(q, NULL);
}

/* A call whose answer is ready, once its grants are. */
struct allocation {
	struct grpc_call *call;
	Kubelet__AllocateResponse *answer;
	struct k8s_grant **grants; /* of each container, then NULL */
	size_t n_granted;	   /* of the first ones, in order */
	struct allocation *next;
};

/* Its containers have their grants, or will not begin. */
static void end_allocation(struct resource *r, struct allocation *a,
			   bool answered)
{
	if (!a)
		return;
	for (size_t i = 0; a->grants && a->grants[i]; i++)
		grants_settle(r->grants, a->grants[i], answered);
	if (a->answer)
		kubelet__allocate_response__free_unpacked(a->answer, NULL);
	free(a->grants);
	free(a);
}

static struct allocation *new_allocation(struct resource *r,
					 struct grpc_call *c, size_t n)
{
	struct allocation *a = calloc(1, sizeof(*a));

	if (!a)
		return NULL;
	a->call = c;
	a->grants = calloc(n + 1, sizeof(struct k8s_grant *));
	a->answer = malloc(sizeof(*a->answer));
	if (a->answer) {
		kubelet__allocate_response__init(a->answer);
		a->answer->containers =
			calloc(n + 1, sizeof(Kubelet__ContainerAnswer *));
	}
	if (a->grants && a->answer && a->answer->containers)
		return a;
	end_allocation(r, a, false);
	return NULL;
}

static void log_allocation(const char *resource, const struct k8s_grant *grant)
{
	char text[256] = "";
	size_t at = 0;

	for (size_t i = 0; i < grant->n && at < sizeof(text); i++)
		at += (size_t)snprintf(text + at, sizeof(text) - at, " %s",
				       grant->devices[i]->id);
	log_info("%s: allocated%s", resource, text);
}

static int add_container(struct resource *r, const Kubelet__DeviceIds *q,
			 struct allocation *a, struct err *err)
{
	_cleanup_free_ const struct k8s_device **devices = NULL;
	size_t *n = &a->answer->n_containers;
	Kubelet__ContainerAnswer *container;
	const struct k8s_grant *grant;
	int res = find_all(r, q->ids, q->n_ids, &devices, err);

	if (res == 0)
		res = check_healthy(devices, q->n_ids, err);
	if (res < 0)
		return res;
	res = grants_add(r->grants, r->devices.resource, devices, q->n_ids,
			 &a->grants[*n]);
	if (res < 0)
		return err_set(err, -EHOSTDOWN, "no grant: %s: %s",
			       r->grants->folder, strerror(-res));
	container = malloc(sizeof(*container));
	if (!container)
		return -ENOMEM;
	kubelet__container_answer__init(container);
	a->answer->containers[*n] = container;
	grant = a->grants[(*n)++];
	log_allocation(r->devices.resource, grant);
	return k8s_answer(grant->devices, grant->n, grant->name, container);
}

/* 1: all grants are there; 0: not yet; -EHOSTDOWN. Called for each answer of a
 * server, so it goes on where it stopped. */
static int check_grants(const struct grants *all, struct allocation *a,
			struct err *err)
{
	for (; a->n_granted < a->answer->n_containers; a->n_granted++) {
		const struct k8s_grant *g = a->grants[a->n_granted];

		if (g->error)
			return err_set(err, -EHOSTDOWN,
				       "gpemu-gpud does not grant %s: %s",
				       g->n ? g->devices[0]->id : "nothing",
				       strerror(g->error));
		if (!grants_done(all, g))
			return 0;
	}
	return 1;
}

void methods_granted(struct resource *r)
{
	struct allocation **at = &r->allocations;

	while (*at) {
		struct allocation *a = *at;
		struct err err = { 0 };
		int res = check_grants(r->grants, a, &err);

		if (res == 0) {
			at = &a->next;
			continue;
		}
		*at = a->next;
		r->n_allocated += res > 0 ? a->answer->n_containers : 0;
		reply(a->call, res > 0 ? 0 : res, &err, &a->answer->base);
		end_allocation(r, a, res > 0);
	}
}

static void allocate(struct grpc_call *c, const void *request, size_t n)
{
	Kubelet__AllocateRequest *q =
		unpack(c, &kubelet__allocate_request__descriptor, request, n);
	struct resource *r = grpc_call_ctx(c);
	struct allocation *a = NULL;
	struct err err = { 0 };
	int res;

	if (!q)
		return;
	res = check_allocate(r, q, &err);
	if (res == 0) {
		a = new_allocation(r, c, q->n_containers);
		res = a ? 0 : -ENOMEM;
	}
	for (size_t i = 0; res == 0 && i < q->n_containers; i++)
		res = add_container(r, q->containers[i], a, &err);
	kubelet__allocate_request__free_unpacked(q, NULL);
	if (res < 0) {
		reply(c, res, &err, NULL);
		end_allocation(r, a, false);
		return;
	}
	a->next = r->allocations;
	r->allocations = a;
	methods_granted(r);
}

/* The last moment to keep a container from a GPU that has failed. */
static void pre_start(struct grpc_call *c, const void *request, size_t n)
{
	Kubelet__DeviceIds *q =
		unpack(c, &kubelet__device_ids__descriptor, request, n);
	_cleanup_free_ const struct k8s_device **devices = NULL;
	Kubelet__Empty answer = KUBELET__EMPTY__INIT;
	struct err err = { 0 };
	int r;

	if (!q)
		return;
	r = find_all(grpc_call_ctx(c), q->ids, q->n_ids, &devices, &err);
	if (r == 0)
		r = check_healthy(devices, q->n_ids, &err);
	reply(c, r, &err, &answer.base);
	kubelet__device_ids__free_unpacked(q, NULL);
}

/* --- the ends of calls ---------------------------------------------------- */

void methods_gone(struct grpc_call *c)
{
	struct resource *r = grpc_call_ctx(c);
	struct allocation **at = &r->allocations;

	for (size_t i = 0; i < r->n_watchers; i++)
		if (r->watchers[i] == c)
			r->watchers[i--] = r->watchers[--r->n_watchers];
	if (r->n_watchers == 0)
		event_timer_in(&r->timer, ALONE_NS);
	while (*at && (*at)->call != c)
		at = &(*at)->next;
	if (*at) {
		struct allocation *a = *at;

		*at = a->next;
		end_allocation(r, a, false);
	}
}

void methods_forget(struct resource *r)
{
	r->n_watchers = 0;
	while (r->allocations) {
		struct allocation *a = r->allocations;

		r->allocations = a->next;
		end_allocation(r, a, false);
	}
}

#define METHOD(name) "/v1beta1.DevicePlugin/" name

const struct grpc_method device_plugin_methods[] = {
	{ METHOD("GetDevicePluginOptions"), get_options },
	{ METHOD("ListAndWatch"), list_and_watch },
	{ METHOD("GetPreferredAllocation"), get_preferred },
	{ METHOD("Allocate"), allocate },
	{ METHOD("PreStartContainer"), pre_start },
	{ 0 },
};
