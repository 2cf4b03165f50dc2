/* SPDX-License-Identifier: MIT */
/*
 * Datasets of known bytes, and engines that read them through the pipeline.
 */
#ifndef GPEMU_TESTS_CONTRACT_ENGINE_RIG_H
#define GPEMU_TESTS_CONTRACT_ENGINE_RIG_H

#include "tests/unit/test.h"

#include <stdbool.h>

#include "loader/pipeline/pipeline.h"

enum { N_CLASSES = 3, PER_CLASS = 13, N = N_CLASSES * PER_CLASS, BATCH = 4 };

struct fixture {
	char dir[64];
	struct dataset data;
	struct tick *tick;
	uint32_t direct; /* as struct engine_config */
	bool refused;	 /* direct was requested, but is not supported */
	bool sorted;	 /* read in the order of invented addresses */
};

/* How the pipeline runs, and what is expected. */
struct shape {
	uint32_t workers, superbatch, queue_depth;
	bool pin, pin_direct, pin_inline;
	uint64_t budget;	 /* of pinned memory; 0: plenty */
	uint64_t n;		 /* samples of an epoch */
	struct staging *staging; /* shared with other pipelines, or NULL */
	const struct batching_ops *batching; /* NULL: in order */
	const void *batching_options;
};

extern const struct shape shapes[];
extern const size_t n_shapes;

/* The delivery of a sample. */
struct seen {
	unsigned times;
	int error;
	size_t n;
	char *data; /* the last time */
};

extern const struct engine_ops engine_sync;

/* From 0 bytes to 300 KB, around multiples of a page, one empty in each
 * class. */
size_t size_of(unsigned i);
/* The file of sample `i`. */
void path_of(const struct fixture *f, unsigned i, char path[128]);
/* The file that holds class `c`, in the datasets of containers. */
void container_of_class(const struct fixture *f, unsigned c, char path[128]);

/* For cmocka: N samples as files, or in a container for each class; read
 * through the page cache or bypassing it (skips where that is refused). */
int setup_files(void **state);
int setup_containers(void **state);
int setup_direct_files(void **state);
int setup_direct_containers(void **state);
int teardown(void **state);

/* The expected delivery of every engine from an undamaged dataset. */
void want_all(struct seen want[N]);
void forget(struct seen seen[N]);

/* NULL, with a reason printed, when the engine is not available here. */
struct pipeline *new_pipeline(const struct fixture *f,
			      const struct engine_ops *engine,
			      const struct shape *s);
/* Each sample once, in full batches, where the engine reports it. */
void one_epoch(const struct fixture *f, struct pipeline *p,
	       const struct engine_ops *e, const struct shape *s,
	       uint64_t epoch, struct seen *seen);
/* Two epochs over all samples; false when the engine is not available. */
bool run(const struct fixture *f, const struct engine_ops *e,
	 const struct shape *s, struct seen *seen);
/* What is delivered is what is wanted. */
void compare(const struct fixture *f, const struct seen *want,
	     const struct seen *got, const char *name);
/* All engines in all shapes against `want`, by sample. */
void all_equal(const struct fixture *f, const struct seen *want);

/* The i-th engine that reads; NULL: there are no more. */
const struct engine_ops *engine_at(size_t i);
/* Whose engines these are. */
extern const struct plugin *const *engines_tested;

#endif
