/* SPDX-License-Identifier: MIT */
#include "loader/prep/unusable.h"

#include <errno.h>
#include <string.h>

#include "common/util.h"

#define ONLY ": only JPEG and PNG are decoded"

/* Source: file(1), magic/Magdir/images, animation, jpeg, archive */
static const struct {
	size_t at, n;
	const char *magic, *text;
} formats[] = {
	{ 0, 4, "GIF8", "a GIF image" ONLY },
	{ 8, 4, "WEBP", "a WebP image" ONLY },
	{ 0, 2, "BM", "a BMP image" ONLY },
	{ 0, 4, "II*\0", "a TIFF image" ONLY },
	{ 0, 4, "MM\0*", "a TIFF image" ONLY },
	{ 4, 8, "ftypavif", "an AVIF image" ONLY },
	{ 4, 8, "ftypavis", "an AVIF image" ONLY },
	{ 4, 7, "ftyphei", "a HEIC image" ONLY },
	{ 4, 7, "ftyphev", "a HEIC image" ONLY },
	{ 4, 8, "ftypmif1", "a HEIF image" ONLY },
	{ 0, 8, "\0\0\0\fjP  ", "a JPEG 2000 image" ONLY },
	{ 0, 4, "\xff\x4f\xff\x51", "a JPEG 2000 image" ONLY },
	{ 0, 8, "\0\0\0\fJXL ", "a JPEG XL image" ONLY },
	{ 0, 2, "\xff\n", "a JPEG XL image" ONLY },
	{ 0, 4, "\0\0\1\0", "an ICO image" ONLY },
	{ 0, 2, "P5", "a PGM image" ONLY },
	{ 0, 2, "P6", "a PPM image" ONLY },
	{ 0, 4, "8BPS", "a Photoshop image" ONLY },
	{ 128, 4, "DICM", "a DICOM image" ONLY },
	{ 0, 4, "<svg", "an SVG image" ONLY },
	{ 0, 5, "<html", "an HTML page" },
	{ 0, 9, "<!DOCTYPE", "an HTML page" },
	{ 0, 4, "%PDF", "a PDF file" },
	{ 0, 4, "PK\3\4", "a ZIP archive" },
};

enum unusable unusable_format(const uint8_t *raw, size_t n)
{
	if (n == 0)
		return UNUSABLE_EMPTY;
	for (size_t i = 0; i < ARRAY_SIZE(formats); i++)
		if (n >= formats[i].at + formats[i].n &&
		    !memcmp(raw + formats[i].at, formats[i].magic,
			    formats[i].n))
			return UNUSABLE_FORMAT + (unsigned)i;
	return UNUSABLE_UNKNOWN;
}

const char *unusable_text(int error)
{
	switch (-error) {
	case ESTALE: return "its size changed since the dataset was listed";
	case EBADMSG: return "a broken image or sample";
	case UNUSABLE_EMPTY: return "empty";
	case UNUSABLE_TRUNCATED: return "a truncated image";
	case UNUSABLE_LARGE: return "more than 178,956,970 pixels";
	case UNUSABLE_KIND:
		return "a JPEG of a kind that is not decoded (12 bits, "
		       "lossless, components of uneven sizes)";
	case UNUSABLE_UNKNOWN: return "not an image";
	}
	error = -error - UNUSABLE_FORMAT;
	return error >= 0 && error < (int)ARRAY_SIZE(formats)
		       ? formats[error].text
		       : strerror(error + UNUSABLE_FORMAT);
}
