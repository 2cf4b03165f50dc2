/* SPDX-License-Identifier: MIT */
/* The faults in the control files. */
#ifndef GPEMU_FS_CONTROL_CTL_FAULT_H
#define GPEMU_FS_CONTROL_CTL_FAULT_H

#include "fs/control/ctl.h"

/* The command `fault` with its arguments: "add RULE", "clear [ID]". */
int ctl_fault(struct ctl *ctl, char *args, struct err *err);
/* Under the options' lock: set the option "fault", if there is one, to the
 * rules in force. -ENOMEM. */
int ctl_fault_refresh(struct ctl *ctl);

#endif
