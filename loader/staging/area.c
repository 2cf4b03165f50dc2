/* SPDX-License-Identifier: MIT */
#include "loader/staging/area.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "common/tick.h"
#include "common/units.h"
#include "common/util.h"

struct area_head {
	char magic[8];
	uint64_t size; /* of this struct: its version */
	uint64_t pid_namespace;
	struct staging_plan plan;
};

static const char magic[8] = "gpemuSA";

/* The ring begins at a page. arbitrary: no machine has larger ones */
enum { HEAD_BYTES = (sizeof(struct area_head) + 65535) / 65536 * 65536 };

/* Inode of the PID namespace: in another one a PID is another process. */
static uint64_t pid_namespace(void)
{
	struct stat st;

	return stat("/proc/self/ns/pid", &st) < 0 ? 0 : st.st_ino;
}

uint32_t area_n_living(const struct staging_area *a)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < PLAN_MEMBERS; i++)
		n += PLAN_GET(a->plan->member[i].life) == PLAN_ALIVE &&
		     (i == a->me || area_file_lives(&a->file, i));
	return n;
}

static bool has_users(const struct staging_area *a)
{
	for (uint32_t i = 0; i < PLAN_MEMBERS; i++)
		if (area_file_lives(&a->file, i))
			return true;
	return false;
}

/* --- joining -------------------------------------------------------------- */

static char *identity_of(const json_t *same)
{
	return json_dumps(same, JSON_COMPACT | JSON_SORT_KEYS);
}

static int set_up(struct staging_area *a, const struct staging_config *c,
		  struct err *err)
{
	_cleanup_free_ char *identity = identity_of(c->same);
	struct area_head *h = a->head;

	if (!identity)
		return err_set(err, -ENOMEM, "out of memory");
	if (strlen(identity) >= PLAN_IDENTITY)
		return err_set(err, -E2BIG, "%s: options too long", c->name);
	memset(h, 0, sizeof(*h));
	h->size = sizeof(*h);
	h->pid_namespace = pid_namespace();
	h->plan.jobs = c->jobs;
	h->plan.bytes = c->bytes;
	strcpy(h->plan.identity, identity);
	memcpy(h->magic, magic, sizeof(magic));
	return 0;
}

static int check_same(const struct staging_area *a,
		      const struct staging_config *c, struct err *err)
{
	const char *text = a->plan->identity, *key;
	json_auto_t *theirs =
		json_loadb(text, strnlen(text, PLAN_IDENTITY), 0, NULL);
	json_t *value;

	if (!theirs)
		return err_set(err, -EPROTO, "%s: the staging area is damaged",
			       c->name);
	json_object_foreach ((json_t *)c->same, key, value) {
		const json_t *other = json_object_get(theirs, key);
		_cleanup_free_ char *x = NULL, *y = NULL;

		if (other && json_equal(other, value))
			continue;
		x = other ? json_dumps(other, JSON_ENCODE_ANY) : NULL;
		y = json_dumps(value, JSON_ENCODE_ANY);
		return err_set(err, -EINVAL,
			       "jobs that share batches need the same %s: "
			       "those of %s have %s; this one has %s",
			       key, c->name, x ? x : "none", y ? y : "another");
	}
	return 0;
}

static int check_area(const struct staging_area *a,
		      const struct staging_config *c, struct err *err)
{
	int r;

	if (memcmp(a->head->magic, magic, sizeof(magic)) ||
	    PLAN_GET(a->head->size) != sizeof(*a->head) || !plan_valid(a->plan))
		return err_set(err, -EPROTO,
			       "%s: another version of gpemu-train uses it, or "
			       "it is damaged",
			       c->name);
	if (a->head->pid_namespace != pid_namespace())
		return err_set(err, -EXDEV,
			       "%s: its other jobs are in another container "
			       "(PID namespace)",
			       c->name);
	r = check_same(a, c, err);
	if (r == 0 && c->largest > PLAN_GET(a->plan->bytes))
		r = err_set(err, -EINVAL,
			    "%s: a batch of this job is larger than the "
			    "staging area, %" PRIu64 " bytes",
			    c->name, PLAN_GET(a->plan->bytes));
	return r;
}

/* Map the head. */
static int map_head(struct staging_area *a, const struct staging_config *c,
		    struct err *err)
{
	int r = ftruncate(a->file.fd, HEAD_BYTES) < 0
			? -errno
			: -posix_fallocate(a->file.fd, 0, HEAD_BYTES);
	void *p;

	if (r < 0)
		return err_set(err, r, "%s: %s", c->name, strerror(-r));
	p = mmap(NULL, HEAD_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED,
		 a->file.fd, 0);
	if (p == MAP_FAILED)
		return err_set(err, -errno, "%s: %s", c->name, strerror(errno));
	a->head = p;
	a->plan = &a->head->plan;
	return 0;
}

/* The first member that has not joined, or has died since. */
static int take_seat(struct staging_area *a, const struct staging_config *c,
		     struct err *err)
{
	struct staging_plan *p = a->plan;
	struct plan_member *m;
	uint32_t i = 0;
	int r;

	for (uint32_t k = 0; k < PLAN_MEMBERS; k++)
		if (!area_file_lives(&a->file, k))
			p->member[k].life = PLAN_NONE;
	while (i < c->jobs && p->member[i].life == PLAN_ALIVE)
		i++;
	r = i < c->jobs ? area_file_live(&a->file, i) : -EUSERS;
	if (r < 0)
		return err_set(err, r, "%s: %s", c->name, strerror(-r));
	a->me = i;
	m = &p->member[i];
	*m = (struct plan_member){ .pid = getpid() };
	__atomic_store_n(&m->life, PLAN_ALIVE, __ATOMIC_SEQ_CST);
	return 0;
}

/* All have joined: allocate the ring now, so that there is no SIGBUS later. */
static void complete(const struct staging_area *a)
{
	uint64_t bytes = PLAN_GET(a->plan->bytes);
	int r = 0;

	if (ftruncate(a->file.fd, (off_t)(HEAD_BYTES + bytes)) < 0)
		r = -errno;
	if (r == 0)
		r = -posix_fallocate(a->file.fd, HEAD_BYTES, (off_t)bytes);
	a->plan->error = r;
	__atomic_store_n(&a->plan->phase, r < 0 ? PLAN_FAILED : PLAN_RUNNING,
			 __ATOMIC_SEQ_CST);
	area_file_unlink(&a->file);
}

/* The file is locked. -ESTALE: its jobs have begun; open another one. */
static int join(struct staging_area *a, const struct staging_config *c,
		struct err *err)
{
	struct stat st;
	bool users = has_users(a);
	int r;

	if (fstat(a->file.fd, &st) < 0)
		return err_set(err, -errno, "%s: %s", c->name, strerror(errno));
	if (users && st.st_size > HEAD_BYTES) {
		/* who allocated it was killed just before it removed the name
		 */
		area_file_unlink(&a->file);
		return -ESTALE;
	}
	r = map_head(a, c, err);
	if (r == 0)
		r = users ? check_area(a, c, err) : set_up(a, c, err);
	if (r == 0)
		r = take_seat(a, c, err);
	if (r == 0 && area_n_living(a) == c->jobs)
		complete(a);
	if (r < 0 && !users)
		area_file_unlink(&a->file);
	return r;
}

int area_join(const struct staging_config *c, struct staging_area *ret,
	      struct err *err)
{
	int r;

	*ret = (struct staging_area){ .file = { .dirfd = -1, .fd = -1 } };
	if (c->largest > c->bytes)
		return err_set(err, -EINVAL,
			       "%s: the largest batch has %" PRIu64 " bytes, "
			       "and the staging area %" PRIu64
			       ": a larger size=, or a smaller --batch, is "
			       "required",
			       c->name, c->largest, c->bytes);
	do {
		area_close(ret);
		r = area_file_open(c->name, c->wait_ns, &ret->file, err);
		if (r < 0)
			return r;
		r = join(ret, c, err);
		/* what is there may be of another version */
		if (r < 0)
			area_file_unlock(&ret->file);
	} while (r == -ESTALE);
	if (r == 0)
		area_unlock(ret);
	return r;
}

void area_unlock(const struct staging_area *a)
{
	area_file_unlock(&a->file);
	atomic_fetch_add(&a->plan->unlocked, 1);
	if (atomic_load(&a->plan->n_waiting))
		tick_futex_wake((const uint32_t *)&a->plan->unlocked);
}

void area_leave(const struct staging_area *a)
{
	if (PLAN_GET(a->plan->phase) == PLAN_JOINING && area_n_living(a) == 0)
		area_file_unlink(&a->file);
}

void area_close(struct staging_area *a)
{
	if (a->ring)
		munmap(a->ring, a->ring_bytes);
	if (a->head)
		munmap(a->head, HEAD_BYTES);
	area_file_close(&a->file);
	*a = (struct staging_area){ .file = { .dirfd = -1, .fd = -1 } };
}

/* --- the ring ------------------------------------------------------------- */

int area_no_memory(const struct staging_area *a, int r, struct err *err)
{
	char text[UNITS_TEXT];

	if (r >= 0)
		r = -EPROTO;
	return err_set(err, r,
		       "no memory for the staging area, %s: %s; try a smaller "
		       "size=",
		       units_exact_size(PLAN_GET(a->plan->bytes), text),
		       strerror(-r));
}

int area_map(struct staging_area *a, struct err *err)
{
	uint64_t bytes = PLAN_GET(a->plan->bytes);
	struct stat st;
	void *p;

	if (fstat(a->file.fd, &st) < 0)
		return err_set(err, -errno, "%s", strerror(errno));
	if (bytes == 0 || (uint64_t)st.st_size < HEAD_BYTES ||
	    bytes > (uint64_t)st.st_size - HEAD_BYTES)
		return -EPROTO;
	p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, a->file.fd,
		 HEAD_BYTES);
	if (p == MAP_FAILED)
		return err_set(err, -errno, "cannot map the staging area: %s",
			       strerror(errno));
	a->ring = p;
	a->ring_bytes = bytes;
	return 0;
}

void *area_at(const struct staging_area *a, uint64_t offset, uint64_t bytes)
{
	return offset % PLAN_ALIGN == 0 && offset <= a->ring_bytes &&
			       bytes <= a->ring_bytes - offset
		       ? a->ring + offset
		       : NULL;
}
