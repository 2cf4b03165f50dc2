/* SPDX-License-Identifier: MIT */
/*
 * Signals. One thread receives them one by one (sigwait), so that ordinary
 * code, not a signal handler, acts on them.
 */
#ifndef GPEMU_FS_SETUP_SIGNALS_H
#define GPEMU_FS_SETUP_SIGNALS_H

struct signals;

/* Called by the thread. */
struct signals_config {
	void (*stop)(void *ctx);   /* SIGTERM, SIGINT */
	void (*reload)(void *ctx); /* SIGHUP */
	void (*dump)(void *ctx);   /* SIGUSR1 */
	void *ctx;
};

/*
 * Block the signals in the calling thread, and so in the threads that it
 * starts; they stay pending until signals_new. An ignored SIGINT stays ignored,
 * as for a shell's background commands. SIGPIPE is ignored from here on.
 */
void signals_block(void);
/* After signals_block. -ENOMEM, -EAGAIN. */
int signals_new(const struct signals_config *config, struct signals **ret);
/* Ends the thread; NULL is allowed. */
void signals_free(struct signals *s);

#endif
