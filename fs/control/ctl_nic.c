/* SPDX-License-Identifier: MIT */
#include "fs/control/ctl_nic.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "common/tick.h"
#include "common/units.h"
#include "common/util.h"
#include "net/nic.h"

struct line {
	uint64_t id, wall_ns, bytes;
	double bytes_per_s;
	uint64_t latency_ns;
};

/* arbitrary: bounds that no link reaches, and whose sums fit */
static const struct conf_field words[] = {
	{ "ID", CONF_UINT, offsetof(struct line, id), .max = 1e15 },
	{ "WALL_NS", CONF_UINT, offsetof(struct line, wall_ns), .max = 1e18 },
	{ "BYTES", CONF_UINT, offsetof(struct line, bytes), .min = 1,
	  .max = GRADIENTS_BYTES },
	{ "BYTES_PER_S", CONF_DOUBLE, offsetof(struct line, bytes_per_s),
	  .min = 1e3, .max = 1e15 },
	{ "LATENCY_NS", CONF_UINT, offsetof(struct line, latency_ns),
	  .max = 3600e9 },
};

/* Later than any step that a rank can know of. arbitrary */
#define MOST_AHEAD_NS (3600 * NS_PER_S)

int ctl_reduce(struct ctl *ctl, char *args, struct err *err)
{
	struct line l = { 0 };
	char *save, *word = strtok_r(args, " \t\r", &save);
	struct gradients_bucket b;
	uint64_t now;
	int r = 0;

	if (!ctl->nic)
		return err_set(err, -ENODEV, "reduce: the mount has no --nic");
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(words); i++) {
		if (!word)
			return err_set(err, -EINVAL,
				       "use: reduce ID WALL_NS BYTES "
				       "BYTES_PER_S LATENCY_NS");
		r = conf_set(&words[i], &l, word, err);
		word = strtok_r(NULL, " \t\r", &save);
	}
	if (r < 0)
		return r;
	now = tick_now(server_tick(ctl->server));
	b = (struct gradients_bucket){
		.ready_ns = tick_of_wall(server_tick(ctl->server), l.wall_ns),
		.bytes = l.bytes,
		.bytes_per_s = l.bytes_per_s,
		.latency_ns = l.latency_ns,
	};
	if (word || b.ready_ns > now + MOST_AHEAD_NS)
		return err_set(err, -EINVAL, "reduce: %s",
			       word ? "too many words"
				    : "more than an hour ahead");
	r = nic_reduce(ctl->nic, l.id, &b, now);
	return r < 0 ? err_set(err, r, "reduce: %s", strerror(-r)) : 0;
}

json_t *ctl_nic_json(struct ctl *ctl)
{
	struct nic_delay delay[GRADIENTS_CHAINS];
	json_t *delays;
	int n;

	if (!ctl->nic)
		return json_object();
	n = nic_delays(ctl->nic, delay);
	if (n < 0)
		return NULL;
	delays = json_object();
	for (int i = 0; i < n; i++) {
		char id[24];

		snprintf(id, sizeof(id), "%" PRIu64, delay[i].id);
		json_object_set_new(delays, id,
				    json_integer((json_int_t)delay[i].ns));
	}
	return json_pack("{s:f, s:f, s:f, s:I, s:I, s:o}", "gb_per_s",
			 ctl->nic->out.bytes_per_s / 1e9, "latency_us",
			 (double)ctl->nic->latency_ns / NS_PER_US, "time_scale",
			 tick_scale(server_tick(ctl->server)), "sent_bytes",
			 (json_int_t)__atomic_load_n(&ctl->nic->sent,
						     __ATOMIC_RELAXED),
			 "received_bytes",
			 (json_int_t)__atomic_load_n(&ctl->nic->received,
						     __ATOMIC_RELAXED),
			 "delay_ns", delays);
}
