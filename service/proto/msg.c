/* SPDX-License-Identifier: MIT */
#include "service/proto/msg.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "common/util.h"
#include "net/seal.h"
#include "net/wire.h"

size_t msg_batch_head(uint32_t n)
{
	size_t bytes = PREPD_HEAD + (size_t)n * PREPD_SAMPLE;

	return (bytes + PREPD_ALIGN - 1) / PREPD_ALIGN * PREPD_ALIGN;
}

/* of the bytes of an entry of BATCH; no sample is so large */
static const uint64_t BYPASSED = (uint64_t)1 << 63;

struct msg_sample msg_batch_sample(const struct msg *m, uint32_t i)
{
	struct wire w = { .at = (const unsigned char *)m->rest +
				(size_t)i * PREPD_SAMPLE,
			  .left = PREPD_SAMPLE };
	struct msg_sample s = { .sample = (uint32_t)wire_get(&w, 4) };

	s.error = (int32_t)wire_get(&w, 4);
	s.bytes = wire_get(&w, 8);
	s.bypassed = s.bytes & BYPASSED;
	s.bytes &= ~BYPASSED;
	return s;
}

const unsigned char *msg_batch_data(const struct msg *m)
{
	return (const unsigned char *)m->rest + msg_batch_table(m->count);
}

void msg_batch_put(unsigned char *rest, uint32_t i, const struct msg_sample *s)
{
	unsigned char *at = rest + (size_t)i * PREPD_SAMPLE;

	at = wire_put(at, s->sample, 4);
	at = wire_put(at, (uint32_t)s->error, 4);
	wire_put(at, s->bytes | (s->bypassed ? BYPASSED : 0), 8);
}

static bool batch_is_whole(const struct msg *m)
{
	size_t table = msg_batch_table(m->count), left;

	if (m->count == 0 || m->n_rest < table)
		return false;
	left = m->n_rest - table;
	for (uint32_t i = 0; i < m->count; i++) {
		struct msg_sample s = msg_batch_sample(m, i);

		if (s.error > 0 || s.error < -MAX_ERRNO || s.bytes > left)
			return false;
		left -= s.bytes;
	}
	return left == 0;
}

static bool rest_is_right(const struct msg *m)
{
	switch (m->type) {
	case PREPD_BATCH: return batch_is_whole(m);
	case PREPD_KEY: return m->n_rest == SEAL_KEY;
	case PREPD_EPOCH: return m->n_rest % 8 == 0 && m->n_rest <= PREPD_TEXT;
	case PREPD_HELLO:
	case PREPD_REFUSE:
	case PREPD_JOB:
	case PREPD_FAILED:
	case PREPD_TASK:
		return m->n_rest <= PREPD_TEXT &&
		       !memchr(m->rest, 0, m->n_rest);
	default: return m->n_rest == 0;
	}
}

int msg_decode(const void *bytes, size_t n, struct msg *ret)
{
	struct wire w = { .at = bytes, .left = n };
	uint16_t version;

	*ret = (struct msg){ .type = (enum msg_type)wire_get(&w, 1) };
	ret->role = (uint8_t)wire_get(&w, 1);
	version = (uint16_t)wire_get(&w, 2);
	ret->count = (uint32_t)wire_get(&w, 4);
	ret->split = (uint32_t)wire_get(&w, 4);
	ret->share = (uint32_t)wire_get(&w, 4);
	ret->id = wire_get(&w, 8);
	ret->job = wire_get(&w, 8);
	ret->epoch = wire_get(&w, 8);
	ret->a = wire_get(&w, 8);
	ret->b = wire_get(&w, 8);
	ret->c = wire_get(&w, 8);
	if (w.bad || ret->type == 0 || ret->type >= PREPD_TYPES)
		return -EPROTO;
	if (version != PREPD_VERSION)
		return -EPROTONOSUPPORT;
	ret->rest = w.at;
	ret->n_rest = w.left;
	return rest_is_right(ret) ? 0 : -EPROTO;
}

void msg_encode(const struct msg *m, unsigned char ret[PREPD_HEAD])
{
	unsigned char *at = wire_put(ret, m->type, 1);

	at = wire_put(at, m->role, 1);
	at = wire_put(at, PREPD_VERSION, 2);
	at = wire_put(at, m->count, 4);
	at = wire_put(at, m->split, 4);
	at = wire_put(at, m->share, 4);
	at = wire_put(at, m->id, 8);
	at = wire_put(at, m->job, 8);
	at = wire_put(at, m->epoch, 8);
	at = wire_put(at, m->a, 8);
	at = wire_put(at, m->b, 8);
	wire_put(at, m->c, 8);
}

char *msg_text(const struct msg *m)
{
	return strndup(m->n_rest ? m->rest : "", m->n_rest);
}
