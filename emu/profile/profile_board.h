/* SPDX-License-Identifier: MIT */
/* The board of a GPU profile. */
#ifndef GPEMU_EMU_PROFILE_PROFILE_BOARD_H
#define GPEMU_EMU_PROFILE_PROFILE_BOARD_H

#include <jansson.h>
#include <stdbool.h>

#include "common/conf/conf.h"

/*
 * The card, as monitoring shows it; no duration depends on it. 0, NULL, false:
 * not given. The clocks are the highest, and the emulated GPU always runs at
 * them.
 */
struct gpu_board {
	char *brand;		   /* NVML's: "Tesla", "NVIDIA" */
	double compute_capability; /* 7.5 */
	double cores;		   /* of CUDA */
	double power_limit_w, power_idle_w;
	double power_min_w, power_max_w; /* what the limit may be set to */
	double temperature_c;
	double clock_mhz, memory_clock_mhz, video_clock_mhz;
	double clock_reasons; /* NVML's mask of those that the card reports */
	double memory_bus_bits;
	double pcie_generation, pcie_width;
	bool ecc; /* it has error correction, and that is enabled */
	bool mig; /* it could be divided into instances, and is not */
	char *source;
};

/* For a CONF_RECORD. */
extern const struct conf_field gpu_board_fields[];
int gpu_board_check(const void *board, struct err *err);
/* What is given of a board, but its source, by the keys of the file and in
 * their order; NULL: no memory. */
json_t *gpu_board_json(const struct gpu_board *b);

/* The mean power, in W, of a board that is busy for this share of the time,
 * 0..1: on the line from power_idle_w to power_limit_w. 0: not given. */
double gpu_board_power_w(const struct gpu_board *b, double busy);

#endif
