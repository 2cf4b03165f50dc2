/* SPDX-License-Identifier: MIT */
/* The servers that gpemu-smi asks. */
#ifndef GPEMU_SHARE_SMI_SMI_SERVER_H
#define GPEMU_SHARE_SMI_SMI_SERVER_H

#include <jansson.h>

#include "common/program/cli.h"

/* The options that all of its commands have. */
struct smi_server {
	struct cli_common common;
	char *socket, *user;
	char *id;   /* -i, for smi_server_facts */
	char *file; /* -f */
};

#define SMI_SERVER_FIELDS(type, member)                                      \
	{ "socket",                                                          \
	  CONF_STRING,                                                       \
	  offsetof(type, member.socket),                                     \
	  .short_opt = 'S',                                                  \
	  .arg = "PATH",                                                     \
	  .help = "where gpemu-gpud listens (default: $GPEMU_GPU_SERVER, "   \
		  "else gpemu-gpud.sock in $XDG_RUNTIME_DIR, else "          \
		  "/run/gpemu-gpud.sock for root, /tmp/gpemu-UID/gpud.sock " \
		  "for others)" },                                           \
		{ "server_user", CONF_STRING, offsetof(type, member.user),   \
		  .arg = "USER|UID",                                         \
		  .help = "also trust a server of this user (default: your " \
			  "own and root)" },                                 \
		{ "id",                                                      \
		  CONF_STRING,                                               \
		  offsetof(type, member.id),                                 \
		  .short_opt = 'i',                                          \
		  .arg = "GPU,...",                                          \
		  .cli_only = true,                                          \
		  .help = "only these GPUs: index, UUID, serial number or "  \
			  "PCI bus id" },                                    \
		{ "filename",                                                \
		  CONF_STRING,                                               \
		  offsetof(type, member.file),                               \
		  .short_opt = 'f',                                          \
		  .arg = "FILE",                                             \
		  .cli_only = true,                                          \
		  .help = "write to FILE instead of stdout" },               \
		CLI_COMMON_FIELDS(type, member.common)

/*
 * smi_facts of all servers, $GPEMU_GPU_SERVER's or the one that was given, and
 * only of the GPUs that -i names; owned by the caller. Servers that do not
 * answer are reported; if none does, the error is that of gpud_query. -ENXIO
 * without a text: -i names a GPU that is not there, or there are none.
 */
int smi_server_facts(const struct smi_server *s, json_t **ret, struct err *err);
/* The first server, where only one can be asked; malloc'ed. */
int smi_server_first(const struct smi_server *s, char **ret_path,
		     char **ret_user, struct err *err);
/* -f, or stdout; with a text. */
int smi_server_output(const struct smi_server *s, FILE **ret, struct err *err);
/* Print why it ends; the exit status, which is nvidia-smi's 6 of -ENXIO. */
int smi_server_fail(int r, const struct err *err);

#endif
