/* SPDX-License-Identifier: MIT */
#include "fs/layer/fault.h"

#include <errno.h>
#include <fnmatch.h>
#include <jansson.h>
#include <limits.h>
#include <string.h>

#include "common/rng.h"
#include "common/util.h"
#include "common/word.h"
#include "emu/profile/profile_storage.h"

/* --- words -------------------------------------------------------------- */

/*
 * The errors of storage and of the path to it. ENOSYS is left out: it tells the
 * kernel that the mount never supports the operation, so it stops sending it.
 */
static const int errnos[] = {
	EIO,	    ENOENT,    ESTALE,	ETIMEDOUT, EACCES,	 EPERM,
	EAGAIN,	    EBUSY,     EBADMSG, ECANCELED, ECONNABORTED, ECONNREFUSED,
	ECONNRESET, EDQUOT,    EFBIG,	EHOSTDOWN, EHOSTUNREACH, EINTR,
	EINVAL,	    ELOOP,     EMFILE,	ENETDOWN,  ENETUNREACH,	 ENFILE,
	ENODATA,    ENODEV,    ENOLINK, ENOMEDIUM, ENOMEM,	 ENOTCONN,
	ENOTDIR,    ENOSPC,    ENXIO,	EOVERFLOW, EPROTO,	 EREMOTEIO,
	EROFS,	    ESHUTDOWN, EUCLEAN,
};

enum {
	ALL_OPS = (1 << STORAGE_N_OPS) - 1,
	METADATA_OPS = ALL_OPS & ~(1 << STORAGE_READ | 1 << STORAGE_WRITE |
				   1 << STORAGE_SYNC)
};

/* A rule under construction, and the position in the text. */
struct parse {
	const char *text; /* all of it */
	size_t n, at;
	struct err *err;
	struct fault_rule *rule;
	unsigned seen; /* a bit for each word of the table */
};

/* One word: a key and, unless it stands alone, a value. Both owned. */
struct word {
	char *key, *value;
	size_t key_at, value_at; /* in the text */
};

static int fail_at(struct parse *p, size_t at, const char *what)
{
	return err_set(p->err, -EINVAL, "column %zu: %s", at + 1, what);
}

static int fail_value(struct parse *p, const struct word *w, const char *what)
{
	return err_set(p->err, -EINVAL, "column %zu: %s=%s: %s",
		       w->value_at + 1, w->key, w->value, what);
}

/* word_find(); its error has the column. */
static int find_word(struct parse *p, size_t at, const char *const *known,
		     size_t n, const char *kind, const char *word)
{
	struct err err = { 0 };
	int i = word_find(known, n, kind, word, &err);

	return i < 0 ? fail_at(p, at, err.text) : i;
}

/* --- values ------------------------------------------------------------- */

static int parse_op(struct parse *p, const struct word *w)
{
	enum { METADATA = STORAGE_N_OPS, ANY, N };
	const char *known[N] = { [METADATA] = "metadata", [ANY] = "any" };
	int i;

	for (unsigned op = 0; op < STORAGE_N_OPS; op++)
		known[op] = storage_op_name(op);
	i = find_word(p, w->value_at, known, N, "operation", w->value);
	if (i < 0)
		return i;
	p->rule->ops = i == METADATA ? METADATA_OPS
		       : i == ANY    ? ALL_OPS
				     : 1u << i;
	return 0;
}

static int parse_path(struct parse *p, const struct word *w)
{
	if (!w->value[0] || w->value[0] == '/')
		return fail_value(p, w, "not a path below the mount");
	p->rule->path = strdup(w->value);
	return p->rule->path ? 0 : -ENOMEM;
}

static int parse_p(struct parse *p, const struct word *w)
{
	if (units_parse_double(w->value, &p->rule->p) < 0 || p->rule->p < 0 ||
	    p->rule->p > 1)
		return fail_value(p, w, "not a probability from 0 to 1");
	return 0;
}

static int number(struct parse *p, const struct word *w, uint64_t least,
		  uint64_t *ret)
{
	char *end;

	errno = 0;
	*ret = strtoull(w->value, &end, 10);
	if (w->value[0] < '0' || w->value[0] > '9' || *end || errno ||
	    *ret < least)
		return fail_value(p, w,
				  least ? "not a whole number of 1 or more"
					: "not a whole number of 0 or more");
	return 0;
}

static int parse_after(struct parse *p, const struct word *w)
{
	return number(p, w, 0, &p->rule->after);
}

static int parse_first(struct parse *p, const struct word *w)
{
	return number(p, w, 1, &p->rule->first);
}

static int parse_every(struct parse *p, const struct word *w)
{
	return number(p, w, 1, &p->rule->every);
}

static int parse_count(struct parse *p, const struct word *w)
{
	return number(p, w, 1, &p->rule->count);
}

static int parse_errno(struct parse *p, const struct word *w)
{
	const char *known[ARRAY_SIZE(errnos)];
	int i;

	for (size_t k = 0; k < ARRAY_SIZE(errnos); k++)
		known[k] = strerrorname_np(errnos[k]);
	i = find_word(p, w->value_at, known, ARRAY_SIZE(known), "errno",
		      w->value);
	if (i < 0)
		return i;
	p->rule->error = -errnos[i];
	return 0;
}

/* `delay` and `for`: a rule has at most one. */
static int parse_duration(struct parse *p, const struct word *w)
{
	uint64_t *ns = &p->rule->delay_ns;

	if (units_parse_duration(w->value, ns) < 0 || !*ns ||
	    *ns > FAULT_MAX_DELAY_NS)
		return fail_value(p, w,
				  "not a duration with its unit, such as "
				  "200ms or 2s, of 30 days at most");
	return 0;
}

static int parse_stuck(struct parse *p, const struct word *w)
{
	(void)w;
	p->rule->stuck = true;
	return 0;
}

enum { OP, PATH, AFTER, FIRST, EVERY, P, COUNT, ERRNO, DELAY, STUCK, FOR };

static const struct {
	const char *key;
	int (*parse)(struct parse *p, const struct word *w);
	bool alone; /* has no value */
} words[] = {
	[OP] = { "op", parse_op },
	[PATH] = { "path", parse_path },
	[AFTER] = { "after", parse_after },
	[FIRST] = { "first", parse_first },
	[EVERY] = { "every", parse_every },
	[P] = { "p", parse_p },
	[COUNT] = { "count", parse_count },
	[ERRNO] = { "errno", parse_errno },
	[DELAY] = { "delay", parse_duration },
	[STUCK] = { "stuck", parse_stuck, .alone = true },
	[FOR] = { "for", parse_duration },
};

/* --- a word, a rule, all of them ---------------------------------------- */

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

/* Copy [from, to) without the blanks around it. */
static char *trimmed(const char *text, size_t *from, size_t to)
{
	while (*from < to && is_blank(text[*from]))
		(*from)++;
	while (to > *from && is_blank(text[to - 1]))
		to--;
	return strndup(text + *from, to - *from);
}

/* Up to a comma, a semicolon or the end; p->at is its position then. */
static int next_word(struct parse *p, struct word *ret)
{
	size_t from = p->at, equals = SIZE_MAX;

	for (; p->at < p->n; p->at++) {
		char c = p->text[p->at];

		if (c == ',' || c == ';')
			break;
		if (c == '=' && equals == SIZE_MAX)
			equals = p->at;
		if (c == '\\' && p->at + 1 < p->n)
			p->at++;
	}
	ret->key_at = from;
	ret->key = trimmed(p->text, &ret->key_at, MIN(equals, p->at));
	if (equals == SIZE_MAX)
		return ret->key ? 0 : -ENOMEM;
	ret->value_at = equals + 1;
	ret->value = trimmed(p->text, &ret->value_at, p->at);
	return ret->key && ret->value ? 0 : -ENOMEM;
}

static int take_word(struct parse *p, const struct word *w)
{
	const char *known[ARRAY_SIZE(words)];
	int i;

	for (size_t k = 0; k < ARRAY_SIZE(words); k++)
		known[k] = words[k].key;
	i = find_word(p, w->key_at, known, ARRAY_SIZE(known), "word", w->key);
	if (i < 0)
		return i;
	if (p->seen & 1u << i)
		return fail_at(p, w->key_at, "the word is given twice");
	p->seen |= 1u << i;
	if (words[i].alone && w->value)
		return fail_at(p, w->value_at, "this word takes no value");
	if (!words[i].alone && !w->value)
		return err_set(p->err, -EINVAL,
			       "column %zu: '%s' needs a value: %s=...",
			       w->key_at + 1, w->key, w->key);
	return words[i].parse(p, w);
}

static int parse_word(struct parse *p)
{
	struct word w = { 0 };
	int r = next_word(p, &w);

	if (r == 0)
		r = take_word(p, &w);
	free(w.key);
	free(w.value);
	return r;
}

static int check_rule(struct parse *p, size_t from)
{
	unsigned acts = 1u << ERRNO | 1u << DELAY | 1u << STUCK;

	if (p->seen & 1u << FOR && !(p->seen & 1u << STUCK))
		return fail_at(p, from, "'for' needs 'stuck'");
	if (!(p->seen & acts))
		return fail_at(p, from,
			       "the rule does nothing; give it errno=, delay= "
			       "or stuck");
	if (p->seen & 1u << STUCK && p->seen & (1u << ERRNO | 1u << DELAY))
		return fail_at(p, from,
			       "'stuck' excludes errno= and delay=; to fail "
			       "after a while, use delay= with errno=");
	return 0;
}

static int parse_rule(struct parse *p)
{
	size_t from = p->at;
	int r = parse_word(p);

	while (r == 0 && p->at < p->n && p->text[p->at] == ',') {
		p->at++;
		r = parse_word(p);
	}
	if (r < 0)
		return r;
	p->rule->ops = p->rule->ops ? p->rule->ops : ALL_OPS;
	r = check_rule(p, from);
	if (r < 0)
		return r;
	p->rule->text = trimmed(p->text, &from, p->at);
	return p->rule->text ? 0 : -ENOMEM;
}

/* Reject text that the stats and the configuration cannot contain. */
static int check_text(struct parse *p)
{
	json_t *j;

	for (size_t i = 0; i < p->n; i++)
		if ((unsigned char)p->text[i] < ' ' && p->text[i] != '\t')
			return fail_at(p, i, "a control character");
	j = json_stringn(p->text, p->n);
	if (!j)
		return fail_at(p, 0, "not UTF-8");
	json_decref(j);
	return 0;
}

int fault_rules_parse(const char *text, size_t n, struct fault_rule **ret,
		      size_t *ret_n, struct err *err)
{
	struct parse p = { .text = text, .n = n, .err = err };
	struct fault_rule *rules = NULL, *more;
	size_t n_rules = 0;
	int r = check_text(&p);

	for (bool last = false; r == 0 && !last; p.at++) {
		more = realloc(rules, (n_rules + 1) * sizeof(*rules));
		if (!more) {
			r = -ENOMEM;
			break;
		}
		rules = more;
		p.rule = &rules[n_rules++];
		*p.rule = (struct fault_rule){ .p = 1,
					       .every = 1,
					       .first = UINT64_MAX,
					       .count = UINT64_MAX };
		p.seen = 0;
		r = parse_rule(&p);
		last = p.at == n;
	}
	if (r < 0) {
		fault_rules_free(rules, n_rules);
		return err_set(err, r, "%s", strerror(-r));
	}
	*ret = rules;
	*ret_n = n_rules;
	return 0;
}

void fault_rule_fini(struct fault_rule *r)
{
	free(r->text);
	free(r->path);
}

void fault_rules_free(struct fault_rule *rules, size_t n)
{
	for (size_t i = 0; i < n; i++)
		fault_rule_fini(&rules[i]);
	free(rules);
}

/* --- matching ----------------------------------------------------------- */

/* Copy the name at *s, and move *s behind it and its slash. */
static bool next_name(const char **s, char buf[PATH_MAX])
{
	size_t n = strcspn(*s, "/");

	if (n >= PATH_MAX)
		return false;
	memcpy(buf, *s, n);
	buf[n] = 0;
	*s += n + ((*s)[n] == '/');
	return true;
}

static bool name_matches(const char *glob, const char *path)
{
	char g[PATH_MAX], name[PATH_MAX];

	return next_name(&glob, g) && next_name(&path, name) &&
	       fnmatch(g, name, 0) == 0;
}

static const char *behind_name(const char *s)
{
	s += strcspn(s, "/");
	return s + (*s == '/');
}

/* As shells match `*` in a name, with names in place of characters: on a
 * mismatch behind the last **, that ** takes one more name. */
static bool glob_names(const char *glob, const char *path)
{
	const char *star = NULL, *star_path = NULL;

	while (*path) {
		if (!strncmp(glob, "**", 2) && (!glob[2] || glob[2] == '/')) {
			star = glob = behind_name(glob);
			star_path = path;
			if (!*glob)
				return true; /* the rest, one name or more */
		} else if (*glob && name_matches(glob, path)) {
			glob = behind_name(glob);
			path = behind_name(path);
		} else if (star) {
			glob = star;
			path = star_path = behind_name(star_path);
		} else {
			return false;
		}
	}
	return !*glob;
}

bool fault_glob(const char *glob, const char *path)
{
	const char *name = strrchr(path, '/');

	if (strchr(glob, '/') || !strcmp(glob, "**"))
		return glob_names(glob, path);
	return name_matches(glob, name ? name + 1 : path);
}

bool fault_matches(const struct fault_rule *r, unsigned op, const char *path)
{
	return r->ops & 1u << op && (!r->path || fault_glob(r->path, path));
}

/* --- deciding ----------------------------------------------------------- */

static double draw(const struct fault_rule *r, uint64_t seed, uint64_t k)
{
	uint64_t bits;

	rng_bytes_at(rng_key(seed, r->text, 0), k * sizeof(bits), &bits,
		     sizeof(bits));
	return (double)(bits >> 11) * 0x1p-53;
}

bool fault_fires(const struct fault_rule *r, uint64_t seed, uint64_t k,
		 uint64_t fired)
{
	if (k <= r->after || k - r->after > r->first || fired >= r->count ||
	    (k - r->after) % r->every)
		return false;
	return r->p >= 1 || draw(r, seed, k) < r->p;
}

bool fault_is_over(const struct fault_rule *r, uint64_t k, uint64_t fired)
{
	return fired >= r->count || (k >= r->after && k - r->after >= r->first);
}
