/* SPDX-License-Identifier: MIT */
/* The status of gpemu-gpud as nvidia-smi would show it. */
#ifndef GPEMU_SHARE_SMI_SMI_TABLE_H
#define GPEMU_SHARE_SMI_SMI_TABLE_H

#include <jansson.h>
#include <stdio.h>

/* `j`: any JSON; what is missing in it is shown as 0 or "?". */
void smi_table(const json_t *j, FILE *f);

#endif
