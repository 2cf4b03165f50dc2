/* SPDX-License-Identifier: MIT */
/* Private to the dispatcher: trainers and their jobs. */
#ifndef GPEMU_SERVICE_DISPATCHER_TRAINERS_H
#define GPEMU_SERVICE_DISPATCHER_TRAINERS_H

#include "service/dispatcher/state.h"

int trainers_message(struct guest *g, const struct msg *m);
/* Drop the jobs whose trainers did not come back; returns when the next is
 * due. */
uint64_t trainers_expire(struct dispatcher *d, uint64_t now);

#endif
