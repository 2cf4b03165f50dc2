/* SPDX-License-Identifier: MIT */
/*
 * The account of an epoch (account.h), filled in as an observer. *account is
 * complete at the end of the epoch but for what the loop does not see: the
 * work of the workers, the CPU, the mount, and checkpoints written.
 */
#ifndef GPEMU_LOADER_ACCOUNT_OBSERVE_ACCOUNT_H
#define GPEMU_LOADER_ACCOUNT_OBSERVE_ACCOUNT_H

#include "loader/account/observer.h"

/* The ctx of observe_account. */
struct observed {
	struct account *account; /* the caller's, set before an epoch begins */
	/* its own */
	uint64_t start_ns, wall_ns; /* the epoch began */
	uint64_t begun_ns;	    /* the last step was seen to begin */
	uint64_t first_end_ns;	    /* the first step ended */
};

extern const struct observer observe_account;

#endif
