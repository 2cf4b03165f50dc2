/* SPDX-License-Identifier: MIT */
/*
 * One request and its answer. A request that the device delays suspends its
 * connection; the answer of the device resumes it, and `step` goes on. A body
 * is received before the first step; an error that is known before is the
 * answer behind it, unless it is too long to be read for that.
 */
#ifndef GPEMU_S3_EXCHANGE_H
#define GPEMU_S3_EXCHANGE_H

#include <microhttpd.h>

#include "fs/control/ctl.h"
#include "s3/body.h"
#include "s3/proto/sigv4.h"
#include "s3/proto/xml.h"
#include "s3/store/uploads.h"
#include "s3/throttle.h"
#include "s3/wait.h"

/* What clients ask for, as the stats count it. */
enum operation {
	OPERATION_NONE,
	OPERATION_LIST_BUCKETS,
	OPERATION_HEAD_BUCKET,
	OPERATION_LOCATION,
	OPERATION_LIST,
	OPERATION_HEAD,
	OPERATION_GET,
	OPERATION_CREATE_BUCKET,
	OPERATION_PUT,
	OPERATION_COPY,
	OPERATION_DELETE,
	OPERATION_DELETE_MANY,
	OPERATION_CREATE_UPLOAD,
	OPERATION_UPLOAD_PART,
	OPERATION_COPY_PART,
	OPERATION_COMPLETE,
	OPERATION_ABORT,
	OPERATION_LIST_PARTS,
	OPERATION_LIST_UPLOADS,
	OPERATION_CONTROL,
	OPERATION_N,
};

/* What all requests share. */
struct service {
	struct server *server;
	struct ctl *ctl;
	struct names names;
	struct objects *objects; /* NULL: read-only */
	struct writers *writers; /* with them */
	struct uploads uploads;
	struct throttle throttle;
	const struct source_ops *source; /* of what is copied */
	void *source_state;
	const struct keys *keys;
	const char *bucket, *region;
	bool anonymous;		       /* requests need no signature */
	const char *listen;	       /* HOST:PORT */
	const struct conf_list *hosts; /* more names of it; "*": all */
	/* atomic */
	uint64_t operations[OPERATION_N], failures[FAILURE_N];
	uint64_t connections, refused, requests;
};

struct exchange {
	struct service *service;
	struct MHD_Connection *connection;
	const char *method;
	char *raw; /* the target as it came */
	struct target target;
	struct sigv4_seed seed; /* if it is signed */
	bool is_signed;
	char *key; /* of an object: in the path */
	uint64_t arrival, number;
	enum operation operation;
	bool complete;	/* its headers have been read */
	bool receiving; /* its body is still to come */
	bool head;	/* the answer has no body */
	/* what comes next; NULL: the request has not begun */
	enum MHD_Result (*step)(struct exchange *x);
	enum MHD_Result (*after_wait)(struct exchange *x);
	enum MHD_Result (*after_body)(struct exchange *x);
	uint32_t node;
	struct stored *stored; /* the object of a GET, if it was put */
	uint64_t from, end;    /* the range of a GET */
	bool part;
	enum failure failure; /* the answer after a wait */
	char *detail;	      /* its text; NULL: the usual one */
	struct xml xml;	      /* the answer that is being written */
	struct body *body;
	struct receive *receive; /* the body, as long as it comes */
	struct put *put;	 /* what is written */
	struct wait *wait;	 /* the device */
};

const char *exchange_header(const struct exchange *x, const char *name);

/* Queue an answer and release it; NULL: the connection ends. */
enum MHD_Result exchange_answer(struct exchange *x, unsigned status,
				struct MHD_Response *response);
/* `text`, malloc'ed, which it takes; NULL: no memory. */
enum MHD_Result exchange_text(struct exchange *x, const char *type, char *text,
			      size_t n);
/* The same with a header more; `value` NULL: without. */
enum MHD_Result exchange_text_with(struct exchange *x, const char *type,
				   char *text, size_t n, const char *name,
				   const char *value);
/* x->xml, which ends here. */
enum MHD_Result exchange_xml(struct exchange *x);
/* An error; `detail` NULL: its usual text. */
enum MHD_Result exchange_fail(struct exchange *x, enum failure f,
			      const char *detail);
/* exchange_fail() does it. */
void exchange_count_failure(struct exchange *x, enum failure f);

typedef enum MHD_Result exchange_step(struct exchange *x);

/* Have the device take the time of `op`, then go on with `step`; or answer with
 * the error of a fault, or with x->failure. */
enum MHD_Result exchange_operate(struct exchange *x, enum storage_op op,
				 uint32_t node, exchange_step *step);
/* The number of x->key on the device: above all of the tree. */
uint32_t exchange_object(const struct exchange *x);
/* The same of what clients put: x->key, or "", the bucket. It goes on at once.
 * `works`: there is a real operation, exchange_work(). */
void exchange_charge(struct exchange *x, enum storage_op op, uint64_t bytes,
		     bool works);
/* Go on with `step` when the device, which was charged, is done; without memory
 * for that it fails. */
enum MHD_Result exchange_wait(struct exchange *x, exchange_step *step);
/* The same, and when `work` of `x` is done, on a thread of the writers, if no
 * fault ended the operation; or answer with the error of either. */
enum MHD_Result exchange_work(struct exchange *x, int (*work)(void *x),
			      exchange_step *step);
/* Charge and wait; `work` NULL: there is none. */
enum MHD_Result exchange_change(struct exchange *x, enum storage_op op,
				int (*work)(void *x), exchange_step *step);
/* All but the struct, `receive` and `put`: the request has ended. */
void exchange_fini(struct exchange *x);

/* Its headers, for what parses them. A request has fewer, or it is refused:
 * those beyond would be neither signed nor looked at. */
enum { EXCHANGE_HEADERS = 256 };
struct exchange_headers {
	struct sigv4_header v[EXCHANGE_HEADERS];
	struct sigv4_request request;
};
/* Points into `x`, which must have a target, and into `h`. */
void exchange_headers(const struct exchange *x, struct exchange_headers *h);

#endif
