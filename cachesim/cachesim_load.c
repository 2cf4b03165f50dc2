/* SPDX-License-Identifier: MIT */
/* Loads a trace: finds its layout, reads it, repeats its epochs. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "common/conf/plugin_choice.h"
#include "common/util.h"
#include "cachesim/layout.h"

/* Bytes that tell a layout. arbitrary: far above the first line of a mount's */
enum { HEAD = 512 };

static const struct layout_ops *ops_of(const struct plugin *p)
{
	return container_of(p, const struct layout_ops, plugin);
}

/* `bin` is what oracleGeneral was called before. */
static int choose(const char *text, struct plugin_choice *ret, struct err *err)
{
	return plugin_choose(layout_table, "trace layout",
			     !strcmp(text, "bin") ? "oracleGeneral" : text, ret,
			     err);
}

static bool is_layout(const char *name, size_t n)
{
	_cleanup_free_ char *own = strndup(name, n);

	return own && n && !strchr(own, ':') &&
	       (!strcmp(own, "bin") ||
		plugin_find(layout_table, "", own, NULL));
}

static bool is_file(const char *name, size_t n)
{
	_cleanup_free_ char *own = strndup(name, n);

	return own && (!strcmp(own, "-") || access(own, F_OK) == 0);
}

/*
 * Where the layout begins in FILE:LAYOUT, FILE:LAYOUT:KEY=VALUE,... and
 * FILE:KEY=VALUE,...; the end of the text if it has none. A file of that very
 * name is a file.
 */
static const char *layout_in(const char *text)
{
	const char *end = text + strlen(text), *colon = strrchr(text, ':');
	const char *before;

	if (!colon || is_file(text, (size_t)(end - text)))
		return end;
	if (!strchr(colon, '='))
		return is_layout(colon + 1, (size_t)(end - colon - 1)) ||
				       is_file(text, (size_t)(colon - text))
			       ? colon + 1
			       : end;
	before = memrchr(text, ':', (size_t)(colon - text));
	return before && (is_layout(before + 1, (size_t)(colon - before - 1)) ||
			  is_file(text, (size_t)(before - text)))
		       ? before + 1
		       : colon + 1;
}

/* FILE:LAYOUT -> file, choice; no choice if it has none. */
static int divide(const char *text, const char *apart, char **ret_path,
		  struct plugin_choice *ret, struct err *err)
{
	const char *layout = layout_in(text);
	size_t n = (size_t)(layout - text) - (*layout != 0);
	_cleanup_free_ char *csv = NULL;

	*ret_path = strndup(text, n);
	if (!*ret_path)
		return -ENOMEM;
	if (*layout && apart)
		return err_set(err, -EINVAL,
			       "%s: its layout is given twice, here and with "
			       "--trace-format",
			       text);
	if (!*layout)
		return apart ? choose(apart, ret, err) : 0;
	if (strcspn(layout, ":") < strcspn(layout, "=") || !strchr(layout, '='))
		return choose(layout, ret, err);
	csv = util_text("csv:%s", layout);
	return csv ? choose(csv, ret, err) : -ENOMEM;
}

/* By its first bytes, or by its name. */
static int guess(struct sim_input *in, struct plugin_choice *ret,
		 struct err *err)
{
	_cleanup_free_ char *name = strdup(in->name);
	size_t n = (size_t)(in->end - in->at), length = strlen(in->name);

	if (!name)
		return -ENOMEM;
	if (length > 4 && !strcmp(name + length - 4, ".zst"))
		name[length - 4] = 0;
	for (size_t i = 0; layout_table[i]; i++) {
		const struct layout_ops *ops = ops_of(layout_table[i]);

		if (ops->looks && ops->looks(in->at, MIN(n, (size_t)HEAD)))
			return choose(ops->plugin.name, ret, err);
	}
	for (size_t i = 0; layout_table[i]; i++) {
		const struct layout_ops *ops = ops_of(layout_table[i]);

		if (ops->named && ops->named(name))
			return choose(ops->plugin.name, ret, err);
	}
	return err_set(err, -EINVAL,
		       "%s: unknown layout: write %s:LAYOUT, or give "
		       "--trace-format (--list layout)",
		       in->name, in->name);
}

static int read_file(const char *path, struct plugin_choice *layout,
		     struct sim_trace *t, struct err *err)
{
	struct sim_input in;
	int r = sim_input_open(&in, path, err);

	if (r == 0)
		r = sim_input_fill(&in, HEAD);
	if (r == 0 && !layout->plugin)
		r = guess(&in, layout, err);
	if (r == 0) {
		t->read.layout = strdup(layout->plugin->name);
		t->read.compressed = in.compressed;
		r = t->read.layout
			    ? ops_of(layout->plugin)
				      ->read(&in, layout->options, t, err)
			    : -ENOMEM;
	}
	sim_input_close(&in);
	t->read.requests = t->n_requests;
	return r;
}

/* Append all requests again, with their epochs and events. */
static int repeat(struct sim_trace *t, size_t n, size_t n_events,
		  size_t n_epochs)
{
	size_t event = 0, from = 0;
	int r = 0;

	for (size_t e = 0; r == 0 && e < n_epochs; e++) {
		for (size_t i = from; r == 0 && i < t->epoch_ends[e]; i++) {
			for (; r == 0 && event < n_events &&
			       t->events[event].at <= i;
			     event++)
				r = sim_trace_add_event(
					t, t->events[event].kind,
					t->events[event].object);
			if (r == 0)
				r = sim_trace_add_request(t, t->requests[i]);
		}
		from = t->epoch_ends[e];
		if (r == 0)
			r = sim_trace_end_epoch(t);
	}
	return r == 0 && from != n ? -EINVAL : r;
}

int sim_trace_load(const char *file, const char *layout, uint64_t epochs,
		   struct sim_trace *t, struct err *err)
{
	struct plugin_choice choice = { 0 };
	int r = divide(file, layout, &t->read.path, &choice, err);
	size_t n, n_events, n_epochs;

	if (r == 0)
		r = read_file(t->read.path, &choice, t, err);
	plugin_choice_fini(&choice);
	n = t->n_requests;
	n_events = t->n_events;
	if (r == 0 && !n)
		return err_set(err, -EINVAL,
			       "%s: contains no requests: of %" PRIu64
			       " records %" PRIu64 " are of other operations, "
			       "%" PRIu64 " without a size",
			       t->read.path, t->read.records, t->read.other_ops,
			       t->read.unsized);
	if (r == 0 && (!t->n_epochs || t->epoch_ends[t->n_epochs - 1] < n))
		r = sim_trace_end_epoch(t);
	n_epochs = t->n_epochs;
	for (uint64_t e = 1; r == 0 && e < epochs; e++)
		r = repeat(t, n, n_events, n_epochs);
	return r < 0 ? err_set(err, r, "%s: %s", file, strerror(-r)) : 0;
}
