/* SPDX-License-Identifier: MIT */
/* Output of the subcommands of gpemu-profile. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "common/json.h"
#include "common/util.h"
#include "emu/tool/profile_tool.h"

struct options {
	struct cli_common common;
};
const struct conf_field profile_tool_common_fields[] = {
	CLI_COMMON_FIELDS(struct options, common),
	{ 0 },
};

static FILE *open_text(const struct cli_common *common)
{
	FILE *nowhere;

	if (!common->json || strcmp(common->json, "-"))
		return stdout;
	nowhere = fopen("/dev/null", "we");
	return nowhere ? nowhere : stderr;
}

int profile_tool_run(const struct cli_program *program, int argc, char **argv,
		     void *options, char **args, profile_tool_fn run)
{
	const struct cli_common *common = options;
	json_auto_t *j = NULL;
	struct err err = { 0 };
	FILE *f;
	int r, written = 0;

	cli_parse(program, argc, argv, options, args);
	f = open_text(common);
	r = run(options, args, f, &j, &err);
	if (r >= 0 && j && common->json)
		written = json_write(j, common->json, &err);
	if (f != stdout && f != stderr)
		fclose(f);
	conf_free(program->fields, options);
	r = written < 0 ? written : r;
	if (r >= 0)
		return r;
	return r == -EDOM ? (cli_fail(r, &err), EXIT_STATUS_USAGE)
			  : cli_fail(r, &err);
}

int profile_tool_save(const char *bytes, size_t n, const char *path,
		      struct err *err)
{
	FILE *f = stdout;
	int r = path ? util_output_stream(path, O_CREAT | O_TRUNC, &f) : 0;

	if (r < 0)
		return err_set(err, r, "%s: %s", path, strerror(-r));
	fwrite(bytes, 1, n, f);
	r = util_flush(f);
	if (r < 0)
		err_set(err, r, "%s: %s", path ? path : "stdout", strerror(-r));
	if (path && fclose(f) && r == 0)
		r = err_set(err, -errno, "%s: %s", path, strerror(errno));
	return r;
}

int profile_tool_write(const struct gpu_profile *p, const char *path,
		       struct err *err)
{
	_cleanup_free_ char *bytes = NULL;
	size_t n = 0;
	FILE *f = open_memstream(&bytes, &n);

	if (!f)
		return -ENOMEM;
	gpu_profile_write(p, f);
	return fclose(f) ? -ENOMEM : profile_tool_save(bytes, n, path, err);
}
