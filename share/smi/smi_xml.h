/* SPDX-License-Identifier: MIT */
/* The status of gpemu-gpud as `nvidia-smi -q -x` writes it. */
#ifndef GPEMU_SHARE_SMI_SMI_XML_H
#define GPEMU_SHARE_SMI_SMI_XML_H

#include <jansson.h>
#include <stdio.h>

/* `j`: any JSON; what is missing in it is N/A. Well-formed whatever the texts
 * in it are: what XML 1.0 has no character for becomes '?'. */
void smi_xml(const json_t *j, FILE *f);

#endif
