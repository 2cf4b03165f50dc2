/* SPDX-License-Identifier: MIT */
/* What is known of GPUs, as `nvidia-smi -q` writes it, with and without -x. */
#ifndef GPEMU_SHARE_SMI_SMI_XML_H
#define GPEMU_SHARE_SMI_SMI_XML_H

#include <jansson.h>
#include <stdio.h>

#include "common/err.h"

/* `display`: words of nvidia-smi -d with commas between them, only these
 * groups; NULL: all. -EINVAL: one of them is not known. */
int smi_display_check(const char *display, struct err *err);
/* `facts`: of smi_facts. The XML is well-formed whatever the texts in it are:
 * what XML 1.0 has no character for becomes '?'. */
void smi_xml(const json_t *facts, const char *display, FILE *f);
void smi_text(const json_t *facts, const char *display, FILE *f);

#endif
