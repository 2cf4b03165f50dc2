/* SPDX-License-Identifier: MIT */
/*
 * The key of programs that were given none: $XDG_CONFIG_HOME/gpemu/key, else
 * ~/.config/gpemu/key, which the first of them makes. So the programs of a user
 * find each other on this machine, and wherever the home folder is the same,
 * and other users, who may dial the same loopback addresses, do not.
 */
#ifndef GPEMU_NET_OWN_KEY_H
#define GPEMU_NET_OWN_KEY_H

#include "net/seal.h"

/* After seal_init. -ENOENT: this user has no home; others as open(2), and as
 * seal_read_secret; with a text. */
int own_key_read(struct seal_secret *ret, struct err *err);

#endif
