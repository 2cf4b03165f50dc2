/* SPDX-License-Identifier: MIT */
#include "loader/data/data_scan.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "common/system/image_file.h"
#include "common/system/walk.h"
#include "common/util.h"

struct scanning {
	struct data_scan *s;
	char *folder; /* folder of the last file, with its slash; NULL: none */
};

/* Count each folder once; its files are consecutive. */
static int count_folder(struct scanning *w, const char *path)
{
	const char *slash = strrchr(path, '/');
	size_t n = slash ? (size_t)(slash - path) + 1 : 0;

	if (w->folder && strlen(w->folder) == n && !memcmp(w->folder, path, n))
		return 0;
	free(w->folder);
	w->folder = strndup(path, n);
	w->s->folders += n > 0;
	return w->folder ? 0 : -ENOMEM;
}

static int add_file(void *ctx, const char *path, const struct walk_entry *e,
		    struct err *err)
{
	struct scanning *w = ctx;
	struct data_scan *s = w->s;
	char *own = strdup(path);

	if (!own || count_folder(w, path) < 0 ||
	    util_reserve(&s->files, &s->capacity, s->n + 1, sizeof(*s->files)) <
		    0) {
		free(own);
		return err_set(err, -ENOMEM, "out of memory");
	}
	s->files[s->n++] = (struct data_scan_file){ own, e->bytes };
	return 0;
}

static int compare_paths(const void *a, const void *b)
{
	const struct data_scan_file *x = a, *y = b;

	return strcmp(x->path, y->path);
}

int data_scan_read(const char *dir, struct data_scan *ret, struct err *err)
{
	_cleanup_close_ int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct scanning scanning = { .s = ret };
	struct walk walk = { .flags = WALK_FOLLOW | WALK_FILES,
			     .ctx = &scanning,
			     .file = add_file };
	int r;

	*ret = (struct data_scan){ 0 };
	if (fd < 0)
		return err_set(err, -errno, "%s: %s", dir, strerror(errno));
	r = walk_tree(&walk, fd, "", err);
	free(scanning.folder);
	if (!ret->folders)
		ret->folders = ret->n > 0;
	if (r < 0)
		err_prefix(err, "%s", dir);
	else if (ret->n)
		qsort(ret->files, ret->n, sizeof(*ret->files), compare_paths);
	return r;
}

size_t data_scan_samples(const struct data_scan *s)
{
	size_t in_folders = 0, images[2] = { 0 };

	for (size_t i = 0; i < s->n; i++) {
		const char *path = s->files[i].path;
		bool in_folder = strchr(path, '/');

		in_folders += in_folder;
		images[in_folder] += image_file_named(path) == IMAGE_FILE_YES;
	}
	if (in_folders)
		return images[1] > in_folders / 2 ? images[1] : in_folders;
	return images[0] > s->n / 2 ? images[0] : s->n;
}

void data_scan_fini(struct data_scan *s)
{
	for (uint64_t i = 0; i < s->n; i++)
		free(s->files[i].path);
	free(s->files);
	*s = (struct data_scan){ 0 };
}

int data_scan_file_read(const char *path, uint8_t **ret, size_t *ret_n,
			struct err *err)
{
	struct stat st;
	_cleanup_close_ int fd = util_open_file(AT_FDCWD, path, 0, &st);
	char *bytes;
	int r = fd < 0 ? fd : util_read_whole(fd, SIZE_MAX, &bytes, ret_n);

	if (r < 0)
		return err_set(err, r, "%s: %s", path, strerror(-r));
	*ret = (uint8_t *)bytes;
	return 0;
}
