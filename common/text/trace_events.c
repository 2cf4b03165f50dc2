/* SPDX-License-Identifier: MIT */
#include "common/text/trace_events.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>

#include "common/util.h"

/* arbitrary: some thousand events per system call */
enum { BUFFER_BYTES = 1 << 20 };

int trace_events_open(struct trace_events *t, const char *path, struct err *err)
{
	_cleanup_free_ char *copy = strdup(path);
	_cleanup_free_ char *buffer = malloc(BUFFER_BYTES);
	int r;

	*t = (struct trace_events){ 0 };
	if (!copy || !buffer)
		return err_set(err, -ENOMEM, "out of memory");
	r = util_output_stream(path, O_CREAT | O_TRUNC, &t->file);
	if (r < 0)
		return err_set(err, r, "%s: %s", path, strerror(-r));
	setvbuf(t->file, buffer, _IOFBF, BUFFER_BYTES);
	t->path = TAKE_PTR(copy);
	t->buffer = TAKE_PTR(buffer);
	return 0;
}

int trace_events_close(struct trace_events *t, struct err *err)
{
	int r;

	fputs(t->any ? "]\n" : "[]\n", t->file);
	r = util_flush(t->file);
	if (fclose(t->file) && r == 0)
		r = -errno;
	if (r < 0)
		err_set(err, r, "%s: %s", t->path, strerror(-r));
	free(t->buffer);
	free(t->path);
	*t = (struct trace_events){ 0 };
	return r;
}

FILE *trace_events_next(struct trace_events *t)
{
	fputs(t->any ? ",\n" : "[", t->file);
	t->any = true;
	return t->file;
}

void trace_events_text(FILE *f, const char *text)
{
	fputc('"', f);
	while (*text) {
		unsigned char c = (unsigned char)*text;
		size_t n = util_utf8(text);

		if (c == '"' || c == '\\')
			fprintf(f, "\\%c", c);
		else if (c < ' ')
			fprintf(f, "\\u%04x", c);
		else if (n)
			fwrite(text, 1, n, f);
		else
			fputc('?', f);
		text += n ? n : 1;
	}
	fputc('"', f);
}

static void name_it(struct trace_events *t, const char *kind, uint32_t pid,
		    uint32_t tid, const char *name)
{
	FILE *f = trace_events_next(t);

	fprintf(f,
		"{\"ph\":\"M\",\"pid\":%" PRIu32 ",\"tid\":%" PRIu32
		",\"name\":\"%s_name\",\"args\":{\"name\":",
		pid, tid, kind);
	trace_events_text(f, name);
	fprintf(f,
		"}},\n{\"ph\":\"M\",\"pid\":%" PRIu32 ",\"tid\":%" PRIu32
		",\"name\":\"%s_sort_index\",\"args\":{\"sort_index\":%" PRIu32
		"}}",
		pid, tid, kind, tid ? tid : pid);
}

void trace_events_process(struct trace_events *t, uint32_t pid,
			  const char *name)
{
	name_it(t, "process", pid, 0, name);
}

void trace_events_track(struct trace_events *t, uint32_t pid, uint32_t tid,
			const char *name)
{
	name_it(t, "thread", pid, tid, name);
}
