/* SPDX-License-Identifier: MIT */
/*
 * The ring and its writer.
 *
 *	 add, ring a quarter full      add
 *	DOZING ----------> WORKING <------- IDLE
 *	  ^    100 ms        |                ^
 *	  |                  | all written    | nothing came
 *	  +------------------+------------------ DOZING
 *
 * The writer is woken once for some thousand records when there are many, and
 * at most ten times a second when there are few: a wake-up costs a reader more
 * than the record does.
 */
#include "fs/layer/trace.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <string.h>
#include <sys/stat.h>

#include "common/log.h"
#include "common/units.h"
#include "common/util.h"
#include "fs/server/object.h"

enum {
	/* arbitrary: 4 MiB, a third of a second of 200,000 records/s */
	RING = 1 << 16,
	WAKE_AT = RING / 4,
	LINE = PATH_MAX * 4 + 512, /* a path with every byte escaped */
	BUFFER = 256 << 10,
};

enum state { WORKING, DOZING, IDLE };

struct trace {
	struct trace_config c;
	char *path;
	pthread_t thread;
	/* used by the writer alone */
	int fd; /* -1 after an error, until it is reopened */
	char *buffer;
	size_t n_buffer;
	uint64_t lost_told;

	pthread_mutex_t lock; /* guards all below */
	pthread_cond_t wake;
	enum state state;
	bool stopping;
	int next_fd; /* the next file, or -1 */
	struct trace_record *ring;
	uint32_t head, n;
	uint64_t records, lost;
};

const char *trace_op_name(enum trace_op op)
{
	static const char *const names[TRACE_N_OPS] = {
		[TRACE_LOOKUP] = "lookup",
		[TRACE_READDIR] = "readdir",
		[TRACE_OPEN] = "open",
		[TRACE_READ] = "read",
		[TRACE_PASSTHROUGH] = "passthrough",
		[TRACE_SERVE] = "serve",
		[TRACE_WRITE] = "write",
		[TRACE_SYNC] = "sync",
		[TRACE_CREATE] = "create",
		[TRACE_UNLINK] = "unlink",
		[TRACE_RENAME] = "rename",
		[TRACE_OFFER] = "offer",
		[TRACE_WARM] = "warm",
		[TRACE_REMOVE] = "remove",
		[TRACE_DROP_CACHE] = "drop-cache",
		[TRACE_SET_CACHE] = "set-cache",
		[TRACE_EPOCH] = "epoch",
		[TRACE_RESET] = "reset",
	};

	return names[op];
}

/* --- text --------------------------------------------------------------- */

/* printf would take most of the writer's time; this prints only digits. */
static char *put_u64(char *p, uint64_t v)
{
	char digits[20];
	int n = 0;

	do
		digits[n++] = (char)('0' + v % 10);
	while (v /= 10);
	while (n)
		*p++ = digits[--n];
	return p;
}

/* v / unit, a power of 10, with all its decimals. */
static char *put_decimal(char *p, uint64_t v, uint64_t unit)
{
	p = put_u64(p, v / unit);
	*p++ = '.';
	for (uint64_t u = unit / 10; u; u /= 10)
		*p++ = (char)('0' + v / u % 10);
	return p;
}

static char *put_text(char *p, const char *s)
{
	size_t n = strlen(s);

	memcpy(p, s, n);
	return p + n;
}

/* Bytes that would end a field, a line or a comment become \xHH. */
static char *put_path(char *p, const struct tree *tree,
		      const struct trace_record *r)
{
	static const char hex[] = "0123456789abcdef";
	const char *path = r->path;
	char buf[PATH_MAX];

	if (!path && tree_path(tree, r->node, buf, sizeof(buf)) == 0)
		path = buf;
	for (const char *s = path; s && *s; s++) {
		unsigned char c = (unsigned char)*s;

		if (c >= 32 && c != 127 && !strchr(",\"#\\", c)) {
			*p++ = *s;
			continue;
		}
		*p++ = '\\';
		*p++ = 'x';
		*p++ = hex[c / 16];
		*p++ = hex[c % 16];
	}
	return p;
}

static bool on_dataset_file(const struct tree *tree,
			    const struct trace_record *r)
{
	return !r->path && S_ISREG(tree->nodes[r->node].mode);
}

/* id,size,offset,bytes of an operation on a file; commas without. */
static char *put_object(char *p, const struct tree *tree,
			const struct trace_record *r)
{
	uint64_t bytes = r->path ? 0 : tree->nodes[r->node].bytes;
	uint64_t extent = r->offset / OBJECT_EXTENT;

	p = put_u64(p, object_key(r->node, (uint32_t)extent));
	*p++ = ',';
	if (on_dataset_file(tree, r))
		p = put_u64(p, bytes ? MIN(bytes - extent * OBJECT_EXTENT,
					   OBJECT_EXTENT)
				     : 0);
	*p++ = ',';
	p = put_u64(p, r->offset);
	*p++ = ',';
	return put_u64(p, r->bytes);
}

static char *put_record(char *p, const struct tree *tree,
			const struct trace_record *r)
{
	static const char *const results[] = { "", "hit", "miss" };
	bool on_file = r->op < TRACE_DROP_CACHE;
	const char *error = r->error ? strerrorname_np(r->error) : NULL;

	p = put_decimal(p, r->time, NS_PER_S);
	*p++ = ',';
	p = put_text(p, trace_op_name(r->op));
	*p++ = ',';
	p = on_file ? put_object(p, tree, r) : put_text(p, ",,,");
	*p++ = ',';
	if (r->seq)
		p = put_u64(p, r->seq);
	*p++ = ',';
	p = put_text(p, results[r->result]);
	*p++ = ',';
	p = put_decimal(p, r->requested, NS_PER_US);
	*p++ = ',';
	p = put_decimal(p, r->achieved, NS_PER_US);
	*p++ = ',';
	p = put_text(p, error ? error : "");
	*p++ = ',';
	if (on_file && on_dataset_file(tree, r))
		p = put_u64(p, tree->nodes[r->node].bytes);
	*p++ = ',';
	if (on_file)
		p = put_path(p, tree, r);
	*p++ = '\n';
	return p;
}

/* --- the writer --------------------------------------------------------- */

static void flush(struct trace *t)
{
	const char *p = t->buffer;

	while (t->fd >= 0 && p < t->buffer + t->n_buffer) {
		ssize_t n =
			write(t->fd, p, (size_t)(t->buffer + t->n_buffer - p));

		if (n >= 0) {
			p += n;
		} else if (errno != EINTR) {
			log_error("trace %s: %s; the trace ends here", t->path,
				  strerror(errno));
			close(t->fd);
			t->fd = -1;
		}
	}
	t->n_buffer = 0;
}

/* Room for a line. */
static char *line(struct trace *t)
{
	if (BUFFER - t->n_buffer < LINE)
		flush(t);
	return t->buffer + t->n_buffer;
}

static void put_line(struct trace *t, char *end)
{
	t->n_buffer = (size_t)(end - t->buffer);
}

/* "#sizes 10,20*3": of all files, ascending, some hundred per line. */
static void write_sizes(struct trace *t)
{
	_cleanup_free_ uint64_t *sizes = tree_sizes(t->c.tree);
	size_t n = sizes ? t->c.tree->n_files : 0;

	for (size_t i = 0; i < n;) {
		char *start = line(t), *p = put_text(start, "#sizes ");

		while (i < n && p - start < 4000) {
			size_t same = 1;

			while (i + same < n && sizes[i + same] == sizes[i])
				same++;
			p = put_u64(p, sizes[i]);
			if (same > 1) {
				*p++ = '*';
				p = put_u64(p, same);
			}
			*p++ = ',';
			i += same;
		}
		p[-1] = '\n';
		put_line(t, p);
	}
}

static void write_head(struct trace *t)
{
	char *p = line(t);

	p += sprintf(p,
		     TRACE_MAGIC "%d\n#seed %" PRIu64 "\n#files %" PRIu64
				 " %" PRIu64 "\n#max_object_bytes %u\n",
		     TRACE_VERSION, t->c.seed, t->c.tree->n_files,
		     t->c.tree->file_bytes, OBJECT_EXTENT);
	put_line(t, p);
	write_sizes(t);
	put_line(t, put_text(line(t), TRACE_COLUMNS "\n"));
	flush(t);
}

static void write_lost(struct trace *t, uint64_t lost)
{
	char *p;

	if (lost == t->lost_told)
		return;
	p = put_text(line(t), "#lost ");
	p = put_u64(p, lost - t->lost_told);
	*p++ = '\n';
	put_line(t, p);
	t->lost_told = lost;
}

/* Under the lock, which is released while it writes. */
static void drain(struct trace *t)
{
	uint32_t n = MIN(t->n, RING - t->head);
	uint64_t lost = t->lost;
	bool written;

	pthread_mutex_unlock(&t->lock);
	for (uint32_t i = 0; i < n; i++) {
		struct trace_record *r = &t->ring[t->head + i];

		put_line(t, put_record(line(t), t->c.tree, r));
		free(r->path);
	}
	/* records are lost when the ring is full: report it after them */
	write_lost(t, lost);
	flush(t);
	written = t->fd >= 0;
	pthread_mutex_lock(&t->lock);
	if (written)
		t->records += n;
	else
		t->lost += n;
	t->head = (t->head + n) % RING;
	t->n -= n;
}

static bool called(const struct trace *t)
{
	return t->stopping || t->next_fd >= 0;
}

static void wait_for_work(struct trace *t)
{
	uint64_t doze = (uint64_t)(100 * NS_PER_MS / tick_scale(t->c.tick));
	uint64_t end = tick_now(t->c.tick) + doze;
	bool late = false;

	t->state = DOZING;
	while (!late && t->state == DOZING && t->n < WAKE_AT && !called(t))
		late = tick_cond_wait_coarse(t->c.tick, &t->wake, &t->lock,
					     end);
	if (!t->n && !called(t)) {
		t->state = IDLE;
		while (t->state == IDLE && !called(t))
			pthread_cond_wait(&t->wake, &t->lock);
	}
	t->state = WORKING;
}

static void *run_writer(void *arg)
{
	struct trace *t = arg;

	write_head(t);
	pthread_mutex_lock(&t->lock);
	while (!t->stopping || t->n) {
		int next = t->next_fd;

		/* earlier records go to the old file */
		while (t->n && (called(t) || t->n >= WAKE_AT))
			drain(t);
		if (next >= 0) {
			t->next_fd = -1;
			pthread_mutex_unlock(&t->lock);
			if (t->fd >= 0)
				close(t->fd);
			t->fd = next;
			write_head(t);
			pthread_mutex_lock(&t->lock);
		}
		if (!t->stopping)
			wait_for_work(t);
		if (t->n)
			drain(t);
	}
	pthread_mutex_unlock(&t->lock);
	return NULL;
}

void trace_add(struct trace *t, const struct trace_record *r)
{
	bool wake, lost;

	pthread_mutex_lock(&t->lock);
	lost = t->n == RING;
	if (lost)
		t->lost++;
	else
		t->ring[(t->head + t->n++) % RING] = *r;
	wake = t->state == IDLE || (t->state == DOZING && t->n == WAKE_AT);
	if (wake)
		t->state = WORKING;
	pthread_mutex_unlock(&t->lock);
	if (lost)
		free(r->path);
	if (wake)
		pthread_cond_signal(&t->wake);
}

/* --- life --------------------------------------------------------------- */

int trace_new(const struct trace_config *config, struct trace **ret,
	      struct err *err)
{
	struct trace *t = calloc(1, sizeof(*t));
	int r = -ENOMEM;

	if (!t)
		return err_set(err, r, "out of memory");
	*t = (struct trace){ .c = *config, .next_fd = -1 };
	tick_mutex_init(&t->lock);
	tick_cond_init(&t->wake);
	t->path = strdup(config->path);
	t->ring = malloc(RING * sizeof(*t->ring));
	t->buffer = malloc(BUFFER);
	t->fd = util_open_output(config->path, O_CREAT | O_TRUNC);
	if (t->fd < 0)
		r = err_set(err, t->fd, "trace %s: %s", config->path,
			    strerror(-t->fd));
	else if (t->path && t->ring && t->buffer)
		r = -pthread_create(&t->thread, NULL, run_writer, t);
	if (r < 0) {
		t->stopping = true; /* there is no thread */
		trace_free(t);
		return err_set(err, r, "trace: %s", strerror(-r));
	}
	*ret = t;
	return 0;
}

void trace_free(struct trace *t)
{
	bool runs;

	if (!t)
		return;
	pthread_mutex_lock(&t->lock);
	runs = !t->stopping;
	t->stopping = true;
	pthread_cond_signal(&t->wake);
	pthread_mutex_unlock(&t->lock);
	if (runs)
		pthread_join(t->thread, NULL);
	if (t->fd >= 0)
		close(t->fd);
	if (t->next_fd >= 0)
		close(t->next_fd);
	pthread_cond_destroy(&t->wake);
	pthread_mutex_destroy(&t->lock);
	free(t->path);
	free(t->ring);
	free(t->buffer);
	free(t);
}

int trace_reopen(struct trace *t, struct err *err)
{
	int fd = util_open_output(t->path, O_CREAT | O_APPEND);
	int before;

	if (fd < 0)
		return err_set(err, fd, "trace %s: %s", t->path, strerror(-fd));
	pthread_mutex_lock(&t->lock);
	before = t->next_fd;
	t->next_fd = fd;
	pthread_cond_signal(&t->wake);
	pthread_mutex_unlock(&t->lock);
	if (before >= 0)
		close(before);
	return 0;
}

json_t *trace_json(struct trace *t)
{
	uint64_t records, lost;

	pthread_mutex_lock(&t->lock);
	records = t->records;
	lost = t->lost;
	pthread_mutex_unlock(&t->lock);
	return json_pack("{s:I,s:I}", "records", (json_int_t)records, "lost",
			 (json_int_t)lost);
}
