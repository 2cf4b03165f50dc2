/* SPDX-License-Identifier: MIT */
#include "loader/dataset/images.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "common/system/image_file.h"
#include "common/util.h"

const struct note_kind note_files_aside = {
	"files_aside", "files that are not samples, skipped"
};

/* Files whose name does not say that are opened before the rest is assumed to
 * be the same. arbitrary: nothing beside the listing of a million files */
enum { PROBES = 64 };

struct sifting {
	struct dataset *d;
	bool required;
	size_t probed, images; /* files opened, and those that are images */
};

/* Of a container, at the sample's offset. */
static bool looks(const struct dataset *d, size_t i)
{
	_cleanup_close_ int fd = -1;
	uint8_t head[IMAGE_FILE_HEAD];
	ssize_t n;

	if (d->container)
		return true; /* in a pack: files as they were packed */
	fd = openat(d->dirfd, dataset_path(d, i),
		    O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	n = fd < 0 ? -1 : pread(fd, head, sizeof(head), 0);
	return n < 0 || image_file_looks(head, (size_t)n);
}

static bool is_image(struct sifting *s, size_t i)
{
	enum image_file by_name = image_file_named(dataset_path(s->d, i));
	bool is;

	if (by_name != IMAGE_FILE_UNKNOWN || !s->required)
		return by_name == IMAGE_FILE_YES;
	if (s->probed >= PROBES && (!s->images || s->images == s->probed))
		return s->images;
	is = looks(s->d, i);
	s->probed++;
	s->images += is;
	return is;
}

/* Sample `from` becomes sample `to`. */
static void move(struct dataset *d, size_t to, size_t from)
{
	d->path[to] = d->path[from];
	d->size[to] = d->size[from];
	d->label[to] = d->label[from];
	if (d->tag)
		d->tag[to] = d->tag[from];
	if (!d->container)
		return;
	d->container[to] = d->container[from];
	d->offset[to] = d->offset[from];
	d->group[to] = d->group[from];
}

/* Groups without samples are none: the others close up. */
static void number_groups(struct dataset *d)
{
	uint32_t last = 0, n = 0;

	for (size_t i = 0; d->container && i < d->n; i++) {
		n += !i || d->group[i] != last;
		last = d->group[i];
		d->group[i] = n - 1;
	}
	d->n_groups = n;
}

static bool mostly_images(const struct dataset *d)
{
	size_t n = 0;

	for (size_t i = 0; i < d->n; i++)
		n += image_file_named(dataset_path(d, i)) == IMAGE_FILE_YES;
	return n > d->n / 2;
}

int images_only(struct dataset *d, bool required, struct err *err)
{
	struct sifting s = { .d = d, .required = required };
	size_t n = 0, all = d->n;
	int r = 0;

	if (!required && !mostly_images(d))
		return 0;
	for (size_t i = 0; r == 0 && i < all; i++) {
		if (is_image(&s, i))
			move(d, n++, i);
		else
			r = notes_add(&d->notes, &note_files_aside, 1,
				      dataset_path(d, i));
	}
	if (r < 0)
		return err_set(err, r, "%s", strerror(-r));
	if (!n && all)
		return err_set(err, -ENODATA,
			       "no samples: none of its %zu files is an image, "
			       "such as %s",
			       all, dataset_path(d, 0));
	d->n = n;
	if (n < all)
		number_groups(d);
	return 0;
}
