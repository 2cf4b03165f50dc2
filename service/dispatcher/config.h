/* SPDX-License-Identifier: MIT */
/* What a dispatcher is asked to do. */
#ifndef GPEMU_SERVICE_DISPATCHER_CONFIG_H
#define GPEMU_SERVICE_DISPATCHER_CONFIG_H

#include "common/tick.h"
#include "service/proto/access.h"

struct dispatcher_config {
	struct tick *tick; /* of scale 1; borrowed, as is all below */
	const struct access *access;
	const struct addr *listen;
	const char *journal;	 /* path; NULL: none */
	uint64_t timeout_ns;	 /* a worker that is silent for it is gone */
	uint64_t job_timeout_ns; /* the same of a job's trainer */
	/* of sh(1): start workers itself, as many as the jobs need but at most
	 * so many; NULL: it starts none */
	const char *worker_command;
	uint32_t workers_most;
};

#endif
