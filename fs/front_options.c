/* SPDX-License-Identifier: MIT */
#include "fs/front.h"

#include <errno.h>
#include <fuse_lowlevel.h>
#include <stdio.h>
#include <string.h>

#include "common/util.h"
#include "fs/front_private.h"

char *front_mount_options(const struct front_config *c)
{
	char *text = NULL;
	size_t n;
	FILE *f = open_memstream(&text, &n);

	if (!f)
		return NULL;
	fputs("fsname=", f);
	for (const char *s = c->source; *s; s++) {
		if (*s == ',' || *s == '\\')
			fputc('\\', f);
		fputc(*s, f);
	}
	fputs(",subtype=gpemu-fs,default_permissions", f);
	if (c->options)
		fprintf(f, ",%s", c->options);
	fclose(f);
	return text;
}

int front_parse_options(struct front *f, struct fuse_args *args)
{
	static const struct fuse_opt known[] = {
		{ "allow_other", offsetof(struct front, shared), 1 },
		/* mount(8) adds them where root calls it; whoever owns the
		 * source would be root by them */
		FUSE_OPT_KEY("suid", FUSE_OPT_KEY_DISCARD),
		FUSE_OPT_KEY("dev", FUSE_OPT_KEY_DISCARD),
		FUSE_OPT_END,
	};
	int r = fuse_opt_parse(args, f, known, NULL);

	/* the scan would have had to look closer: "allow\_other" */
	if (f->shared && !server_tree(f->c.server)->shared)
		return -1;
	if (r == 0 && f->shared)
		r = fuse_opt_add_arg(args, "-oallow_other");
	return r ? r : fuse_opt_add_arg(args, "-onosuid,nodev");
}

/* -1: it is none of the words. */
static int find_word(const char *s, const char *const *words, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!strcmp(s, words[i]))
			return (int)i;
	return -1;
}

int hit_path_parse(const char *s, enum hit_path *ret, struct err *err)
{
	static const char *const words[] = { "auto", "reply", "passthrough" };
	int i = find_word(s, words, ARRAY_SIZE(words));

	if (i < 0)
		return err_set(err, -EINVAL,
			       "--hit-path is auto, reply or passthrough, "
			       "not '%s'",
			       s);
	*ret = (enum hit_path)i;
	return 0;
}

int front_transport_parse(const char *s, enum front_transport *ret,
			  struct err *err)
{
	static const char *const words[] = { "auto", "dev", "uring" };
	int i = find_word(s, words, ARRAY_SIZE(words));

	if (i < 0)
		return err_set(err, -EINVAL,
			       "--transport is auto, dev or uring, not '%s'",
			       s);
	*ret = (enum front_transport)i;
	return 0;
}
