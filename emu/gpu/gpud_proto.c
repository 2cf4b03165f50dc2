/* SPDX-License-Identifier: MIT */
#include "emu/gpu/gpud_proto.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "common/util.h"

/* A member: offset, bytes on the wire, whether it is a text. */
struct field {
	size_t offset;
	uint16_t bytes;
	bool text;
};

#define SIZE_OF(type, member) sizeof(((struct type *)0)->member)
#define NUMBER(type, member)                                                \
	{                                                                   \
		offsetof(struct type, member), SIZE_OF(type, member), false \
	}
#define TEXT(type, member)                                                 \
	{                                                                  \
		offsetof(struct type, member), SIZE_OF(type, member), true \
	}

static const struct field hello[] = {
	TEXT(gpud_hello, name),
	TEXT(gpud_hello, model),
	NUMBER(gpud_hello, batch),
	NUMBER(gpud_hello, n_gpus),
	NUMBER(gpud_hello, flags),
	NUMBER(gpud_hello, zero),
	NUMBER(gpud_hello, iterations),
	NUMBER(gpud_hello, persistent_bytes),
	NUMBER(gpud_hello, peak_bytes),
	NUMBER(gpud_hello, waiting_bytes),
	NUMBER(gpud_hello, bucket_bytes),
	NUMBER(gpud_hello, reduce_ns),
	{ 0 },
};
static const struct field submit[] = {
	NUMBER(gpud_submit, id),
	NUMBER(gpud_submit, staged_ns),
	NUMBER(gpud_submit, bytes),
	NUMBER(gpud_submit, reduce_ns),
	NUMBER(gpud_submit, samples),
	NUMBER(gpud_submit, parts),
	{ 0 },
};
static const struct field copy[] = {
	NUMBER(gpud_copy, staged_ns),
	NUMBER(gpud_copy, bytes),
	NUMBER(gpud_copy, gpu),
	NUMBER(gpud_copy, zero),
	{ 0 },
};
static const struct field mark[] = {
	NUMBER(gpud_mark, gpu),
	NUMBER(gpud_mark, failed),
	{ 0 },
};
static const struct field grant[] = {
	TEXT(gpud_grant, name),
	NUMBER(gpud_grant, bytes),
	NUMBER(gpud_grant, gpu),
	NUMBER(gpud_grant, part_milli),
	{ 0 },
};
static const struct field revocation[] = {
	TEXT(gpud_revoke, name),
	{ 0 },
};
static const struct field nothing[] = { { 0 } };
static const struct field welcome[] = {
	TEXT(gpud_welcome, gpu),
	TEXT(gpud_welcome, profile),
	TEXT(gpud_welcome, scheduler),
	TEXT(gpud_welcome, share),
	TEXT(gpud_welcome, slicing),
	NUMBER(gpud_welcome, time_scale),
	NUMBER(gpud_welcome, now_ns),
	NUMBER(gpud_welcome, wall_ns),
	NUMBER(gpud_welcome, n_gpus),
	NUMBER(gpud_welcome, zero),
	{ 0 },
};
static const struct field queued[] = {
	NUMBER(gpud_queued, ahead),
	{ 0 },
};
static const struct field admitted[] = {
	NUMBER(gpud_admitted, job),
	NUMBER(gpud_admitted, gpus),
	NUMBER(gpud_admitted, queue_ns),
	{ 0 },
};
static const struct field accepted[] = {
	NUMBER(gpud_accepted, id),
	NUMBER(gpud_accepted, copy_start),
	NUMBER(gpud_accepted, copy_end),
	{ 0 },
};
static const struct field done[] = {
	NUMBER(gpud_done, id),
	NUMBER(gpud_done, start),
	NUMBER(gpud_done, end),
	{ 0 },
};
static const struct field error[] = {
	TEXT(gpud_error, text),
	NUMBER(gpud_error, code),
	NUMBER(gpud_error, zero),
	{ 0 },
};
static const struct field health[] = {
	NUMBER(gpud_health, failed),
	NUMBER(gpud_health, n_gpus),
	NUMBER(gpud_health, zero),
	{ 0 },
};
static const struct field ack[] = {
	TEXT(gpud_ack, name),
	NUMBER(gpud_ack, error),
	NUMBER(gpud_ack, revoked),
	{ 0 },
};

static const struct type {
	const char *name;
	const struct field *fields;
} types[] = {
	[GPUD_HELLO] = { "hello", hello },
	[GPUD_SUBMIT] = { "submit", submit },
	[GPUD_QUERY] = { "query", nothing },
	[GPUD_WATCH] = { "watch", nothing },
	[GPUD_MARK] = { "mark", mark },
	[GPUD_GRANT] = { "grant", grant },
	[GPUD_REVOKE] = { "revoke", revocation },
	[GPUD_COPY] = { "copy", copy },
	[GPUD_WELCOME] = { "welcome", welcome },
	[GPUD_QUEUED] = { "queued", queued },
	[GPUD_ADMITTED] = { "admitted", admitted },
	[GPUD_ACCEPTED] = { "accepted", accepted },
	[GPUD_DONE] = { "done", done },
	[GPUD_ERROR] = { "error", error },
	[GPUD_STATUS] = { "status", nothing },
	[GPUD_HEALTH] = { "health", health },
	[GPUD_ACK] = { "ack", ack },
};

char *gpud_grant_folder(const char *socket, const char *name)
{
	return util_text("%s.d/%s", socket, name);
}

static uint64_t get(const uint8_t *p, size_t n)
{
	uint64_t v = 0;

	while (n--)
		v = v << 8 | p[n];
	return v;
}

static void put_value(uint8_t *p, size_t n, uint64_t v)
{
	for (; n--; v >>= 8)
		*p++ = (uint8_t)v;
}

static bool printable(char c)
{
	return c >= ' ' && c <= '~';
}

/* All members of the union begin where it does. */
static char *member(const struct gpud_msg *m, const struct field *f)
{
	return (char *)&m->hello + f->offset;
}

static void put_number(uint8_t *p, const struct field *f, const char *from)
{
	uint64_t v8;
	uint32_t v4;

	if (f->bytes == sizeof(v8)) {
		memcpy(&v8, from, sizeof(v8));
		put_value(p, sizeof(v8), v8);
	} else {
		memcpy(&v4, from, sizeof(v4));
		put_value(p, sizeof(v4), v4);
	}
}

static void get_number(const uint8_t *p, const struct field *f, char *to)
{
	uint64_t v8 = get(p, f->bytes);
	uint32_t v4 = (uint32_t)v8;

	if (f->bytes == sizeof(v8))
		memcpy(to, &v8, sizeof(v8));
	else
		memcpy(to, &v4, sizeof(v4));
}

static void put_text(uint8_t *p, const struct field *f, const char *from)
{
	size_t n = strnlen(from, f->bytes - 1u);

	memset(p, 0, f->bytes);
	for (size_t i = 0; i < n; i++)
		p[i] = (uint8_t)(printable(from[i]) ? from[i] : '?');
}

static bool get_text(const uint8_t *p, const struct field *f, char *to)
{
	size_t i = 0;

	memcpy(to, p, f->bytes);
	while (i < f->bytes && printable(to[i]))
		i++;
	if (i == f->bytes)
		return false;
	while (i < f->bytes && to[i] == '\0')
		i++;
	return i == f->bytes;
}

static size_t fixed_size(enum gpud_type type)
{
	size_t n = GPUD_HEADER;

	for (const struct field *f = types[type].fields; f->bytes; f++)
		n += f->bytes;
	return n;
}

size_t gpud_size(const struct gpud_msg *m)
{
	return fixed_size(m->type) + (m->type == GPUD_STATUS ? m->status.n : 0);
}

const char *gpud_type_name(enum gpud_type type)
{
	return types[type].name;
}

void gpud_encode(const struct gpud_msg *m, void *buf)
{
	uint8_t *p = buf;

	put_value(p, 4, gpud_size(m));
	put_value(p + 4, 2, GPUD_VERSION);
	put_value(p + 6, 2, m->type);
	p += GPUD_HEADER;
	for (const struct field *f = types[m->type].fields; f->bytes; f++) {
		if (f->text)
			put_text(p, f, member(m, f));
		else
			put_number(p, f, member(m, f));
		p += f->bytes;
	}
	if (m->type == GPUD_STATUS && m->status.n)
		memcpy(p, m->status.json, m->status.n);
}

/* 0, or the error in the header. */
static int check_header(const uint8_t *p, size_t most, struct err *err)
{
	uint64_t length = get(p, 4), version = get(p + 4, 2),
		 type = get(p + 6, 2);

	if (version != GPUD_VERSION)
		return err_set(err, -EPROTONOSUPPORT,
			       "protocol version %u, but this program has %u",
			       (unsigned)version, (unsigned)GPUD_VERSION);
	if (type >= ARRAY_SIZE(types) || !types[type].name)
		return err_set(err, -EBADMSG, "unknown message type %u",
			       (unsigned)type);
	if (type == GPUD_STATUS ? length < GPUD_HEADER
				: length != fixed_size((enum gpud_type)type))
		return err_set(err, -EBADMSG, "a %s of %u bytes",
			       types[type].name, (unsigned)length);
	if (length > most)
		return err_set(err, -EBADMSG, "a message of %u bytes",
			       (unsigned)length);
	return 0;
}

int gpud_decode(const void *buf, size_t n, size_t most, struct gpud_msg *ret,
		struct err *err)
{
	const uint8_t *p = buf;
	size_t length;
	int r;

	if (n < GPUD_HEADER)
		return 0;
	r = check_header(p, most, err);
	length = get(p, 4);
	if (r < 0 || n < length)
		return r;
	*ret = (struct gpud_msg){ .type = (enum gpud_type)get(p + 6, 2) };
	p += GPUD_HEADER;
	if (ret->type == GPUD_STATUS) {
		ret->status.json = (const char *)p;
		ret->status.n = length - GPUD_HEADER;
	}
	for (const struct field *f = types[ret->type].fields; f->bytes; f++) {
		if (!f->text)
			get_number(p, f, member(ret, f));
		else if (!get_text(p, f, member(ret, f)))
			return err_set(err, -EBADMSG,
				       "a %s with an invalid text",
				       types[ret->type].name);
		p += f->bytes;
	}
	return (int)length;
}
