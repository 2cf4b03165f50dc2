/* SPDX-License-Identifier: MIT */
#include "loader/order/order_text.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <string.h>
#include <xxhash.h>

#include "common/util.h"

/* An epoch in the file: the offset of its samples. */
struct place {
	uint64_t epoch;
	long offset;
	uint64_t line;
};

struct order_text {
	char *name;
	FILE *f;
	uint64_t n;
	const struct dataset *data;
	struct place *epochs;
	size_t n_epochs;
	uint64_t hash;
	bool repeats;

	/* the reader's own */
	char *text; /* the line, without its newline */
	size_t cap, len;
	uint64_t line;
};

/* --- writing -------------------------------------------------------------- */

/* Write one byte of a path, escaped. */
static const char *escape(unsigned char c, char buf[5])
{
	if (c == '\\')
		return "\\\\";
	if (c == '\n')
		return "\\n";
	if (c < 0x20 || c == 0x7f)
		snprintf(buf, 5, "\\x%02x", c);
	else
		snprintf(buf, 5, "%c", c);
	return buf;
}

void order_text_put_path(FILE *f, const struct dataset *data, uint32_t sample)
{
	char buf[5];

	if (data) {
		putc_unlocked(' ', f);
		for (const char *p = dataset_path(data, sample); *p; p++)
			fputs_unlocked(escape((unsigned char)*p, buf), f);
	}
	putc_unlocked('\n', f);
}

void order_text_put(FILE *f, uint64_t epoch, const uint32_t *order, uint64_t n,
		    const struct dataset *data)
{
	fprintf(f, "epoch %" PRIu64 "\n", epoch);
	for (uint64_t i = 0; i < n; i++) {
		fprintf(f, "%" PRIu32, order[i]);
		order_text_put_path(f, data, order[i]);
	}
}

/* --- reading -------------------------------------------------------------- */

/* -EINVAL, with the column of `at` in the line. */
static int wrong(const struct order_text *t, struct err *err, const char *at,
		 const char *what)
{
	return err_set(err, -EINVAL, "%s:%" PRIu64 ":%zu: %s", t->name, t->line,
		       (size_t)(at - t->text) + 1, what);
}

/* The next line that is not empty or a comment. 1; 0: end of file; -EIO,
 * -EINVAL. */
static int next_line(struct order_text *t, struct err *err)
{
	ssize_t n;

	do {
		n = getline(&t->text, &t->cap, t->f);
		if (n < 0 && ferror(t->f))
			return err_set(err, -EIO, "%s: cannot be read",
				       t->name);
		if (n < 0)
			return 0;
		t->line++;
		if (n && t->text[n - 1] == '\n')
			t->text[--n] = 0;
		if (strlen(t->text) != (size_t)n)
			return wrong(t, err, t->text + strlen(t->text),
				     "a NUL in the line");
	} while (n == 0 || t->text[0] == '#');
	return 1;
}

/* A whole number at `at`; *ret_end is after it, or `at` if there is none. */
static uint64_t number(const char *at, char **ret_end)
{
	*ret_end = (char *)at;
	return *at >= '0' && *at <= '9' ? strtoull(at, ret_end, 10) : 0;
}

static const char *epoch_word(const struct order_text *t)
{
	static const char word[] = "epoch ";
	size_t n = sizeof(word) - 1;

	return strncmp(t->text, word, n) == 0 ? t->text + n : NULL;
}

static int parse_epoch(struct order_text *t, const char *at, uint64_t *ret,
		       struct err *err)
{
	char *end;

	*ret = number(at, &end);
	if (end == at || *end || *ret == UINT64_MAX)
		return wrong(t, err, at, "not an epoch number");
	return 0;
}

static bool same_path(const char *text, const char *path)
{
	char buf[5];

	for (; *path; path++) {
		const char *e = escape((unsigned char)*path, buf);
		size_t n = strlen(e);

		if (strncmp(text, e, n) != 0)
			return false;
		text += n;
	}
	return *text == 0;
}

static int parse_sample(struct order_text *t, uint32_t *ret, struct err *err)
{
	char *end, what[80];
	uint64_t v = number(t->text, &end);

	if (end == t->text || (*end && *end != ' '))
		return wrong(t, err, end == t->text ? t->text : end,
			     "neither 'epoch N' nor the index of a sample");
	if (v >= t->n) {
		snprintf(what, sizeof(what),
			 "the dataset has only %" PRIu64 " samples", t->n);
		return wrong(t, err, t->text, what);
	}
	if (*end && t->data && !same_path(end + 1, dataset_path(t->data, v)))
		return wrong(t, err, end + 1,
			     "this is not the path of that sample");
	*ret = (uint32_t)v;
	return 0;
}

/* Does the epoch that ends here after `n` samples have all of them? */
static int check_end(const struct order_text *t, uint64_t n, struct err *err)
{
	if (t->n_epochs == 0 || n == t->n)
		return 0;
	return err_set(err, -EINVAL,
		       "%s:%" PRIu64 ":1: epoch %" PRIu64 " ends after %" PRIu64
		       " of %" PRIu64 " samples",
		       t->name, t->line, t->epochs[t->n_epochs - 1].epoch, n,
		       t->n);
}

static int add_epoch(struct order_text *t, const char *at, struct err *err)
{
	struct place *p = reallocarray(t->epochs, t->n_epochs + 1, sizeof(*p));
	uint64_t epoch;
	int r;

	if (!p)
		return err_set(err, -ENOMEM, "%s: out of memory", t->name);
	t->epochs = p;
	r = parse_epoch(t, at, &epoch, err);
	if (r < 0)
		return r;
	if (t->n_epochs && epoch <= p[t->n_epochs - 1].epoch)
		return wrong(t, err, at, "epochs must ascend");
	p[t->n_epochs++] = (struct place){ epoch, ftell(t->f), t->line };
	return 0;
}

static int check_sample(struct order_text *t, uint8_t *seen, uint32_t *ret,
			struct err *err)
{
	int r;

	if (t->n_epochs == 0)
		return wrong(t, err, t->text, "a sample before 'epoch N'");
	r = parse_sample(t, ret, err);
	if (r < 0)
		return r;
	if (seen[*ret] && !t->repeats)
		return wrong(t, err, t->text,
			     "this sample occurs twice in the epoch");
	seen[*ret] = 1;
	return 0;
}

/* Read the whole file once and record the offsets of the epochs. */
static int check_text(struct order_text *t, struct err *err)
{
	_cleanup_free_ uint8_t *seen = calloc(t->n, 1);
	XXH3_state_t *hash = XXH3_createState();
	uint64_t n = 0;
	int r = seen && hash ? 1 : err_set(err, -ENOMEM, "out of memory");

	if (hash)
		XXH3_64bits_reset(hash);
	while (r > 0 && (r = next_line(t, err)) > 0) {
		const char *epoch = epoch_word(t);
		uint32_t sample = UINT32_MAX;

		if (!t->repeats && !t->n_epochs &&
		    !strcmp(t->text, "repeats")) {
			t->repeats = true;
		} else if (epoch) {
			r = check_end(t, n, err);
			if (r == 0)
				r = add_epoch(t, epoch, err);
			memset(seen, 0, t->n);
			n = 0;
		} else {
			r = check_sample(t, seen, &sample, err);
			n++;
		}
		XXH3_64bits_update(hash, &sample, sizeof(sample));
		r = r < 0 ? r : 1;
	}
	if (r == 0)
		r = check_end(t, n, err);
	if (hash)
		t->hash = XXH3_64bits_digest(hash);
	XXH3_freeState(hash);
	return r;
}

int order_text_open(const char *path, uint64_t n, const struct dataset *data,
		    struct order_text **ret, struct err *err)
{
	struct order_text *t = calloc(1, sizeof(*t));
	int r = 0;

	if (!t || !(t->name = strdup(path))) {
		free(t);
		return err_set(err, -ENOMEM, "%s: out of memory", path);
	}
	t->n = n;
	t->data = data;
	t->f = fopen(path, "re");
	if (!t->f) {
		r = -errno;
		err_set(err, r, "%s: %s", path, strerror(-r));
	}
	if (r == 0)
		r = check_text(t, err);
	if (r < 0) {
		order_text_close(t);
		return r;
	}
	*ret = t;
	return 0;
}

void order_text_close(struct order_text *t)
{
	if (!t)
		return;
	if (t->f)
		fclose(t->f);
	free(t->name);
	free(t->epochs);
	free(t->text);
	free(t);
}

int order_text_fill(struct order_text *t, uint64_t epoch, uint32_t *ret,
		    struct err *err)
{
	const struct place *p = t->epochs;
	size_t i = 0;

	while (i < t->n_epochs && p[i].epoch != epoch)
		i++;
	if (i == t->n_epochs)
		return err_set(err, -ENOENT, "%s: epoch %" PRIu64 " is missing",
			       t->name, epoch);
	if (fseek(t->f, p[i].offset, SEEK_SET) < 0)
		return err_set(err, -errno, "%s: %s", t->name, strerror(errno));
	t->line = p[i].line;
	for (uint64_t k = 0; k < t->n; k++) {
		int r = next_line(t, err);

		if (r == 0)
			r = err_set(err, -ESTALE, "%s: it was truncated",
				    t->name);
		if (r > 0)
			r = parse_sample(t, &ret[k], err);
		if (r < 0)
			return r;
	}
	return 0;
}

bool order_text_repeats(const struct order_text *t)
{
	return t->repeats;
}

uint64_t order_text_hash(const struct order_text *t)
{
	return t->hash;
}
