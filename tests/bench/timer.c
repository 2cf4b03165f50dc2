/* SPDX-License-Identifier: MIT */
/*
 * How late does a wait return? 10 ms waits of common/tick, by the time they
 * spin at the end, on an idle machine and next to busy threads, with and
 * without SCHED_FIFO. The default spin (TICK_DEFAULT_SPIN_NS) was chosen by
 * this table.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/tick.h"
#include "common/units.h"

enum { WAITS = 200 };

static int stop;

static void *burn(void *arg)
{
	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED))
		;
	return arg;
}

static void row(unsigned n_busy, bool urgent, uint64_t spin_ns)
{
	struct tick *t = tick_new(1, spin_ns);
	uint64_t cpu = tick_cpu_thread(), next;
	double mean, p50, p99, max;
	json_t *j;

	if (!t)
		exit(1);
	if (urgent)
		tick_urgent(t);
	next = tick_now(t);
	for (int i = 0; i < WAITS; i++)
		tick_wait(t, next += 10 * NS_PER_MS);
	cpu = tick_cpu_thread() - cpu;
	j = tick_error_json(t);
	json_unpack(j, "{s:F,s:F,s:F,s:F}", "mean", &mean, "p50", &p50, "p99",
		    &p99, "max", &max);
	printf("%4u  %-9s %6.0f us  %8.1f %8.1f %8.1f %8.1f   %5.2f %%\n",
	       n_busy,
	       json_is_true(json_object_get(j, "realtime")) ? "fifo"
							    : "ordinary",
	       (double)spin_ns / NS_PER_US, mean, p50, p99, max,
	       (double)cpu / WAITS / 10e6 * 100);
	json_decref(j);
	tick_free(t);
}

static void *rows(void *arg)
{
	static const uint64_t spins[] = { 0, 60000, 120000, 250000 };
	unsigned n_busy = *(unsigned *)arg;

	/* each in a thread of its own class: fifo is not given back */
	for (int s = 0; s < 4; s++)
		row(n_busy, false, spins[s]);
	for (int s = 0; s < 4; s++)
		row(n_busy, true, spins[s]);
	return NULL;
}

int main(void)
{
	pthread_t waiter, busy[4];

	printf("busy  class        spin    late: mean      p50      p99      "
	       "max us   CPU\n");
	for (unsigned n = 0; n <= 4; n += 2) {
		stop = 0;
		for (unsigned i = 0; i < n; i++)
			if (pthread_create(&busy[i], NULL, burn, NULL))
				return 1;
		if (pthread_create(&waiter, NULL, rows, &n))
			return 1;
		pthread_join(waiter, NULL);
		__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
		for (unsigned i = 0; i < n; i++)
			pthread_join(busy[i], NULL);
	}
	return 0;
}
