/* SPDX-License-Identifier: MIT */
/* A run of gpemu-train on an event clock, over files of known sizes, and what
 * its record says. A failure fails the test. */
#ifndef GPEMU_TESTS_CONTRACT_SIM_RIG_H
#define GPEMU_TESTS_CONTRACT_SIM_RIG_H

#include "common/json.h"
#include "loader/sim/simulate.h"

/* Files of one folder, of SIZE bytes each. */
enum { N = 256, SIZE = 100000, BATCH = 16, EPOCHS = 3 };
/* Of another folder: files of three objects. */
enum { N_LARGE = 8, LARGE = 9000000 };
/* Of the folder `mixed`: files that all have another size. */
enum { N_MIXED = 61 };

/* The folder of the data, and of profiles: seek.yaml, four.yaml and link.yaml
 * are storages, node.yaml, card.yaml and other.yaml nodes. */
extern char sim_rig_dir[];

/* Setup and teardown of a group of tests. */
int sim_rig_make_data(void **state);
int sim_rig_remove_data(void **state);

struct sim_rig {
	struct session s;
	struct simulate m;
	json_t *record;
};

/* A session with these options, ended by NULL, before it is opened; "%/" is
 * the folder. */
void sim_rig_choose(struct session *s, const char *const options[]);
/* A simulated run with them. */
void sim_rig_run(struct sim_rig *r, const char *const options[]);
void sim_rig_done(struct sim_rig *r);

/* Numbers of an epoch: of the training, its mean of a distribution, of the
 * mount, of what the mount fetched ahead. */
double sim_rig_epoch(const struct sim_rig *r, size_t i, const char *key);
double sim_rig_mean(const struct sim_rig *r, size_t i, const char *key);
double sim_rig_fs(const struct sim_rig *r, size_t i, const char *key);
double sim_rig_ahead(const struct sim_rig *r, size_t i, const char *key);
/* A number of the record, by its keys and indexes: "a/0/b". */
double sim_rig_number(const struct sim_rig *r, const char *path);

/* The hits of each epoch of the same order through the cache of a policy, one
 * access after the other. */
void sim_rig_replay(const struct sim_rig *r, const char *policy,
		    double fraction, uint64_t ret[EPOCHS]);

#define NEAR(value, want, part)                                           \
	do {                                                              \
		double value_ = (value), want_ = (want);                  \
                                                                          \
		if (!(value_ >= want_ * (1 - (part)) &&                   \
		      value_ <= want_ * (1 + (part))))                    \
			fail_msg(#value " is %g, not %g", value_, want_); \
	} while (0)

#endif
