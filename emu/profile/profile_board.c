/* SPDX-License-Identifier: MIT */
#include "emu/profile/profile_board.h"

#include <errno.h>

#define BOARD_NUMBER(member, least, most)                                 \
	{                                                                 \
#member, CONF_DOUBLE, offsetof(struct gpu_board, member), \
			.min = least, .max = most                         \
	}
const struct conf_field gpu_board_fields[] = {
	{ "brand", CONF_STRING, offsetof(struct gpu_board, brand) },
	BOARD_NUMBER(compute_capability, 1, 100),
	BOARD_NUMBER(cores, 1, 1e6),
	BOARD_NUMBER(power_limit_w, .001, 1e5),
	BOARD_NUMBER(power_idle_w, .001, 1e5),
	BOARD_NUMBER(power_min_w, .001, 1e5),
	BOARD_NUMBER(power_max_w, .001, 1e5),
	BOARD_NUMBER(temperature_c, 1, 200),
	BOARD_NUMBER(clock_mhz, 1, 1e5),
	BOARD_NUMBER(memory_clock_mhz, 1, 1e5),
	BOARD_NUMBER(video_clock_mhz, 1, 1e5),
	BOARD_NUMBER(clock_reasons, 1, 0x1p32),
	BOARD_NUMBER(memory_bus_bits, 1, 1e6),
	BOARD_NUMBER(pcie_generation, 1, 100),
	BOARD_NUMBER(pcie_width, 1, 32),
	{ "ecc", CONF_BOOL, offsetof(struct gpu_board, ecc) },
	{ "mig", CONF_BOOL, offsetof(struct gpu_board, mig) },
	{ "source", CONF_STRING, offsetof(struct gpu_board, source),
	  .required = true },
	{ 0 },
};

int gpu_board_check(const void *object, struct err *err)
{
	const struct gpu_board *b = object;

	if (b->power_idle_w > 0 && b->power_idle_w > b->power_limit_w)
		return err_set(err, -EINVAL,
			       "power_idle_w is above power_limit_w");
	if (b->power_min_w > b->power_limit_w ||
	    (b->power_max_w > 0 && b->power_max_w < b->power_limit_w))
		return err_set(err, -EINVAL,
			       "power_limit_w is not within power_min_w and "
			       "power_max_w");
	return 0;
}

json_t *gpu_board_json(const struct gpu_board *b)
{
	json_t *j = conf_json(gpu_board_fields, b), *value;
	const char *key;
	void *next;

	json_object_del(j, "source");
	json_object_foreach_safe (j, next, key, value)
		if (!json_is_true(value) && !json_is_string(value) &&
		    !(json_number_value(value) > 0))
			json_object_del(j, key);
	return j;
}

double gpu_board_power_w(const struct gpu_board *b, double busy)
{
	return b->power_idle_w > 0
		       ? b->power_idle_w +
				 (b->power_limit_w - b->power_idle_w) * busy
		       : 0;
}
