/* SPDX-License-Identifier: MIT */
/*
 * gpemu-cachesim: requests in memory, replayed through caches without I/O.
 *
 * A trace is a table of objects, and requests as indices into it, divided into
 * epochs. Replays do not modify it, so any number of threads may share it.
 */
#ifndef GPEMU_CACHESIM_CACHESIM_H
#define GPEMU_CACHESIM_CACHESIM_H

#include <jansson.h>

#include "common/units.h"
#include "fs/cache/cache.h"
#include "fs/cache/tier.h"
#include "fs/source/importance.h"

/* Cache operations other than requests. */
enum sim_event_kind {
	SIM_OFFER, /* offered without a request */
	SIM_WARM,  /* the same, if it fits without eviction */
	SIM_REMOVE,
	SIM_NEW_CACHE, /* empty, with fresh policy state */
};

struct sim_event {
	size_t at; /* before this request */
	enum sim_event_kind kind;
	uint32_t object;
	uint64_t next_use; /* as of requests */
};

/* What was read of a trace file: for the record, and once for the terminal. */
struct sim_read {
	char *path, *layout; /* without the options of either; NULL: a dataset,
			      * not a file */
	char columns[128];   /* "time=1,key=2,size=3+4"; "": not of columns */
	bool header, compressed;
	uint64_t records;   /* lines, or records of a binary file */
	uint64_t comments;  /* lines */
	uint64_t other_ops; /* records of operations that are no requests */
	uint64_t unsized;   /* records whose object has no known size */
	uint64_t requests;  /* of one epoch; a record may be several */
	bool timed;
	double first_s, last_s; /* earliest and latest time, if timed */
};

struct sim_trace {
	struct sim_read read;
	struct cache_item *objects;
	uint64_t *whole; /* as in struct cache_items */
	size_t n_objects, objects_allocated, whole_allocated;
	uint32_t *requests;
	size_t n_requests, requests_allocated;
	size_t *epoch_ends; /* the first request after each epoch */
	size_t n_epochs;
	struct sim_event *events; /* in order */
	size_t n_events, events_allocated;
	uint64_t *next_use;	      /* of each request; NULL: not computed */
	struct importance importance; /* of files, by the upper half of keys */
	uint32_t *label; /* of files, likewise; NULL: all are of one class */
	uint32_t n_labels;
	uint64_t *file_bytes; /* ascending, for struct policy_params */
	size_t n_files;
	uint64_t total_bytes; /* of all files; 100 % of a cache size */
	uint64_t max_object_bytes;
	uint64_t n_resized; /* requests that differ in size from the first one
			       of their object, which is used */
	uint64_t n_lost;    /* known to be missing in the file */
	/* of a folder: files that are no samples, links to no file */
	uint64_t n_aside, n_links;
};

void sim_trace_fini(struct sim_trace *t);
/* Room for one more. -ENOMEM, -E2BIG (32-bit numbers). */
int sim_trace_add_object(struct sim_trace *t, const struct cache_object *o);
/* Without next_use. */
static inline struct cache_object sim_trace_object(const struct sim_trace *t,
						   uint32_t i)
{
	return cache_items_object(&(struct cache_items){ t->objects, t->whole },
				  i, 0);
}
int sim_trace_add_request(struct sim_trace *t, uint32_t object);
/* Before the next request. */
int sim_trace_add_event(struct sim_trace *t, enum sim_event_kind kind,
			uint32_t object);
/* End the epoch of all requests since the last call. -ENOMEM. */
int sim_trace_end_epoch(struct sim_trace *t);
/* Fill in next_use, for offline policies. -ENOMEM. */
int sim_trace_look_ahead(struct sim_trace *t);

/*
 * A dataset from which epochs are made: its files in the order of gpemu-train,
 * each a range of consecutive objects (extents of 4 MiB, as in the cache of
 * gpemu-fs; an empty file has none).
 */
struct sim_dataset {
	struct sim_trace *trace; /* gets the objects and sizes */
	/* of file i, and behind its last one; a file of several names is there
	 * for each, with the same objects */
	uint32_t *first, *end;
	size_t n_files;
	/* sums of the importance up to each file; NULL: none is known */
	double *sum;
};

/* `files` of the sizes in a profile, 0: as many as it has. */
int sim_dataset_profile(const char *name, uint64_t files, uint64_t seed,
			struct sim_trace *t, struct sim_dataset *ret,
			struct err *err);
/* The files below a directory, with the keys of gpemu-fs. */
int sim_dataset_dir(const char *path, struct sim_trace *t,
		    struct sim_dataset *ret, struct err *err);
void sim_dataset_fini(struct sim_dataset *d);
/* What policies know of the importance of the files: that of each, one a line
 * (common/text/weights.h). -EINVAL with a text, -ENOMEM; as open(2). */
int sim_dataset_weigh(struct sim_dataset *d, const char *file, struct err *err);

/*
 * One epoch after the other. `order`: "shuffle" (gpemu-train's: stream
 * "order" of the seed, indexed by the epoch), "sequential", "replacement"
 * (independent draws, uniform or in proportion to the importance, stream
 * "order.replacement").
 * -EINVAL: no such order.
 */
int sim_dataset_epochs(const struct sim_dataset *d, const char *order,
		       uint64_t epochs, uint64_t seed, struct err *err);

/*
 * Read a trace and repeat it `epochs` times. `file`: FILE, or FILE:LAYOUT with
 * its options, or FILE:KEY=VALUE,... for those of csv; "-" is standard input.
 * `layout`: the same apart; NULL: as `file` says, or the first bytes, or the
 * name. -EINVAL with "path:line:column: what" or "path: offset N: what".
 */
int sim_trace_load(const char *file, const char *layout, uint64_t epochs,
		   struct sim_trace *t, struct err *err);

/* One policy at one size, alone or one of several tiers. */
struct sim_tier {
	const char *storage; /* borrowed; a name for the tables */
	const struct policy_ops *ops;
	const void *options; /* as struct policy_params */
	const char *policy;  /* as a user would name it */
	struct units_capacity size;
	uint64_t capacity_bytes;
	struct cache_counts *epochs; /* n_epochs of them */
	uint64_t metadata_bytes;     /* at the end */
};

/* Caches that are replayed together. */
struct sim_cell {
	struct sim_tier tiers[TIERS_MAX];
	size_t n_tiers;
	struct err err;
};

struct sim_run {
	const struct sim_trace *trace;
	struct sim_cell *cells;
	size_t n_cells;
	uint64_t seed;
	bool count_metadata;
	enum tier_admit admit;
	/* epochs excluded from the mean; fewer than the trace has */
	uint64_t warmup;
};

/* Replay every cell on `jobs` threads. -errno: the first cell that failed. */
int sim_replay(struct sim_run *run, unsigned jobs, struct err *err);
/* Free the cells. */
void sim_run_fini(struct sim_run *run);
/* Sum of the epochs from `first`, counted from 0, up to `end`. */
struct cache_counts sim_tier_sum(const struct sim_tier *tier, size_t first,
				 size_t end);
/* The same of all tiers: a hit in any of them is a hit. */
struct cache_counts sim_sum(const struct sim_cell *cell, size_t first,
			    size_t end);
/* Of the epochs after the warm-up. */
struct cache_counts sim_steady(const struct sim_run *run,
			       const struct sim_cell *cell);
double sim_hit_ratio(const struct cache_counts *n);
double sim_byte_hit_ratio(const struct cache_counts *n);

/* What was read, on one line of stdout. */
void sim_print_read(const struct sim_read *r);
void sim_print_table(const struct sim_run *run, bool per_epoch);
/* {"trace", "warmup", "results"}; NULL: no memory. */
json_t *sim_json(const struct sim_run *run);
/* Plot the hit ratio over the cache size, one line per policy, with gnuplot. */
int sim_plot(const struct sim_run *run, const char *path, struct err *err);

#endif
