/* SPDX-License-Identifier: MIT */
/*
 * A storage profile: latency of each class of operation, concurrency,
 * bandwidth.
 *
 *	issue = max(arrival, the window whose quota has room, next IOPS slot)
 *	start = max(issue, the earliest free of the channels)
 *	busy  = start + seek + occupancy + bytes / channel bandwidth
 *	done  = max(busy, busy on the link they all share) + latency
 *
 * With `loaded` the last line is, instead of + latency, no earlier than the
 * measured time of an operation among so many others.
 *
 * The meaning of 0 is documented at each member; all zeros is the ideal device
 * without latency. fs/device/device.c implements the model.
 */
#ifndef GPEMU_EMU_PROFILE_PROFILE_STORAGE_H
#define GPEMU_EMU_PROFILE_PROFILE_STORAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/conf/conf.h"
#include "common/err.h"
#include "emu/profile/dist.h"

enum storage_op {
	STORAGE_OPEN,
	STORAGE_LOOKUP,
	STORAGE_READDIR,
	STORAGE_READ,
	STORAGE_WRITE,
	STORAGE_SYNC, /* of an object: waits until the write buffer is empty */
	STORAGE_CREATE,
	STORAGE_REMOVE,
	STORAGE_RENAME,
	STORAGE_N_OPS,
	/* those of a read-only mount */
	STORAGE_N_READING = STORAGE_WRITE
};

/* The remaining share of seek and rotation at a queue depth. */
struct storage_reorder {
	uint64_t in_queue; /* >= 1, including the current operation */
	double share;	   /* 0..1 */
};

/* How long an operation takes, from its arrival to its end, that finds so many
 * in the device, itself included. */
struct storage_loaded {
	uint64_t in_queue; /* >= 1 */
	uint64_t bytes;
	struct conf_list quantiles; /* struct dist_quantile */
};

/* One class of operation. */
struct storage_class {
	char *source;
	bool verified; /* the numbers were checked at that source */
	struct dist_time occupancy; /* holds a channel */
	struct dist_time latency;   /* does not */
	/* Head movement, except for a read that continues the previous one, if
	 * only after a short gap (fs/device/device.h): the seek, then up to one
	 * turn of the platter. */
	struct dist_time seek;
	uint64_t rotation_ns; /* one turn; the wait is uniform in 0..this */
	/* The seek to the next track. With it positions matter: a seek grows
	 * from this value with the square root of the distance, and its mean
	 * over random positions is `seek`. 0: positions do not matter. */
	uint64_t settle_ns;
	/* A device with a deep queue serves the nearest operation first, which
	 * shortens seeks. Linear between entries, constant beyond the last;
	 * none: the queue depth does not matter. */
	struct conf_list reorder; /* struct storage_reorder, ascending from 1 */
	uint64_t slots;		  /* of the IOPS cap that one operation takes */
	/* of a read: struct storage_loaded, ascending by in_queue from 1, then
	 * by bytes. `latency` is then that of 4 KiB alone, for readers of the
	 * profile. None: latency does not depend on the load. */
	struct conf_list loaded;
	/* of a write: of one channel, 10^6 bytes; 0: that of `channels` */
	double mb_per_s;
};

/* How long a channel needs for so many bytes. */
struct storage_time {
	uint64_t bytes, ns;
};

/* Measurements of the real device: one reader at random positions. */
struct storage_measured {
	uint64_t bytes;	 /* of each read */
	double mb_per_s; /* 10^6 bytes */
};

/* 2^60, an EiB: no device has more */
#define STORAGE_MOST_CAPACITY 1152921504606846976.0

struct storage_profile {
	char *name;
	char *source;
	char *notes;
	struct {
		char *source;
		bool verified;
		uint64_t count;	 /* concurrent servers; 0: no limit */
		double mb_per_s; /* of each, 10^6 bytes; 0: no limit */
		/* a read is cut into pieces of so many bytes, each on its
		 * own channel; 0: whole */
		uint64_t stripe_bytes;
		/* struct storage_time, ascending: measured of a read alone,
		 * where it is not a line, and may be faster than the link.
		 * Linear between, and from 0; at mb_per_s beyond the last.
		 * None: bytes / mb_per_s. */
		struct conf_list times;
	} channels;
	struct {
		char *source;
		bool verified;
		double mb_per_s; /* shared by all; 0: no limit */
	} link;
	struct {
		char *source;
		bool verified;
		double per_s; /* 0: no cap */
		/* operations that may pass at once after an idle time; the
		 * device starts without that credit */
		uint64_t burst;
		/* a longer read takes one slot more for each; 0: one slot */
		uint64_t slot_bytes;
	} iops;
	/* Caps as cgroups and clouds count them: so much in each window of
	 * time, as fast as the device can; what comes later waits for the next
	 * window. Means over time; 0: no cap. */
	struct {
		char *source;
		bool verified;
		uint64_t window_ns;
		double per_s;	 /* slots */
		double mb_per_s; /* 10^6 bytes */
	} quota;
	/* How long the kernel of a client keeps names and attributes, after
	 * which it asks for them again. source NULL: as long as it has memory;
	 * not used by the model, but gpemu-fs. */
	struct {
		char *source;
		bool verified;
		uint64_t kept_ns;
	} names;
	/* Requests a second and prefix of a store, beyond which it answers
	 * SlowDown; not used by the model, but gpemu-s3. 0: no limit. */
	struct {
		char *source;
		bool verified;
		double reads_per_s, writes_per_s;
	} prefix;
	/* The device is full with so many bytes. 0: no limit. */
	struct {
		char *source;
		bool verified;
		uint64_t bytes;
	} capacity;
	/* What a provider charges for requests and bytes; not used by the
	 * model. source NULL: nothing is known of prices. With a buffer a unit
	 * of it is a write. */
	struct {
		char *source;
		bool verified;
		double usd_per_1000[STORAGE_N_OPS];
		double usd_per_gib; /* read */
		double write_usd_per_gib;
	} price;
	/* Written bytes enter it as fast as the link moves them, while it has
	 * room. Whole units leave it, each through a channel with the costs of
	 * `write`. 0: no buffer; a write waits for its channel. */
	struct {
		char *source;
		bool verified;
		uint64_t bytes, unit_bytes;
		bool in_client; /* the link is behind it, not before it */
	} buffer;
	struct storage_class op[STORAGE_N_OPS];
	/* not used by the model: measurements to which it was fitted, for
	 * gpemu-fs --selftest */
	struct conf_list random_reads; /* struct storage_measured */
};

/* The costs of `op`. What the profile leaves out: a write costs what a read of
 * as many bytes does; sync, create, remove and rename cost an open. */
const struct storage_class *storage_class_of(const struct storage_profile *p,
					     enum storage_op op);

/* How long a channel needs for a read, ns, besides occupancy and seek. */
double storage_channel_ns(const struct storage_profile *p, double bytes);

/* The price of an operation, USD; `bytes` count for reads and writes. */
double storage_cost_usd(const struct storage_profile *p, enum storage_op op,
			uint64_t bytes);

/* As clients see it that speak its protocol: without the buffer of a client,
 * and where it has limits of a prefix, without the cap of requests that stands
 * for them. */
void storage_profile_expose(struct storage_profile *p);

/*
 * How long an operation takes among `n` by `loaded`, ns: its quantile at u, or
 * its mean with u < 0. Linear between rows in bytes, then in n. Beyond the last
 * size of a depth the line goes on; beyond the last depth the time stays, as
 * the limits of the device say what more have to wait.
 */
double storage_loaded_ns(const struct storage_class *c, uint64_t bytes,
			 uint64_t n, double u);

/* "open", "read", "write" and so on: the key in a profile. */
const char *storage_op_name(enum storage_op op);

/* The remaining share of head movement if the device serves the nearest of `n`
 * operations; 1: all of it. */
double storage_reordered(const struct storage_class *c, uint64_t n);

/* Load by name or path; free with storage_profile_free (NULL allowed). */
int storage_profile_load(const char *name, struct storage_profile **ret,
			 struct err *err);
/* From bytes; `name` starts the error texts. */
int storage_profile_parse(const char *bytes, size_t n, const char *name,
			  struct storage_profile **ret, struct err *err);
void storage_profile_free(struct storage_profile *p);
/* All of it, as in the file; NULL: no memory. */
json_t *storage_profile_json(const struct storage_profile *p);

#endif
