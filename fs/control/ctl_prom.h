/* SPDX-License-Identifier: MIT */
/* The statistics as Prometheus text. */
#ifndef GPEMU_FS_CONTROL_CTL_PROM_H
#define GPEMU_FS_CONTROL_CTL_PROM_H

#include <jansson.h>
#include <stdio.h>

/* `stats`: as ctl_stats returns them. */
void ctl_prom(FILE *f, json_t *stats);

#endif
