/* SPDX-License-Identifier: MIT */
/* The timeline and the log of steps of a session, if requested. */
#ifndef GPEMU_LOADER_TRAIN_SESSION_LOGS_H
#define GPEMU_LOADER_TRAIN_SESSION_LOGS_H

#include "loader/train/session.h"

/* Close with session_close_logs, failed or not. */
int session_open_logs(struct session *s, struct err *err);

#endif
