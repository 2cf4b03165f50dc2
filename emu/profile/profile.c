/* SPDX-License-Identifier: MIT */
#include "emu/profile/profile.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "common/util.h"
#include "common/word.h"

static const char *const folders[] = {
	[PROFILE_GPU] = "gpu",	       [PROFILE_STORAGE] = "storage",
	[PROFILE_DATASET] = "dataset", [PROFILE_PREP] = "prep",
	[PROFILE_NODE] = "node",       [PROFILE_SHARE] = "share",
};
static const char SUFFIX[] = ".yaml";

/* The aliases of a GPU are looked for before `models:` and no further than
 * this. Arbitrary: the heads of the shipped profiles are under 4 KiB. */
enum { HEAD_BYTES = 16384 };

const char *profile_kind_name(enum profile_kind kind)
{
	return folders[kind];
}

int profile_kind_find(const char *name, struct err *err)
{
	return WORD_FIND(folders, "kind", name, err);
}

static bool is_dir(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* The first existing one of `places`, relative to the folder of the file
 * `self`: 1; 0: none. */
static int beside(const char *self, const char *const places[], size_t n,
		  char **ret)
{
	for (size_t i = 0; i < n; i++) {
		_cleanup_free_ char *path = util_beside(self, places[i]);

		if (!path)
			return -ENOMEM;
		if (is_dir(path)) {
			*ret = TAKE_PTR(path);
			return 1;
		}
	}
	return 0;
}

/* The running executable, malloc'ed; -errno with a text. */
static int executable(char **ret, struct err *err)
{
	*ret = util_program();
	return *ret ? 0
		    : err_set(err, -errno, "/proc/self/exe: %s",
			      strerror(errno));
}

int profile_beside_executable(const char *in_tree, const char *installed,
			      char **ret, struct err *err)
{
	_cleanup_free_ char *in_wheel = NULL, *exe = NULL;
	int r = executable(&exe, err);

	if (r < 0)
		return r;
	in_wheel = util_text(UTIL_WHEEL_UP "/%s", installed);
	if (!in_wheel)
		return -ENOMEM;
	const char *const places[] = { in_tree, installed, in_wheel };

	r = beside(exe, places, ARRAY_SIZE(places), ret);
	if (r)
		return r < 0 ? r : 0;
	return err_set(err, -ENOENT, "neither %s nor %s exists, relative to %s",
		       in_tree, installed, exe);
}

/* The default without an environment variable. */
static int find_database(char **ret, struct err *err)
{
	/* the third: libraries may be in a folder of their architecture */
	static const char *const places[] = { "../profiles",
					      "../share/gpemu/profiles",
					      "../../share/gpemu/profiles",
					      UTIL_WHEEL_UP
					      "/../share/gpemu/profiles" };
	_cleanup_free_ char *exe = NULL;
	Dl_info library = { 0 };
	int r = executable(&exe, err);

	if (r < 0)
		return r;
	r = beside(exe, places, ARRAY_SIZE(places), ret);
	/* libgpemu, which may be in a different folder than the program */
	if (r == 0 && dladdr((const void *)folders, &library))
		r = beside(library.dli_fname, places, ARRAY_SIZE(places), ret);
	if (r == 0 && is_dir(GPEMU_PROFILES_DIR)) {
		*ret = strdup(GPEMU_PROFILES_DIR);
		r = *ret ? 1 : -ENOMEM;
	}
	if (r)
		return r < 0 ? r : 0;
	return err_set(
		err, -ENOENT,
		"no profile database next to %s or in " GPEMU_PROFILES_DIR
		": set GPEMU_PROFILES to its folder",
		exe);
}

int profile_database(char **ret, struct err *err)
{
	const char *env = secure_getenv("GPEMU_PROFILES");

	if (!env || !env[0])
		return MIN(find_database(ret, err), 0);
	*ret = strdup(env);
	return *ret ? 0 : -ENOMEM;
}

/* The folder of a kind. */
static int kind_dir(enum profile_kind kind, char **ret, struct err *err)
{
	_cleanup_free_ char *root = NULL;
	int r = profile_database(&root, err);

	if (r == 0 && asprintf(ret, "%s/%s", root, folders[kind]) < 0)
		r = -ENOMEM;
	return r;
}

static int is_profile(const struct dirent *e)
{
	return e->d_name[0] != '.' && util_ends_in(e->d_name, SUFFIX);
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

void profile_names_free(char **names)
{
	for (size_t i = 0; names && names[i]; i++)
		free(names[i]);
	free(names);
}

int profile_names(enum profile_kind kind, char ***ret, struct err *err)
{
	_cleanup_free_ char *dir = NULL;
	struct dirent **entries;
	char **names;
	int n, r = kind_dir(kind, &dir, err);

	if (r < 0)
		return r;
	n = scandir(dir, &entries, is_profile, by_name);
	if (n < 0)
		return err_set(err, -errno, "%s: %s", dir, strerror(errno));
	names = calloc((size_t)n + 1, sizeof(*names));
	for (int i = 0; i < n; i++) {
		char *name = entries[i]->d_name;

		name[strlen(name) - strlen(SUFFIX)] = '\0';
		if (names && r == 0 && !(names[i] = strdup(name)))
			r = -ENOMEM;
		free(entries[i]);
	}
	free(entries);
	if (!names || r < 0) {
		profile_names_free(names);
		return -ENOMEM;
	}
	*ret = names;
	return 0;
}

/* The head of the file before `models:`, which is most of it. -ENOENT: the
 * text `word` is not in it (NULL: any). */
static int load_head(const char *path, const char *word, struct conf_node **ret)
{
	_cleanup_fclose_ FILE *f = util_open_stream(path);
	char head[HEAD_BYTES + 1];
	char *end;
	size_t n;

	if (!f)
		return -errno;
	n = fread(head, 1, HEAD_BYTES, f);
	head[n] = '\0';
	end = strstr(head, "\nmodels:");
	if (end)
		n = (size_t)(end + 1 - head);
	if (word && !memmem(head, n, word, strlen(word)))
		return -ENOENT;
	return conf_tree_parse(head, n, path, ret, NULL);
}

static int file_path(const char *dir, const char *name, char **ret)
{
	return asprintf(ret, "%s/%s%s", dir, name, SUFFIX) < 0 ? -ENOMEM : 0;
}

/* The profiles, for the message about an unknown one. */
struct known {
	struct word_list words; /* names and aliases */
	char text[ERR_LIST];	/* "name (alias alias), name" */
};

static void list_known(struct known *k, const char *name,
		       const struct conf_node *aliases)
{
	size_t n = strlen(k->text), size = sizeof(k->text);

	word_list_add(&k->words, name);
	n += (size_t)snprintf(k->text + n, size - n, "%s%s", n ? ", " : "",
			      name);
	for (size_t i = 0; aliases && i < aliases->n; i++) {
		const char *alias = aliases->items[i]->value;

		word_list_add(&k->words, alias);
		if (n < size)
			n += (size_t)snprintf(k->text + n, size - n, "%s%s%s",
					      i ? " " : " (", alias,
					      i + 1 < aliases->n ? "" : ")");
	}
}

/* Does this GPU profile have the alias `name`? Fills `known` unless NULL. */
static bool answers_to(const char *path, const char *word, const char *name,
		       struct known *known)
{
	_cleanup_conf_node_ struct conf_node *head = NULL;
	const struct conf_node *aliases = NULL, *own = NULL;
	bool found = false;

	/* skip a broken file */
	if (load_head(path, known ? NULL : name, &head) == 0) {
		aliases = conf_node_get(head, "aliases");
		own = conf_node_get(head, "name");
	}
	if (aliases && aliases->kind != CONF_KIND_SEQUENCE)
		aliases = NULL;
	for (size_t i = 0; aliases && i < aliases->n; i++) {
		if (aliases->items[i]->kind != CONF_KIND_SCALAR)
			return false;
		found = found || !strcmp(aliases->items[i]->value, name);
	}
	if (known)
		list_known(known, word, aliases);
	return found || (own && own->kind == CONF_KIND_SCALAR &&
			 !strcmp(own->value, name));
}

/* The GPU profile among `names` that has the alias `name`: 1; 0: none. */
static int find_alias(const char *dir, char *const *names, const char *name,
		      struct known *known, char **ret)
{
	for (size_t i = 0; names[i]; i++) {
		_cleanup_free_ char *path = NULL;
		int r = file_path(dir, names[i], &path);

		if (r < 0)
			return r;
		if (answers_to(path, names[i], name, known)) {
			*ret = TAKE_PTR(path);
			return 1;
		}
	}
	return 0;
}

/* No file of that name: an alias, or nothing. Every run looks up its GPU: a
 * head that lacks the text of the alias is not parsed. Only the second search,
 * for the message, parses them all, so an alias in escapes is found too. */
static int find_other(enum profile_kind kind, const char *dir, const char *name,
		      char **ret, struct err *err)
{
	_cleanup_(profile_names_freep) char **names = NULL;
	struct known known = { .words = WORD_LIST(name, strlen(name)) };
	int r = profile_names(kind, &names, err);

	if (r < 0)
		return r;
	if (kind == PROFILE_GPU) {
		r = find_alias(dir, names, name, NULL, ret);
		if (r == 0)
			r = find_alias(dir, names, name, &known, ret);
		if (r)
			return r < 0 ? r : 0;
	}
	for (size_t i = 0; kind != PROFILE_GPU && names[i]; i++)
		list_known(&known, names[i], NULL);
	return err_set(err, -ENOENT, "unknown %s profile '%s'%s (known: %s)",
		       folders[kind], name, known.words.hint, known.text);
}

bool profile_is_path(const char *name)
{
	return strchr(name, '/') || util_ends_in(name, SUFFIX);
}

int profile_path(enum profile_kind kind, const char *name, char **ret,
		 struct err *err)
{
	_cleanup_free_ char *dir = NULL, *path = NULL;
	int r;

	if (!name[0])
		return err_set(err, -EINVAL, "empty name of a %s profile",
			       folders[kind]);
	if (profile_is_path(name)) {
		*ret = strdup(name);
		return *ret ? 0 : -ENOMEM;
	}
	r = kind_dir(kind, &dir, err);
	if (r < 0)
		return r;
	r = file_path(dir, name, &path);
	if (r < 0)
		return r;
	if (access(path, F_OK) < 0)
		return find_other(kind, dir, name, ret, err);
	*ret = TAKE_PTR(path);
	return 0;
}

#define CHECK(kind, which)                                                    \
	int profile_check_##kind(const void *name, struct err *err)           \
	{                                                                     \
		_cleanup_free_ char *path = NULL;                             \
                                                                              \
		return profile_path(which, *(char *const *)name, &path, err); \
	}
CHECK(gpu, PROFILE_GPU)
CHECK(storage, PROFILE_STORAGE)
CHECK(dataset, PROFILE_DATASET)
CHECK(prep, PROFILE_PREP)
CHECK(node, PROFILE_NODE)
CHECK(share, PROFILE_SHARE)

static int decode(const struct conf_node *root, const char *name,
		  const struct conf_field *fields, profile_check_fn check,
		  void *object, struct err *err)
{
	int r = conf_decode(root, name, fields, object, err);

	return r < 0 || !check ? r : check(object, root, name, err);
}

int profile_parse(const char *bytes, size_t n, const char *name,
		  const struct conf_field *fields, profile_check_fn check,
		  void *object, struct err *err)
{
	_cleanup_conf_node_ struct conf_node *root = NULL;
	int r = conf_tree_parse(bytes, n, name, &root, err);

	return r < 0 ? r : decode(root, name, fields, check, object, err);
}

int profile_load(enum profile_kind kind, const char *name,
		 const struct conf_field *fields, profile_check_fn check,
		 void *object, struct err *err)
{
	_cleanup_conf_node_ struct conf_node *root = NULL;
	_cleanup_free_ char *path = NULL;
	int r = profile_path(kind, name, &path, err);

	if (r == 0)
		r = conf_tree_load(path, &root, err);
	return r < 0 ? r : decode(root, path, fields, check, object, err);
}

int profile_names_print(int kind, struct err *err)
{
	_cleanup_(profile_names_freep) char **names = NULL;
	int r = profile_names((enum profile_kind)kind, &names, err);

	for (char **n = names; r == 0 && *n; n++)
		puts(*n);
	return r;
}
