/* SPDX-License-Identifier: MIT */
/* The rules of a running server's fault layer (fs/layer/fault.h). */
#ifndef GPEMU_FS_LAYER_LAYER_FAULT_H
#define GPEMU_FS_LAYER_LAYER_FAULT_H

#include "common/conf/conf.h"
#include "fs/server/layer.h"

extern const struct layer_ops layer_fault;

/* Add rules, in the syntax of fs/layer/fault.h. -EINVAL (also: the stack has no
 * such layer), -ENOMEM, -ECONNABORTED; with a text. */
int server_fault_add(struct server *s, const char *text, struct err *err);
/* Remove a rule, 0: all; the operations it holds continue. -ENOENT (no such
 * rule), -EINVAL, -ECONNABORTED; with a text. */
int server_fault_clear(struct server *s, uint32_t id, struct err *err);
/* The rules as a list of malloc'ed texts. After -ENOMEM it may have NULLs. */
int server_fault_texts(struct server *s, struct conf_list *ret);

#endif
