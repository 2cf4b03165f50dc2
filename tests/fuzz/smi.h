/* SPDX-License-Identifier: MIT */
/* All that gpemu-smi shows of a status, whatever that is. */
#ifndef GPEMU_TESTS_FUZZ_SMI_H
#define GPEMU_TESTS_FUZZ_SMI_H

#include <stdlib.h>

#include "share/smi/smi_field.h"
#include "share/smi/smi_table.h"
#include "share/smi/smi_xml.h"

static inline void smi_show(json_t *status)
{
	static FILE *nowhere;
	json_t *all = json_pack("[O]", status), *facts = smi_facts(all);

	if (!nowhere)
		nowhere = fopen("/dev/null", "we");
	if (!facts || !nowhere)
		abort();
	smi_table(status, nowhere);
	smi_xml(facts, NULL, nowhere);
	smi_text(facts, "MEMORY,PIDS", nowhere);
	smi_pick(facts, "0,00:01.0");
	json_decref(facts);
	json_decref(all);
}

#endif
