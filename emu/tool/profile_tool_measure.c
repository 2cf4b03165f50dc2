/* SPDX-License-Identifier: MIT */
/*
 * gpemu-profile measure: measures a GPU profile of the local device.
 *
 * A Python program on PyTorch (tools/measure) does the measurements. It writes
 * each point to the state file at once, and at the end a profile as JSON, which
 * is YAML: it is read here like any other profile, so the output has passed
 * every check.
 */
#include "emu/tool/profile_tool.h"

#include <errno.h>
#include <string.h>

#include "common/json.h"
#include "common/util.h"
#include "common/version.h"
#include "emu/tool/profile_tool_python.h"

#define MIB 1048576.0

struct options {
	struct cli_common common;
	char *device;
	char *models;
	char *batches;
	char *precision;
	char *channels_last;
	char *sequence;
	char *output;
	char *state;
	double seconds;
	uint64_t image_size;
	uint64_t threads;
	uint64_t memory_bytes;
	int argc; /* the command line */
	char **argv;
};

#define WORD(member, name, text)                                            \
	{                                                                   \
		CONF_KEY(member, CONF_STRING, struct options), .arg = name, \
							       .help = text \
	}

static const struct conf_field fields[] = {
	CLI_COMMON_FIELDS(struct options, common),
	WORD(device, "NAME",
	     "cpu, cuda, cuda:N, mps (default auto: the first available)"),
	WORD(models, "LIST",
	     "models and groups, with commas: torchvision (the 36, default), "
	     "transformer (ViT, Swin, ConvNeXt, BERT, GPT-2, where they are "
	     "installed), all, timm/NAME"),
	WORD(batches, "LIST",
	     "batch sizes such as 1,2,4-8, or auto[:N]: up to N (default "
	     "auto:256)"),
	WORD(precision, "LIST", "fp32, tf32, bf16 (default fp32)"),
	WORD(channels_last, "HOW",
	     "off, on or both: memory layout of images (default off)"),
	WORD(sequence, "LIST", "tokens per text sample (default 128)"),
	{ CONF_KEY(image_size, CONF_UINT, struct options), .arg = "N",
	  .min = 32, .max = 4096,
	  .help = "image side in pixels (default 224)" },
	{ CONF_KEY(seconds, CONF_DOUBLE, struct options), .arg = "S",
	  .min = 0.01, .max = 3600,
	  .help = "time per point, at least three steps (default 2)" },
	{ "memory", CONF_SIZE, offsetof(struct options, memory_bytes),
	  .arg = "SIZE", .min = 16 * MIB, .max = 1e15,
	  .help = "limit on the memory of the device to use" },
	{ CONF_KEY(threads, CONF_UINT, struct options), .arg = "N", .min = 1,
	  .max = 4096, .help = "CPU threads (default: PyTorch's)" },
	PROFILE_TOOL_FILE(output, struct options, "the profile"),
	PROFILE_TOOL_FILE(
		state, struct options,
		"state file with the measured points, from which a stopped run "
		"continues (default: the name of the output with .state)"),
	{ 0 },
};

/* The command line, for the profile's source. */
static int command_line(int argc, char **argv, char **ret)
{
	size_t n = 0;
	FILE *f = open_memstream(ret, &n);

	if (!f)
		return -ENOMEM;
	fputs("gpemu-profile measure", f);
	for (int i = 1; i < argc; i++)
		fprintf(f, " %s", argv[i]);
	return fclose(f) == 0 ? 0 : -ENOMEM;
}

static json_t *for_python(const struct options *o, const char *command)
{
	return json_pack("{s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:f,s:I,s:I,s:f,s:s,"
			 "s:o}",
			 "device", json_bytes(o->device), "models",
			 json_bytes(o->models), "batches",
			 json_bytes(o->batches), "precision",
			 json_bytes(o->precision), "channels_last",
			 json_bytes(o->channels_last), "sequence",
			 json_bytes(o->sequence), "state", json_bytes(o->state),
			 "seconds", o->seconds, "image_size",
			 (json_int_t)o->image_size, "threads",
			 (json_int_t)o->threads, "memory_mib",
			 (double)o->memory_bytes / MIB, "version",
			 GPEMU_VERSION, "command", json_bytes(command));
}

static int keep_gpu(const struct options *o, const struct python_result *result,
		    json_t **ret, struct err *err)
{
	struct gpu_profile p;
	int r = gpu_profile_parse(result->text, result->n, "measured", &p, err);

	if (r == 0)
		r = profile_tool_write(&p, o->output, err);
	if (r == 0)
		*ret = gpu_profile_json(&p);
	gpu_profile_free(&p);
	return r;
}

static int measure(void *options, char **args, FILE *f, json_t **ret,
		   struct err *err)
{
	_cleanup_free_ char *command = NULL, *text = NULL;
	struct options *o = options;
	json_auto_t *j = NULL;
	struct python_result result;
	int r;

	(void)args;
	(void)f;
	if (!o->output)
		return err_set(err, -EDOM, "--output FILE is missing");
	if (!o->state && asprintf(&o->state, "%s.state", o->output) < 0) {
		o->state = NULL;
		return -ENOMEM;
	}
	r = json_check(o->output, err);
	if (r == 0)
		r = command_line(o->argc, o->argv, &command);
	if (r == 0 && !(j = for_python(o, command)))
		r = err_set(err, -EINVAL, "an option is not UTF-8");
	if (r < 0)
		return r;
	r = python_run("measure", j, &result, err);
	text = result.text;
	if (r < 0)
		return r;
	if (result.signal) {
		fprintf(stderr,
			"gpemu-profile measure: stopped; the measured points "
			"are in %s, and the same command continues from "
			"there\n",
			o->state);
		python_raise(&result);
	}
	if (result.n)
		r = keep_gpu(o, &result, ret, err);
	if (r < 0)
		return r;
	if (result.status > 128)
		return err_set(err, -EIO,
			       "the measurement died of signal %d; the "
			       "measured points are in %s",
			       result.status - 128, o->state);
	return result.status;
}

static struct options defaults(int argc, char **argv)
{
	return (struct options){
		.device = strdup("auto"),
		.models = strdup("torchvision"),
		.batches = strdup("auto"),
		.precision = strdup("fp32"),
		.channels_last = strdup("off"),
		.sequence = strdup("128"),
		.image_size = 224,
		.seconds = 2,
		.argc = argc,
		.argv = argv,
	};
}

int profile_tool_measure(int argc, char **argv)
{
	static const struct cli_program program = {
		.name = "gpemu-profile measure",
		.summary = "Measure training steps on the local device with "
			   "PyTorch, and write a GPU profile.",
		.notes = "With --storage PATH it measures a storage device "
			 "instead, and has other options: --storage x --help. "
			 "GPEMU_PYTHON names the Python to use; by default it "
			 "is the first python3 that has PyTorch.",
		.fields = fields,
	};
	struct options o;

	for (int i = 1; i < argc; i++)
		if (!strncmp(argv[i], "--storage", 9))
			return profile_tool_measure_storage(argc, argv);
	o = defaults(argc, argv);
	return profile_tool_run(&program, argc, argv, &o, NULL, measure);
}
