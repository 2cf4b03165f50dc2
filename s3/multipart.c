/* SPDX-License-Identifier: MIT */
#include "s3/multipart.h"

#include <errno.h>
#include <inttypes.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/sendfile.h>

#include "common/tick.h"
#include "common/util.h"
#include "s3/proto/elements.h"
#include "s3/proto/metadata.h"

static int64_t now_s(void)
{
	return tick_realtime() / (int64_t)NS_PER_S;
}

/* --- begin, parts, abort ------------------------------------------------ */

static enum MHD_Result answer_begun(struct exchange *x)
{
	const char *kind = exchange_header(x, "x-amz-checksum-algorithm");
	enum checksum_kind sum = kind ? checksum_named(kind) : CHECKSUM_NONE;
	char id[UPLOAD_ID], *text;
	size_t n = 0;
	FILE *f;
	int r = uploads_begin(&x->service->uploads, x->key,
			      TAKE_PTR(x->put->headers), sum, now_s(), id);

	f = r == 0 ? xml_begin(&x->xml, "InitiateMultipartUploadResult", true)
		   : NULL;
	if (!f)
		return exchange_fail(x, failure_of(r ? r : -ENOMEM), NULL);
	xml_element(f, "Bucket", x->service->bucket);
	xml_element(f, "Key", x->key);
	xml_element(f, "UploadId", id);
	text = xml_end(&x->xml, &n);
	return exchange_text_with(x, "application/xml", text, n,
				  "x-amz-checksum-algorithm",
				  sum ? checksum_name(sum) : NULL);
}

static enum MHD_Result begin_upload(struct exchange *x)
{
	const char *kind = exchange_header(x, "x-amz-checksum-algorithm");
	const char *type = exchange_header(x, "x-amz-checksum-type");
	struct exchange_headers h;
	const char *why;
	enum failure f = put_check_key(x, &why);

	exchange_headers(x, &h);
	if (f == FAILURE_NONE && kind && !checksum_named(kind))
		f = FAILURE_INVALID_REQUEST;
	if (f == FAILURE_NONE && type && strcmp(type, "COMPOSITE") != 0)
		f = FAILURE_NOT_IMPLEMENTED;
	if (f == FAILURE_NONE)
		f = put_new(x) ? metadata_read(&h.request, &x->put->headers)
			       : FAILURE_UNAVAILABLE;
	return f ? exchange_fail(x, f, why)
		 : exchange_change(x, STORAGE_CREATE, NULL, answer_begun);
}

enum failure multipart_find(struct exchange *x)
{
	struct put *p = x->put;
	uint64_t n;

	p->upload_id = target_arg(&x->target, "uploadId");
	if (!p->upload_id ||
	    !target_number(&x->target, "partNumber", UPLOADS_MOST_PARTS, 0,
			   &n) ||
	    !n)
		return FAILURE_INVALID_ARGUMENT;
	p->number = (unsigned)n;
	return uploads_check(p->uploads, p->upload_id, x->key) < 0
		       ? FAILURE_NO_SUCH_UPLOAD
		       : FAILURE_NONE;
}

enum failure multipart_add(struct exchange *x, struct staged *file,
			   const unsigned char md5[MD5_DIGEST_SIZE])
{
	const struct receive *in = x->receive;
	struct put *p = x->put;
	struct part part = { .number = p->number,
			     .file = *file,
			     .bytes = in ? in->bytes : 0,
			     .time_s = now_s() };
	int r;

	if (!in) /* a copy */
		part.bytes = p->copied;
	memcpy(part.md5, md5, sizeof(part.md5));
	if (in)
		strcpy(part.checksum, in->checksum_text);
	*file = (struct staged){ .fd = -1 };
	r = uploads_add(p->uploads, p->upload_id, x->key, &part);
	return r == -ENOENT ? FAILURE_NO_SUCH_UPLOAD : failure_of(r);
}

static enum MHD_Result add_part(struct exchange *x)
{
	enum failure f = multipart_add(x, &x->receive->file, x->receive->md5);

	put_etag(x->receive->md5, x->put->etag);
	return f ? exchange_fail(x, f, NULL) : put_answer(x, x->put->etag);
}

static enum MHD_Result part_received(struct exchange *x)
{
	return exchange_wait(x, add_part);
}

static enum MHD_Result begin_part(struct exchange *x)
{
	enum failure f = put_new(x) ? multipart_find(x) : FAILURE_UNAVAILABLE;

	if (f == FAILURE_NONE)
		f = receive_new(x, true, PUT_MOST);
	if (f != FAILURE_NONE)
		return exchange_fail(x, f, NULL);
	exchange_charge(x, STORAGE_WRITE, x->receive->bytes, false);
	return receive_then(x, part_received);
}

static enum MHD_Result abort_upload(struct exchange *x)
{
	const char *id = target_arg(&x->target, "uploadId");
	struct uploads *u = &x->service->uploads;
	struct upload *up = uploads_take(u, id, x->key);

	if (!up)
		return exchange_fail(x, FAILURE_NO_SUCH_UPLOAD, NULL);
	uploads_drop(u, up);
	return put_answer(x, NULL);
}

/* --- completion --------------------------------------------------------- */

/* A part as the request lists it. */
struct listed {
	unsigned number;
	char etag[STORED_ETAG], checksum[CHECKSUM_TEXT];
};

struct list {
	struct listed *v, next;
	size_t n, allocated;
	enum failure failure;
};

static bool copy_text(char *into, size_t size, const char *text)
{
	size_t n = strlen(text);

	if (n >= size)
		return false;
	memcpy(into, text, n + 1);
	return true;
}

static bool end_part(struct list *l)
{
	if (!l->next.number) {
		l->failure = FAILURE_MALFORMED_XML;
		return false;
	}
	if (l->n && l->v[l->n - 1].number >= l->next.number) {
		l->failure = FAILURE_INVALID_PART_ORDER;
		return false;
	}
	if (util_reserve(&l->v, &l->allocated, l->n + 1, sizeof(*l->v)) < 0) {
		l->failure = FAILURE_UNAVAILABLE;
		return false;
	}
	l->v[l->n++] = l->next;
	l->next = (struct listed){ 0 };
	return true;
}

static bool read_element(void *ctx, const char *path, const char *text)
{
	static const char part[] = "CompleteMultipartUpload/Part";
	struct list *l = ctx;
	unsigned long n;
	char *end;

	if (!strcmp(path, "CompleteMultipartUpload"))
		return true;
	if (strncmp(path, part, sizeof(part) - 1) != 0)
		return false;
	path += sizeof(part) - 1;
	if (!*path)
		return end_part(l);
	if (!strcmp(path, "/ETag"))
		return copy_text(l->next.etag, sizeof(l->next.etag), text);
	if (!strncmp(path, "/Checksum", 9))
		return copy_text(l->next.checksum, sizeof(l->next.checksum),
				 text);
	if (strcmp(path, "/PartNumber") != 0)
		return true;
	n = strtoul(text, &end, 10);
	l->next.number = *end || n > UPLOADS_MOST_PARTS ? 0 : (unsigned)n;
	return true;
}

static struct part *find_part(const struct upload *up, const struct listed *l)
{
	for (size_t low = 0, high = up->n; low < high;) {
		size_t middle = low + (high - low) / 2;

		if (up->v[middle].number == l->number)
			return &up->v[middle];
		if (up->v[middle].number < l->number)
			low = middle + 1;
		else
			high = middle;
	}
	return NULL;
}

/* Are the parts there that are listed? */
static enum failure check_parts(const struct upload *up, const struct list *l)
{
	for (size_t i = 0; i < l->n; i++) {
		const struct part *p = find_part(up, &l->v[i]);
		const char *given = l->v[i].etag;
		size_t n = strlen(given);
		char etag[STORED_ETAG];

		if (!p)
			return FAILURE_INVALID_PART;
		put_etag(p->md5, etag);
		if (n && given[0] != '"' ? strncmp(etag + 1, given, n) != 0 ||
						   strlen(etag) != n + 2
					 : strcmp(etag, given) != 0)
			return FAILURE_INVALID_PART;
		if (*l->v[i].checksum &&
		    strcmp(p->checksum, l->v[i].checksum) != 0)
			return FAILURE_INVALID_PART;
		if (i + 1 < l->n && p->bytes < UPLOADS_LEAST_PART)
			return FAILURE_TOO_SMALL;
	}
	return FAILURE_NONE;
}

/* A part behind what is in the file. */
static int append(struct put *p, struct part *part)
{
	uint64_t left = part->bytes;
	int r = objects_reopen(p->objects, &part->file);

	while (r == 0 && left) {
		ssize_t n = sendfile(p->file.fd, part->file.fd, NULL,
				     MIN(left, 1ull << 30));

		if (n > 0)
			left -= (uint64_t)n;
		else if (n == 0)
			r = -EIO; /* others have cut it */
		else if (errno != EINTR)
			r = -errno;
	}
	if (part->file.fd >= 0)
		close(part->file.fd);
	part->file.fd = -1;
	return r;
}

/* The checksum of an upload in parts: that of theirs, and their number. "": not
 * all have one. */
static void sum_of_sums(struct put *p, const struct list *l)
{
	char text[CHECKSUM_TEXT];
	struct checksum sum;

	checksum_init(&sum, p->upload->checksum);
	for (size_t i = 0; i < l->n; i++) {
		const struct part *part = find_part(p->upload, &l->v[i]);
		unsigned char bytes[CHECKSUM_TEXT];
		size_t n;

		if (!*part->checksum ||
		    sodium_base642bin(bytes, sizeof(bytes), part->checksum,
				      strlen(part->checksum), NULL, &n, NULL,
				      sodium_base64_VARIANT_ORIGINAL) < 0)
			return;
		checksum_add(&sum, bytes, n);
	}
	checksum_end(&sum, text);
	if (*text)
		snprintf(p->checksum, sizeof(p->checksum), "%s-%zu", text,
			 l->n);
}

/* Is it that which the request says? */
static bool sum_matches(const struct exchange *x)
{
	const struct put *p = x->put;
	const char *want =
		p->checksum_kind
			? exchange_header(x, checksum_header(p->checksum_kind))
			: NULL;

	return !want || !strcmp(want, p->checksum);
}

/* Into one file; its ETag is the MD5 of those of the parts. */
static int join(struct exchange *x, const struct list *l)
{
	struct put *p = x->put;
	char hex[STORED_ETAG];
	struct md5_ctx md5;
	/* it takes the place of its parts */
	int r = objects_stage(p->objects, 0, &p->file);

	md5_init(&md5);
	for (size_t i = 0; r == 0 && i < l->n; i++) {
		struct part *part = find_part(p->upload, &l->v[i]);

		md5_update(&md5, sizeof(part->md5), part->md5);
		r = append(p, part);
	}
	md5_digest(&md5, sizeof(p->md5), p->md5);
	put_etag(p->md5, hex);
	snprintf(p->etag, sizeof(p->etag), "%.33s-%u\"", hex, (unsigned)l->n);
	sum_of_sums(p, l);
	if (asprintf(&p->headers, "%s%s%s%s%s", p->upload->headers,
		     *p->checksum ? checksum_header(p->upload->checksum) : "",
		     *p->checksum ? ": " : "", p->checksum,
		     *p->checksum ? "\n" : "") < 0) {
		p->headers = NULL;
		r = r ? r : -ENOMEM;
	}
	p->checksum_kind = p->upload->checksum;
	return r;
}

static enum failure complete(struct exchange *x, struct list *l)
{
	const char *id = target_arg(&x->target, "uploadId");
	struct put *p = x->put;
	enum failure f;
	int r;

	if (!elements_read(x->receive->text, x->receive->bytes, read_element,
			   l) ||
	    !l->n)
		return l->failure ? l->failure : FAILURE_MALFORMED_XML;
	p->upload = uploads_take(p->uploads, id, x->key);
	if (!p->upload)
		return uploads_was(p->uploads, id, x->key, p->etag)
			       ? FAILURE_NONE
			       : FAILURE_NO_SUCH_UPLOAD;
	f = check_parts(p->upload, l);
	if (f == FAILURE_NONE) {
		r = join(x, l);
		f = r < 0	     ? failure_of(r)
		    : sum_matches(x) ? put_store(x, &p->file)
				     : FAILURE_CONTENT_MD5;
	}
	if (f == FAILURE_NONE)
		uploads_complete(p->uploads, TAKE_PTR(p->upload), p->etag);
	else
		uploads_put_back(p->uploads, TAKE_PTR(p->upload));
	return f;
}

/* On a thread of the writers. */
static int complete_work(void *ctx)
{
	struct exchange *x = ctx;
	struct list l = { 0 };

	x->failure = complete(x, &l);
	free(l.v);
	return 0;
}

static void add_checksum(FILE *f, enum checksum_kind kind, const char *text)
{
	if (kind && *text)
		fprintf(f, "<Checksum%s>%s</Checksum%s>", checksum_name(kind),
			text, checksum_name(kind));
}

static enum MHD_Result answer_completed(struct exchange *x)
{
	FILE *out = xml_begin(&x->xml, "CompleteMultipartUploadResult", true);

	if (!out)
		return exchange_fail(x, FAILURE_UNAVAILABLE, NULL);
	xml_key(out, "Location", x->target.path, true);
	xml_element(out, "Bucket", x->service->bucket);
	xml_element(out, "Key", x->key);
	xml_element(out, "ETag", x->put->etag);
	add_checksum(out, x->put->checksum_kind, x->put->checksum);
	return exchange_xml(x);
}

static enum MHD_Result list_received(struct exchange *x)
{
	return exchange_change(x, STORAGE_SYNC, complete_work,
			       answer_completed);
}

static enum MHD_Result begin_complete(struct exchange *x)
{
	enum failure f = put_new(x) ? receive_new(x, false, PUT_MOST_TEXT)
				    : FAILURE_UNAVAILABLE;

	if (f != FAILURE_NONE)
		return exchange_fail(x, f, NULL);
	return receive_then(x, list_received);
}

/* --- listings ----------------------------------------------------------- */

/* Source: Amazon S3 API reference, ListParts and ListMultipartUploads. */
enum { MOST_LISTED = 1000 };

struct listing {
	const struct exchange *x;
	FILE *f;
	uint64_t most, n, after; /* after: a number of a part */
	const char *prefix, *key, *id;
	char last_key[NAMES_MOST + 1], last_id[UPLOAD_ID];
	unsigned last;
	bool found, more, encoded;
};

static void add_owner(FILE *f)
{
	fputs("<Initiator><ID>gpemu</ID></Initiator><Owner><ID>gpemu</ID>"
	      "</Owner><StorageClass>STANDARD</StorageClass>",
	      f);
}

static bool list_part(struct listing *l, const struct part *p,
		      enum checksum_kind kind)
{
	char etag[STORED_ETAG];

	if (p->number <= l->after)
		return true;
	l->more = l->n == l->most;
	if (l->more)
		return false;
	put_etag(p->md5, etag);
	fprintf(l->f, "<Part><PartNumber>%u</PartNumber>", p->number);
	xml_time(l->f, "LastModified", p->time_s, 0);
	xml_element(l->f, "ETag", etag);
	fprintf(l->f, "<Size>%" PRIu64 "</Size>", p->bytes);
	add_checksum(l->f, kind, p->checksum);
	fputs("</Part>", l->f);
	l->last = p->number;
	l->n++;
	return true;
}

static bool list_its_parts(void *ctx, const struct upload *up)
{
	struct listing *l = ctx;

	if (strcmp(up->id, l->id) != 0 || strcmp(up->key, l->key) != 0)
		return true;
	l->found = true;
	for (size_t i = 0; i < up->n; i++)
		if (!list_part(l, &up->v[i], up->checksum))
			break;
	return false;
}

static bool list_upload(void *ctx, const struct upload *up)
{
	struct listing *l = ctx;
	int c = strcmp(up->key, l->key);

	if (strncmp(up->key, l->prefix, strlen(l->prefix)) != 0 || c < 0 ||
	    (c == 0 && *l->key && (!*l->id || strcmp(up->id, l->id) <= 0)))
		return true;
	l->more = l->n == l->most;
	if (l->more)
		return false;
	fputs("<Upload>", l->f);
	xml_key(l->f, "Key", up->key, l->encoded);
	xml_element(l->f, "UploadId", up->id);
	add_owner(l->f);
	xml_time(l->f, "Initiated", up->time_s, 0);
	fputs("</Upload>", l->f);
	strcpy(l->last_key, up->key);
	strcpy(l->last_id, up->id);
	l->n++;
	return true;
}

static void add_parts(struct listing *l)
{
	xml_element(l->f, "Bucket", l->x->service->bucket);
	xml_element(l->f, "Key", l->key);
	xml_element(l->f, "UploadId", l->id);
	add_owner(l->f);
	fprintf(l->f,
		"<PartNumberMarker>%" PRIu64 "</PartNumberMarker>"
		"<MaxParts>%" PRIu64 "</MaxParts>",
		l->after, l->most);
	uploads_each(&l->x->service->uploads, list_its_parts, l);
	if (l->more)
		fprintf(l->f, "<NextPartNumberMarker>%u</NextPartNumberMarker>",
			l->last);
}

static void add_uploads(struct listing *l)
{
	xml_element(l->f, "Bucket", l->x->service->bucket);
	xml_key(l->f, "KeyMarker", l->key, l->encoded);
	xml_element(l->f, "UploadIdMarker", l->id);
	xml_key(l->f, "Prefix", l->prefix, l->encoded);
	fprintf(l->f, "<MaxUploads>%" PRIu64 "</MaxUploads>", l->most);
	if (l->encoded)
		xml_element(l->f, "EncodingType", "url");
	uploads_each(&l->x->service->uploads, list_upload, l);
	if (l->more) {
		xml_key(l->f, "NextKeyMarker", l->last_key, l->encoded);
		xml_element(l->f, "NextUploadIdMarker", l->last_id);
	}
}

static enum MHD_Result list(struct exchange *x)
{
	bool parts = x->operation == OPERATION_LIST_PARTS;
	struct listing l = {
		.x = x,
		.prefix = target_arg_or(&x->target, "prefix", ""),
		.key = parts ? x->key
			     : target_arg_or(&x->target, "key-marker", ""),
		.id = target_arg_or(&x->target,
				    parts ? "uploadId" : "upload-id-marker",
				    ""),
		.encoded = target_arg(&x->target, "encoding-type"),
	};

	if (!target_number(&x->target, parts ? "max-parts" : "max-uploads",
			   INT32_MAX, MOST_LISTED, &l.most) ||
	    !target_number(&x->target, "part-number-marker", INT32_MAX, 0,
			   &l.after))
		return exchange_fail(x, FAILURE_INVALID_ARGUMENT, NULL);
	l.most = MIN(l.most, (uint64_t)MOST_LISTED);
	l.f = xml_begin(
		&x->xml,
		parts ? "ListPartsResult" : "ListMultipartUploadsResult", true);
	if (!l.f)
		return exchange_fail(x, FAILURE_UNAVAILABLE, NULL);
	if (parts)
		add_parts(&l);
	else
		add_uploads(&l);
	xml_element(l.f, "IsTruncated", l.more ? "true" : "false");
	return !parts || l.found
		       ? exchange_xml(x)
		       : exchange_fail(x, FAILURE_NO_SUCH_UPLOAD, NULL);
}

enum MHD_Result multipart_begin(struct exchange *x)
{
	switch (x->operation) {
	case OPERATION_CREATE_UPLOAD: return begin_upload(x);
	case OPERATION_UPLOAD_PART: return begin_part(x);
	case OPERATION_COMPLETE: return begin_complete(x);
	case OPERATION_ABORT:
		return exchange_change(x, STORAGE_REMOVE, NULL, abort_upload);
	default: return exchange_operate(x, STORAGE_READDIR, TREE_ROOT, list);
	}
}
