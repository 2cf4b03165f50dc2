/* SPDX-License-Identifier: MIT */
/*
 * gpemu-data: make datasets with real content, and describe them.
 *
 * Rooms, in the order in which a file passes through them:
 *
 *	emu/profile	the file sizes of a dataset
 *	emu/image	JPEGs and other content of an exact size
 *	loader/data	a file per command; threads that write, progress
 *	common/pack	several files in one, in groups
 *	loader/prep	decodes images, for `stat`
 */
#include "common/program/cli.h"
#include "loader/data/data_command.h"

static const struct cli_command commands[] = {
	{ "make", "make a dataset with the file sizes of a profile",
	  data_make_main },
	{ "pack", "pack a folder into one file, in groups", data_pack_main },
	{ "stat", "count and measure the files of a dataset or a pack",
	  data_stat_main },
	{ "sum", "print a checksum of each file", data_sum_main },
	{ 0 },
};

int main(int argc, char **argv)
{
	return cli_dispatch("gpemu-data", "Make and describe datasets.",
			    commands, argc, argv);
}
