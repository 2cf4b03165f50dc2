/* SPDX-License-Identifier: MIT */
/*
 * Nodes of a partitioned cache on loopback ports, and an end of a connection
 * that a test holds in its hands: with blocking sockets, and free to send what
 * no node would.
 */
#ifndef GPEMU_TESTS_PEER_RIG_H
#define GPEMU_TESTS_PEER_RIG_H

#include "tests/contract/server_rig.h"

#include "fs/peer/peer_net.h"
#include "fs/peer/peer_proto.h"
#include "net/frame.h"

/* `n` nodes on free ports, that give up after `timeout_ns`. */
void nets_init(struct peer_net *nets, uint32_t n, uint64_t timeout_ns);
void nets_fini(struct peer_net *nets, uint32_t n);

/* A number of the part of the layer "peer". */
json_int_t peer_stat(struct server *s, const char *name);
/* Wait until it is `value`, or more. */
void peer_wait(struct server *s, const char *name, json_int_t value);

/* One end. */
struct end {
	int fd;
	struct seal seal;
	struct frame_in in;
};

/* A socket that listens as nets[i]; accept one connection and its greeting. */
int end_listen(const struct peer_net *net);
void end_accept(struct end *e, int listener, const struct seal_secret *secret);
/* Connect to a node and greet. */
void end_dial(struct end *e, const struct peer_net *net,
	      const struct seal_secret *secret);
/* Connect to a node only. */
void end_dial_plain(struct end *e, const struct peer_net *net);
void end_send(struct end *e, const struct peer_msg *m);
/* The bytes of a message, sealed: returns the length. */
size_t end_seal(struct end *e, const struct peer_msg *m, unsigned char *ret);
void end_send_plain(struct end *e, const void *bytes, size_t n);
/* false: the other end has closed. */
bool end_receive(struct end *e, struct peer_msg *ret);
/* It closes within its time-out, whatever it sends before. */
void end_wait_closed(struct end *e);
void end_close(struct end *e);

#endif
