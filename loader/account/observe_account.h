/* SPDX-License-Identifier: MIT */
/*
 * An observer that fills in the account of an epoch (account.h). *account is
 * complete at the end of the epoch, except for what the loop does not see: the
 * work of the workers, the CPU, the mount, and checkpoints written.
 */
#ifndef GPEMU_LOADER_ACCOUNT_OBSERVE_ACCOUNT_H
#define GPEMU_LOADER_ACCOUNT_OBSERVE_ACCOUNT_H

#include "loader/account/observer.h"

/* The ctx of observe_account. */
struct observed {
	struct account *account; /* the caller's; set before an epoch begins */
	/* private */
	uint64_t start_ns, wall_ns; /* start of the epoch */
	uint64_t begun_ns;	    /* when the last step was seen to begin */
	uint64_t first_end_ns;	    /* end of the first step */
};

extern const struct observer observe_account;

#endif
