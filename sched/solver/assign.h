/* SPDX-License-Identifier: MIT */
/*
 * Minimum-cost assignment: each row gets a column of its own so that the sum of
 * costs is least. Source: Kuhn, "The Hungarian method", 1955, with potentials
 * and shortest augmenting paths (Jonker and Volgenant, Computing, 1987): rows^2
 * * columns steps.
 */
#ifndef GPEMU_SCHED_SOLVER_ASSIGN_H
#define GPEMU_SCHED_SOLVER_ASSIGN_H

#include <stddef.h>
#include <stdint.h>

/*
 * `cost`: rows x columns, finite; rows <= columns. ret[row]: its column.
 * -ENOMEM.
 */
int assign_min(const double *cost, size_t rows, size_t columns, uint32_t *ret);

#endif
