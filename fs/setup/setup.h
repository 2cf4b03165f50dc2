/* SPDX-License-Identifier: MIT */
/* From options to a running server: the files of the source, their groups, the
 * clock, the trace, the stack of layers, and the rules of faults. */
#ifndef GPEMU_FS_SETUP_SETUP_H
#define GPEMU_FS_SETUP_SETUP_H

#include "fs/setup/setup_options.h"

struct setup {
	const struct source_ops *source;
	void *source_state;
	struct tree tree;
	struct tick *tick;
	struct trace *trace;
	struct tiers tiers; /* empty: a policy and a size */
	struct group_map *groups;
	struct server *server;
};

/* What not all programs have. */
struct setup_more {
	uint64_t seed;
	const struct peer_net *peers; /* NULL: this node is alone */
	double writable_scale;	      /* of the server; 0: no such folder */
	bool is_store;		      /* as that of the server */
};

/* Scan the source `spec`; call setup_fini even after an error. `shared` and
 * `follow`: those of the tree (fs/source/tree.h). Warns of what is left out.
 * Errors as those of the source, with a text. */
int setup_source(struct setup *s, const char *spec, bool shared,
		 const char *follow, struct err *err);
/* Is one of these folders in the other, or the same? */
bool setup_overlap(const char *a, const char *b);
/* -EINVAL: --writable DIR and the source `spec` overlap. */
int setup_check_writable(const struct setup *s, const char *dir,
			 const char *spec, struct err *err);
/* Start the server of the files that were scanned. Errors as server_new and
 * those of groups, tiers, trace and faults; with a text. */
int setup_server(struct setup *s, const struct setup_options *o,
		 const struct setup_more *more, struct err *err);
/* Stops the server, if that has not been done. */
void setup_fini(struct setup *s);

#endif
