/* SPDX-License-Identifier: MIT */
/*
 * The cost of a training step of a model on a GPU, by batch size: a table of
 * measured batch sizes, thinned so that linear interpolation stays within the
 * tolerance stated in the profile.
 *
 * "backward" is loss, backward pass and optimiser step; how much of it is the
 * optimiser's is known where all rows of a model say it. Times are per batch.
 *
 * The name of a model encodes its variant, and each variant has its own table:
 * MODEL[:pxN|:seqN][:PRECISION][:channels_last][:dpN|:tpN|:ppN], as in
 * "resnet50", "resnet50:bf16:channels_last", "bert-base:seq512:tf32".
 * Defaults: 224 x 224 pixels, the profile's precision, contiguous, one GPU.
 * With dpN, tpN or ppN the step is that of N GPUs together: the batch is that
 * of all, and their communication is part of the step. Source of the tables:
 * each profile's `source`, and that of the model.
 */
#ifndef GPEMU_EMU_PROFILE_PROFILE_GPU_H
#define GPEMU_EMU_PROFILE_PROFILE_GPU_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "emu/profile/profile.h"

/*
 * The card, as monitoring shows it; no duration depends on it. 0, NULL, false:
 * not given. The clocks are the highest, and the emulated GPU always runs at
 * them.
 */
struct gpu_board {
	char *brand;		   /* NVML's: "Tesla", "NVIDIA" */
	double compute_capability; /* 7.5 */
	double cores;		   /* of CUDA */
	double power_limit_w, power_idle_w;
	double power_min_w, power_max_w; /* what the limit may be set to */
	double temperature_c;
	double clock_mhz, memory_clock_mhz, video_clock_mhz;
	double clock_reasons; /* NVML's mask of those that the card reports */
	double memory_bus_bits;
	double pcie_generation, pcie_width;
	bool ecc; /* it has error correction, and that is enabled */
	bool mig; /* it could be divided into instances, and is not */
	char *source;
};

/* What is given of a board, but its source, by the keys of the file and in
 * their order; NULL: no memory. */
json_t *gpu_board_json(const struct gpu_board *b);
/* The mean power, in W, of a board that is busy for this share of the time,
 * 0..1: on the line from power_idle_w to power_limit_w. 0: not given. */
double gpu_board_power_w(const struct gpu_board *b, double busy);

/* The default. */
#define GPU_DEFAULT "v100"

struct gpu_row {
	uint64_t batch;
	double forward_ms;
	double backward_ms;
	/* optional, 0 if missing: */
	double transfer_ms;    /* host to device, pageable host memory; what
				* the pinned law says if no row has it */
	double peak_mib;       /* allocated at most during a step */
	double persistent_mib; /* allocated between steps */
	double optimizer_ms;   /* of backward_ms, the optimiser step */
	double spread_pct;     /* of step times: 1.4826 x their median absolute
				* deviation, of their median */
};

struct gpu_model {
	char *name;
	char *notes;	       /* remarks on this table, or NULL */
	char *source;	       /* of its rows, within the profile's; or NULL */
	uint64_t parameters;   /* 0: not given */
	uint64_t sample_bytes; /* 0: the profile's */
	double model_transfer_ms; /* parameters to the device, pageable, once;
				   * default: in fp32, by the pinned law */
	/* the host's own time of a step, ms: to launch it, without waiting for
	 * the device; 0: not given */
	double host_ms;
	/* by so much the first steps of a job take longer than those after
	 * them, ms each (allocator, autotuning): double */
	struct conf_list warmup_ms;
	uint64_t last_batch;  /* the largest batch size that was measured */
	bool last_is_limit;   /* the next one ran out of device memory */
	bool copies_measured; /* else they are the pinned law's; not in the
			       * file */
	/* error of a step between two rows, at most; 100: unknown, since none
	 * was measured there. If tolerance_points is not 0, it is the largest
	 * seen at so many batch sizes that were held out. */
	double tolerance_pct;
	uint64_t tolerance_points;
	struct conf_list rows; /* struct gpu_row, batch ascending, >= 1 */
};

/* A law t = base_ms + per_sample_ms * bytes / sample_bytes (of the profile). */
struct gpu_law {
	double base_ms;
	double per_sample_ms;
	char *source;
};

/*
 * Copies by bytes, as measured: between two rows on the line, before the first
 * as long as that, beyond the last at its rate. A profile has them, or the laws
 * `pinned` and `pin_copy` and the transfer_ms of its rows.
 */
struct gpu_copies_row {
	uint64_t bytes;
	double pageable_ms; /* between the device and pageable memory */
	double pinned_ms;   /* and pinned memory */
	double pin_copy_ms; /* on the host, from pageable to pinned */
};
struct gpu_copies {
	struct conf_list rows; /* struct gpu_copies_row, bytes ascending */
	char *source;
};

/*
 * Where the time of a pageable transfer jumps: at batches of `bytes` and more
 * it is not on the line of the smaller ones.
 */
struct gpu_jump {
	uint64_t bytes; /* 0: nowhere */
	char *source;
};

/* The jitter of a model's step times on this GPU. */
struct gpu_noise_model {
	char *name;
	double cv_pct; /* standard deviation over mean, tails of 1 % cut */
};
struct gpu_noise {
	struct conf_list models; /* struct gpu_noise_model */
	char *source;
};

struct gpu_profile {
	char *name;		  /* by the vendor */
	struct conf_list aliases; /* char *: "v100" */
	char *source;
	char *notes;
	char *precision;   /* of models without one in their name; NULL: as
			    * the notes say (precision.h has the words) */
	double memory_mib; /* nominal */
	bool resized;	   /* gpu_profile_resize was called; not in the file */
	double usable_memory; /* share of it that a step's peak may fill, where
			       * no out-of-memory point was measured; default:
			       * all */
	/* default: no time */
	struct gpu_law pinned;	 /* host to device from pinned host memory */
	struct gpu_law pin_copy; /* pageable to pinned, on the host */
	struct gpu_jump transfer_jump; /* of transfer_ms in the rows */
	struct gpu_copies copies;      /* instead of the three above */
	struct gpu_noise noise;	       /* of the models measured */
	struct gpu_board board;
	uint64_t sample_bytes;	 /* what the laws were measured with */
	struct conf_list models; /* struct gpu_model */
};

enum gpu_origin { GPU_MEASURED, GPU_INTERPOLATED, GPU_EXTRAPOLATED };

struct gpu_cost {
	enum gpu_origin origin;
	uint64_t forward_ns;
	uint64_t backward_ns;
	uint64_t transfer_pageable_ns;
	uint64_t transfer_pinned_ns;
	uint64_t pin_copy_ns;
	uint64_t optimizer_ns; /* part of backward_ns; 0: unknown */
	double peak_mib;       /* 0: not given */
	double persistent_mib;
	double spread_pct; /* see struct gpu_row; 0: not given */
};

/* A name may be an alias. */
PROFILE_DECLARE(gpu);
/* The same, but `models` may be missing: the head of a profile. */
int gpu_profile_load_head(const char *name, struct gpu_profile *ret,
			  struct err *err);
/* Free only the models; the list is empty then. */
void gpu_profile_free_models(struct gpu_profile *p);
/* As YAML that reads back; the same profile gives the same bytes. */
void gpu_profile_write(const struct gpu_profile *p, FILE *f);

/* NULL and a text that lists the known models, first those whose name begins
 * with `name`. Borrowed from `p`. */
const struct gpu_model *gpu_profile_model(const struct gpu_profile *p,
					  const char *name, struct err *err);

/*
 * The cost of a step with `batch` >= 1 samples. Beyond the last measured batch,
 * and below the first, the line through the two nearest rows is extended and
 * `origin` is GPU_EXTRAPOLATED: callers reject this unless --extrapolate is
 * given. A table of one row is extended by the line through the origin. Values
 * are clamped at 0. Copies are of `batch` times gpu_sample_bytes.
 */
void gpu_profile_cost(const struct gpu_profile *p, const struct gpu_model *m,
		      uint64_t batch, struct gpu_cost *ret);

/* Bytes of a sample of the model, if the real size is unknown. */
uint64_t gpu_sample_bytes(const struct gpu_profile *p,
			  const struct gpu_model *m);

/*
 * Bytes per sample copied to the device: `prepared` (0: as read, files of
 * `read` bytes on average). Without files (`read` 0) the model's own size takes
 * precedence.
 */
uint64_t gpu_delivered_bytes(const struct gpu_profile *p,
			     const struct gpu_model *m, uint64_t prepared,
			     uint64_t read);

enum gpu_copy {
	GPU_COPY_PAGEABLE,  /* between the device and pageable host memory */
	GPU_COPY_PINNED,    /* and pinned host memory */
	GPU_COPY_TO_PINNED, /* on the host, from pageable memory */
};

/*
 * The time of a copy of `bytes`, in either direction; 0 for no bytes.
 *
 *	pinned		base_ms + per_sample_ms * bytes / sample_bytes
 *	to pinned	the same, of pin_copy
 *	pageable	the model's rows, by bytes: between two rows on the
 *			line, beyond the last at its rate; before the first on
 *			the line through the first two
 *
 * With a transfer_jump the rows on each side are a separate table, so that no
 * line crosses the jump. `m` is used for pageable memory only, and may be NULL
 * otherwise.
 */
uint64_t gpu_copy_ns(const struct gpu_profile *p, const struct gpu_model *m,
		     enum gpu_copy how, uint64_t bytes);

/* The measured time to copy the model to the device. */
uint64_t gpu_model_transfer_ns(const struct gpu_model *m);

/* The asymptotic rate of copies from pinned memory; 0: no limit. */
double gpu_link_bytes_per_s(const struct gpu_profile *p);

/* The last batch below the profile's transfer_jump; 0: there is none. */
uint64_t gpu_profile_jump_batch(const struct gpu_profile *p,
				const struct gpu_model *m);

/*
 * The largest batch whose step fits the device: the last batch before a
 * measured out-of-memory point, else the estimate, but at least the largest
 * batch measured, as long as its peak is within memory_mib. After
 * gpu_profile_resize it is the estimate.
 */
uint64_t gpu_profile_largest_batch(const struct gpu_profile *p,
				   const struct gpu_model *m);

/*
 * The largest batch whose peak memory, extrapolated beyond the table, is within
 * usable_memory * memory_mib, the memory not taken by context, allocator and
 * workspaces. Ignores measured limits; 0: none.
 */
uint64_t gpu_profile_estimated_batch(const struct gpu_profile *p,
				     const struct gpu_model *m);

/* The same GPU with another memory: limits that were measured no longer hold.
 */
void gpu_profile_resize(struct gpu_profile *p, double memory_mib);
/* A `check` of struct conf_field for such a memory in bytes: 0, for the
 * profile's, or at least 1 MiB, which "40" for 40 GiB is not. */
int gpu_memory_check(const void *object, struct err *err);

/* Does every row separate the optimiser from the backward pass? */
bool gpu_model_optimizer_given(const struct gpu_model *m);

/* Does the table have the memory of a step? Otherwise any batch fits. */
bool gpu_model_memory_given(const struct gpu_model *m);

/* Is the error of a step between two rows known? */
static inline bool gpu_model_error_given(const struct gpu_model *m)
{
	return m->rows.n > 1 && m->tolerance_pct < 100;
}

/* The model's coefficient of variation (0.01: 1 %), else the mean spread of its
 * rows; -ENODATA with a text that lists the measured models. */
int gpu_profile_noise(const struct gpu_profile *p, const struct gpu_model *m,
		      double *ret, struct err *err);

/* The batch sizes that were measured: "1, 4", "1 to 512 (20 rows)". */
enum { GPU_BATCHES_TEXT = 128 };
const char *gpu_model_batches(const struct gpu_model *m,
			      char buf[GPU_BATCHES_TEXT]);

/* "measured", "interpolated", "extrapolated". */
const char *gpu_origin_name(enum gpu_origin origin);
/* So many percent is such a step off the measured one at most: 0 of one that
 * was measured; null: unknown. */
json_t *gpu_error_json(const struct gpu_model *m, enum gpu_origin origin);

#endif
