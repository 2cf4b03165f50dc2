/* SPDX-License-Identifier: MIT */
/* gpemu-profile new: a profile from the few numbers that its user knows. */
#include "emu/tool/profile_tool.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "common/json.h"
#include "common/units.h"
#include "common/util.h"
#include "emu/profile/precision.h"
#include "emu/profile/profile_rate.h"
#include "emu/profile/profile_storage.h"

struct options {
	struct cli_common common;
	char *output, *name, *source;
	/* storage */
	uint64_t read_latency_ns, open_latency_ns, seek_ns;
	uint64_t write_latency_ns, sync_latency_ns, write_buffer;
	char *bandwidth, *write_bandwidth;
	double iops;
	/* gpu */
	char *model, *precision;
	double rate;
	uint64_t batch, memory, parameters, sample_bytes;
	int argc; /* the command line */
	char **argv;
};

/* "1.5G": 10^9 bytes per s, as networks and data sheets count. */
static int parse_bandwidth(const char *text, double *ret_mb_per_s)
{
	static const char suffixes[] = "KMGT";
	static const double mb[] = { 1e-3, 1, 1e3, 1e6 };
	size_t n = strlen(text);
	const char *suffix = n ? strchr(suffixes, text[n - 1]) : NULL;
	_cleanup_free_ char *number = n ? strndup(text, n - 1) : NULL;
	double v;

	if (!suffix || !number || units_parse_double(number, &v) < 0)
		return -EINVAL;
	*ret_mb_per_s = v * mb[suffix - suffixes];
	return *ret_mb_per_s > 0 && *ret_mb_per_s <= 1e7 ? 0 : -EINVAL;
}

static int check_bandwidth(const void *object, struct err *err)
{
	const char *text = *(char *const *)object;
	double mb_per_s;

	return parse_bandwidth(text, &mb_per_s) < 0
		       ? err_set(err, -EINVAL,
				 "'%s' is not a bandwidth in bytes per s such "
				 "as 150M or 1.5G (10^9 bytes)",
				 text)
		       : 0;
}

#define FIELD(member, type) CONF_KEY(member, type, struct options)
#define COMMON_FIELDS                                                          \
	CLI_COMMON_FIELDS(struct options, common),                             \
		{ FIELD(output, CONF_STRING), .short_opt = 'o', .arg = "FILE", \
		  .help = "profile to write (default: stdout)" },              \
		{ FIELD(name, CONF_STRING), .arg = "NAME",                     \
		  .help = "name (default: that of the output, or mine)" },     \
	{                                                                      \
		FIELD(source, CONF_STRING),                                    \
			.arg = "TEXT",                                         \
			.help = "where the numbers are from (default: this "   \
				"command)"                                     \
	}

static const struct conf_field storage_fields[] = {
	COMMON_FIELDS,
	{ "read_latency", CONF_DURATION,
	  offsetof(struct options, read_latency_ns), .min = 0,
	  .max = DIST_MAX_NS, .arg = "DURATION",
	  .help = "latency of one read, before its bytes arrive: 500us" },
	{ FIELD(bandwidth, CONF_STRING), .check = check_bandwidth,
	  .arg = "RATE",
	  .help = "bandwidth of all reads together, bytes per s: 150M, 1.5G "
		  "(10^9)" },
	{ FIELD(iops, CONF_DOUBLE), .min = 0, .max = 1e9, .arg = "N",
	  .help = "operations per s at most; 0: no limit" },
	{ "open_latency", CONF_DURATION,
	  offsetof(struct options, open_latency_ns), .min = 0,
	  .max = DIST_MAX_NS, .arg = "DURATION", .help = "latency of an open" },
	{ "seek", CONF_DURATION, offsetof(struct options, seek_ns), .min = 0,
	  .max = DIST_MAX_NS, .arg = "DURATION",
	  .help = "a disk: mean seek, half a rotation included; it serves one "
		  "read at a time" },
	{ FIELD(write_bandwidth, CONF_STRING), .check = check_bandwidth,
	  .arg = "RATE",
	  .help = "bandwidth of all writes together (default: a write costs "
		  "what a read does)" },
	{ FIELD(write_buffer, CONF_SIZE), .min = 4096, .max = 1099511627776.0,
	  .arg = "SIZE",
	  .help = "bytes that are written as fast as they are read; then "
		  "--write-bandwidth (default: 128K)" },
	{ "write_latency", CONF_DURATION,
	  offsetof(struct options, write_latency_ns), .min = 0,
	  .max = DIST_MAX_NS, .arg = "DURATION", .help = "latency of a write" },
	{ "sync_latency", CONF_DURATION,
	  offsetof(struct options, sync_latency_ns), .min = 0,
	  .max = DIST_MAX_NS, .arg = "DURATION",
	  .help = "latency of an fsync, once the buffer is empty" },
	{ 0 },
};

static const struct conf_field gpu_fields[] = {
	COMMON_FIELDS,
	{ FIELD(model, CONF_STRING), .arg = "NAME",
	  .help = "the model that was trained" },
	{ FIELD(rate, CONF_DOUBLE), .min = GPU_RATE_MIN, .max = GPU_RATE_MAX,
	  .arg = "N",
	  .help = "samples per s of one GPU that never waits for data" },
	{ FIELD(batch, CONF_UINT), .max = 1048576, .arg = "N",
	  .help = "the batch size that was measured: others need "
		  "--extrapolate; 0 (default): the rate holds for all" },
	{ FIELD(precision, CONF_STRING), .check = precision_check,
	  .arg = "fp32|tf32|amp|fp16|bf16|fp8",
	  .help = "precision of that measurement" },
	{ FIELD(memory, CONF_SIZE), .max = 1e15, .arg = "SIZE",
	  .check = gpu_memory_check,
	  .help = "memory of the GPU (default: any batch fits)" },
	{ FIELD(parameters, CONF_UINT), .max = 1e15, .arg = "N",
	  .help = "parameters of the model, for gradients and checkpoints "
		  "(default: as in other profiles)" },
	{ FIELD(sample_bytes, CONF_UINT), .max = 1e12, .arg = "N",
	  .help = "bytes of a sample on the GPU (default: as in other "
		  "profiles)" },
	{ 0 },
};

/* The command, without where its output goes. */
static char *command_of(int argc, char **argv)
{
	char *text = NULL;
	size_t n = 0;
	FILE *f = open_memstream(&text, &n);

	if (!f)
		return NULL;
	fprintf(f, "numbers of its user: %s", argv[0]);
	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "-o") || !strcmp(argv[i], "--output"))
			i++;
		else if (strncmp(argv[i], "-o", 2) &&
			 strncmp(argv[i], "--output=", 9))
			fprintf(f, " %s", argv[i]);
	}
	return fclose(f) ? NULL : text;
}

/* "dir/nfs.yaml" -> "nfs" */
static char *name_of(const char *output)
{
	const char *slash = output ? strrchr(output, '/') : NULL;
	const char *base = slash ? slash + 1 : output;
	size_t n = base ? strcspn(base, ".") : 0;

	return n ? strndup(base, n) : strdup("mine");
}

static int fill_in(struct options *o)
{
	if (!o->source)
		o->source = command_of(o->argc, o->argv);
	if (!o->name)
		o->name = name_of(o->output);
	return o->source && o->name ? 0 : -ENOMEM;
}

/* --- storage -------------------------------------------------------------- */

static void put_time(FILE *f, const char *key, uint64_t ns)
{
	char text[UNITS_TEXT];

	if (ns)
		fprintf(f, "  %s: {kind: const, value: %s}\n", key,
			units_exact_duration(ns, text));
}

#define GIVEN "  source: as above\n  verified: false\n"

/* Units that are on their way together have the bandwidth. The last one waits
 * for its bytes meanwhile, so with few units it is not reached: 16 reach 97 %
 * of half the bandwidth of reads. More would have a slower sync: that of a
 * small write is as fast as one unit. */
enum { UNITS = 16, LEAST_UNIT = 4096, SMALL_BUFFER = 128 << 10 };

static void write_writes(const struct options *o, FILE *f)
{
	uint64_t size = o->write_buffer ? o->write_buffer : SMALL_BUFFER;
	uint64_t unit = MAX(size / UNITS / LEAST_UNIT, 1) * LEAST_UNIT;
	double mb_per_s;

	if (o->write_bandwidth)
		fprintf(f,
			"buffer:\n" GIVEN "  size: %" PRIu64
			"\n  unit: %" PRIu64 "\n",
			size, unit);
	if (o->write_bandwidth || o->write_latency_ns)
		fprintf(f, "write:\n" GIVEN);
	put_time(f, "latency", o->write_latency_ns);
	if (o->write_bandwidth) {
		put_time(f, "seek", o->seek_ns);
		parse_bandwidth(o->write_bandwidth, &mb_per_s);
		/* a disk writes one unit at a time */
		fprintf(f, "  mb_per_s: %.17g\n",
			o->seek_ns ? mb_per_s
				   : mb_per_s / (double)(size / unit));
	}
	if (o->sync_latency_ns)
		fprintf(f, "sync:\n" GIVEN);
	put_time(f, "latency", o->sync_latency_ns);
}

static void write_storage(const struct options *o, FILE *f)
{
	double mb_per_s = 0;

	fprintf(f, "# SPDX-License-Identifier: MIT\n");
	json_put_yaml(f, "name", o->name);
	json_put_yaml(f, "source", o->source);
	if (o->bandwidth)
		parse_bandwidth(o->bandwidth, &mb_per_s);
	if (o->seek_ns)
		fprintf(f, "channels:\n" GIVEN "  count: 1\n");
	if (o->seek_ns && mb_per_s > 0)
		fprintf(f, "  mb_per_s: %.17g\n", mb_per_s);
	else if (mb_per_s > 0)
		fprintf(f, "link:\n" GIVEN "  mb_per_s: %.17g\n", mb_per_s);
	if (o->iops > 0)
		fprintf(f, "iops:\n" GIVEN "  per_s: %.17g\n", o->iops);
	if (o->open_latency_ns)
		fprintf(f, "open:\n" GIVEN);
	put_time(f, "latency", o->open_latency_ns);
	fprintf(f, "read:\n" GIVEN);
	put_time(f, "latency", o->read_latency_ns);
	put_time(f, "seek", o->seek_ns);
	write_writes(o, f);
}

static int make_storage(void *options, char **args, FILE *text, json_t **ret,
			struct err *err)
{
	struct options *o = options;
	struct storage_profile *p = NULL;
	_cleanup_free_ char *yaml = NULL;
	size_t n = 0;
	FILE *f;
	int r = fill_in(o);

	(void)args;
	(void)text;
	(void)ret;
	if (!(o->read_latency_ns || o->bandwidth || o->iops > 0 || o->seek_ns ||
	      o->open_latency_ns) ||
	    (o->write_buffer && !o->write_bandwidth))
		return err_set(err, -EDOM,
			       "give at least one of --read-latency, "
			       "--bandwidth, --iops, --open-latency, --seek; "
			       "and --write-bandwidth with --write-buffer");
	f = r == 0 ? open_memstream(&yaml, &n) : NULL;
	if (!f)
		return -ENOMEM;
	write_storage(o, f);
	if (fclose(f))
		return -ENOMEM;
	/* what is written reads back */
	r = storage_profile_parse(yaml, n, o->name, &p, err);
	storage_profile_free(p);
	return r < 0 ? r : profile_tool_save(yaml, n, o->output, err);
}

static int new_storage(int argc, char **argv)
{
	static const struct cli_program program = {
		.name = "gpemu-profile new storage",
		.summary = "Write a storage profile from known numbers of a "
			   "device. What is not given takes no time.",
		.fields = storage_fields,
	};
	struct options o = { .argc = argc, .argv = argv };

	return profile_tool_run(&program, argc, argv, &o, NULL, make_storage);
}

/* --- gpu ------------------------------------------------------------------ */

static int make_gpu(void *options, char **args, FILE *f, json_t **ret,
		    struct err *err)
{
	struct options *o = options;
	int r = fill_in(o);
	const struct gpu_rate rate = { .name = o->name,
				       .source = o->source,
				       .model = o->model,
				       .samples_per_s = o->rate,
				       .batch = o->batch,
				       .precision = o->precision,
				       .memory_bytes = o->memory,
				       .parameters = o->parameters,
				       .sample_bytes = o->sample_bytes };
	struct gpu_profile p;

	(void)args;
	(void)f;
	(void)ret;
	if (!o->model || o->rate <= 0)
		return err_set(err, -EDOM,
			       "--model NAME and --rate N are required");
	if (r == 0)
		r = gpu_profile_from_rate(&rate, &p, err);
	if (r == 0)
		r = profile_tool_write(&p, o->output, err);
	gpu_profile_free(&p);
	return r;
}

static int new_gpu(int argc, char **argv)
{
	static const struct cli_program program = {
		.name = "gpemu-profile new gpu",
		.summary = "Write a GPU profile from the rate at which a GPU "
			   "trains a model.",
		.fields = gpu_fields,
	};
	struct options o = { .argc = argc, .argv = argv };

	return profile_tool_run(&program, argc, argv, &o, NULL, make_gpu);
}

int profile_tool_new(int argc, char **argv)
{
	static const struct cli_command kinds[] = {
		{ "storage", "a device: latency, bandwidth, seek",
		  new_storage },
		{ "gpu", "a GPU: a model, and its samples per s", new_gpu },
		{ 0 },
	};

	return cli_dispatch("gpemu-profile new",
			    "Write a profile from the numbers that you know.",
			    kinds, argc, argv);
}
