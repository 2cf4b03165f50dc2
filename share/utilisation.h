/* SPDX-License-Identifier: MIT */
/* The busy time of the GPUs, and of each quota on them: in all, and in the last
 * second as a ring of tenths. */
#ifndef GPEMU_SHARE_UTILISATION_H
#define GPEMU_SHARE_UTILISATION_H

#include "share/state.h"

/* What runs now has run since s->now. */
void utilisation_count(struct share *s, uint64_t now);
/* Share of the last emulated second before `now` that was busy, 0..1. */
double utilisation_at(const struct share_busy *b, uint64_t now);

#endif
