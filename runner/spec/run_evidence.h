/* SPDX-License-Identifier: MIT */
/*
 * The kind of evidence of each check: how much it proves.
 *
 *	kind: self                        default of all expectations
 *	expect:
 *	  - {that: au >= 90, kind: input}
 *	  - that: seconds == published.paper +- 10%
 *	    where: {fs.cache_size: [60%, 80%]}
 *	    kind: calibrated
 *	    fitted: {fs.cache_size: 40%}  or text: points of no axis here
 *	published:
 *	  paper: {..., tolerance: 10%, kind: prediction}
 *	  other: {..., rank: .9, kind: order, reason: "we contradict it: ..."}
 *
 * An expectation of kind calibrated or prediction compares with
 * published.NAME and a tolerance. A published series has a kind if it is
 * judged; that of its rank is always order.
 */
#ifndef GPEMU_RUNNER_SPEC_RUN_EVIDENCE_H
#define GPEMU_RUNNER_SPEC_RUN_EVIDENCE_H

#include "runner/spec/run_expect.h"

/* "input", "self", ... */
const char *evidence_name(enum evidence_kind kind);
/* "order: only which is larger" */
const char *evidence_about(enum evidence_kind kind);
/* The kind of that name; -EINVAL with the known ones. */
int evidence_find(const char *name, struct err *err);
/* Does a pass reproduce what is published? */
bool evidence_reproduces(enum evidence_kind kind);

/*
 * Set and check the kinds of all checks of a workload that expect_check
 * accepted. -EINVAL with "file:line:column: ", also if a point is fitted and
 * judged.
 */
int evidence_check(struct workload *w, struct err *err);

#endif
