/* SPDX-License-Identifier: MIT */
#include "loader/train/session_logs.h"

#include "loader/account/step_log.h"

int session_open_logs(struct session *s, struct err *err)
{
	const struct train_options *o = &s->options;
	int r = 0;

	if (o->trace)
		r = trace_open(o->trace, &s->timeline.trace, err);
	if (r == 0 && o->steps)
		r = step_log_open(o->steps, &s->step_log, err);
	trace_name_gpus(s->timeline.trace, (uint32_t)o->gpus);
	return r;
}

int session_close_logs(struct session *s, struct err *err)
{
	int r = step_log_close(s->step_log, s->options.steps, err);

	s->step_log = NULL;
	if (r == 0)
		r = trace_close(s->timeline.trace, err);
	else
		trace_close(s->timeline.trace, NULL);
	s->timeline.trace = NULL;
	return r;
}
