/* SPDX-License-Identifier: MIT */
#include "common/program/progress.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/tick.h"
#include "common/units.h"
#include "common/util.h"
#include "common/word.h"

enum { BAR = 28 };

int progress_parse(const char *s, enum progress_mode *ret, struct err *err)
{
	static const char *const names[] = { "auto", "on", "off" };

	return WORD_INTO(names, "--progress", s, ret, err);
}

void progress_init(struct progress *p, const char *label, uint64_t total,
		   enum progress_mode mode)
{
	*p = (struct progress){ .label = label, .total = total };
	p->shown = mode == PROGRESS_ON ||
		   (mode == PROGRESS_AUTO && isatty(STDERR_FILENO));
	p->start_wall = tick_wall();
}

void progress_update(struct progress *p, uint64_t done, const char *note)
{
	uint64_t now;

	if (!p->shown)
		return;
	now = tick_wall();
	if (p->drawn && done < p->total && now - p->last_wall < NS_PER_S / 10)
		return;
	p->last_wall = now;
	p->drawn = true;

	double part = p->total ? (double)done / (double)p->total : 1;
	int fill = (int)(part * BAR);
	char bar[BAR + 1];

	memset(bar, ' ', BAR);
	memset(bar, '=', (size_t)MIN(fill, BAR));
	if (fill < BAR)
		bar[fill] = '>';
	bar[BAR] = 0;
	fprintf(stderr, "\r%s  [%s] %3.0f %%  %" PRIu64 "/%" PRIu64, p->label,
		bar, part * 100, done, p->total);
	/* at the begin nothing is known about the time that it takes */
	double left = part > 0 ? (double)(now - p->start_wall) / NS_PER_S *
					 (1 - part) / part
			       : 0;

	if (left >= .5)
		fprintf(stderr, "  %.0f s left", left);
	fprintf(stderr, "  %s\033[K", note ? note : "");
}

void progress_end(struct progress *p)
{
	if (p->drawn)
		fputs("\r\033[K", stderr);
	p->drawn = false;
}
