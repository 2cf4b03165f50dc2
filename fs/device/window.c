/* SPDX-License-Identifier: MIT */
#include "fs/device/window.h"

#include <math.h>

uint64_t window_pass(struct window *w, uint64_t window_ns, double most,
		     double n, uint64_t now)
{
	double over;

	if (most <= 0 || n <= 0)
		return now;
	if (now >= w->begin && now - w->begin >= window_ns) {
		w->begin = now - (now - w->begin) % window_ns;
		w->used = 0;
	}
	w->used += n;
	over = ceil(w->used / most) - 1;
	if (over > 0) {
		w->begin =
			later(w->begin, (uint64_t)fmin(over * (double)window_ns,
						       (double)LAST_NS));
		w->used -= over * most;
	}
	return MAX(now, w->begin);
}
