/* SPDX-License-Identifier: MIT */
#include "runner/page/run_page.h"

#include <errno.h>
#include <string.h>

#include "common/replace.h"
#include "common/text/template.h"
#include "common/text/wrap.h"
#include "common/util.h"

static const struct template templates[] = {
#include "page.inc"
	{ 0 },
};

void page_fill(const char *name, const json_t *doc, FILE *f)
{
	template_fill(templates, name, doc, f);
}

int page_write(const char *folder, const char *file, const char *name,
	       const json_t *doc, struct err *err)
{
	struct replace r;
	FILE *f;
	int code = doc ? replace_open(&r, folder, file, &f, err)
		       : err_set(err, -ENOMEM, "out of memory");

	if (code < 0)
		return code;
	page_fill(name, doc, f);
	return replace_close(&r, f, 0, err);
}

int page_print(const char *folder, const char *file, bool quiet,
	       page_print_fn print, const void *ctx, struct err *err)
{
	struct replace r;
	struct wrap w;
	FILE *f;
	int code = file ? replace_open(&r, folder, file, &f, err) : 0;

	if (code < 0)
		return code;
	if (file) {
		print(ctx, 0, f);
		code = replace_close(&r, f, 0, err);
	}
	if (code < 0 || quiet)
		return code;
	code = wrap_begin(&w, stdout);
	if (code < 0)
		return code;
	print(ctx, w.width, w.f);
	wrap_end(&w);
	return 0;
}

/* --- SVG -------------------------------------------------------------- */

/* Does an id, or the name of one, follow what stands at `s`? */
static size_t before_id(const char *s)
{
	static const char *const heads[] = { " id=\"", " id='", "url(#",
					     "href='#", "href=\"#" };

	for (size_t i = 0; i < ARRAY_SIZE(heads); i++)
		if (!strncmp(s, heads[i], strlen(heads[i])))
			return strlen(heads[i]);
	return 0;
}

json_t *page_svg(const char *path, const char *prefix, const char *label)
{
	_cleanup_free_ char *text = NULL, *out = NULL;
	size_t size;
	char *s = util_read_file(path, SIZE_MAX, &text, &size) < 0
			  ? NULL
			  : strstr(text, "<svg");
	FILE *f = s ? open_memstream(&out, &size) : NULL;

	if (!f)
		return NULL;
	fputs("<svg role=\"img\" aria-label=\"", f);
	template_escape(label, f);
	fputc('"', f);
	for (s += 4; *s; s++) {
		size_t n = before_id(s);

		if (!n) {
			fputc(*s, f);
			continue;
		}
		fprintf(f, "%.*s%s-", (int)n, s, prefix);
		s += n - 1;
	}
	fclose(f);
	return json_stringn_nocheck(out, size);
}
