/* SPDX-License-Identifier: MIT */
#include "common/system/image_file.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "common/util.h"

/* Source: torchvision/datasets/folder.py */
static const char *const images[] = { "jpg", "jpeg", "png",  "ppm", "bmp",
				      "pgm", "tif",  "tiff", "webp" };

/* What lies beside images in public datasets. */
static const char *const others[] = {
	/* texts and tables */
	"txt",
	"csv",
	"tsv",
	"json",
	"jsonl",
	"xml",
	"yaml",
	"yml",
	"toml",
	"md",
	"rst",
	"html",
	"pdf",
	"log",
	"lst",
	"list",
	"idx",
	"index",
	"py",
	"ipynb",
	"sh",
	/* checksums */
	"md5",
	"sha1",
	"sha256",
	"sha512",
	"sum",
	"crc",
	/* archives, arrays, shards */
	"tar",
	"gz",
	"tgz",
	"bz2",
	"xz",
	"zst",
	"zip",
	"npy",
	"npz",
	"mat",
	"pkl",
	"pt",
	"pth",
	"h5",
	"hdf5",
	"parquet",
	"arrow",
	"tfrecord",
	"tfrecords",
	"mds",
	"rec",
	"beton",
	"mdb",
	"pack",
};

/* Names without an extension. */
static const char *const names[] = { "_SUCCESS", "README", "LICENSE", "MD5SUMS",
				     "SHA256SUMS" };

static bool is_in(const char *const *list, size_t n, const char *what)
{
	for (size_t i = 0; i < n; i++)
		/* of a million names few get further than this */
		if (tolower(list[i][0]) == tolower((unsigned char)*what) &&
		    !strcasecmp(list[i], what))
			return true;
	return false;
}

enum image_file image_file_named(const char *name)
{
	const char *slash = strrchr(name, '/'), *dot;

	name = slash ? slash + 1 : name;
	dot = strrchr(name, '.');
	if (!dot)
		return is_in(names, ARRAY_SIZE(names), name)
			       ? IMAGE_FILE_NO
			       : IMAGE_FILE_UNKNOWN;
	if (is_in(images, ARRAY_SIZE(images), dot + 1))
		return IMAGE_FILE_YES;
	return is_in(others, ARRAY_SIZE(others), dot + 1) ? IMAGE_FILE_NO
							  : IMAGE_FILE_UNKNOWN;
}

static bool begins(const uint8_t *head, size_t n, const char *with, size_t m)
{
	return n >= m && !memcmp(head, with, m);
}

bool image_file_looks(const uint8_t *head, size_t n)
{
	if (begins(head, n, "RIFF", 4))
		return n >= 12 && !memcmp(head + 8, "WEBP", 4);
	if (n >= 3 && head[0] == 'P' && head[1] >= '1' && head[1] <= '6')
		return strchr(" \t\r\n#", head[2]) && head[2];
	return begins(head, n, "\xff\xd8\xff", 3) ||
	       begins(head, n, "\x89PNG", 4) || begins(head, n, "GIF8", 4) ||
	       begins(head, n, "BM", 2) || begins(head, n, "II*\0", 4) ||
	       begins(head, n, "MM\0*", 4);
}
