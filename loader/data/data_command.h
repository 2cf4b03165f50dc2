/* SPDX-License-Identifier: MIT */
#ifndef GPEMU_LOADER_DATA_DATA_COMMAND_H
#define GPEMU_LOADER_DATA_DATA_COMMAND_H

/* The commands of gpemu-data; they return the exit status. */
int data_make_main(int argc, char **argv);
int data_pack_main(int argc, char **argv);
int data_stat_main(int argc, char **argv);
int data_sum_main(int argc, char **argv);

#endif
