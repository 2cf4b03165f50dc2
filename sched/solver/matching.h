/* SPDX-License-Identifier: MIT */
/*
 * Maximum-weight matching in a general graph: pairs of vertices, none in two of
 * them, so that the sum of their weights is largest. Source: Edmonds, "Maximum
 * matching and a polyhedron with 0,1-vertices", 1965; Galil, "Efficient
 * algorithms for finding maximum matching in graphs", ACM Computing Surveys,
 * 1986, for the n^3 steps.
 */
#ifndef GPEMU_SCHED_SOLVER_MATCHING_H
#define GPEMU_SCHED_SOLVER_MATCHING_H

#include <stddef.h>
#include <stdint.h>

/* Nobody: a vertex without a partner. */
#define MATCHING_NONE UINT32_MAX

/*
 * `weight`: n x n, symmetric, the diagonal is not read; 0: not a pair, which
 * costs nothing. ret[vertex]: its partner. Memory: 28 n^2 bytes. -ENOMEM.
 */
int matching_max(const uint32_t *weight, size_t n, uint32_t *ret);

#endif
