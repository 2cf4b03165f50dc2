/* SPDX-License-Identifier: MIT */
/* The steps of a run on its timeline (loader/pipeline/trace.h). */
#ifndef GPEMU_LOADER_ACCOUNT_OBSERVE_TIMELINE_H
#define GPEMU_LOADER_ACCOUNT_OBSERVE_TIMELINE_H

#include "loader/account/observer.h"
#include "loader/pipeline/trace.h"

/* The ctx of observe_timeline. */
struct timeline {
	struct trace *trace; /* the caller's */
	/* private: the last step shown, and its number of GPUs */
	uint64_t epoch, step;
	uint32_t n_gpus;
};

extern const struct observer observe_timeline;

#endif
