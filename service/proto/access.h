/* SPDX-License-Identifier: MIT */
/* What each program of the service needs to connect: the key, the emulated
 * network card, and counts of connections by how they ended. */
#ifndef GPEMU_SERVICE_PROTO_ACCESS_H
#define GPEMU_SERVICE_PROTO_ACCESS_H

#include <jansson.h>

#include "common/err.h"
#include "net/addr.h"
#include "net/nic.h"
#include "net/seal.h"

struct access {
	struct seal_secret secret;
	bool has_key; /* that was given */
	struct nic *nic;
};

/*
 * Read the key (NULL: that of this user, net/own_key.h). The card has no limit.
 * -EINVAL, -EACCES and others as seal_read_secret and own_key_read, with a
 * text. Free with access_fini, failed or not.
 */
int access_init(struct access *a, const char *key, struct err *err);
void access_fini(struct access *a);
/* As addr_find; -EINVAL also: other machines reach the address, and there is no
 * key that was given, which programs there have too. */
int access_find(const struct access *a, const char *text, struct addr *ret,
		struct err *err);

/* Why connections ended. */
struct ends {
	uint64_t closed;   /* by the other end, or the network */
	uint64_t slow;	   /* a message, or a greeting, took too long */
	uint64_t garbage;  /* failed authentication, or no greeting */
	uint64_t version;  /* of a different one */
	uint64_t too_long; /* a message */
	uint64_t wrong;	   /* a message that does not belong there */
	uint64_t too_many; /* refused at once, or ended for others */
};

void ends_count(struct ends *e, int why);
json_t *ends_json(const struct ends *e);
/* For people, static. */
const char *ends_text(int why);

#endif
