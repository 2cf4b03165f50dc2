/* SPDX-License-Identifier: MIT */
#include "tests/contract/policy_models.h"

#include <math.h>
#include <string.h>

#include "common/util.h"

static int find(const struct seq *s, int key)
{
	for (int i = 0; i < s->n; i++)
		if (s->v[i] == key)
			return i;
	return -1;
}

static bool has(const struct seq *s, int key)
{
	return find(s, key) >= 0;
}

static void push(struct seq *s, int key)
{
	memmove(s->v + 1, s->v, (size_t)s->n * sizeof(*s->v));
	s->v[0] = key;
	s->n++;
}

static void drop(struct seq *s, int key)
{
	int i = find(s, key);

	if (i < 0)
		return;
	s->n--;
	memmove(s->v + i, s->v + i + 1, (size_t)(s->n - i) * sizeof(*s->v));
}

static int pop(struct seq *s)
{
	return s->v[--s->n];
}

static bool mark(struct model *m, int key)
{
	m->used[key] = true;
	return true;
}

static bool ask_fifo(struct model *m, int key)
{
	if (has(&m->a, key))
		return true;
	if (m->a.n == m->cap)
		pop(&m->a);
	push(&m->a, key);
	return false;
}

static bool ask_lru(struct model *m, int key)
{
	bool hit = has(&m->a, key);

	drop(&m->a, key);
	if (m->a.n == m->cap)
		pop(&m->a);
	push(&m->a, key);
	return hit;
}

static bool ask_minio(struct model *m, int key)
{
	if (has(&m->a, key))
		return true;
	if (m->a.n < m->cap)
		push(&m->a, key);
	return false;
}

/* The ring as a ring: frames, and a hand that goes round them. */
static bool ask_clock(struct model *m, int key)
{
	for (int i = 0; i < m->a.n; i++)
		if (m->ring[i] == key)
			return mark(m, key);
	if (m->a.n < m->cap) {
		m->ring[m->a.n++] = key;
		m->used[key] = false;
		return false;
	}
	while (m->used[m->ring[m->hand]]) {
		m->used[m->ring[m->hand]] = false;
		m->hand = (m->hand + 1) % m->cap;
	}
	m->ring[m->hand] = key;
	m->used[key] = false;
	m->hand = (m->hand + 1) % m->cap;
	return false;
}

/* The hand is a key, or -1. */
static bool ask_sieve(struct model *m, int key)
{
	int i;

	if (!m->now++)
		m->hand = -1;
	if (has(&m->a, key))
		return mark(m, key);
	if (m->a.n == m->cap) {
		i = m->hand < 0 ? m->a.n - 1 : find(&m->a, m->hand);
		while (m->used[m->a.v[i]]) {
			m->used[m->a.v[i]] = false;
			i = i > 0 ? i - 1 : m->a.n - 1;
		}
		m->hand = i > 0 ? m->a.v[i - 1] : -1;
		drop(&m->a, m->a.v[i]);
	}
	push(&m->a, key);
	m->used[key] = false;
	return false;
}

static bool ask_slru(struct model *m, int key)
{
	int protected = m->cap * 8 / 10;

	if (has(&m->a, key) || has(&m->b, key)) {
		drop(&m->a, key);
		drop(&m->b, key);
		push(&m->b, key);
		while (m->b.n > protected)
			push(&m->a, pop(&m->b));
		return true;
	}
	if (m->a.n + m->b.n == m->cap)
		pop(m->a.n ? &m->a : &m->b);
	push(&m->a, key);
	return false;
}

static bool ask_lfu(struct model *m, int key)
{
	bool hit = has(&m->a, key);
	int worst = 0;

	m->stamp[key] = m->now++;
	if (hit)
		return m->count[key]++, true;
	for (int i = 1; i < m->a.n; i++) {
		int x = m->a.v[i], w = m->a.v[worst];

		if (m->count[x] < m->count[w] ||
		    (m->count[x] == m->count[w] && m->stamp[x] < m->stamp[w]))
			worst = i;
	}
	if (m->a.n == m->cap)
		drop(&m->a, m->a.v[worst]);
	push(&m->a, key);
	m->count[key] = 1;
	return false;
}

static int seq_size(const struct model *m, const struct seq *s)
{
	int sum = 0;

	for (int i = 0; i < s->n; i++)
		sum += m->size[s->v[i]];
	return sum;
}

static bool ask_gdsf(struct model *m, int key)
{
	bool hit = has(&m->a, key);

	m->stamp[key] = m->now++;
	m->count[key] = hit ? m->count[key] + 1 : 1;
	while (!hit && m->size[key] <= m->cap &&
	       seq_size(m, &m->a) + m->size[key] > m->cap) {
		int w = m->a.v[0];

		for (int i = 1; i < m->a.n; i++) {
			int x = m->a.v[i];

			if (m->value[x] < m->value[w] ||
			    (m->value[x] == m->value[w] &&
			     m->stamp[x] < m->stamp[w]))
				w = x;
		}
		m->inflation = m->value[w];
		drop(&m->a, w);
	}
	m->value[key] =
		m->inflation + (double)m->count[key] / (double)m->size[key];
	if (!hit && m->size[key] <= m->cap)
		push(&m->a, key);
	return hit;
}

static void s3fifo_evict_main(struct model *m)
{
	for (;;) {
		int t = pop(&m->b);

		if (!m->count[t])
			return;
		m->count[t]--;
		push(&m->b, t);
	}
}

/* a: small, b: main, ga: ghosts */
static void s3fifo_evict(struct model *m)
{
	while (m->a.n && (m->a.n >= .1 * m->cap || !m->b.n)) {
		int t = pop(&m->a);

		if (m->count[t] <= 1) {
			push(&m->ga, t);
			if (m->ga.n > m->cap - (int)ceil(.1 * m->cap))
				pop(&m->ga);
			return;
		}
		m->count[t] = 0;
		push(&m->b, t);
		if (m->b.n > .9 * m->cap)
			break;
	}
	s3fifo_evict_main(m);
}

static bool ask_s3fifo(struct model *m, int key)
{
	bool ghost = has(&m->ga, key);

	if (has(&m->a, key) || has(&m->b, key)) {
		m->count[key] = MIN(m->count[key] + 1, 3);
		return true;
	}
	drop(&m->ga, key);
	if (m->a.n + m->b.n == m->cap)
		s3fifo_evict(m);
	push(ghost ? &m->b : &m->a, key);
	m->count[key] = 0;
	return false;
}

/* a: T1, b: T2, ga: B1, gb: B2; names and cases as in figure 4 */
static void arc_replace(struct model *m, bool in_b2)
{
	if (m->a.n && (m->a.n > m->p || (in_b2 && m->a.n == m->p)))
		push(&m->ga, pop(&m->a));
	else
		push(&m->gb, pop(&m->b));
}

static void arc_case_4(struct model *m)
{
	int l1 = m->a.n + m->ga.n, all = l1 + m->b.n + m->gb.n;

	if (l1 == m->cap) {
		if (m->a.n < m->cap) {
			pop(&m->ga);
			arc_replace(m, false);
		} else {
			pop(&m->a);
		}
	} else if (all >= m->cap) {
		if (all == 2 * m->cap)
			pop(&m->gb);
		arc_replace(m, false);
	}
}

static bool ask_arc(struct model *m, int key)
{
	bool in_b1 = has(&m->ga, key), in_b2 = has(&m->gb, key);
	double b1 = m->ga.n, b2 = m->gb.n;
	bool hit = has(&m->a, key) || has(&m->b, key);

	if (in_b1)
		m->p = fmin(m->p + (b1 >= b2 ? 1 : b2 / b1), m->cap);
	if (in_b2)
		m->p = fmax(m->p - (b2 >= b1 ? 1 : b1 / b2), 0);
	if (in_b1 || in_b2)
		arc_replace(m, in_b2);
	else if (!hit)
		arc_case_4(m);
	drop(&m->a, key);
	drop(&m->b, key);
	drop(&m->ga, key);
	drop(&m->gb, key);
	push(hit || in_b1 || in_b2 ? &m->b : &m->a, key);
	return hit;
}

/* a: inactive, b: active, ga: ever evicted, when in `stamp` */
static bool ask_2q(struct model *m, int key)
{
	bool refault = false;

	if (has(&m->b, key))
		return true;
	if (has(&m->a, key)) {
		drop(&m->a, key);
		push(&m->b, key);
		m->age++;
		return true;
	}
	if (has(&m->ga, key)) {
		refault = m->age - m->stamp[key] <= m->b.n;
		drop(&m->ga, key);
	}
	if (m->a.n + m->b.n == m->cap) {
		int out;

		while (m->b.n > m->a.n)
			push(&m->a, pop(&m->b));
		out = pop(&m->a);
		m->stamp[out] = ++m->age;
		push(&m->ga, out);
	}
	push(refault ? &m->b : &m->a, key);
	m->age += refault;
	return false;
}

/* a: window, b: probation, ga: protected; counts are exact */
static void tinylfu_count(struct model *m, int key)
{
	m->count[key] = MIN(m->count[key] + 1, 15);
	if (++m->n_counted < 10 * MAX(m->cap, 16))
		return;
	m->n_counted /= 2;
	for (int i = 0; i < MODEL_KEYS; i++)
		m->count[i] /= 2;
}

static void tinylfu_evict(struct model *m, int window)
{
	struct seq *from = m->b.n ? &m->b : &m->ga;

	if (!from->n) {
		pop(&m->a);
		return;
	}
	if (!m->a.n || m->a.n + 1 <= window) {
		pop(from);
		return;
	}
	int candidate = pop(&m->a), victim = from->v[from->n - 1];

	if (m->count[candidate] <= m->count[victim])
		return;
	pop(from);
	push(&m->b, candidate);
}

static bool ask_tinylfu(struct model *m, int key)
{
	int window = m->cap / 100;
	int protected = (int)(.8 * (m->cap - .01 * m->cap));

	tinylfu_count(m, key);
	if (has(&m->a, key)) {
		drop(&m->a, key);
		push(&m->a, key);
		return true;
	}
	if (has(&m->b, key) || has(&m->ga, key)) {
		drop(&m->b, key);
		drop(&m->ga, key);
		push(&m->ga, key);
		while (m->ga.n > protected)
			push(&m->b, pop(&m->ga));
		return true;
	}
	if (m->a.n + m->b.n + m->ga.n == m->cap)
		tinylfu_evict(m, window);
	push(&m->a, key);
	while (m->a.n > MAX(window, 1))
		push(&m->b, pop(&m->a));
	return false;
}

/* Keep the smallest objects: a list sorted by size would do as well. */
static bool ask_sff_online(struct model *m, int key)
{
	int largest = -1;

	if (has(&m->a, key))
		return true;
	for (int i = 0; i < m->a.n; i++) {
		int x = m->a.v[i];

		/* v[] is by age: among equals the oldest, the last one */
		if (largest < 0 || m->size[x] >= m->size[largest])
			largest = x;
	}
	if (seq_size(m, &m->a) + m->size[key] > m->cap) {
		if (largest < 0 || m->size[key] >= m->size[largest])
			return false;
		drop(&m->a, largest);
	}
	push(&m->a, key);
	return false;
}

const struct model_policy model_policies[] = {
	{ "fifo", ask_fifo },
	{ "lru", ask_lru },
	{ "minio", ask_minio },
	{ "shade", ask_minio },	   /* nothing has any importance */
	{ "balanced", ask_minio }, /* all are of one class */
	{ "clock", ask_clock },
	{ "sieve", ask_sieve },
	{ "slru", ask_slru },
	{ "lfu", ask_lfu },
	{ "gdsf", ask_gdsf, .sized = true },
	{ "s3fifo", ask_s3fifo },
	{ "arc", ask_arc },
	{ "2q", ask_2q },
	{ "tinylfu", ask_tinylfu },
	{ "sff_online", ask_sff_online, .sized = true },
	{ 0 },
};
