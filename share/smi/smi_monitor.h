/* SPDX-License-Identifier: MIT */
/* `nvidia-smi dmon` and `pmon`: a line for each GPU, or process, again and
 * again. */
#ifndef GPEMU_SHARE_SMI_SMI_MONITOR_H
#define GPEMU_SHARE_SMI_SMI_MONITOR_H

/* Each returns the exit status; argv[0] is its name. */
int smi_dmon(int argc, char **argv);
int smi_pmon(int argc, char **argv);

#endif
