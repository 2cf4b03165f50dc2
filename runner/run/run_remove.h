/* SPDX-License-Identifier: MIT */
/* rm -r. */
#ifndef GPEMU_RUNNER_RUN_RUN_REMOVE_H
#define GPEMU_RUNNER_RUN_RUN_REMOVE_H

/*
 * Remove what is there, a folder with all that is in it. No link is followed,
 * also not one that takes a folder's place meanwhile, and nothing is removed
 * that is mounted below. What cannot be removed stays.
 */
void run_remove(const char *path);

#endif
