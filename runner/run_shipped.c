/* SPDX-License-Identifier: MIT */
#include "runner/run_shipped.h"

#include <dirent.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "common/util.h"
#include "common/word.h"
#include "emu/profile/profile.h"

#define SUFFIX ".yaml"

/* Bytes of a name before ".yaml", if it ends so. */
static size_t stem(const char *name)
{
	size_t n = strlen(name), suffix = strlen(SUFFIX);

	return n > suffix && !strcmp(name + n - suffix, SUFFIX) ? n - suffix
								: n;
}

static int is_workload(const struct dirent *e)
{
	return e->d_name[stem(e->d_name)] != 0;
}

static int unknown(const char *name, const char *folder, struct err *err)
{
	struct word_list words = WORD_LIST(name, stem(name));
	struct dirent **v;
	int n = scandir(folder, &v, is_workload, alphasort);

	for (int i = 0; i < n; i++) {
		v[i]->d_name[stem(v[i]->d_name)] = 0;
		word_list_add(&words, v[i]->d_name);
		free(v[i]);
	}
	if (n >= 0)
		free(v);
	/* the name of a file, and like none of ours */
	if (name[stem(name)] && !*words.hint)
		return err_set(err, -ENOENT, "%s: %s", name, strerror(ENOENT));
	return err_set(err, -ENOENT,
		       "%s: neither a file nor a shipped workload%s (known: "
		       "%s)",
		       name, words.hint, words.known);
}

int shipped_find(const char *name, char **ret, struct err *err)
{
	_cleanup_free_ char *folder = NULL, *path = NULL;

	/* what is no bare name is reported where it is opened */
	if (strchr(name, '/') || access(name, F_OK) == 0 ||
	    profile_beside_executable("../workloads",
				      "../share/gpemu/workloads", &folder,
				      NULL) < 0)
		return (*ret = strdup(name)) ? 0 : -ENOMEM;
	if (asprintf(&path, "%s/%.*s" SUFFIX, folder, (int)stem(name), name) <
	    0) {
		path = NULL;
		return -ENOMEM;
	}
	if (access(path, F_OK) < 0)
		return unknown(name, folder, err);
	*ret = TAKE_PTR(path);
	return 0;
}
