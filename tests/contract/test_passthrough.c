/* SPDX-License-Identifier: MIT */
/*
 * Opens of cached files while the source's file system blocks. The kernel's
 * backing files are faked: the test defines ioctl.
 */
#include "tests/contract/server_rig.h"

#include <fcntl.h>
#include <semaphore.h>
#include <stdlib.h>
#include <unistd.h>

#include "fs/front/passthrough.h"

enum { BACKING_ID = 7, PATIENCE_S = 60 };

static sem_t opening, may_open;
static int n_opened;

int __wrap_ioctl(int fd, unsigned long request, void *arg);
int __wrap_ioctl(int fd, unsigned long request, void *arg)
{
	(void)fd, (void)request, (void)arg;
	return BACKING_ID;
}

static int slow_open(void *state, const struct tree *tree, uint32_t node)
{
	(void)state, (void)tree, (void)node;
	n_opened++;
	sem_post(&opening);
	sem_wait(&may_open);
	return open("/dev/null", O_RDONLY | O_CLOEXEC);
}

struct opener {
	struct passthrough *p;
	uint32_t node;
	int mode, id;
};

static void *open_one(void *arg)
{
	struct opener *o = arg;

	o->mode = passthrough_open(o->p, o->node, true, &o->id);
	return NULL;
}

/* The timing thread opens files, too, and would wait for the holder of the
 * lock. */
static void a_slow_source_keeps_no_other_open_waiting(void **state)
{
	struct fixture *f = *state;
	struct source_ops slow = *f->source;
	const struct source_ops *before = f->source;
	struct passthrough p;
	struct opener o = { .p = &p, .node = f->node[0] };
	struct server *s;
	pthread_t thread;
	int id = 0;

	slow.open = slow_open;
	f->source = &slow;
	s = rig_start(f, "lru", "ideal");
	passthrough_init(&p, s, false);
	passthrough_enable(&p, STDIN_FILENO);
	for (int i = 0; i < 2; i++)
		assert_int_equal(rig_read(f, s, i), 0);
	assert_int_equal(pthread_create(&thread, NULL, open_one, &o), 0);
	sem_wait(&opening);
	alarm(PATIENCE_S);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(passthrough_open(&p, f->node[i], false, &id),
				 OPEN_PLAIN);
		passthrough_close(&p, f->node[i]);
	}
	alarm(0);
	sem_post(&may_open);
	pthread_join(thread, NULL);
	assert_int_equal(o.mode, OPEN_PASSTHROUGH);
	assert_int_equal(o.id, BACKING_ID);
	/* it has one now, which is made once */
	assert_int_equal(passthrough_open(&p, f->node[0], false, &id),
			 OPEN_PASSTHROUGH);
	assert_int_equal(id, BACKING_ID);
	assert_int_equal(n_opened, 1);
	passthrough_close(&p, f->node[0]);
	passthrough_close(&p, f->node[0]);
	server_stop(s);
	passthrough_fini(&p);
	server_free(s);
	f->source = before;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_slow_source_keeps_no_other_open_waiting),
	};

	sem_init(&opening, 0, 0);
	sem_init(&may_open, 0, 0);
	return cmocka_run_group_tests(tests, rig_setup, rig_teardown);
}
