/* SPDX-License-Identifier: MIT */
/* A dispatcher of the preparation service, and peers in the hands of a test. */
#ifndef GPEMU_TESTS_CONTRACT_SERVICE_RIG_H
#define GPEMU_TESTS_CONTRACT_SERVICE_RIG_H

#include <pthread.h>

#include "net/frame.h"
#include "service/dispatcher/dispatcher.h"
#include "service/proto/msg.h"

/* A peer: waits at most 20 s, then the test fails. */
struct hand {
	int fd;
	struct seal seal;
	struct frame_in in;
	/* of a shared job: the key that came, and the batch of a parcel */
	struct seal_key key;
	unsigned char *batch;
};

/* A socket that listens somewhere, and where. */
int hand_listen(char ret[32]);
void hand_dial_plain(struct hand *h, const struct addr *to);
/* Exchange greetings. */
void hand_agree(struct hand *h, const struct seal_secret *secret, int dialed);
/* Both. */
void hand_dial(struct hand *h, const struct addr *to,
	       const struct seal_secret *secret);
void hand_say_plain(struct hand *h, const void *bytes, size_t n);
/* A sealed message, `n` bytes in all, malloc'ed. */
unsigned char *hand_frame(struct hand *h, const struct msg *m, size_t *n);
void hand_say(struct hand *h, const struct msg *m);
/* The next message; false: the other end has closed. What comes in a parcel is
 * a BATCH. */
bool hand_hear(struct hand *h, struct msg *ret);
/* The next one of this type. */
void hand_hear_type(struct hand *h, enum msg_type type, struct msg *ret);
/* The dispatcher answers it. */
void hand_is_alive(struct hand *h);
void hand_close(struct hand *h);
/* The other end closes it, whatever that one sends before. */
void hand_wait_end(struct hand *h);

enum { RIG_WORKER = 4 };

struct service_rig {
	struct tick *tick;
	struct access access;
	struct addr at;
	struct dispatcher *d;
	pthread_t thread;
	struct hand honest; /* a worker */
};

/* Without a key, on a free port, with one worker. */
void service_rig_start(struct service_rig *r, uint64_t timeout_ns);
/* A worker comes to its address, or the same one comes again: `honest`. */
void service_rig_register(struct service_rig *r, uint64_t id);
/* Returns its record. */
json_t *service_rig_end(struct service_rig *r);
/* The same; how many connections ended so: a member of "connections". */
json_int_t service_rig_stop(struct service_rig *r, const char *why);

#endif
