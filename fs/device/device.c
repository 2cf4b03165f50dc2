/* SPDX-License-Identifier: MIT */
/*
 * Five stations. Each keeps only the time until which it is busy:
 *
 *	arrival -> [ quota ] -> [ IOPS cap ] -> [ k channels ] -> [ link ]
 *		-> latency -> done
 *
 * quota      So many operations and bytes in each window of a fixed grid. What
 *            has no room passes at the begin of the window that has room for
 *            its last byte, together with all others that wait for it.
 * IOPS cap   GCRA (ITU-T I.371): a theoretical arrival time advances by 1/rate
 *            for each slot, and an operation may be early by burst - 1 slots.
 *            It starts with the burst used up, so the first second of a run
 *            gets no more than any other. A full burst would add `burst` free
 *            operations to every short measurement.
 * channels   A heap of busy times. An operation takes the channel that is free
 *            first, so operations queue first come, first served. A striped
 *            read is several pieces, each on its own channel; the last piece
 *            completes it. The queue of a disk that reorders is not sorted
 *            here: the time of completion is fixed at arrival. Instead the
 *            head's movements are shortened by the average gain of sorting at
 *            that queue depth. If the places of reads count, and reads arrive
 *            in order of place, closer together than the device could sort
 *            them, the head moves by their distances. Sorting then shortens
 *            only the wait for the platter. An operation without occupancy and
 *            bytes, such as an open of an inode in memory, waits for no
 *            channel.
 * link       Served in the order in which pieces start, not in that of their
 *            first bytes: otherwise one slow seek would block everything behind
 *            it. A piece reserves its bytes from its start on; the resulting
 *            wait is added after its own seek and occupancy. A lone piece takes
 *            the slower of channel and link, because both stream.
 * latency    Pipelined: it delays the answer and occupies nothing. `loaded`
 *            instead is what a read took among as many others: the stations say
 *            how much passes, it says how long one takes, and the later one
 *            counts. A client that keeps so many in flight has the measured
 *            quantiles, and by Little's law the measured rate.
 *
 * Writes go the same way. With a write buffer they stop before the channels:
 *
 *	arrival -> quota -> cap -> [ link ] -> [ buffer ] -> latency -> done
 *	                                           |
 *	                                           +-- a unit -> channel
 *
 * buffer     A ring of the ends of the last units: a byte enters once the unit
 *            that had its place before is through its channel. A full unit
 *            takes a channel at once, so reads wait for units as for other
 *            reads. Many small writes fill one unit together, as in NVMeVirt's
 *            one-shot pages. A sync sends the unfinished unit off, and waits
 *            for all.
 *            A buffer in the client's memory comes before quota, cap and link;
 *            there units pay for them. They do at the arrival of the write that
 *            fills them, so that no read waits behind a unit of the future.
 */
#include "fs/device/device.h"

#include <errno.h>
#include <math.h>

#include "common/heap.h"
#include "common/rng.h"
#include "common/util.h"

/* arbitrary: a file of more than 8 MiB has several places */
enum { PIECE_SHIFT = 23 };
/* How many movements decide whether reads come in the order of their places: as
 * many as there are reads in the device, and at least this many. Two or three
 * random places are often close together. */
enum { MOVES_TO_JUDGE = 7 };
/* No sum of times exceeds this: 31 years. arbitrary: the caller may add to it,
 * and scale it */
#define LAST_NS ((uint64_t)1000000000000000000)

static uint64_t later(uint64_t at, uint64_t ns)
{
	return at < LAST_NS && ns < LAST_NS - at ? at + ns : MAX(at, LAST_NS);
}

/* The window that has room: one of now, or later. All zeros at the start. */
struct window {
	uint64_t begin; /* ns */
	double used;
};

struct device {
	const struct storage_profile *profile;
	struct rng rng[STORAGE_N_OPS];
	uint64_t *busy; /* heap of `channels.count`, the earliest first */
	uint64_t link_busy;
	double link_mb_per_s;	    /* 0: no limit */
	struct window slots, bytes; /* of the quota */
	double next_slot;	    /* GCRA's theoretical arrival time, ns */
	bool started;
	/* for devices that reorder or have `loaded`: the time until which
	 * each of the operations that end last counts in the queue depth, a
	 * quarter of the head's movement before its completion. Answers leave
	 * half a round trip early (calibrate.h), so a sequential reader sends
	 * its next read before that; this is no queue. */
	uint64_t *recent; /* a heap of n_recent, the earliest first */
	size_t n_recent;
	bool alone; /* device_alone */
	/* the last places of reads, as fractions of the stroke: a ring of
	 * n_places, none if places do not count */
	double *places;
	size_t n_places;
	uint64_t n_moves; /* number of places entered */
	struct {
		bool known;
		uint64_t object, offset;
	} head; /* where the last read ended */
	struct {
		uint64_t *ends; /* a ring of n: when a unit left; none: 0 */
		size_t n, next;
		uint64_t filled;	 /* bytes of the unit that fills */
		uint64_t object, offset; /* of its first byte */
		uint64_t in;		 /* when the last byte was in */
		uint64_t empty;		 /* when the last unit has left */
	} buffer;
};

int device_new(const struct storage_profile *profile, uint64_t seed,
	       struct device **ret)
{
	_cleanup_free_ struct device *d = calloc(1, sizeof(*d));
	uint64_t n = profile->channels.count;

	if (!d)
		return -ENOMEM;
	d->profile = profile;
	d->link_mb_per_s = profile->link.mb_per_s;
	for (unsigned i = 0; i < STORAGE_N_OPS; i++)
		d->rng[i] = rng_stream(seed, "device", i);
	d->busy = calloc(n ? n : 1, sizeof(*d->busy));
	if (!d->busy)
		return -ENOMEM;
	for (unsigned i = 0; i < STORAGE_N_OPS; i++) {
		const struct conf_list *l = &profile->op[i].reorder;
		const struct storage_reorder *v = l->items;
		const struct conf_list *m = &profile->op[i].loaded;
		const struct storage_loaded *w = m->items;

		if (m->n)
			d->n_recent = MAX(d->n_recent, w[m->n - 1].in_queue);
		if (l->n)
			d->n_recent = MAX(d->n_recent, v[l->n - 1].in_queue);
	}
	if (profile->op[STORAGE_READ].settle_ns)
		d->n_places = MAX(d->n_recent, (size_t)MOVES_TO_JUDGE) + 1;
	d->recent = calloc(d->n_recent + 1, sizeof(*d->recent));
	d->places = calloc(d->n_places + 1, sizeof(*d->places));
	if (!d->recent || !d->places) {
		device_free(TAKE_PTR(d));
		return -ENOMEM;
	}
	if (profile->buffer.bytes) {
		d->buffer.n =
			profile->buffer.bytes / profile->buffer.unit_bytes;
		d->buffer.ends = calloc(d->buffer.n, sizeof(*d->buffer.ends));
		if (!d->buffer.ends) {
			device_free(TAKE_PTR(d));
			return -ENOMEM;
		}
	}
	*ret = TAKE_PTR(d);
	return 0;
}

void device_free(struct device *d)
{
	if (!d)
		return;
	free(d->busy);
	free(d->recent);
	free(d->places);
	free(d->buffer.ends);
	free(d);
}

const struct storage_profile *device_profile(const struct device *d)
{
	return d->profile;
}

void device_alone(struct device *d, bool alone)
{
	d->alone = alone;
}

void device_limit(struct device *d, double mb_per_s, uint64_t now)
{
	double own = d->profile->link.mb_per_s, was = d->link_mb_per_s, left;

	if (own > 0 && (mb_per_s <= 0 || own < mb_per_s))
		mb_per_s = own;
	d->link_mb_per_s = mb_per_s;
	if (d->link_busy <= now || was <= 0)
		return;
	left = mb_per_s > 0 ? (double)(d->link_busy - now) * was / mb_per_s : 0;
	d->link_busy = later(now, (uint64_t)MIN(left, (double)LAST_NS));
}

uint64_t device_place(uint64_t object, uint64_t offset)
{
	return rng_key(object, "place", offset >> PIECE_SHIFT);
}

/* --- stations --------------------------------------------------------- */

/* When a quota of `most` in each window lets the last of `n` pass, ns. */
static uint64_t window_pass(struct window *w, uint64_t window_ns, double most,
			    double n, uint64_t now)
{
	double over;

	if (most <= 0 || n <= 0)
		return now;
	if (now >= w->begin && now - w->begin >= window_ns) {
		w->begin = now - (now - w->begin) % window_ns;
		w->used = 0;
	}
	w->used += n;
	over = ceil(w->used / most) - 1;
	if (over > 0) {
		w->begin =
			later(w->begin, (uint64_t)fmin(over * (double)window_ns,
						       (double)LAST_NS));
		w->used -= over * most;
	}
	return MAX(now, w->begin);
}

static uint64_t pass_quota(struct device *d, const struct storage_class *c,
			   uint64_t bytes, uint64_t now)
{
	const struct storage_profile *p = d->profile;
	uint64_t window = p->quota.window_ns, slots, moved;
	double s = (double)window / 1e9;

	if (!window)
		return now;
	slots = window_pass(&d->slots, window, p->quota.per_s * s,
			    (double)c->slots, now);
	moved = window_pass(&d->bytes, window, p->quota.mb_per_s * 1e6 * s,
			    (double)bytes, now);
	return MAX(slots, moved);
}

/* When the IOPS cap admits an operation of so many bytes. */
static uint64_t pass_cap(struct device *d, const struct storage_class *c,
			 uint64_t bytes, uint64_t now)
{
	const struct storage_profile *p = d->profile;
	double slot_ns, early, issue;
	uint64_t n = c->slots;

	if (p->iops.per_s <= 0 || !n)
		return now;
	if (p->iops.slot_bytes && bytes)
		n *= (bytes - 1) / p->iops.slot_bytes + 1;
	slot_ns = 1e9 / p->iops.per_s;
	early = (double)(p->iops.burst - 1) * slot_ns;
	if (!d->started)
		d->next_slot = (double)now + early;
	d->started = true;
	issue = ceil(d->next_slot - early);
	d->next_slot = fmax(d->next_slot, (double)now) + (double)n * slot_ns;
	return issue > (double)now ? (uint64_t)issue : now;
}

/* A MB is 10^6 bytes: one byte takes 1000 / mb_per_s ns. */
static uint64_t stream_ns(uint64_t bytes, double mb_per_s)
{
	return mb_per_s > 0
		       ? (uint64_t)llround(MIN((double)bytes * 1000 / mb_per_s,
					       (double)LAST_NS))
		       : 0;
}

/* How long the bytes of an operation take on its channel. */
static uint64_t channel_ns(const struct device *d,
			   const struct storage_class *c, uint64_t bytes)
{
	if (c->mb_per_s > 0)
		return stream_ns(bytes, c->mb_per_s);
	return (uint64_t)llround(
		fmin(storage_channel_ns(d->profile, (double)bytes),
		     (double)LAST_NS));
}

/* Take the channel that is free first for so long. Returns the end. */
static uint64_t hold_channel(struct device *d, uint64_t issue, uint64_t ns,
			     uint64_t *ret_start)
{
	size_t n = d->profile->channels.count;
	uint64_t end;

	*ret_start = n ? MAX(issue, d->busy[0]) : issue;
	end = later(*ret_start, ns);
	if (n)
		d->busy[0] = end;
	heap_times_down(d->busy, n, 0);
	return end;
}

/* One piece through a channel and the link; `before` is seek + occupancy. */
static uint64_t serve(struct device *d, const struct storage_class *c,
		      uint64_t issue, uint64_t before, uint64_t bytes)
{
	uint64_t moving = channel_ns(d, c, bytes), start, busy, link, own;

	if (!before && !bytes)
		return issue;
	busy = hold_channel(d, issue, later(before, moving), &start);
	if (d->link_mb_per_s <= 0)
		return busy;
	link = MAX(d->link_busy, start);
	own = stream_ns(bytes, d->link_mb_per_s);
	d->link_busy = later(link, own);
	/* measured of a read alone: it took no longer, whatever others have */
	if (d->profile->channels.times.n)
		own = MIN(own, moving);
	return MAX(busy, later(link, later(own, before)));
}

/* The queue depth that an arriving operation finds, itself included. */
static uint64_t in_queue(const struct device *d, uint64_t now)
{
	uint64_t n = 1;

	for (size_t i = 0; !d->alone && i < d->n_recent; i++)
		n += d->recent[i] > now;
	return n;
}

/* Draw how long a read takes, or a write that costs what a read does, among
 * those in the device. */
static uint64_t draw_loaded(struct device *d, enum storage_op op,
			    uint64_t bytes, uint64_t now)
{
	uint64_t n = in_queue(d, now);
	double ns;

	ns = storage_loaded_ns(storage_class_of(d->profile, op), bytes, n,
			       rng_double(&d->rng[op]));
	return (uint64_t)fmin(ns, (double)LAST_NS);
}

/*
 * As many as were measured wait for no link: that wait is in their time. More
 * wait until the link has done the work of those before them. Not used where a
 * quota or a server's channels are the limit: there the later of both counts.
 */
static uint64_t serve_loaded(struct device *d, enum storage_op op,
			     uint64_t bytes, uint64_t issue, uint64_t now)
{
	uint64_t own = stream_ns(bytes, d->link_mb_per_s);
	uint64_t n = d->n_recent, ahead = n * MIN(own, LAST_NS / n);
	uint64_t start = issue;

	if (d->link_busy > ahead)
		start = MAX(issue, d->link_busy - ahead);
	d->link_busy = later(MAX(d->link_busy, issue), own);
	return later(start, draw_loaded(d, op, bytes, now));
}

/* It counts in the queue depth until `before` ns before its end. */
static uint64_t remember(struct device *d, uint64_t done, uint64_t before,
			 uint64_t now)
{
	if (d->n_recent && done > now) {
		d->recent[0] = MAX(d->recent[0], done - before);
		heap_times_down(d->recent, d->n_recent, 0);
	}
	return done;
}

/* --- going on ------------------------------------------------------------- */

/* From where the head is to the start of a read without moving it, ns; < 0: it
 * has to move. A short gap ahead passes under the head faster than the head
 * moves away and comes back: the drive reads on there anyway, into its buffer.
 * Source: Ruemmler and Wilkes, "An introduction to disk drive modeling", IEEE
 * Computer 27(3), 1994, on read-ahead. So the headers between the members of a
 * tar do not end a sequential read. */
static double go_on(const struct device *d, const struct storage_class *c,
		    uint64_t object, uint64_t offset)
{
	double rate = d->profile->channels.mb_per_s;
	double move = dist_time_mean(&c->seek) + (double)c->rotation_ns / 2;
	uint64_t gap = offset - d->head.offset;
	double ns;

	if (!d->head.known || d->head.object != object ||
	    offset < d->head.offset)
		return -1;
	if (rate <= 0)
		rate = d->profile->link.mb_per_s;
	if (!gap || rate <= 0)
		return gap ? -1 : 0;
	ns = (double)gap * 1000 / rate;
	return ns < move ? ns : -1;
}

/* --- places --------------------------------------------------------------- */

static void enter_place(struct device *d, uint64_t object, uint64_t offset)
{
	d->places[d->n_moves++ % d->n_places] =
		ldexp((double)device_place(object, offset), -64);
}

/* The distance that the places of the last n movements span. */
static double spread(const struct device *d, uint64_t n)
{
	double least = 1, most = 0;

	for (uint64_t i = d->n_moves - n - 1; i < d->n_moves; i++) {
		least = fmin(least, d->places[i % d->n_places]);
		most = fmax(most, d->places[i % d->n_places]);
	}
	return most - least;
}

/* A seek over a fraction of the stroke, ns. Between two random places its mean
 * is `seek`: the mean of sqrt(|x - y|) is 8/15. */
static double seek_over(const struct storage_class *c, double part)
{
	double settle = (double)c->settle_ns;

	return settle +
	       (dist_time_mean(&c->seek) - settle) * sqrt(part) * 15 / 8;
}

/*
 * The seek of a read whose place was entered, if recent reads came in the order
 * of their places, so that serving them as they come is faster than sorting the
 * `n` in the device. < 0: sorting is faster.
 */
static double seek_in_order(const struct device *d,
			    const struct storage_class *c, uint64_t n,
			    double share)
{
	double turn = (double)c->rotation_ns / 2, judged;
	uint64_t moves = MIN(MAX(n, MOVES_TO_JUDGE), d->n_places - 1);

	if (n == 1 && d->n_moves > 1)
		return seek_over(c, spread(d, 1));
	if (d->n_moves <= moves)
		return -1;
	judged = fmin(1, spread(d, moves) / (double)n);
	if (seek_over(c, judged) + turn * share >
	    (dist_time_mean(&c->seek) + turn) * share)
		return -1;
	return seek_over(c, spread(d, moves) / (double)moves);
}

/* The time the head needs to reach the start of this operation. */
static uint64_t move_head(struct device *d, enum storage_op op, uint64_t object,
			  uint64_t offset, uint64_t bytes, uint64_t now)
{
	const struct storage_class *c = storage_class_of(d->profile, op);
	bool moves = op == STORAGE_READ || op == STORAGE_WRITE;
	double on = moves ? go_on(d, c, object, offset) : -1;
	uint64_t n, turn = 0, ns = (uint64_t)fmax(on, 0);
	double share, seek = -1;

	if (on < 0) {
		n = in_queue(d, now);
		share = storage_reordered(c, n);
		ns = dist_time_draw(&c->seek, &d->rng[op]);
		if (c->rotation_ns)
			turn = rng_below(&d->rng[op], c->rotation_ns);
		if (moves && d->n_places) {
			enter_place(d, object, offset);
			seek = seek_in_order(d, c, n, share);
		}
		ns = (uint64_t)(seek < 0 ? (double)(ns + turn) * share
					 : seek + (double)turn * share);
	}
	/* an operation without a seek happens elsewhere and moves nothing */
	if (moves) {
		d->head.known = true;
		d->head.object = object;
		d->head.offset = offset + bytes;
	} else if (ns) {
		d->head.known = false;
	}
	return ns;
}

/* --- the write buffer ----------------------------------------------------- */

/* The unit that fills leaves for a channel; its last byte is in at `in`. */
static void send_unit(struct device *d, uint64_t in, uint64_t now)
{
	const struct storage_class *c =
		storage_class_of(d->profile, STORAGE_WRITE);
	uint64_t bytes = d->buffer.filled, issue = in, start, end;
	uint64_t before = move_head(d, STORAGE_WRITE, d->buffer.object,
				    d->buffer.offset, bytes, now) +
			  dist_time_draw(&c->occupancy, &d->rng[STORAGE_WRITE]);

	if (d->profile->buffer.in_client)
		issue = MAX(in, pass_cap(d, c, bytes,
					 pass_quota(d, c, bytes, now)));
	end = hold_channel(d, issue, later(before, channel_ns(d, c, bytes)),
			   &start);
	if (d->profile->buffer.in_client && d->link_mb_per_s > 0) {
		uint64_t own = stream_ns(bytes, d->link_mb_per_s);

		d->link_busy = later(MAX(d->link_busy, now), own);
		end = MAX(end,
			  later(MAX(d->link_busy, later(start, own)), before));
	}
	d->buffer.ends[d->buffer.next] = end;
	d->buffer.next = (d->buffer.next + 1) % d->buffer.n;
	d->buffer.empty = MAX(d->buffer.empty, end);
	d->buffer.filled = 0;
}

/* When the last of the bytes is in the buffer. */
static uint64_t fill_buffer(struct device *d, uint64_t object, uint64_t offset,
			    uint64_t bytes, uint64_t issue, uint64_t now)
{
	uint64_t unit = d->profile->buffer.unit_bytes, in = issue;
	bool linked = !d->profile->buffer.in_client && d->link_mb_per_s > 0;

	while (bytes) {
		uint64_t piece = MIN(bytes, unit - d->buffer.filled);

		if (!d->buffer.filled) {
			d->buffer.object = object;
			d->buffer.offset = offset;
		}
		if (linked) {
			d->link_busy =
				later(MAX(d->link_busy, issue),
				      stream_ns(piece, d->link_mb_per_s));
			in = MAX(in, d->link_busy);
		}
		in = MAX(in, d->buffer.ends[d->buffer.next]);
		d->buffer.filled += piece;
		d->buffer.in = MAX(d->buffer.in, in);
		if (d->buffer.filled == unit)
			send_unit(d, d->buffer.in, now);
		offset += piece;
		bytes -= piece;
	}
	return in;
}

static uint64_t write_buffered(struct device *d, uint64_t object,
			       uint64_t offset, uint64_t bytes, uint64_t now)
{
	const struct storage_class *c =
		storage_class_of(d->profile, STORAGE_WRITE);
	uint64_t issue = now;

	if (!d->profile->buffer.in_client)
		issue = pass_cap(d, c, bytes, pass_quota(d, c, bytes, now));
	return fill_buffer(d, object, offset, bytes, issue, now) +
	       dist_time_draw(&c->latency, &d->rng[STORAGE_WRITE]);
}

uint64_t device_schedule(struct device *d, enum storage_op op, uint64_t object,
			 uint64_t offset, uint64_t bytes, uint64_t now)
{
	const struct storage_class *c = storage_class_of(d->profile, op);
	uint64_t stripe = d->profile->channels.stripe_bytes;
	uint64_t issue, seek, done, left = bytes, moved, passed;
	bool loaded = c->loaded.n;

	if (op == STORAGE_WRITE && d->buffer.n)
		return write_buffered(d, object, offset, bytes, now);
	passed = pass_quota(d, c, bytes, now);
	issue = pass_cap(d, c, bytes, passed);
	if (loaded && !d->profile->channels.count &&
	    !d->profile->quota.window_ns)
		return remember(d, serve_loaded(d, op, bytes, issue, now), 0,
				now);
	if (op == STORAGE_SYNC) {
		if (d->buffer.filled)
			send_unit(d, MAX(d->buffer.in, now), now);
		issue = MAX(issue, d->buffer.empty);
	}
	done = issue;
	moved = seek = move_head(d, op, object, offset, bytes, now);

	do {
		uint64_t room = stripe ? stripe - offset % stripe : left;
		uint64_t piece = MIN(left, room);
		uint64_t before =
			seek + dist_time_draw(&c->occupancy, &d->rng[op]);
		uint64_t end = serve(d, c, issue, before, piece);

		done = MAX(done, end);
		seek = 0;
		offset += piece;
		left -= piece;
	} while (left);
	if (loaded) {
		passed = later(passed, draw_loaded(d, op, bytes, now));
		done = MAX(done, passed);
	}
	remember(d, done, moved / 4, now);
	return loaded ? done : done + dist_time_draw(&c->latency, &d->rng[op]);
}

/* How long the bytes of a read behind the first `before` take on a channel. If
 * only `loaded` knows, the mean among those in the device. */
static uint64_t further_ns(const struct device *d,
			   const struct storage_class *c, uint64_t before,
			   uint64_t bytes, uint64_t now)
{
	uint64_t end = before + bytes, n = in_queue(d, now);
	double ns;

	if (!c->loaded.n || d->profile->channels.source)
		return channel_ns(d, c, end) - channel_ns(d, c, before);
	ns = storage_loaded_ns(c, end, n, -1) -
	     storage_loaded_ns(c, before, n, -1);
	return (uint64_t)fmin(fmax(ns, 0), (double)LAST_NS);
}

uint64_t device_go_on(struct device *d, uint64_t before, uint64_t bytes,
		      uint64_t now)
{
	const struct storage_class *c =
		storage_class_of(d->profile, STORAGE_READ);
	const struct storage_class none = { 0 };
	uint64_t issue = pass_quota(d, &none, bytes, now), start, busy, link;

	busy = hold_channel(d, issue, further_ns(d, c, before, bytes, now),
			    &start);
	if (d->link_mb_per_s <= 0)
		return busy;
	link = MAX(d->link_busy, start);
	d->link_busy = later(link, stream_ns(bytes, d->link_mb_per_s));
	return MAX(busy, d->link_busy);
}
