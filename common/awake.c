/* SPDX-License-Identifier: MIT */
#include "common/awake.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <unistd.h>

/* Source: PM_QOS_CPU_LATENCY_DEFAULT_VALUE, include/linux/pm_qos.h: no
 * constraint */
enum { ANY_LATENCY_US = 2000 * 1000 * 1000 };

int awake_init(struct awake *a)
{
	*a = AWAKE_NONE;
	a->fd = open("/dev/cpu_dma_latency", O_WRONLY | O_CLOEXEC);
	if (a->fd < 0)
		return -errno;
	return 0;
}

void awake_fini(struct awake *a)
{
	if (a->fd >= 0)
		close(a->fd);
	*a = AWAKE_NONE;
}

static void set(struct awake *a, bool held, int32_t us)
{
	if (a->fd >= 0 && a->held != held &&
	    write(a->fd, &us, sizeof(us)) == sizeof(us))
		a->held = held;
}

void awake_hold(struct awake *a)
{
	set(a, true, 0);
}

void awake_release(struct awake *a)
{
	set(a, false, ANY_LATENCY_US);
}
