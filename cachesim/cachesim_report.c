/* SPDX-License-Identifier: MIT */
#include "cachesim/cachesim.h"

#include <inttypes.h>
#include <string.h>

#include "common/json.h"
#include "common/program/gnuplot.h"
#include "common/util.h"

static double share(uint64_t part, uint64_t all)
{
	return all ? (double)part / (double)all : 0;
}

/* --- table --------------------------------------------------------------- */

/* The columns before the counts. Longer names are cut. */
struct row {
	char name[256];
	char size[UNITS_TEXT], bytes[UNITS_TEXT];
	int width; /* of the names */
};

static void name_row(struct row *r, const struct sim_cell *c, size_t tier)
{
	const struct sim_tier *t = &c->tiers[tier];

	if (c->n_tiers == 1)
		snprintf(r->name, sizeof(r->name), "%s", t->policy);
	else
		snprintf(r->name, sizeof(r->name), "%zu %.20s:%s", tier + 1,
			 t->storage, t->policy);
}

static int name_width(const struct sim_run *run)
{
	struct row row;
	int width = 12;

	for (size_t i = 0; i < run->n_cells; i++)
		for (size_t k = 0; k < run->cells[i].n_tiers; k++) {
			name_row(&row, &run->cells[i], k);
			width = MAX(width, (int)strlen(row.name));
		}
	return width;
}

static void print_row(const struct row *r, const char *epoch,
		      const struct cache_counts *n, uint64_t requests,
		      uint64_t bytes)
{
	printf("%-*s %8s %10s %6s %8.2f %8.2f %12" PRIu64 " %12" PRIu64 "\n",
	       r->width, r->name, r->size, r->bytes, epoch,
	       100 * share(n->hits, requests), 100 * share(n->hit_bytes, bytes),
	       n->evictions, n->rejected);
}

/* The tiers of a cell, whose hits add up, and for several tiers their sum, in
 * the epochs from `first` up to `end`. */
static void print_cell(const struct sim_cell *c, int width, size_t first,
		       size_t end, const char *epoch)
{
	struct cache_counts all = sim_sum(c, first, end);
	uint64_t requests = all.hits + all.misses;
	uint64_t bytes = all.hit_bytes + all.miss_bytes, capacity = 0;
	struct row row = { .width = width };

	for (size_t k = 0; k < c->n_tiers; k++) {
		const struct sim_tier *t = &c->tiers[k];
		struct cache_counts n = sim_tier_sum(t, first, end);

		capacity += t->capacity_bytes;
		name_row(&row, c, k);
		units_exact_capacity(&t->size, row.size);
		units_human_size((double)t->capacity_bytes, row.bytes);
		print_row(&row, epoch, &n, requests, bytes);
	}
	if (c->n_tiers == 1)
		return;
	strcpy(row.name, "all tiers");
	row.size[0] = 0;
	units_human_size((double)capacity, row.bytes);
	print_row(&row, epoch, &all, requests, bytes);
}

void sim_print_table(const struct sim_run *run, bool per_epoch)
{
	size_t n_epochs = run->trace->n_epochs;
	bool tiers = run->n_cells && run->cells[0].n_tiers > 1;
	int width = name_width(run);
	char range[32];

	snprintf(range, sizeof(range), "%" PRIu64 "-%zu", run->warmup + 1,
		 n_epochs);
	printf("%-*s %8s %10s %6s %8s %8s %12s %12s\n", width,
	       tiers ? "tier" : "policy", "size", "capacity", "epoch", "hits/%",
	       "bytes/%", "evictions", "rejected");
	for (size_t i = 0; i < run->n_cells; i++) {
		const struct sim_cell *c = &run->cells[i];

		for (size_t e = 0; per_epoch && e < n_epochs; e++) {
			char number[32];

			snprintf(number, sizeof(number), "%zu", e + 1);
			print_cell(c, width, e, e + 1, number);
		}
		if (!per_epoch)
			print_cell(c, width, run->warmup, n_epochs,
				   n_epochs > 1 ? range : "1");
	}
}

static void left_out(char *text, size_t size, uint64_t n, const char *what)
{
	size_t used = strlen(text);

	if (n)
		snprintf(text + used, size - used, "%s%" PRIu64 " %s",
			 used ? ", " : "; left out: ", n, what);
}

void sim_print_read(const struct sim_read *r)
{
	char out[256] = "";

	left_out(out, sizeof(out), r->other_ops, "of other operations");
	left_out(out, sizeof(out), r->unsized, "without a size");
	left_out(out, sizeof(out), r->comments, "lines of comment");
	printf("Read %s%s as %s%s%s%s%s: %" PRIu64 " requests of %" PRIu64
	       " records",
	       r->path, r->compressed ? " (zstd)" : "", r->layout,
	       *r->columns ? " (" : "", r->columns,
	       r->header ? ", by its header" : "", *r->columns ? ")" : "",
	       r->requests, r->records);
	if (r->timed)
		printf(" in %g s", r->last_s - r->first_s);
	printf("%s\n", out);
}

/* --- JSON ---------------------------------------------------------------- */

static json_t *counts_json(const struct cache_counts *n)
{
	return json_pack("{s:I,s:I,s:I,s:I,s:I,s:I,s:f,s:f}", "hits",
			 (json_int_t)n->hits, "misses", (json_int_t)n->misses,
			 "hit_bytes", (json_int_t)n->hit_bytes, "miss_bytes",
			 (json_int_t)n->miss_bytes, "evictions",
			 (json_int_t)n->evictions, "rejected",
			 (json_int_t)n->rejected, "hit_ratio", sim_hit_ratio(n),
			 "byte_hit_ratio", sim_byte_hit_ratio(n));
}

static json_t *tier_json(const struct sim_run *run, const struct sim_cell *c,
			 const struct sim_tier *t)
{
	struct cache_counts all = sim_steady(run, c);
	struct cache_counts sum =
		sim_tier_sum(t, run->warmup, run->trace->n_epochs);
	json_t *epochs = json_array();
	char size[UNITS_TEXT];

	for (size_t e = 0; e < run->trace->n_epochs; e++)
		json_array_append_new(epochs, counts_json(&t->epochs[e]));
	return json_pack("{s:s,s:s,s:s,s:I,s:I,s:f,s:f,s:f,s:f,s:o}", "storage",
			 t->storage, "policy", t->policy, "size",
			 units_exact_capacity(&t->size, size), "capacity_bytes",
			 (json_int_t)t->capacity_bytes, "metadata_bytes",
			 (json_int_t)t->metadata_bytes, "hit_ratio",
			 sim_hit_ratio(&sum), "byte_hit_ratio",
			 sim_byte_hit_ratio(&sum), "hit_share",
			 share(sum.hits, all.hits + all.misses),
			 "byte_hit_share",
			 share(sum.hit_bytes, all.hit_bytes + all.miss_bytes),
			 "epochs", epochs);
}

/* The result of a single tier names its policy and size itself. */
static void add_only_tier(json_t *j, const struct sim_tier *t)
{
	char size[UNITS_TEXT];

	json_add_text(j, "policy", t->policy);
	json_add_text(j, "size", units_exact_capacity(&t->size, size));
	json_add_integer(j, "capacity_bytes", t->capacity_bytes);
	json_add_integer(j, "metadata_bytes", t->metadata_bytes);
}

static json_t *cell_json(const struct sim_run *run, const struct sim_cell *c)
{
	struct cache_counts sum = sim_steady(run, c);
	json_t *epochs = json_array(), *tiers = json_array();
	json_t *j = json_object();

	if (c->n_tiers == 1)
		add_only_tier(j, &c->tiers[0]);
	for (size_t k = 0; k < c->n_tiers; k++)
		json_array_append_new(tiers, tier_json(run, c, &c->tiers[k]));
	for (size_t e = 0; e < run->trace->n_epochs; e++) {
		struct cache_counts n = sim_sum(c, e, e + 1);

		json_array_append_new(epochs, counts_json(&n));
	}
	json_add_real(j, "hit_ratio", sim_hit_ratio(&sum));
	json_add_real(j, "byte_hit_ratio", sim_byte_hit_ratio(&sum));
	json_object_set_new(j, "tiers", tiers);
	json_object_set_new(j, "epochs", epochs);
	return j;
}

/* Null of a dataset. */
static json_t *read_json(const struct sim_read *r)
{
	if (!r->path)
		return json_null();
	return json_pack(
		"{s:o, s:s, s:s?, s:b, s:s?, s:I, s:I, s:{s:I, s:I, s:I}, s:o}",
		"file", json_bytes(r->path), "layout", r->layout, "columns",
		*r->columns ? r->columns : NULL, "header", r->header,
		"compression", r->compressed ? "zstd" : NULL, "records",
		(json_int_t)r->records, "requests", (json_int_t)r->requests,
		"left_out", "other_operations", (json_int_t)r->other_ops,
		"unsized", (json_int_t)r->unsized, "comments",
		(json_int_t)r->comments, "span_s",
		r->timed ? json_real(r->last_s - r->first_s) : json_null());
}

json_t *sim_json(const struct sim_run *run)
{
	const struct sim_trace *t = run->trace;
	json_t *results = json_array();

	for (size_t i = 0; i < run->n_cells; i++)
		json_array_append_new(results, cell_json(run, &run->cells[i]));
	return json_pack("{s:{s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:o},s:I,s:o}",
			 "trace", "requests", (json_int_t)t->n_requests,
			 "epochs", (json_int_t)t->n_epochs, "objects",
			 (json_int_t)t->n_objects, "bytes",
			 (json_int_t)t->total_bytes, "resized_requests",
			 (json_int_t)t->n_resized, "lost_requests",
			 (json_int_t)t->n_lost, "files_aside",
			 (json_int_t)t->n_aside, "links_not_followed",
			 (json_int_t)t->n_links, "read", read_json(&t->read),
			 "warmup", (json_int_t)run->warmup, "results", results);
}

/* --- plot ---------------------------------------------------------------- */

static bool same_policy(const struct sim_run *run, size_t i, size_t j)
{
	return !strcmp(run->cells[i].tiers[0].policy,
		       run->cells[j].tiers[0].policy);
}

static bool first_of_policy(const struct sim_run *run, size_t i)
{
	return i == 0 || !same_policy(run, i, i - 1);
}

/* A data block "$p<i>" for the policy whose cells start at i. */
static void write_data(const struct sim_run *run, size_t i, FILE *f)
{
	double whole = (double)run->trace->total_bytes;

	fprintf(f, "$p%zu << END\n", i);
	for (size_t j = i; j < run->n_cells && same_policy(run, i, j); j++) {
		struct cache_counts sum = sim_steady(run, &run->cells[j]);

		fprintf(f, "%.6f %.6f\n",
			100 * (double)run->cells[j].tiers[0].capacity_bytes /
				whole,
			100 * sim_hit_ratio(&sum));
	}
	fputs("END\n", f);
}

/*
 * To be distinct in greyscale: each line has its own mark, every second one is
 * dashed, and shades go in steps of three from black to mid-grey.
 */
static void write_script(const struct sim_run *run, FILE *f)
{
	static const char *const shade[] = { "#000000", "#505050", "#909090" };
	int line = 0;

	fputs("set xlabel 'cache size (% of the bytes)'\n"
	      "set ylabel 'object hit ratio (%)'\n"
	      "set xrange [0:*]\nset yrange [0:100]\n"
	      "set grid lc rgb '#d0d0d0' lw 1 dt 1\nset border 3\n"
	      "set tics nomirror\nset key outside right top Left reverse "
	      "samplen 3 noenhanced\n",
	      f);
	for (size_t i = 0; i < run->n_cells; i++)
		if (first_of_policy(run, i))
			write_data(run, i, f);
	for (size_t i = 0; i < run->n_cells; i++) {
		if (!first_of_policy(run, i))
			continue;
		fprintf(f,
			"%s$p%zu with linespoints title '%s' lw 1.5 ps 1.1 "
			"pt %d dt %d lc rgb '%s'",
			line ? ", " : "plot ", i, run->cells[i].tiers[0].policy,
			line % 15 + 1, line % 2 ? 2 : 1, shade[line % 3]);
		line++;
	}
	fputc('\n', f);
}

int sim_plot(const struct sim_run *run, const char *path, struct err *err)
{
	FILE *script;
	int r = gnuplot_begin(path, 900, 560, &script, err);

	if (r < 0)
		return r;
	write_script(run, script);
	return gnuplot_draw(script, path, err);
}
