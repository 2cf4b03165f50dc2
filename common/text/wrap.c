/* SPDX-License-Identifier: MIT */
#include "common/text/wrap.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

#include "common/util.h"

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

/* arbitrary: "NOT REPRODUCED (calibrated)  " is within */
enum { LABEL_MOST = 32 };

static size_t indent_of(const char *line)
{
	size_t lead = strspn(line, " ");
	const char *gap = strstr(line + lead, "  ");
	size_t behind = gap ? (size_t)(gap - line) + strspn(gap, " ") : 0;

	return gap && behind <= LABEL_MOST ? behind : lead;
}

int wrap_begin(struct wrap *w, FILE *to)
{
	*w = (struct wrap){ .to = to, .width = wrap_width(to) };
	w->f = open_memstream(&w->text, &w->n);
	return w->f ? 0 : -ENOMEM;
}

void wrap_end(struct wrap *w)
{
	const char *text = fclose(w->f) == 0 ? w->text : "";

	while (*text) {
		size_t n = strcspn(text, "\n");
		_cleanup_free_ char *line = strndup(text, n);

		if (line)
			wrap_print(line, indent_of(line), w->width, w->to);
		text += n + (text[n] == '\n');
	}
	free(w->text);
}
