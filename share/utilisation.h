/* SPDX-License-Identifier: MIT */
/* The busy time of a GPU: in all, and in the last second as a ring of tenths.
 */
#ifndef GPEMU_SHARE_UTILISATION_H
#define GPEMU_SHARE_UTILISATION_H

#include "share/share.h"

/* The GPU computed in [from, to), or did not until `to`. */
void utilisation_busy(struct share_gpu *g, uint64_t from, uint64_t to);
void utilisation_idle(struct share_gpu *g, uint64_t to);

#endif
