/* SPDX-License-Identifier: MIT */
/*
 * What nvidia-smi says of a GPU: one table for its XML, its text and its
 * queries, and the facts about the GPUs of a node that fill it.
 */
#ifndef GPEMU_SHARE_SMI_SMI_FIELD_H
#define GPEMU_SHARE_SMI_SMI_FIELD_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

/* A row with deeper ones behind it is a group. */
struct smi_field {
	unsigned depth;	     /* 1: an element of <gpu> */
	const char *element; /* of the XML; NULL: only in queries */
	const char *label;   /* of `-q` */
	/* names in --query-gpu, with '|' between them; the first is the header.
	 * NULL: none */
	const char *query;
	const char *fact;    /* its key; "=TEXT": for all GPUs; NULL: N/A */
	const char *unit;    /* of a number; NULL: none */
	const char *display; /* of a group at depth 1: its word for `-d` */
};

extern const struct smi_field smi_fields[];
extern const size_t n_smi_fields;
/* The same of a process, for --query-compute-apps. */
extern const struct smi_field smi_process_fields[];
extern const size_t n_smi_process_fields;

enum { SMI_VALUE = 160 };
/*
 * The value as text, without its unit, into `buf` or the facts; NULL: N/A. An
 * array (processes) is N/A.
 */
const char *smi_value(const struct smi_field *field, const json_t *facts,
		      char buf[SMI_VALUE]);
/* Is it what nvidia-smi writes in brackets: not known, or an error? */
bool smi_is_error(const char *value);

/*
 * The facts about all GPUs of the servers with these statuses, in their order:
 * an array of flat objects, one for each GPU, whose "processes" are an array of
 * the same kind. `statuses`: an array of any JSON. GPUs are numbered from 0
 * over all servers, as NVML does it. NULL: no memory.
 */
json_t *smi_facts(const json_t *statuses);
/*
 * Keep the GPUs that `ids` names, with commas between them: indices, UUIDs,
 * serial numbers, PCI bus ids. -ENXIO: one of them names none; -ENOMEM.
 */
int smi_pick(json_t *facts, const char *ids);

#endif
