/* SPDX-License-Identifier: MIT */
#include "s3/status.h"

#include "s3/exchange.h"

static const char *const names[OPERATION_N] = {
	[OPERATION_LIST_BUCKETS] = "ListBuckets",
	[OPERATION_HEAD_BUCKET] = "HeadBucket",
	[OPERATION_LOCATION] = "GetBucketLocation",
	[OPERATION_LIST] = "ListObjects",
	[OPERATION_HEAD] = "HeadObject",
	[OPERATION_GET] = "GetObject",
	[OPERATION_CREATE_BUCKET] = "CreateBucket",
	[OPERATION_PUT] = "PutObject",
	[OPERATION_COPY] = "CopyObject",
	[OPERATION_DELETE] = "DeleteObject",
	[OPERATION_DELETE_MANY] = "DeleteObjects",
	[OPERATION_CREATE_UPLOAD] = "CreateMultipartUpload",
	[OPERATION_UPLOAD_PART] = "UploadPart",
	[OPERATION_COPY_PART] = "UploadPartCopy",
	[OPERATION_COMPLETE] = "CompleteMultipartUpload",
	[OPERATION_ABORT] = "AbortMultipartUpload",
	[OPERATION_LIST_PARTS] = "ListParts",
	[OPERATION_LIST_UPLOADS] = "ListMultipartUploads",
	[OPERATION_CONTROL] = "control",
};

static void add(json_t *j, const char *name, const uint64_t *count)
{
	json_int_t n = (json_int_t)__atomic_load_n(count, __ATOMIC_RELAXED);

	n += json_integer_value(json_object_get(j, name));
	json_object_set_new(j, name, json_integer(n));
}

void status_add(void *ctx, json_t *stats)
{
	const struct service *s = ctx;
	json_t *operations = json_object(), *errors = json_object();
	json_t *throttled = json_object();
	json_t *j = json_pack("{s:o, s:o}", "operations", operations, "errors",
			      errors);

	for (int i = 1; i < OPERATION_N; i++)
		add(operations, names[i], &s->operations[i]);
	for (int i = 1; i < FAILURE_N; i++) /* codes may occur twice */
		if (s->failures[i])
			add(errors, failure_code((enum failure)i),
			    &s->failures[i]);
	add(j, "connections", &s->connections);
	add(j, "refused", &s->refused);
	add(j, "requests", &s->requests);
	add(throttled, "read", &s->throttle.refused[THROTTLE_READ]);
	add(throttled, "write", &s->throttle.refused[THROTTLE_WRITE]);
	json_object_set_new(j, "throttled", throttled);
	json_object_set_new(stats, "s3", j);
}
