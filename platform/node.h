/* SPDX-License-Identifier: MIT */
/*
 * The file of a node: its emulated GPUs, as cluster managers hand them out.
 *
 *	gpus:
 *	  v100:				# a kind: one model on one gpemu-gpud
 *	    count: 4
 *	    server: /run/gpemu/v100/gpud.sock
 *	    numa: [0, 0, 1, 1]
 *	  a100:
 *	    count: 2
 *	    server: /run/gpemu/a100/gpud.sock
 *	    slice: 10G			# handed out by 10 GiB of memory
 *	    resource: gpemu.io/a100-10g
 *
 * docs/gpemu-k8s-plugin.1.scd describes the keys.
 */
#ifndef GPEMU_PLATFORM_NODE_H
#define GPEMU_PLATFORM_NODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/conf/conf.h"
#include "common/err.h"

enum {
	NODE_MAX_GPUS = 64, /* of a kind: bits of gpemu-gpud's masks */
	/* Of all kinds of a resource. arbitrary: their identifiers fill half of
	 * a request */
	NODE_MAX_DEVICES = 4096,
	NODE_NAME = 33,	    /* of a kind, terminator included */
	NODE_RESOURCE = 64, /* part of the name of a socket */
};

struct node_mount {
	char *host, *container;
	bool read_only;
};

struct node_kind {
	char *name;
	char *profile; /* of the GPU; default: the name */
	uint64_t count;
	char *resource;	       /* default: gpemu.io/NAME */
	char *server;	       /* socket of its gpemu-gpud */
	char *server_user;     /* trusted besides root and this user; or NULL */
	struct conf_list numa; /* uint64_t: of each GPU, or of all; empty:
				* unknown */
	char *device; /* device files, to which the index is appended; or
		       * NULL */
	char *cdi;    /* kind of CDI devices, "vendor/class"; or NULL */
	struct conf_list env, annotations; /* char *: KEY=VALUE */
	struct conf_list mounts;	   /* struct node_mount */
	uint64_t replicas;		   /* of each GPU; 0: not shared so */
	uint64_t slice_bytes; /* of a slice by memory; 0: not shared so */

	/* derived */
	char *gpu;	       /* the device, as its vendor calls it */
	uint64_t memory_bytes; /* of a GPU, that jobs may fill */
	uint32_t n_slices;     /* of a GPU; 1: it is handed out whole */
};

struct node {
	struct conf_list gpus; /* struct node_kind */
};

/* -EINVAL with "name:line:column: what". Call node_free in any case. */
int node_load(const char *path, struct node *ret, struct err *err);
/* The same of bytes; safe on any. */
int node_parse(const char *bytes, size_t n, const char *name, struct node *ret,
	       struct err *err);
void node_free(struct node *n);

static inline const struct node_kind *node_kind(const struct node *n, size_t i)
{
	return (const struct node_kind *)n->gpus.items + i;
}
/* The NUMA node of a GPU; -1: unknown. */
int64_t node_numa(const struct node_kind *k, uint32_t gpu);
/* Memory of a slice; of a GPU that is handed out whole, all of it. */
uint64_t node_slice_bytes(const struct node_kind *k);

#endif
