/* SPDX-License-Identifier: MIT */
#include "net/parcel.h"

#include <stdlib.h>

#include "net/wire.h"

struct parcel *parcel_new(size_t n)
{
	struct parcel *p = malloc(sizeof(*p) + FRAME_HEADER + n + SEAL_TAG);

	if (!p)
		return NULL;
	p->n_refs = 1;
	p->n = FRAME_HEADER + n + SEAL_TAG;
	wire_put(p->bytes, n + SEAL_TAG, FRAME_HEADER);
	return p;
}

unsigned char *parcel_body(struct parcel *p)
{
	return p->bytes + FRAME_HEADER;
}

void parcel_seal(struct parcel *p, const struct seal_key *k, uint64_t whose,
		 uint64_t number)
{
	seal_close_common(k, whose, number, parcel_body(p),
			  p->n - FRAME_HEADER - SEAL_TAG);
}

struct parcel *parcel_get(struct parcel *p)
{
	p->n_refs++;
	return p;
}

void parcel_put(struct parcel *p)
{
	if (p && --p->n_refs == 0)
		free(p);
}
