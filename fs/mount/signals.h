/* SPDX-License-Identifier: MIT */
/*
 * Signals, taken one after the other by one thread (sigwait), so that what
 * they cause is ordinary code: no handler runs anywhere.
 */
#ifndef GPEMU_FS_MOUNT_SIGNALS_H
#define GPEMU_FS_MOUNT_SIGNALS_H

struct signals;

/* Called by the thread. */
struct signals_config {
	void (*stop)(void *ctx);   /* SIGTERM, SIGINT */
	void (*reload)(void *ctx); /* SIGHUP */
	void (*dump)(void *ctx);   /* SIGUSR1 */
	void *ctx;
};

/*
 * Block them in the calling thread, and so in those that it starts; what
 * comes meanwhile waits for signals_new. A SIGINT that is ignored stays so, as
 * for a shell's background commands. SIGPIPE is ignored from here on.
 */
void signals_block(void);
/* After signals_block. -ENOMEM, -EAGAIN. */
int signals_new(const struct signals_config *config, struct signals **ret);
/* Ends the thread; NULL is allowed. */
void signals_free(struct signals *s);

#endif
