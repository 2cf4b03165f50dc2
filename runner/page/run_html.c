/* SPDX-License-Identifier: MIT */
#include "runner/page/run_html.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "common/util.h"

void html_text(FILE *f, const char *s)
{
	for (; s && *s; s++) {
		switch (*s) {
		case '&': fputs("&amp;", f); break;
		case '<': fputs("&lt;", f); break;
		case '>': fputs("&gt;", f); break;
		case '"': fputs("&quot;", f); break;
		default:
			/* HTML allows no other control characters */
			if ((unsigned char)*s >= ' ' || *s == '\n' ||
			    *s == '\t')
				fputc(*s, f);
		}
	}
}

void html_printf(FILE *f, const char *fmt, ...)
{
	_cleanup_free_ char *text = NULL;
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vasprintf(&text, fmt, ap);
	va_end(ap);
	if (n < 0)
		text = NULL;
	html_text(f, text);
}

static void html_object(FILE *f, const json_t *j)
{
	const char *between = "", *key;
	json_t *v;

	json_object_foreach ((json_t *)j, key, v) {
		html_printf(f, "%s%s: ", between, key);
		html_json(f, v);
		between = ", ";
	}
}

void html_json(FILE *f, const json_t *j)
{
	json_t *v;
	size_t i;

	if (json_is_string(j)) {
		html_text(f, json_string_value(j));
	} else if (json_is_object(j)) {
		html_object(f, j);
	} else if (json_is_array(j)) {
		fputc('[', f);
		json_array_foreach ((json_t *)j, i, v) {
			fputs(i ? ", " : "", f);
			html_json(f, v);
		}
		fputc(']', f);
	} else {
		_cleanup_free_ char *text = json_dumps(j, JSON_ENCODE_ANY);

		html_text(f, text);
	}
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

int html_svg(FILE *f, const char *path, const char *prefix, const char *label)
{
	_cleanup_free_ char *text = NULL;
	size_t size;
	char *s = util_read_file(path, SIZE_MAX, &text, &size) < 0
			  ? NULL
			  : strstr(text, "<svg");

	if (!s)
		return -ENOENT;
	fputs("<svg role=\"img\" aria-label=\"", f);
	html_text(f, label);
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
	return 0;
}

/* --- style ------------------------------------------------------------ */

static void style(FILE *f)
{
	/* One column that fits a phone; wider elements scroll. Parts of a bar
	 * differ in lightness, to be distinct in greyscale print. */
	fputs("<style>\n"
	      ":root{color-scheme:light}\n"
	      "body{font:16px/1.5 system-ui,sans-serif;color:#1c1c1c;"
	      "background:#fff;max-width:60rem;margin:0 auto;"
	      "padding:1rem 1rem 4rem}\n"
	      "h1{font-size:1.6rem;line-height:1.25;margin:.4rem 0 .6rem}\n"
	      "h2{font-size:1.2rem;margin:2.2rem 0 .6rem;padding-top:.6rem;"
	      "border-top:1px solid #ddd}\n"
	      ".name{color:#666;margin:0}\n"
	      ".badge{display:inline-block;padding:.1rem .6rem;"
	      "border-radius:1rem;font-weight:600;font-size:.9rem;"
	      "border:1px solid}\n"
	      ".pass{color:#0a5c2f;background:#e6f4ea}\n"
	      ".fail{color:#8c1010;background:#fde8e8}\n"
	      ".open{color:#6b4e00;background:#fff4d6}\n"
	      ".not{color:#5b1a6e;background:#f6e9fa;border-style:dashed}\n"
	      ".none{color:#555;background:#f2f2f2}\n"
	      ".wide{overflow-x:auto;margin:.5rem 0}\n"
	      "table{border-collapse:collapse;font-size:.9rem;"
	      "font-variant-numeric:tabular-nums}\n"
	      "th,td{padding:.3rem .7rem .3rem 0;text-align:left;"
	      "vertical-align:top;border-bottom:1px solid #e6e6e6}\n"
	      "th{border-bottom:2px solid #999;white-space:nowrap}\n"
	      "th small{font-weight:400;color:#666;display:block}\n"
	      "td.n,th.n{text-align:right;white-space:nowrap}\n"
	      "td.n small{color:#666}\n"
	      "td .badge{padding:0 .5rem;font-size:.8rem}\n"
	      "figure{margin:1rem 0}\n"
	      "figure svg{width:100%;max-width:44rem;height:auto;"
	      "display:block}\n"
	      "dl{display:grid;grid-template-columns:minmax(6rem,max-content) "
	      "1fr;gap:.25rem 1rem;margin:.5rem 0;font-size:.95rem}\n"
	      "dt{color:#666}dd{margin:0;overflow-wrap:anywhere}\n"
	      "pre{background:#f6f6f6;padding:.7rem;overflow-x:auto;"
	      "font-size:.8rem;line-height:1.4}\n"
	      "summary{cursor:pointer}\n",
	      f);
}

/* The bars, what a narrow screen changes, and the end of the style sheet. */
static void style_bars(FILE *f)
{
	fputs(".bars{display:grid;grid-template-columns:"
	      "minmax(5rem,max-content) 1fr;gap:.35rem .8rem;"
	      "align-items:center;font-size:.9rem}\n"
	      ".track{display:flex;align-items:center;gap:.4rem}\n"
	      ".bar{display:flex;height:1.4rem;outline:1px solid #555}\n"
	      ".bar i,.key i{display:block;font-style:normal;"
	      "font-size:.75rem;line-height:1.4rem;text-align:center;"
	      "overflow:hidden;white-space:nowrap}\n"
	      ".key{display:flex;flex-wrap:wrap;gap:.2rem 1rem;"
	      "font-size:.85rem;margin:.6rem 0}\n"
	      ".key span{display:flex;align-items:center;gap:.35rem}\n"
	      ".key i{width:1rem;height:1rem;outline:1px solid #555}\n"
	      ".p0{background:#12385c;color:#fff}\n"
	      ".p1{background:#f2b134;color:#000}\n"
	      ".p2{background:#6f9fc8;color:#000}\n"
	      ".p3{background:#8c4a3c;color:#fff}\n"
	      ".p4{background:#cfe3d4;color:#000}\n"
	      ".p5{background:#7d6b9e;color:#fff}\n"
	      ".p6{background:#c9bddd;color:#000}\n"
	      ".p7{background:#555;color:#fff}\n"
	      ".p8{background:#999;color:#000}\n"
	      ".p9{background:#fff;color:#000}\n"
	      ".found{min-width:11rem}.fit th{white-space:normal}\n"
	      ".fig td{min-width:8rem;overflow-wrap:anywhere}"
	      ".fig .k,.fig .a,.fig .i{min-width:0}"
	      ".fig .k,.fig .a{overflow-wrap:normal}\n"
	      ".fig td:last-child{min-width:0;overflow-wrap:normal}\n"
	      "figure{overflow-x:auto}\n"
	      /* a row of checks becomes a block, its values with their names */
	      "@media(max-width:36rem){.fig thead{display:none}"
	      ".fig tr{display:block;border-bottom:1px solid #ccc;"
	      "padding:.3rem 0}.fig td{display:block;border:0;padding:.1rem 0}"
	      ".fig .k:not(:empty)::before{content:'kind: ';color:#666}"
	      ".fig .p:not(:empty)::before{content:'published or expected: ';"
	      "color:#666}.fig .o::before{content:'ours: ';color:#666}"
	      ".fig .i:not(:empty)::before{content:'95 %: ';color:#666}}\n"
	      "@media(max-width:36rem){.found{min-width:7rem}"
	      "figure svg{min-width:26rem}"
	      "pre{white-space:pre-wrap}.bars{grid-template-columns:1fr;"
	      "gap:.05rem}.track{margin-bottom:.5rem}"
	      "dl{grid-template-columns:1fr;gap:0}dd{margin-bottom:.5rem}}\n"
	      "@media print{details{display:block}body{max-width:none}}\n"
	      "</style>\n",
	      f);
}

/* --- pieces ----------------------------------------------------------- */

void html_head(FILE *f, const char *name, const char *title)
{
	fputs("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n"
	      "<meta charset=\"utf-8\">\n<meta name=\"viewport\" "
	      "content=\"width=device-width, initial-scale=1\">\n"
	      "<link rel=\"icon\" href=\"data:,\">\n<title>",
	      f);
	html_printf(f, "%s - gpemu", name);
	fputs("</title>\n", f);
	style(f);
	style_bars(f);
	fputs("</head>\n<body>\n<header>\n<p class=\"name\">", f);
	html_text(f, name);
	fputs("</p>\n<h1>", f);
	html_text(f, title);
	fputs("</h1>\n<p>", f);
}

void html_badge(FILE *f, const char *kind, const char *text)
{
	fprintf(f, "<span class=\"badge %s\">", kind);
	html_text(f, text);
	fputs("</span>", f);
}
