/* SPDX-License-Identifier: MIT */
/*
 * gpemu-gpud: shared GPUs on a real clock, for clients on a Unix socket. One
 * thread, one epoll loop, one timer, set to the next event of the shared GPUs.
 *
 *	server.c	sockets, the loop, who may connect and for how long
 *	request.c	requests of clients
 *	client.c	messages to a client
 *	grant.c		sockets with a quota of their own; the sockets' folders
 *	status.c	the status for gpemu-smi, and the thread that writes
 *			it as JSON
 *
 * A client that breaks the protocol, does not read, or disconnects is marked
 * `dead` and reaped at the end of the loop iteration, which frees its resources
 * on the GPUs.
 */
#ifndef GPEMU_SHARE_SERVER_H
#define GPEMU_SHARE_SERVER_H

#include <jansson.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <unistd.h>

#include "common/conf/conf.h"
#include "common/err.h"
#include "common/program/events.h"
#include "common/program/local_socket.h"
#include "common/tick.h"
#include "emu/gpu/gpud_proto.h"
#include "emu/profile/profile_gpu.h"
#include "share/share.h"

/* What switching between jobs costs, and from where that is. */
struct slicing {
	const struct share_profile *profile; /* NULL: nothing */
	const char *reason;
};

struct server_config {
	const char *path;
	uint64_t mode;		/* of the socket's permissions */
	struct conf_list allow; /* char *: users besides one's own and root,
				 * by name or number; "all" */
	uint32_t max_clients;
	uint32_t max_per_user;	/* for users other than this one and root */
	uint64_t idle_limit_ns; /* wall; 0: none */
	double time_scale;
	bool keep_awake;     /* idle processors, when a deadline is near */
	const char *profile; /* path of the GPU's */
	const struct gpu_profile *gpu;
	const char *scheduler; /* as a user would name it */
	struct slicing slicing;
	struct share_config share; /* memory, jobs and callbacks filled in */
};

/* Sockets of grants that may be open at once. arbitrary: more than containers
 * with GPUs on a node, as a kubelet runs 110 pods by default */
enum { GRANTS_MOST = 1024 };

/*
 * Memory that was granted to whoever connects to a socket of its own: a
 * container. It has the GPUs and the memory of the quota, and the server's user
 * does not matter. Revoked ones are freed at the end of the loop iteration.
 */
struct grant {
	struct event listener;
	struct server *server;
	char name[GPUD_NAME];
	struct local_socket place;
	char *path; /* of the socket, in a folder of its own */
	bool revoked;
	struct share_quota quota;
	struct grant *next;
};

struct client {
	struct event socket;
	struct server *server;
	struct grant *grant; /* NULL: by the server's own socket */
	pid_t pid;
	uid_t uid;
	uint64_t last_message_ns; /* wall: its last message */
	bool dead;
	bool watches;		 /* the health of the GPUs */
	uint64_t asked;		 /* for the status, as the ...th; 0: has not */
	struct gpud_hello hello; /* with `model` */
	const struct gpu_model *model; /* NULL: has not said hello */
	struct share_job *job;	       /* NULL: likewise */
	uint8_t in[GPUD_MAX_REQUEST];
	size_t n_in;
	uint8_t *out; /* [out_at, out_n) is still to be sent */
	size_t out_at, out_n, out_size;
};

/* A snapshot for gpemu-smi. */
struct status;

/* A request for the status as text. */
struct question {
	struct status *status;
	char *text; /* NULL: no memory */
};

struct scribe {
	int questions[2], answers[2]; /* pipes of struct question * */
	pthread_t thread;
	bool runs;
};

struct server {
	struct server_config config;
	struct tick *tick;
	struct share *share;
	struct events events;
	struct event listener, timer, signals, answers;
	uint64_t
		deadline_ns; /* the timer was set for it; TICK_NEVER: earlier */
	bool stopping;
	struct local_socket place;
	uint64_t identity; /* seed, see emu/gpu/identity.h */
	uid_t *allowed;
	size_t n_allowed;
	bool allow_all;
	struct grant *grants;
	/* of their listeners: somebody connects */
	void (*knock_grant)(struct event *e, uint32_t ready);
	struct client **clients; /* max_clients */
	uint32_t n_clients;
	uint64_t n_refused, n_malformed, n_expired; /* since the start */
	uint64_t accept_ns; /* wall: do not accept before; or never */
	bool accept_told;   /* the lack was logged */
	/* The scribe writes one status at a time: that of the server or of a
	 * grant, for all clients there that asked before the snapshot. The
	 * client that has waited longest has the next. */
	struct scribe scribe;
	uint64_t n_asked;	   /* until now */
	uint64_t n_taken;	   /* of them, before the last snapshot */
	const struct grant *about; /* the last snapshot; NULL: the server */
	bool writing;
};

/* The name of its profile, or "no cost". */
static inline const char *server_slicing(const struct server_config *c)
{
	return c->slicing.profile ? c->slicing.profile->name : "no cost";
}

/*
 * Listen. -EADDRINUSE: another server listens there, or another file is in the
 * way; -ENOENT: an unknown user in `allow`; each with a text. Call server_fini
 * in any case. Blocks SIGINT and SIGTERM for the calling thread.
 */
int server_init(struct server *s, const struct server_config *config,
		struct err *err);
void server_fini(struct server *s);
/* Run until SIGINT or SIGTERM (0), or -errno with a text. */
int server_run(struct server *s, struct err *err);

/* Root and the server's user, on its own socket: they change what others get,
 * and find a connection when the others have taken theirs. */
static inline bool server_rules(uid_t uid, const struct grant *grant)
{
	return !grant && (uid == 0 || uid == geteuid());
}

/* Handle a message. The client may be dead afterwards. */
void request_handle(struct server *s, struct client *c,
		    const struct gpud_msg *m);
/* For struct share_config; `ctx` is the server. */
void request_admitted(void *ctx, struct share_job *job);
void request_done(void *ctx, struct share_job *job,
		  const struct share_iteration *it);

/* The scribe has an answer. */
void request_answers(struct server *s);

/* --- client.c ------------------------------------------------------------- */

/* Queue a message. */
void client_send(struct client *c, const struct gpud_msg *m);
/* Queue an error; the client is dead afterwards. */
void client_refuse(struct client *c, int error, const char *text);
/* Send as much as the socket accepts now. */
void client_flush(struct client *c);
void client_free(struct client *c);

/* --- grant.c -------------------------------------------------------------- */

/* Create or check the folder of the default path, which must be private to this
 * user. -EACCES: it is not; -errno; with a text. */
int server_make_folder(const char *path, struct err *err);
/* -EINVAL, or what share_set_part or the folders fail with, with a text. A part
 * that cannot be had makes no grant. */
int grant_set(struct server *s, const struct gpud_grant *q, struct err *err);
/* Also what an earlier server has left of it. Its clients are dead afterwards.
 * -EINVAL. */
int grant_revoke(struct server *s, const char *name, struct err *err);
/* The memory of each GPU that `n_gpus` of its GPUs have at least; 0: it has not
 * so many. */
uint64_t grant_memory(const struct grant *g, uint32_t n_gpus);
/* Free the revoked ones, or all; their sockets go, their folders stay if the
 * server ends, as a container may have them mounted. */
void grant_reap(struct server *s, bool all);

/* --- status.c ------------------------------------------------------------- */

/* Of the server, or (`grant`) what is seen by those who have the grant: its
 * GPUs, as far as they were granted, and its jobs. NULL: no memory. */
struct status *status_take(const struct server *s, const struct grant *grant);
void status_free(struct status *st);
/* The status as JSON; from any thread; NULL: no memory. */
json_t *status_json(const struct status *st);

/* 0 or -errno; scribe_fini in either case. */
int scribe_init(struct scribe *s);
void scribe_fini(struct scribe *s);
/* Takes over the status. The answer makes answers[0] readable; only one request
 * at a time. -errno. */
int scribe_ask(struct scribe *s, struct status *status);
/* Get the answer; false: none. *ret_text is malloc'ed, or NULL. */
bool scribe_answer(struct scribe *s, char **ret_text);

#endif
