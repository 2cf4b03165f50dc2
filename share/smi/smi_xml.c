/* SPDX-License-Identifier: MIT */
#include "share/smi/smi_xml.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <strings.h>

#include "common/util.h"
#include "emu/gpu/gpud_query.h"
#include "share/smi/smi_field.h"

/* How a report is written; `depth` 0 is the report itself. */
struct writer {
	void (*begin)(FILE *f, unsigned depth, const struct smi_field *group);
	void (*end)(FILE *f, unsigned depth, const struct smi_field *group);
	void (*leaf)(FILE *f, unsigned depth, const struct smi_field *field,
		     const char *value);
};

/* --- XML ----------------------------------------------------------------- */

/* Is the character at `s`, valid UTF-8, one of XML 1.0? Source: its section
 * 2.2, Char */
static bool is_char(const unsigned char *s)
{
	if (s[0] < ' ')
		return s[0] == '\t' || s[0] == '\n' || s[0] == '\r';
	/* U+FFFE and U+FFFF */
	return !(s[0] == 0xef && s[1] == 0xbf && s[2] >= 0xbe);
}

static void escape(FILE *f, const char *text)
{
	static const char special[] = "&<>\"'";
	static const char *const entities[] = { "&amp;", "&lt;", "&gt;",
						"&quot;", "&apos;" };

	while (*text) {
		const char *c = strchr(special, *text);
		size_t n = MAX(util_utf8(text), 1);

		if (c)
			fputs(entities[c - special], f);
		else if (is_char((const unsigned char *)text))
			fwrite(text, 1, n, f);
		else
			fputc('?', f);
		text += n;
	}
}

static void tabs(FILE *f, unsigned depth)
{
	for (unsigned i = 0; i <= depth; i++)
		fputc('\t', f);
}

static void xml_begin(FILE *f, unsigned depth, const struct smi_field *group)
{
	tabs(f, depth);
	fprintf(f, "<%s>\n", group->element);
}

static void xml_end(FILE *f, unsigned depth, const struct smi_field *group)
{
	tabs(f, depth);
	fprintf(f, "</%s>\n", group->element);
}

static void xml_leaf(FILE *f, unsigned depth, const struct smi_field *field,
		     const char *value)
{
	tabs(f, depth);
	fprintf(f, "<%s>", field->element);
	escape(f, value);
	fprintf(f, "</%s>\n", field->element);
}

static const struct writer xml = { xml_begin, xml_end, xml_leaf };

/* --- text ---------------------------------------------------------------- */

enum { COLUMN = 50 }; /* of the colon. arbitrary: nvidia-smi's */

static void text_begin(FILE *f, unsigned depth, const struct smi_field *group)
{
	fprintf(f, "%*s%s\n", 4 * (int)depth, "", group->label);
}

static void text_end(FILE *f, unsigned depth, const struct smi_field *group)
{
	(void)f;
	(void)depth;
	(void)group;
}

static void text_leaf(FILE *f, unsigned depth, const struct smi_field *field,
		      const char *value)
{
	int indent = 4 * (int)depth;

	fprintf(f, "%*s%-*s : %s\n", indent, "", COLUMN - indent, field->label,
		value);
}

static const struct writer plain = { text_begin, text_end, text_leaf };

/* --- a report ------------------------------------------------------------ */

static void leaf(const struct writer *w, FILE *f, unsigned depth,
		 const struct smi_field *field, const json_t *facts)
{
	char buf[SMI_VALUE], with_unit[SMI_VALUE + 16];
	const char *value = smi_value(field, facts, buf), *unit = field->unit;

	if (value && unit && !smi_is_error(value)) {
		snprintf(with_unit, sizeof(with_unit), "%s%s%s", value,
			 strcmp(unit, "x") ? " " : "", unit);
		value = with_unit;
	}
	w->leaf(f, depth, field, value ? value : "N/A");
}

static void processes(const struct writer *w, FILE *f,
		      const struct smi_field *field, const json_t *all)
{
	static const struct smi_field process = { .element = "process_info",
						  .label = "Process" };
	const json_t *p;
	size_t i;

	w->begin(f, 1, field);
	json_array_foreach (all, i, p) {
		w->begin(f, 2, &process);
		for (size_t k = 0; k < n_smi_process_fields; k++)
			if (smi_process_fields[k].element)
				leaf(w, f, 3, &smi_process_fields[k], p);
		w->end(f, 2, &process);
	}
	w->end(f, 1, field);
}

/* Is `word`, of `n` bytes, the one for this group? */
static bool is_group(const struct smi_field *top, const char *word, size_t n)
{
	return top->display && strlen(top->display) == n &&
	       !strncasecmp(top->display, word, n);
}

static bool is_shown(const struct smi_field *top, const char *display)
{
	size_t n;

	for (const char *word = display; word && *word;
	     word += n + (word[n] == ',')) {
		n = strcspn(word, ",");
		if (is_group(top, word, n))
			return true;
	}
	return !display;
}

int smi_display_check(const char *display, struct err *err)
{
	size_t n;

	for (const char *word = display; word && *word;
	     word += n + (word[n] == ',')) {
		bool known = false;

		n = strcspn(word, ",");
		for (size_t i = 0; i < n_smi_fields; i++)
			known |= is_group(&smi_fields[i], word, n);
		if (!known)
			return err_set(err, -EINVAL, "-d '%.*s': no such group",
				       (int)MIN(n, 80), word);
	}
	return 0;
}

static void show_gpu(const struct writer *w, FILE *f, const json_t *facts,
		     const char *display)
{
	const struct smi_field *open[8], *end = smi_fields + n_smi_fields;
	unsigned n_open = 1;
	bool shown = true;

	for (const struct smi_field *p = smi_fields, *next; p < end; p = next) {
		const json_t *list;

		for (next = p + 1; next < end && !next->element; next++)
			;
		if (!p->element)
			continue;
		while (n_open > p->depth) {
			n_open--;
			w->end(f, n_open, open[n_open]);
		}
		if (p->depth == 1)
			shown = is_shown(p, display);
		if (!shown)
			continue;
		list = p->fact ? json_object_get(facts, p->fact) : NULL;
		if (json_is_array(list)) {
			processes(w, f, p, list);
		} else if (next < end && next->depth > p->depth) {
			w->begin(f, p->depth, p);
			open[n_open++] = p;
		} else {
			leaf(w, f, p->depth, p, facts);
		}
	}
	while (n_open > 1) {
		n_open--;
		w->end(f, n_open, open[n_open]);
	}
}

/* What is said before the GPUs; the first of them knows it. */
static void show_head(const struct writer *w, FILE *f, const json_t *facts)
{
	static const struct smi_field head[] = {
		{ 0, "timestamp", "Timestamp", NULL, "date" },
		{ 0, "driver_version", "Driver Version", NULL,
		  "driver_version" },
		{ 0, "cuda_version", "CUDA Version", NULL, "=" GPUD_CUDA },
		{ 0, "attached_gpus", "Attached GPUs", NULL, "count" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(head); i++)
		leaf(w, f, 0, &head[i], json_array_get(facts, 0));
}

void smi_xml(const json_t *facts, const char *display, FILE *f)
{
	const json_t *gpu;
	size_t i;

	fputs("<?xml version=\"1.0\" ?>\n"
	      "<!DOCTYPE nvidia_smi_log SYSTEM \"nvsmi_device_v13.dtd\">\n"
	      "<nvidia_smi_log>\n",
	      f);
	show_head(&xml, f, facts);
	json_array_foreach (facts, i, gpu) {
		const char *id =
			json_string_value(json_object_get(gpu, "pci_bus_id"));

		fputs("\t<gpu id=\"", f);
		escape(f, id ? id : "N/A");
		fputs("\">\n", f);
		show_gpu(&xml, f, gpu, display);
		fputs("\t</gpu>\n\n", f);
	}
	fputs("</nvidia_smi_log>\n", f);
}

void smi_text(const json_t *facts, const char *display, FILE *f)
{
	const json_t *gpu;
	size_t i;

	fputs("\n==============NVSMI LOG==============\n\n", f);
	show_head(&plain, f, facts);
	json_array_foreach (facts, i, gpu) {
		const char *id =
			json_string_value(json_object_get(gpu, "pci_bus_id"));

		fprintf(f, "GPU %s\n", id ? id : "N/A");
		show_gpu(&plain, f, gpu, display);
		fputc('\n', f);
	}
}
