/* SPDX-License-Identifier: MIT */
#include "loader/checkpoint/checkpoint_file.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "common/util.h"

static_assert(sizeof(struct checkpoint_head) == CHECKPOINT_HEAD, "the layout");

static const char prefix[] = "checkpoint-", suffix[] = ".gpemu";

void checkpoint_name(uint64_t step, char ret[CHECKPOINT_NAME])
{
	snprintf(ret, CHECKPOINT_NAME, "%s%010" PRIu64 "%s", prefix, step,
		 suffix);
}

/* True if `name` is a checkpoint's; sets the step. */
static bool parse_name(const char *name, uint64_t *ret)
{
	char again[CHECKPOINT_NAME];

	if (strncmp(name, prefix, strlen(prefix)) != 0)
		return false;
	*ret = strtoull(name + strlen(prefix), NULL, 10);
	checkpoint_name(*ret, again);
	return !strcmp(name, again);
}

static int ascending(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

int checkpoint_list(int dirfd, uint64_t **ret, size_t *ret_n)
{
	int fd = openat(dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	_cleanup_free_ uint64_t *steps = NULL;
	int r = dir ? 0 : -errno;
	struct dirent *e;
	uint64_t step;
	size_t n = 0;

	if (!dir && fd >= 0)
		close(fd);
	while (r == 0 && (errno = 0, e = readdir(dir))) {
		uint64_t *p;

		if (!parse_name(e->d_name, &step))
			continue;
		p = reallocarray(steps, n + 1, sizeof(*p));
		if (!p) {
			r = -ENOMEM;
			break;
		}
		steps = p;
		steps[n++] = step;
	}
	if (r == 0)
		r = -errno;
	if (dir)
		closedir(dir);
	if (r < 0)
		return r;
	if (n)
		qsort(steps, n, sizeof(*steps), ascending);
	*ret = TAKE_PTR(steps);
	*ret_n = n;
	return 0;
}

int checkpoint_remove(int dirfd, uint64_t step)
{
	char name[CHECKPOINT_NAME];

	checkpoint_name(step, name);
	return unlinkat(dirfd, name, 0) < 0 ? -errno : 0;
}

/* --- the head ------------------------------------------------------------- */

int checkpoint_head_make(const struct checkpoint_point *p, size_t visited_bytes,
			 uint64_t state_bytes, struct checkpoint_head *ret)
{
	json_auto_t *j = json_pack("{s:I, s:I, s:I, s:I, s:O}", "step",
				   (json_int_t)p->step, "epoch",
				   (json_int_t)p->epoch, "epoch_step",
				   (json_int_t)p->epoch_step, "log_bytes",
				   (json_int_t)p->log_bytes, "run", p->run);
	size_t n;

	*ret = (struct checkpoint_head){ .visited_bytes = visited_bytes,
					 .state_bytes = state_bytes };
	memcpy(ret->magic, CHECKPOINT_MAGIC, sizeof(ret->magic));
	if (!j)
		return -ENOMEM;
	n = json_dumpb(j, ret->json, sizeof(ret->json), JSON_COMPACT);
	return n < sizeof(ret->json) ? 0 : -E2BIG;
}

uint64_t checkpoint_head_hash(const struct checkpoint_head *h)
{
	return XXH3_64bits(&h->body_hash,
			   sizeof(*h) -
				   offsetof(struct checkpoint_head, body_hash));
}

int checkpoint_head_parse(const struct checkpoint_head *h,
			  struct checkpoint_point *ret)
{
	json_int_t step, epoch, epoch_step, log_bytes;
	json_auto_t *j = NULL;
	json_t *run;

	if (memcmp(h->magic, CHECKPOINT_MAGIC, sizeof(h->magic)) != 0 ||
	    h->head_hash != checkpoint_head_hash(h))
		return -EBADMSG;
	j = json_loadb(h->json, strnlen(h->json, sizeof(h->json)), 0, NULL);
	if (json_unpack(j, "{s:I, s:I, s:I, s:I, s:o}", "step", &step, "epoch",
			&epoch, "epoch_step", &epoch_step, "log_bytes",
			&log_bytes, "run", &run) < 0 ||
	    !json_is_object(run) || step < 0 || epoch < 0 || epoch_step < 0)
		return -EPROTO;
	*ret = (struct checkpoint_point){ .step = (uint64_t)step,
					  .epoch = (uint64_t)epoch,
					  .epoch_step = (uint64_t)epoch_step,
					  .log_bytes = log_bytes,
					  .run = json_incref(run) };
	return 0;
}

/* --- reading -------------------------------------------------------------- */

size_t checkpoint_piece(double scale)
{
	size_t n = CHECKPOINT_PIECE;

	while (n > CHECKPOINT_BLOCK && (double)n > CHECKPOINT_PIECE * scale)
		n /= 2;
	return n;
}

/* Exactly `n` bytes. -EBADMSG: the file has fewer. */
static int read_all(int fd, void *buf, size_t n)
{
	ssize_t got = util_read_all(fd, buf, n, UTIL_HERE);

	return got < 0 ? (int)got : (size_t)got < n ? -EBADMSG : 0;
}

/* Hash the rest of the file. */
static int hash_state(int fd, XXH3_state_t *hash, uint64_t bytes, double scale)
{
	size_t piece = checkpoint_piece(scale);
	_cleanup_free_ char *buf = malloc(piece);
	int r = buf ? 0 : -ENOMEM;

	while (r == 0 && bytes) {
		size_t n = (size_t)MIN(bytes, piece);

		r = read_all(fd, buf, n);
		if (r == 0)
			XXH3_64bits_update(hash, buf, n);
		bytes -= n;
	}
	return r;
}

static int read_body(int fd, const struct checkpoint_head *h, double scale,
		     uint8_t *visited)
{
	XXH3_state_t *hash = XXH3_createState();
	int r = hash ? read_all(fd, visited, h->visited_bytes) : -ENOMEM;

	if (r == 0) {
		XXH3_64bits_reset(hash);
		XXH3_64bits_update(hash, visited, h->visited_bytes);
		r = hash_state(fd, hash, h->state_bytes, scale);
	}
	if (r == 0 && XXH3_64bits_digest(hash) != h->body_hash)
		r = -EBADMSG;
	XXH3_freeState(hash);
	return r;
}

/* Does the file's length match its head? Checked before memory of that size is
 * allocated. */
static int check_length(int fd, const struct checkpoint_head *h)
{
	struct stat st;
	uint64_t body;

	if (fstat(fd, &st) < 0)
		return -errno;
	body = (uint64_t)st.st_size - CHECKPOINT_HEAD;
	return h->visited_bytes <= body &&
			       h->state_bytes == body - h->visited_bytes
		       ? 0
		       : -EBADMSG;
}

int checkpoint_read(int dirfd, const char *name, double scale,
		    struct checkpoint_head *head, struct checkpoint_point *ret,
		    uint8_t **ret_visited)
{
	struct stat st;
	_cleanup_close_ int fd = util_open_file(dirfd, name, 0, &st);
	_cleanup_free_ uint8_t *visited = NULL;
	int r = fd < 0 ? fd : read_all(fd, head, sizeof(*head));

	if (r == 0)
		r = checkpoint_head_parse(head, ret);
	if (r < 0)
		return r;
	r = check_length(fd, head);
	if (r == 0) {
		visited = calloc(head->visited_bytes + 1, 1);
		r = visited ? read_body(fd, head, scale, visited) : -ENOMEM;
	}
	if (r < 0) {
		json_decref(ret->run);
		ret->run = NULL;
		return r;
	}
	*ret_visited = TAKE_PTR(visited);
	return 0;
}
