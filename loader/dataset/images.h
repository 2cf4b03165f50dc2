/* SPDX-License-Identifier: MIT */
/* Of a dataset of images, leave the other files aside. */
#ifndef GPEMU_LOADER_DATASET_IMAGES_H
#define GPEMU_LOADER_DATASET_IMAGES_H

#include <stdbool.h>

#include "common/err.h"
#include "loader/dataset/dataset.h"

/* Files that are no samples, whatever the format. */
extern const struct note_kind note_files_aside;

/*
 * `d`: whole files that are listed, before builder_finish. It is a dataset of
 * images if `required`, as transforms decode them, or if more than half of the
 * files have the name of an image. Then only images are samples: by name
 * (image_file.h); if `required`, also by the first bytes of files whose name
 * does not say. Of these the first 64 are opened; if they agree, the rest is
 * taken to be the same, else all are opened. Without `required` no file is
 * opened: the names decide.
 *
 * A file that cannot be opened stays a sample: its read reports why. -ENOMEM,
 * -ENODATA: no image; with a text.
 */
int images_only(struct dataset *d, bool required, struct err *err);

#endif
