/* SPDX-License-Identifier: MIT */
#include "share/smi/smi_query.h"

#include <errno.h>
#include <string.h>

#include "common/util.h"

static const struct smi_field *table(bool processes, size_t *ret_n)
{
	*ret_n = processes ? n_smi_process_fields : n_smi_fields;
	return processes ? smi_process_fields : smi_fields;
}

/* --- parsing ------------------------------------------------------------- */

/* Is `name` of `n` bytes one of `names`, with '|' between them? */
static bool is_one(const char *names, const char *name, size_t n)
{
	while (names && *names) {
		size_t k = strcspn(names, "|");

		if (k == n && !strncmp(names, name, n))
			return true;
		names += k + (names[k] == '|');
	}
	return false;
}

/* The next word of a list, without spaces around it, and its length; NULL: the
 * list has ended. */
static const char *next_word(const char **list, size_t *ret_n)
{
	const char *word = *list;
	size_t n;

	if (!word)
		return NULL;
	n = strcspn(word, ",");
	*list = word[n] ? word + n + 1 : NULL;
	while (n && *word == ' ')
		word++, n--;
	while (n && word[n - 1] == ' ')
		n--;
	*ret_n = n;
	return word;
}

static int add_column(struct smi_query *q, const char *name, size_t n,
		      struct err *err)
{
	size_t n_all;
	const struct smi_field *all = table(q->processes, &n_all);

	if (q->n == SMI_COLUMNS)
		return err_set(err, -E2BIG, "more than %d fields", SMI_COLUMNS);
	for (size_t i = 0; i < n_all; i++)
		if (is_one(all[i].query, name, n)) {
			q->columns[q->n++] = &all[i];
			return 0;
		}
	return err_set(err, -EINVAL,
		       "Field \"%.*s\" is not a valid field to query.",
		       (int)MIN(n, 200), name);
}

static int parse_format(struct smi_query *q, const char *format,
			struct err *err)
{
	bool csv = false;
	const char *word;
	size_t n;

	while ((word = next_word(&format, &n))) {
		if (is_one("csv", word, n))
			csv = true;
		else if (is_one("noheader", word, n))
			q->no_header = true;
		else if (is_one("nounits", word, n))
			q->no_units = true;
		else
			return err_set(err, -EINVAL,
				       "\"%.*s\" is not a valid format; known: "
				       "csv, noheader, nounits",
				       (int)MIN(n, 200), word);
	}
	return csv ? 0
		   : err_set(err, -EINVAL,
			     "\"--format=\" switch is missing. Please run "
			     "'nvidia-smi -h' for help.");
}

int smi_query_parse(struct smi_query *ret, const char *fields,
		    const char *format, struct err *err)
{
	const char *word;
	size_t n;
	int r = parse_format(ret, format, err);

	while (r == 0 && (word = next_word(&fields, &n)))
		r = add_column(ret, word, n, err);
	return r;
}

/* --- CSV ----------------------------------------------------------------- */

/* Degrees and lanes are numbers only in CSV. */
static const char *unit_of(const struct smi_field *field)
{
	const char *unit = field->unit;

	return unit && strcmp(unit, "C") && strcmp(unit, "x") ? unit : NULL;
}

void smi_query_header(const struct smi_query *q, FILE *f)
{
	if (q->no_header)
		return;
	for (size_t i = 0; i < q->n; i++) {
		const char *name = q->columns[i]->query,
			   *unit = unit_of(q->columns[i]);

		fprintf(f, "%s%.*s", i ? ", " : "", (int)strcspn(name, "|"),
			name);
		if (unit)
			fprintf(f, " [%s]", unit);
	}
	fputc('\n', f);
}

static void put_row(const struct smi_query *q, const json_t *facts, FILE *f)
{
	for (size_t i = 0; i < q->n; i++) {
		char buf[SMI_VALUE];
		const char *value = smi_value(q->columns[i], facts, buf),
			   *unit = unit_of(q->columns[i]);

		fputs(i ? ", " : "", f);
		if (smi_is_error(value))
			fprintf(f, "[%s]", value ? value : "N/A");
		else
			fputs(value, f);
		if (unit && !q->no_units && !smi_is_error(value))
			fprintf(f, " %s", unit);
	}
	fputc('\n', f);
}

void smi_query_rows(const struct smi_query *q, const json_t *facts, FILE *f)
{
	const json_t *gpu, *process;
	size_t i, k;

	json_array_foreach (facts, i, gpu) {
		if (!q->processes)
			put_row(q, gpu, f);
		else
			json_array_foreach (json_object_get(gpu, "processes"),
					    k, process)
				put_row(q, process, f);
	}
}

/* --- help ---------------------------------------------------------------- */

void smi_query_help(bool processes, FILE *f)
{
	const struct smi_field *group[8] = { NULL };
	size_t n;
	const struct smi_field *all = table(processes, &n);

	fprintf(f,
		"List of valid properties to query for the switch \"%s=\":\n",
		processes ? "--query-compute-apps" : "--query-gpu");
	for (size_t i = 0; i < n; i++) {
		const struct smi_field *p = &all[i];

		group[p->depth] = p;
		if (!p->query)
			continue;
		fputs("\n\"", f);
		for (const char *c = p->query; *c; c++)
			*c == '|' ? fputs("\" or \"", f) : fputc(*c, f);
		fputs("\"\n", f);
		for (unsigned d = 1; p->label && d < p->depth; d++)
			if (group[d] && group[d]->label)
				fprintf(f, "%s: ", group[d]->label);
		fprintf(f, "%s%s%s.%s\n",
			p->label ? p->label : "Only in queries",
			p->unit ? ", in " : "", p->unit ? p->unit : "",
			!p->fact ? " Always [N/A] of an emulated GPU." : "");
	}
}
