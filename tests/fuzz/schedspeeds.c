/* SPDX-License-Identifier: MIT */
/* Speeds of models: what is accepted gives a speed for any allocation. */
#include "sched/trace/workload.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct sched_workload w = { 0 };
	struct err err = { 0 };
	int r = speeds_parse_csv((const char *)data, n, "x", &w, &err);

	PROMISED(r == 0 || (r < 0 && err.text[0]));
	for (size_t i = 0; r == 0 && i < w.n_speeds; i++) {
		double last = 0;

		for (double cpus = .25; cpus < 100; cpus *= 2) {
			double v = speed_of(&w.speeds[i], cpus, 1e12);

			PROMISED(v > 0 && v >= last);
			PROMISED(speed_of(&w.speeds[i], cpus, 0) <= v);
			last = v;
		}
	}
	workload_fini(&w);
	return 0;
}
