/* SPDX-License-Identifier: MIT */
/*
 * The thread that writes the status of the GPUs as JSON, which would delay the
 * timer of the loop. Requests and answers are pointers passed through two
 * pipes, so the loop never waits for a lock.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "common/util.h"
#include "share/server.h"

static ssize_t read_pointer(int fd, struct question **ret)
{
	ssize_t k;

	do
		k = read(fd, ret, sizeof(*ret));
	while (k < 0 && errno == EINTR);
	return k;
}

static void question_free(struct question *q)
{
	status_free(q->status);
	free(q->text);
	free(q);
}

static void *write_answers(void *arg)
{
	struct scribe *s = arg;
	struct question *q;

	while (read_pointer(s->questions[0], &q) == sizeof(q)) {
		json_auto_t *j = status_json(q->status);

		q->text = j ? json_dumps(j, JSON_COMPACT) : NULL;
		/* only one is outstanding: the pipe has room */
		if (write(s->answers[1], &q, sizeof(q)) < 0)
			question_free(q);
	}
	return NULL;
}

int scribe_init(struct scribe *s)
{
	int r;

	*s = (struct scribe){ .questions = { -1, -1 }, .answers = { -1, -1 } };
	if (pipe2(s->questions, O_CLOEXEC) < 0 ||
	    pipe2(s->answers, O_CLOEXEC | O_NONBLOCK) < 0)
		return -errno;
	/* the loop never waits for room */
	if (fcntl(s->questions[1], F_SETFL, O_NONBLOCK) < 0)
		return -errno;
	r = -pthread_create(&s->thread, NULL, write_answers, s);
	s->runs = r == 0;
	return r;
}

int scribe_ask(struct scribe *s, struct status *status)
{
	struct question *q = calloc(1, sizeof(*q));

	if (!q) {
		status_free(status);
		return -ENOMEM;
	}
	q->status = status;
	if (write(s->questions[1], &q, sizeof(q)) == sizeof(q))
		return 0;
	question_free(q);
	return -EAGAIN;
}

bool scribe_answer(struct scribe *s, char **ret_text)
{
	struct question *q;

	if (read_pointer(s->answers[0], &q) != sizeof(q))
		return false;
	*ret_text = TAKE_PTR(q->text);
	question_free(q);
	return true;
}

void scribe_fini(struct scribe *s)
{
	char *text;

	if (s->questions[1] >= 0)
		close(s->questions[1]); /* the thread's read ends */
	if (s->runs)
		pthread_join(s->thread, NULL);
	while (s->answers[0] >= 0 && scribe_answer(s, &text))
		free(text);
	for (int i = 0; i < 2; i++)
		if (s->answers[i] >= 0)
			close(s->answers[i]);
	if (s->questions[0] >= 0)
		close(s->questions[0]);
}
