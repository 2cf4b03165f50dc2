/* SPDX-License-Identifier: MIT */
/*
 * gpemu-s3: a dataset as a bucket of an object store, behind an emulated one.
 *
 * Rooms, in the order in which a request passes them:
 *
 *	s3		HTTP, operations
 *	s3/proto	signatures, bodies, XML
 *	s3/store	keys; objects that clients have put
 *	fs/server	the stack of layers (fs/layer), as of a mount
 *	fs/device	when the emulated device completes
 *	fs/source	the bytes
 *
 * Off the way of a request: fs/setup (options, signals), fs/control (stats).
 */
#include <ctype.h>
#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <string.h>
#include <sys/resource.h>

#include "common/json.h"
#include "common/log.h"
#include "common/program/cli.h"
#include "common/program/notify.h"
#include "common/thread.h"
#include "common/util.h"
#include "fs/setup/setup.h"
#include "fs/setup/signals.h"
#include "net/addr.h"
#include "net/seal.h"
#include "s3/endpoint.h"
#include "s3/exchange.h"

/* --- status --------------------------------------------------------------- */

/* What clients asked for, in the stats: "s3". */

static const char *const operation_names[OPERATION_N] = {
	[OPERATION_LIST_BUCKETS] = "ListBuckets",
	[OPERATION_HEAD_BUCKET] = "HeadBucket",
	[OPERATION_LOCATION] = "GetBucketLocation",
	[OPERATION_LIST] = "ListObjects",
	[OPERATION_HEAD] = "HeadObject",
	[OPERATION_GET] = "GetObject",
	[OPERATION_CREATE_BUCKET] = "CreateBucket",
	[OPERATION_PUT] = "PutObject",
	[OPERATION_COPY] = "CopyObject",
	[OPERATION_DELETE] = "DeleteObject",
	[OPERATION_DELETE_MANY] = "DeleteObjects",
	[OPERATION_CREATE_UPLOAD] = "CreateMultipartUpload",
	[OPERATION_UPLOAD_PART] = "UploadPart",
	[OPERATION_COPY_PART] = "UploadPartCopy",
	[OPERATION_COMPLETE] = "CompleteMultipartUpload",
	[OPERATION_ABORT] = "AbortMultipartUpload",
	[OPERATION_LIST_PARTS] = "ListParts",
	[OPERATION_LIST_UPLOADS] = "ListMultipartUploads",
	[OPERATION_CONTROL] = "control",
};

static void add_count(json_t *j, const char *name, const uint64_t *count)
{
	json_int_t n = (json_int_t)__atomic_load_n(count, __ATOMIC_RELAXED);

	n += json_integer_value(json_object_get(j, name));
	json_add_integer(j, name, n);
}

/* Add it to the stats; `ctx` is a struct service. */
static void status_add(void *ctx, json_t *stats)
{
	const struct service *s = ctx;
	json_t *operations = json_object(), *errors = json_object();
	json_t *throttled = json_object();
	json_t *j = json_pack("{s:o, s:o}", "operations", operations, "errors",
			      errors);

	for (int i = 1; i < OPERATION_N; i++)
		add_count(operations, operation_names[i], &s->operations[i]);
	for (int i = 1; i < FAILURE_N; i++) /* codes may occur twice */
		if (s->failures[i])
			add_count(errors, failure_code((enum failure)i),
				  &s->failures[i]);
	add_count(j, "connections", &s->connections);
	add_count(j, "refused", &s->refused);
	add_count(j, "requests", &s->requests);
	add_count(throttled, "read", &s->throttle.refused[THROTTLE_READ]);
	add_count(throttled, "write", &s->throttle.refused[THROTTLE_WRITE]);
	json_object_set_new(j, "throttled", throttled);
	json_object_set_new(stats, "s3", j);
}

struct options {
	struct cli_common common;
	struct setup_options base;
	char *listen, *bucket, *region, *keys, *writable;
	char *tls_certificate, *tls_key;
	bool anonymous;
	struct conf_list hosts;
	uint64_t capacity; /* 0: that of the profile */
	uint64_t connections, header_timeout;
};

static int check_listen(const void *object, struct err *err)
{
	return addr_check(*(char *const *)object, err);
}

/* Source: Amazon S3 user guide, "Bucket naming rules". */
static int check_bucket(const void *object, struct err *err)
{
	const char *s = *(char *const *)object;
	size_t n = strlen(s);
	/* an address of IPv4 */
	bool good = s[strspn(s, "0123456789.")] || !strchr(s, '.');

	good = good && n >= 3 && n <= 63 && s[0] != '-' && s[n - 1] != '-' &&
	       s[0] != '.' && s[n - 1] != '.' && !strstr(s, "..");

	for (size_t i = 0; i < n; i++)
		good = good &&
		       (islower((unsigned char)s[i]) ||
			isdigit((unsigned char)s[i]) || strchr("-.", s[i]));
	return good ? 0
		    : err_set(err, -EINVAL,
			      "a bucket has 3 to 63 lowercase letters, digits, "
			      "dots "
			      "and hyphens");
}

static int check_host(const void *object, struct err *err)
{
	const char *s = *(char *const *)object;

	return *s ? 0 : err_set(err, -EINVAL, "not a name of a host, or *");
}

static const struct conf_field fields[] = {
	{ CONF_KEY(listen, CONF_STRING, struct options), .check = check_listen,
	  .arg = "HOST:PORT",
	  .help = "address to listen at (default: 127.0.0.1:9000)" },
	{ CONF_KEY(bucket, CONF_STRING, struct options), .check = check_bucket,
	  .arg = "NAME", .help = "name of the bucket (default: data)" },
	{ CONF_KEY(region, CONF_STRING, struct options), .arg = "NAME",
	  .help = "region for which requests are signed (default: us-east-1)" },
	{ CONF_KEY(keys, CONF_STRING, struct options), .arg = "FILE",
	  .help = "access keys and secret keys of clients, as in "
		  "~/.aws/credentials (default: AWS_ACCESS_KEY_ID and "
		  "AWS_SECRET_ACCESS_KEY)" },
	{ CONF_KEY(writable, CONF_STRING, struct options), .arg = "DIR",
	  .help = "clients may put and delete objects, which are kept in DIR "
		  "beside those of SOURCE" },
	{ CONF_KEY(capacity, CONF_SIZE, struct options), .arg = "SIZE",
	  .max = STORAGE_MOST_CAPACITY,
	  .help = "capacity of the store with --writable, for the dataset and "
		  "what is put (default: that of the profile, or no limit but "
		  "that of DIR)" },
	{ CONF_KEY(anonymous, CONF_BOOL, struct options),
	  .help = "answer requests without a signature; only at an address "
		  "that other machines cannot reach" },
	{ "host", CONF_LIST, offsetof(struct options, hosts),
	  .item = CONF_STRING, .item_size = sizeof(char *), .lone = true,
	  .check = check_host, .arg = "NAME",
	  .help = "a name by which clients call it without a signature, beside "
		  "its address, localhost and names below that; *: any; may be "
		  "given several times" },
	{ CONF_KEY(tls_certificate, CONF_STRING, struct options), .arg = "FILE",
	  .help = "serve HTTPS, with this certificate (PEM)" },
	{ CONF_KEY(tls_key, CONF_STRING, struct options), .arg = "FILE",
	  .help = "its private key (PEM), a file that only its owner reads" },
	{ CONF_KEY(connections, CONF_UINT, struct options), .arg = "N",
	  .min = 1, .max = 100000,
	  .help = "connections at once; more get SlowDown (default: 1024)" },
	{ CONF_KEY(header_timeout, CONF_DURATION, struct options),
	  .arg = "DURATION", .min = NS_PER_S, .max = 3600. * NS_PER_S,
	  .help = "close a connection that has not sent its next request "
		  "within this time (default: 60s)" },
	FS_CACHE_FIELDS(struct options, base.fs,
			"none, which caches nothing; with --cache-size lru"),
	SETUP_FIELDS(struct options, base, "source"),
	CLI_COMMON_FIELDS(struct options, common),
	{ 0 },
};

static const struct cli_kind kinds[] = { SETUP_KINDS, { 0 } };

static int settle_options(void *options, struct err *err)
{
	struct options *o = options;

	if (isnan(o->base.time_scale))
		o->base.time_scale = 1;
	if (o->capacity && !o->writable)
		return err_set(err, -EINVAL,
			       "--capacity: nothing can be put; give "
			       "--writable");
	return setup_settle(
		&o->base,
		isnan(o->base.fs.cache_size.fraction) ? "none" : "lru", err);
}

static const struct cli_program program = {
	.name = "gpemu-s3",
	.args = "SOURCE",
	.n_args = 1,
	.summary = "Serve the dataset SOURCE (a directory, pack:FILE, "
		   "synth:DATASET or s3://BUCKET) as a bucket with the "
		   "protocol of S3, behind "
		   "an emulated object store.",
	.notes = "http://HOST:PORT/.gpemu/ has stats, stats.prom and config. "
		 "SIGTERM or Ctrl-C end it, SIGUSR1 logs the stats. --list "
		 "layer, policy, source or storage lists the names.",
	.fields = fields,
	.kinds = kinds,
	.settle = settle_options,
};

struct program {
	struct options o;
	struct setup setup;
	struct service service;
	struct keys keys;
	struct ctl ctl;
	struct endpoint *endpoint;
	struct signals *signals;
	struct tick *tick; /* of the sweeps: wall time */
	char *start_dir;
	pthread_mutex_t options_lock;
	pthread_mutex_t lock;
	pthread_cond_t wake; /* `stopping`, by lock */
	bool stopping;
};

/* --- start ---------------------------------------------------------------- */

static int options_init(struct options *o)
{
	*o = (struct options){ .listen = strdup("127.0.0.1:9000"),
			       .bucket = strdup("data"),
			       .region = strdup("us-east-1"),
			       .connections = 1024,
			       .header_timeout = 60 * NS_PER_S };
	return setup_options_init(&o->base) == 0 && o->listen && o->bucket &&
			       o->region
		       ? 0
		       : -ENOMEM;
}

static int read_keys(struct program *p, struct err *err)
{
	int r = seal_init(err);

	if (r == 0)
		r = p->o.keys ? keys_read(p->o.keys, &p->keys, err)
			      : keys_of_environment(&p->keys);
	if (r == 0 && !p->keys.n && !p->o.anonymous)
		r = err_set(err, -EINVAL,
			    "no keys of clients: give --keys FILE, "
			    "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or "
			    "--anonymous");
	return r < 0 ? err_set(err, r, "%s", strerror(-r)) : 0;
}

static int start_objects(struct program *p, const char *source, struct err *err)
{
	const char *dir = p->o.writable;
	int r = dir ? setup_check_writable(&p->setup, dir, source, err) : 0;

	if (r == 0 && dir)
		r = objects_new(dir, &p->service.names, &p->service.objects,
				err);
	if (r == 0 && dir && (r = writers_new(&p->service.writers)) < 0)
		err_set(err, r, "cannot start a thread: %s", strerror(-r));
	uploads_init(&p->service.uploads, p->service.objects);
	return r;
}

/* Once the profile is known. */
static int limit_objects(struct program *p, struct err *err)
{
	uint64_t bytes = p->o.capacity;
	int r;

	if (!bytes)
		bytes = server_storage(p->setup.server)->capacity.bytes;
	if (!bytes || !p->service.objects)
		return 0;
	r = objects_limit(p->service.objects, bytes, err);
	if (r < 0)
		err_prefix(err, "--writable %s", p->o.writable);
	return r;
}

static int start_names(struct program *p, struct err *err)
{
	int r = names_init(&p->service.names, &p->setup.tree);

	if (r == 0 && p->service.names.n_long)
		log_warn("%zu paths are left out: longer than the %d bytes of "
			 "a key",
			 p->service.names.n_long, NAMES_MOST);
	return r < 0 ? err_set(err, r, "out of memory") : 0;
}

/*
 * Descriptors that are of no connection. arbitrary: ENDPOINT_SPARE; 64 of
 * readers, of which each may have a file open while it works; 64 of the
 * program.
 */
enum { OTHER_FILES = ENDPOINT_SPARE + 64 + 64 };

/* How many connections can there be? Each takes a descriptor, and one of the
 * file that was put or is. */
static unsigned fit_connections(const struct options *o)
{
	rlim_t each = o->writable ? 2 : 1, most;
	rlim_t other = OTHER_FILES + (o->writable ? WRITERS_FILES : 0);
	struct rlimit files;

	if (getrlimit(RLIMIT_NOFILE, &files) < 0)
		return (unsigned)o->connections;
	files.rlim_cur = files.rlim_max;
	setrlimit(RLIMIT_NOFILE, &files);
	most = files.rlim_cur > other + each ? (files.rlim_cur - other) / each
					     : 1;
	if (most >= o->connections)
		return (unsigned)o->connections;
	log_warn("--connections %llu: only %llu, as this process may have %llu "
		 "open files; raise the limit (ulimit -n)",
		 (unsigned long long)o->connections, (unsigned long long)most,
		 (unsigned long long)files.rlim_cur);
	return (unsigned)most;
}

/* arbitrary: a chain of some certificates is a tenth of it */
enum { MOST_PEM = 64 * 1024 };

/* Start the server, with TLS if there is a certificate. */
static int new_endpoint(struct program *p, struct endpoint_config *c,
			struct err *err)
{
	_cleanup_free_ char *certificate = NULL, *key = NULL;
	const struct options *o = &p->o;
	ssize_t r = 0;
	size_t n;

	if (!o->tls_certificate != !o->tls_key)
		return err_set(err, -EINVAL,
			       "--tls-certificate and --tls-key: only both "
			       "together");
	if (!o->tls_certificate)
		return endpoint_new(c, &p->endpoint, err);
	r = util_read_file(o->tls_certificate, MOST_PEM, &certificate, &n);
	if (r < 0)
		return err_set(err, (int)r, "%s: %s", o->tls_certificate,
			       strerror((int)-r));
	key = calloc(1, MOST_PEM + 1);
	if (!key)
		return err_set(err, -ENOMEM, "out of memory");
	r = key_file_read(o->tls_key, key, MOST_PEM, err);
	c->certificate = certificate;
	c->key = key;
	if (r >= 0)
		r = endpoint_new(c, &p->endpoint, err);
	explicit_bzero(key, MOST_PEM);
	return (int)r;
}

static int start_endpoint(struct program *p, struct err *err)
{
	struct endpoint_config c = { .service = &p->service,
				     .connections = fit_connections(&p->o),
				     .header_ns = p->o.header_timeout };
	struct addr addr = { 0 };
	int r = addr_find(p->o.listen, &addr, err);

	if (r == 0 && p->o.anonymous && !addr_is_loopback(&addr))
		r = err_set(err, -EINVAL,
			    "--anonymous: other machines can reach %s: listen "
			    "at 127.0.0.1, or give clients keys",
			    p->o.listen);
	if (r == 0)
		r = c.listener = addr_listen(&addr, err);
	addr_fini(&addr);
	return r < 0 ? r : new_endpoint(p, &c, err);
}

static void start_service(struct program *p)
{
	const struct storage_profile *profile = server_storage(p->setup.server);

	throttle_init(&p->service.throttle, profile->prefix.reads_per_s,
		      profile->prefix.writes_per_s);
	p->service.source = p->setup.source;
	p->service.source_state = p->setup.source_state;
	p->service.server = p->setup.server;
	p->service.ctl = &p->ctl;
	p->service.keys = &p->keys;
	p->service.bucket = p->o.bucket;
	p->service.region = p->o.region;
	p->service.anonymous = p->o.anonymous;
	p->service.listen = p->o.listen;
	p->service.hosts = &p->o.hosts;
	p->ctl = (struct ctl){ .server = p->setup.server,
			       .fields = fields,
			       .options = &p->o,
			       .storage = &p->o.base.fs.storage,
			       .cache_policy = &p->o.base.fs.cache_policy,
			       .cache_size = &p->o.base.fs.cache_size,
			       .tiers = &p->o.base.fs.tiers,
			       .lock = &p->options_lock,
			       .dir = p->start_dir,
			       .trace = p->setup.trace,
			       .add_stats = status_add,
			       .add_ctx = &p->service };
}

/* --- signals -------------------------------------------------------------- */

static void stop(void *ctx)
{
	struct program *p = ctx;

	LOCK_SCOPE(&p->lock);
	p->stopping = true;
	pthread_cond_signal(&p->wake);
}

static void reload(void *ctx)
{
	(void)ctx;
	log_info("SIGHUP: nothing to read again");
}

static void dump(void *ctx)
{
	struct program *p = ctx;

	ctl_log_stats(&p->ctl);
}

/* Until a signal; once a second, close what is idle too long. */
static void wait_for_end(struct program *p)
{
	pthread_mutex_lock(&p->lock);
	while (!p->stopping) {
		tick_cond_wait_coarse(p->tick, &p->wake, &p->lock,
				      tick_now(p->tick) + NS_PER_S);
		pthread_mutex_unlock(&p->lock);
		endpoint_sweep(p->endpoint);
		pthread_mutex_lock(&p->lock);
	}
	pthread_mutex_unlock(&p->lock);
}

static int start_server(struct program *p, const char *source, struct err *err)
{
	struct setup_more more = { .seed = p->o.common.seed, .is_store = true };
	const struct signals_config signals = {
		.stop = stop, .reload = reload, .dump = dump, .ctx = p
	};
	const char *follow = p->o.base.follow_links;
	int r = read_keys(p, err);

	if (r == 0 && p->o.common.json)
		r = json_check(p->o.common.json, err);
	if (r == 0)
		r = setup_source(&p->setup, source, false,
				 follow ? follow : "source", err);
	if (r == 0)
		r = start_names(p, err);
	if (r == 0)
		r = start_objects(p, source, err);
	signals_block();
	if (r == 0)
		r = setup_server(&p->setup, &p->o.base, &more, err);
	if (r == 0)
		r = limit_objects(p, err);
	if (r < 0)
		return r;
	server_set_hit_path(p->setup.server, "there is no mount");
	start_service(p);
	r = start_endpoint(p, err);
	if (r == 0 && (r = signals_new(&signals, &p->signals)) < 0)
		err_set(err, r, "signals: %s", strerror(-r));
	return r;
}

static int serve(struct program *p, const char *source, struct err *err)
{
	const char *scheme = p->o.tls_key ? "https" : "http";
	int r = start_server(p, source, err);

	if (r < 0)
		return r;
	log_info("serving %s as %s://%s/%s", source, scheme, p->o.listen,
		 p->o.bucket);
	r = notify("READY=1\nMAINPID=%d\nSTATUS=serving %s://%s/%s",
		   (int)getpid(), scheme, p->o.listen, p->o.bucket);
	if (r < 0)
		log_warn("NOTIFY_SOCKET: %s", strerror(-r));
	wait_for_end(p);
	notify("STOPPING=1");
	if (!p->o.common.json)
		return 0;
	json_auto_t *stats = ctl_stats(&p->ctl);

	return stats ? json_write(stats, p->o.common.json, err) : -ENOMEM;
}

static void fini(struct program *p)
{
	signals_free(p->signals);
	if (p->endpoint)
		endpoint_quiesce(p->endpoint);
	/* answers all that is pending, so that no connection is suspended */
	if (p->setup.server)
		server_stop(p->setup.server);
	writers_stop(p->service.writers);
	endpoint_free(p->endpoint);
	writers_free(p->service.writers);
	uploads_fini(&p->service.uploads);
	objects_free(p->service.objects);
	throttle_fini(&p->service.throttle);
	setup_fini(&p->setup);
	names_fini(&p->service.names);
	keys_fini(&p->keys);
	tick_free(p->tick);
	free(p->start_dir);
	conf_free(fields, &p->o);
}

int main(int argc, char **argv)
{
	struct program p = { .options_lock = PTHREAD_MUTEX_INITIALIZER,
			     .lock = PTHREAD_MUTEX_INITIALIZER };
	struct err err = { 0 };
	char *args[1];
	int r = options_init(&p.o);

	if (r == 0) {
		cli_parse(&program, argc, argv, &p.o, args);
		log_set_level(setup_log_level(&p.o.base, p.o.common.verbose));
		p.tick = tick_new(1, 0);
		p.start_dir = getcwd(NULL, 0);
		r = p.tick && p.start_dir ? tick_cond_init(&p.wake) : -ENOMEM;
	}
	if (r == 0)
		r = serve(&p, args[0], &err);
	fini(&p);
	return r < 0 ? cli_fail(r, &err) : EXIT_STATUS_DONE;
}
