/* SPDX-License-Identifier: MIT */
#include "common/text/wrap.h"

#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

size_t wrap_width(FILE *f)
{
	struct winsize size = { 0 };
	int fd = fileno(f); /* -1: in memory */

	return fd >= 0 && ioctl(fd, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

void wrap_print(const char *text, size_t indent, size_t width, FILE *f)
{
	size_t at = 0;

	/* spaces within a line stay: "WARN  limit" */
	while (*text) {
		size_t gap = strspn(text, " ");
		size_t word = strcspn(text + gap, " ");

		if (width && at > indent && at + gap + word > width) {
			fprintf(f, "\n%*s", (int)indent, "");
			at = indent;
			text += gap;
			gap = 0;
		}
		fwrite(text, 1, gap + word, f);
		at += gap + word;
		text += gap + word;
	}
	fputc('\n', f);
}
