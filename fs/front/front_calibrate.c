/* SPDX-License-Identifier: MIT */
#include "fs/front/front_calibrate.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/log.h"
#include "common/tick.h"
#include "common/util.h"
#include "fs/device/calibrate.h"
#include "fs/control/ctl.h"

static int measure(struct front *f, struct round_trip *ret)
{
	static const double probe_ns[CALIBRATE_N_STAGES] = {
		[CALIBRATE_ALONE] = CALIBRATE_ALONE_NS,
		[CALIBRATE_SLOW] = CALIBRATE_SLOW_NS,
	};
	double scale = tick_scale(server_tick(f->c.server));
	_cleanup_free_ char *dir = NULL;
	struct calibration c = { 0 };
	int r;

	if (asprintf(&dir, "%s/" CTL_DIR_NAME, f->c.mountpoint) < 0)
		dir = NULL;
	r = dir ? calibrate_begin(&c, dir, ctl_name(CTL_CONFIG)) : -ENOMEM;
	for (int i = 0; r == 0 && i < CALIBRATE_N_STAGES; i++) {
		__atomic_store_n(&f->probe_ns, (uint64_t)(probe_ns[i] / scale),
				 __ATOMIC_RELAXED);
		r = calibrate_run(&c, i, ret);
	}
	__atomic_store_n(&f->probe_ns, 0, __ATOMIC_RELAXED);
	calibrate_end(&c);
	return r;
}

/*
 * Did it fail because the mount ends? Requests dropped at the end fail before
 * front_loop's thread sees the end of the loop, and on an unmount the kernel
 * fails the callers before it notifies us. So the error decides: that of the
 * connection or, after a lazy unmount, that of a missing name.
 */
static bool is_end(const struct front *f, int r)
{
	return r == -ECONNABORTED || r == -ENOTCONN || r == -ENOENT ||
	       __atomic_load_n(&f->stopping, __ATOMIC_ACQUIRE);
}

/* Requests to ourselves, answered by the threads that serve the mount. */
static void *calibrate(void *arg)
{
	struct front *f = arg;
	struct round_trip trip;
	int r = measure(f, &trip);

	if (r == 0)
		server_set_round_trip(f->c.server, &trip);
	else if (!is_end(f, r))
		log_warn("cannot measure the round trip, which adds to the "
			 "emulated time: %s",
			 strerror(-r));
	if (f->c.ready)
		f->c.ready(f->c.ctx);
	return NULL;
}

void front_calibrate(struct front *f)
{
	if (pthread_create(&f->calibrator, NULL, calibrate, f) == 0)
		f->calibrates = true;
	else if (f->c.ready)
		f->c.ready(f->c.ctx);
}

void front_calibrate_end(struct front *f)
{
	if (f->calibrates)
		pthread_join(f->calibrator, NULL);
	f->calibrates = false;
}
