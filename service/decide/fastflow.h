/* SPDX-License-Identifier: MIT */
/*
 * FastFlow: whether to prepare a part of the data on remote nodes, from which
 * point of the pipeline on, and which part. Source: Um et al., "FastFlow:
 * Accelerating Deep Learning Model Training with Smart Offloading of Input Data
 * Pipeline", VLDB 2023, algorithm 1; the authors' code, fastflow/utils.py and
 * fastflow/model.py.
 *
 * It decides from rates measured in the first steps:
 *
 *	G	the GPU alone, on a batch that is in memory
 *	L	training with local preparation
 *	R(s)	training with everything behind split s prepared remotely; so
 *		R(s) <= G, and it has the network and the cost of receiving
 *	P, O(s)	local CPU time for a sample, prepared locally and received
 *
 *	G / L < threshold: no offloading, the CPU is no bottleneck
 *	s = argmax L * (1 - O(s) / P) + R(s)
 *	upper = R(s)		above, the remote nodes or the network limit
 *	lower = (G - L) * (1 + O(s) / P)  below, the local CPU limits
 *	part = lower < upper ? upper / G : R(s) / (L + R(s))
 *
 * The last of these leaves out what receiving costs the local CPU, so that
 * where R is many times L the part is up to O / P too small.
 *
 * All rates are in one unit, any; P and O in one unit, any.
 */
#ifndef GPEMU_SERVICE_DECIDE_FASTFLOW_H
#define GPEMU_SERVICE_DECIDE_FASTFLOW_H

#include <stdint.h>

/* The candidates. Source: the paper, p'1 to p'3; FASTFLOW_LAST is ours */
enum fastflow_split {
	FASTFLOW_PREP,	  /* samples are read locally and prepared remotely */
	FASTFLOW_ELEMENT, /* also read remotely; batches are made locally */
	FASTFLOW_BATCH,	  /* batches are made remotely */
	FASTFLOW_LAST,	  /* and their last transform runs locally */
	FASTFLOW_SPLITS
};

/* Steps of each measurement. Source: the paper, 50 to 100 */
enum { FASTFLOW_STEPS = 50 };

/* What was measured. A split with rate 0 was not, and is not chosen. */
struct fastflow_profile {
	double gpu, local;     /* G, L */
	double prep_cpu;       /* P */
	uint32_t remote_nodes; /* that R is of, >= 1 */
	struct {
		double rate;	    /* R */
		double receive_cpu; /* O */
	} split[FASTFLOW_SPLITS];
};

enum fastflow_form {
	FASTFLOW_PAPER,
	/*
	 * The authors' code, with n nodes at R each: with `offered` = n R and
	 * `needed` = (G - L) (1 + O / P)
	 *
	 *	part = L + offered < G ? offered / (L + offered)
	 *	       : min(1, off / G), off = L > offered ?
	 *		 (offered + needed) / 2 : max(offered, needed)
	 */
	FASTFLOW_CODE,
};

struct fastflow_decision {
	enum fastflow_split split; /* of no meaning where `part` is 0 */
	double part;		   /* of the samples, offloaded: 0..1 */
	double lower, upper;	   /* as above; 0 without a bottleneck */
};

/*
 * -EINVAL: a rate or a time that is negative or not finite, G, L or P of 0, no
 * node. The nodes of the profile are those that will be used: for FASTFLOW_CODE
 * with others pass R of one of them, and their number.
 */
int fastflow_decide(const struct fastflow_profile *p, enum fastflow_form form,
		    struct fastflow_decision *ret);

/*
 * Which half prepares the next sample, as the decision's `part` wants it: both
 * halves then have had their parts, to within one sample, at any time. A zeroed
 * struct has handed out none.
 */
struct fastflow_turns {
	uint64_t n, n_remote;
};
/* 1: the remote half; 0: the local one. */
int fastflow_turn(struct fastflow_turns *t, double part);

#endif
