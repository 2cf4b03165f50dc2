/* SPDX-License-Identifier: MIT */
/*
 * Requested and actual training steps: N emulated GPUs on one timer queue, each
 * with steps of its own. Prints one line; tests/bench/steps runs it.
 *
 *	bench_steps GPUS STEPS STEP_MS BUSY [SCALE [KEEP_AWAKE]]
 *
 * BUSY processes spin meanwhile. KEEP_AWAKE 0: idle processors may sleep. All
 * errors are in wall us.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "common/hist.h"
#include "common/timerq.h"
#include "common/units.h"
#include "common/util.h"
#include "emu/gpu/gpus.h"

struct device {
	struct gpu gpu;
	struct timer timer;
	uint64_t due, seen;
	uint64_t left;
};

struct bench {
	struct tick *tick;
	struct timerq *queue;
	struct device device[GPUS_MAX];
	uint64_t step_ns, n_running;
	double requested, achieved, error; /* sums, emulated ns */
	uint64_t n, first_late, last_late;
	struct hist late;
	pthread_mutex_t lock;
	pthread_cond_t done;
};

static void submit(struct bench *b, struct device *d)
{
	struct gpu_step s;

	gpu_copy(&d->gpu, gpu_room(&d->gpu), gpu_room(&d->gpu), &s);
	gpu_compute(&d->gpu, 0, b->step_ns, &s);
	gpu_end(&d->gpu, s.compute_end, &s);
	d->due = s.compute_end;
	if (timerq_add(b->queue, &d->timer, d->due) < 0)
		abort();
}

static void ended(struct timer *timer, bool stopping, void *ctx)
{
	struct device *d = container_of(timer, struct device, timer);
	struct bench *b = ctx;
	uint64_t now = tick_now(b->tick), step = now - d->seen;

	if (stopping)
		return;
	if (d->seen) {
		b->requested += (double)b->step_ns;
		b->achieved += (double)step;
		b->error += step > b->step_ns ? (double)(step - b->step_ns)
					      : (double)(b->step_ns - step);
		b->n++;
	}
	hist_add(&b->late,
		 (uint64_t)((double)(now - d->due) * tick_scale(b->tick)));
	d->seen = now;
	if (--d->left) {
		submit(b, d);
		return;
	}
	pthread_mutex_lock(&b->lock);
	b->last_late = MAX(b->last_late, now - d->due);
	b->n_running--;
	pthread_cond_signal(&b->done);
	pthread_mutex_unlock(&b->lock);
}

static void run(struct bench *b, uint64_t gpus, uint64_t steps)
{
	uint64_t start = tick_now(b->tick) + b->step_ns;

	b->n_running = gpus;
	for (uint64_t i = 0; i < gpus; i++) {
		struct device *d = &b->device[i];

		/* they are independent */
		gpu_init(&d->gpu, GPU_TRANSFER_OVERLAP,
			 start + b->step_ns * i / gpus);
		d->left = (steps + gpus - 1) / gpus + 1;
		submit(b, d);
	}
	pthread_mutex_lock(&b->lock);
	while (b->n_running)
		pthread_cond_wait(&b->done, &b->lock);
	pthread_mutex_unlock(&b->lock);
}

static pid_t spin(void)
{
	pid_t pid = fork();

	if (pid == 0)
		for (;;)
			__asm__ volatile("" ::: "memory");
	return pid;
}

static void print(const struct bench *b, const char *name, uint64_t wall,
		  uint64_t cpu)
{
	double us = tick_scale(b->tick) / 1e3, n = (double)b->n;
	struct rusage use;

	getrusage(RUSAGE_SELF, &use);
	printf("%-28s %8.0f %9.3f %9.4f %8.2f %8.2f %9.1f %8.2f %6.1f %5.1f\n",
	       name, n, b->requested / n / 1e6,
	       (b->achieved / b->requested - 1) * 100, b->error / n * us,
	       hist_mean(&b->late) / 1e3, hist_quantile(&b->late, .99) / 1e3,
	       (double)b->last_late * us, 100. * (double)cpu / (double)wall,
	       (double)use.ru_maxrss / 1024);
}

int main(int argc, char **argv)
{
	static struct bench b = { .lock = PTHREAD_MUTEX_INITIALIZER,
				  .done = PTHREAD_COND_INITIALIZER };
	uint64_t gpus, busy, wall, cpu;
	pid_t pid[64];
	char name[64];

	if (argc < 5 || argc > 7) {
		fputs("usage: bench_steps GPUS STEPS STEP_MS BUSY [SCALE "
		      "[KEEP_AWAKE]]\n",
		      stderr);
		return 2;
	}
	gpus = MIN(MAX(strtoull(argv[1], NULL, 10), 1), GPUS_MAX);
	busy = MIN(strtoull(argv[4], NULL, 10), ARRAY_SIZE(pid));
	b.step_ns = (uint64_t)(atof(argv[3]) * 1e6);
	b.tick = tick_new(argc > 5 ? atof(argv[5]) : 1, TICK_DEFAULT_SPIN_NS);
	for (uint64_t i = 0; i < busy; i++)
		pid[i] = spin();
	if (b.tick && (argc < 7 || strcmp(argv[6], "0")))
		tick_keep_awake(b.tick); /* where it is granted */
	if (!b.tick || timerq_new(b.tick, ended, &b, &b.queue) < 0)
		return 1;
	wall = tick_wall();
	cpu = tick_cpu();
	run(&b, gpus, strtoull(argv[2], NULL, 10));
	wall = tick_wall() - wall;
	cpu = tick_cpu() - cpu;
	for (uint64_t i = 0; i < busy; i++) {
		kill(pid[i], SIGKILL);
		waitpid(pid[i], NULL, 0);
	}
	snprintf(name, sizeof(name), "%llu GPU%s, %s", (unsigned long long)gpus,
		 gpus > 1 ? "s" : "", busy ? "cores busy" : "idle");
	print(&b, name, wall, cpu);
	timerq_free(b.queue);
	tick_free(b.tick);
	return 0;
}
