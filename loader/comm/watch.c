/* SPDX-License-Identifier: MIT */
#include "loader/comm/watch.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <inttypes.h>
#include <net/if.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>

#include "common/tick.h"
#include "common/units.h"
#include "common/util.h"

/* arbitrary: longer than a loaded machine takes to start its ranks, short
 * enough for a user to wait */
#define JOIN_NS (30 * NS_PER_S)
#define ANSWER_NS (3 * NS_PER_S)

/* In place of a rank: the sender leaves on purpose. */
#define BYE UINT32_MAX

struct hello {
	uint8_t key[WATCH_KEY];
	uint32_t rank;
};

int watch_init(struct comm_watch *w, uint32_t ranks)
{
	w->listening = -1;
	w->fd = calloc(ranks, sizeof(*w->fd));
	w->rank = calloc(ranks, sizeof(*w->rank));
	w->n = 1;
	return w->fd && w->rank ? 0 : -ENOMEM;
}

/* --- connections ---------------------------------------------------------- */

/* A peer that does not respond for about ten seconds is gone. */
static void keep_alive(int fd)
{
	int on = 1, idle = 4, every = 2, times = 3;

	setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof(idle));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &every, sizeof(every));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &times, sizeof(times));
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

static void limit(int fd, uint64_t ns)
{
	struct timeval t = { .tv_sec = (time_t)(ns / NS_PER_S) };

	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof(t));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &t, sizeof(t));
}

static void add_rank(struct comm_watch *w, int fd, uint32_t rank)
{
	keep_alive(fd);
	w->fd[w->n] = (struct pollfd){ .fd = fd, .events = POLLIN };
	w->rank[w->n++] = rank;
}

/* The machine's addresses that other machines may reach. */
static void list_addresses(struct watch_door *d, in_port_t port)
{
	struct ifaddrs *all = NULL;

	if (getifaddrs(&all) < 0)
		return;
	for (struct ifaddrs *i = all; i; i = i->ifa_next) {
		if (!i->ifa_addr || i->ifa_addr->sa_family != AF_INET ||
		    i->ifa_flags & IFF_LOOPBACK || d->n == WATCH_ADDRESSES)
			continue;
		memcpy(&d->address[d->n], i->ifa_addr, sizeof(*d->address));
		d->address[d->n++].sin_port = port;
	}
	freeifaddrs(all);
}

int watch_listen(struct comm_watch *w, bool local, struct watch_door *ret,
		 struct err *err)
{
	struct sockaddr_in at = { .sin_family = AF_INET };
	socklen_t size = sizeof(at);

	w->first = true;
	*ret = (struct watch_door){ 0 };
	at.sin_addr.s_addr = htonl(local ? INADDR_LOOPBACK : INADDR_ANY);
	w->listening = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (w->listening < 0 ||
	    bind(w->listening, (struct sockaddr *)&at, sizeof(at)) < 0 ||
	    listen(w->listening, SOMAXCONN) < 0 ||
	    getsockname(w->listening, (struct sockaddr *)&at, &size) < 0 ||
	    getrandom(w->key, sizeof(w->key), 0) != sizeof(w->key) ||
	    getrandom(w->own, sizeof(w->own), 0) != sizeof(w->own))
		return err_set(err, -errno,
			       "cannot listen for the other ranks: %s",
			       strerror(errno));
	memcpy(ret->key, w->key, sizeof(w->key));
	memcpy(ret->own, w->own, sizeof(w->own));
	if (local)
		ret->address[ret->n++] = at;
	else
		list_addresses(ret, at.sin_port);
	return 0;
}

/* --- accepting ------------------------------------------------------------ */

/* Those that have not shown their key yet. One more ends the oldest of them:
 * nobody waits for one that says nothing. */
enum { STRANGERS = 16 };

struct strangers {
	struct pollfd fd[STRANGERS + 1]; /* the last: the listening socket */
	struct hello hello[STRANGERS];
	size_t have[STRANGERS]; /* bytes of it */
	int n;			/* the oldest first */
};

/* Take one out of the list; it stays open. */
static void forget(struct strangers *s, int i)
{
	size_t after = (size_t)(--s->n - i);

	memmove(&s->fd[i], &s->fd[i + 1], after * sizeof(*s->fd));
	memmove(&s->hello[i], &s->hello[i + 1], after * sizeof(*s->hello));
	memmove(&s->have[i], &s->have[i + 1], after * sizeof(*s->have));
}

static void let_in(struct comm_watch *w, struct strangers *s)
{
	int fd = accept4(w->listening, NULL, NULL, SOCK_CLOEXEC);

	if (fd < 0)
		return;
	if (s->n == STRANGERS) {
		close(s->fd[0].fd);
		forget(s, 0);
	}
	s->fd[s->n] = (struct pollfd){ .fd = fd, .events = POLLIN };
	s->have[s->n++] = 0;
}

/* Some of its key is there, or it has left. */
static void identify(struct comm_watch *w, struct strangers *s, int i)
{
	struct hello *h = &s->hello[i];
	int fd = s->fd[i].fd;
	ssize_t n = recv(fd, (char *)h + s->have[i], sizeof(*h) - s->have[i],
			 MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	s->have[i] += n > 0 ? (size_t)n : 0;
	if (n > 0 && s->have[i] < sizeof(*h))
		return;
	if (n > 0 && !memcmp(h->key, w->key, sizeof(h->key)) &&
	    send(fd, w->own, sizeof(w->own), MSG_NOSIGNAL | MSG_DONTWAIT) ==
		    sizeof(w->own))
		add_rank(w, fd, h->rank);
	else
		close(fd);
	forget(s, i);
}

int watch_accept(struct comm_watch *w, uint32_t n, struct err *err)
{
	uint64_t end = tick_wall() + JOIN_NS;
	struct strangers s = { .n = 0 };

	while (w->n <= n && tick_wall() < end) {
		s.fd[s.n] =
			(struct pollfd){ .fd = w->listening, .events = POLLIN };
		if (tick_poll(s.fd, (size_t)s.n + 1, end) <= 0)
			continue;
		if (s.fd[s.n].revents)
			let_in(w, &s);
		for (int i = s.n; i-- > 0 && w->n <= n;)
			identify(w, &s, i);
	}
	while (s.n)
		close(s.fd[--s.n].fd);
	close(w->listening);
	w->listening = -1;
	return w->n > n ? 0
			: err_set(err, -ETIMEDOUT,
				  "only %u of %" PRIu32 " other ranks reached "
				  "rank 0 over TCP",
				  w->n - 1, n);
}

/* --- connecting ----------------------------------------------------------- */

static int knock(const struct sockaddr_in *at, const struct watch_door *door,
		 uint32_t rank)
{
	_cleanup_close_ int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct hello h = { .rank = rank };
	uint8_t own[WATCH_KEY];

	if (fd < 0)
		return -errno;
	memcpy(h.key, door->key, sizeof(h.key));
	limit(fd, ANSWER_NS);
	if (connect(fd, (const struct sockaddr *)at, sizeof(*at)) < 0 ||
	    send(fd, &h, sizeof(h), MSG_NOSIGNAL) != sizeof(h))
		return -errno;
	if (recv(fd, own, sizeof(own), MSG_WAITALL) != sizeof(own) ||
	    memcmp(own, door->own, sizeof(own)))
		return -ENOTCONN;
	limit(fd, 0);
	return TAKE_FD(fd);
}

int watch_connect(struct comm_watch *w, const struct watch_door *door,
		  uint32_t rank, struct err *err)
{
	int fd = -ENOTCONN;

	for (uint32_t i = 0; fd < 0 && i < door->n; i++)
		fd = knock(&door->address[i], door, rank);
	if (fd < 0)
		return err_set(err, -ENOTCONN,
			       "cannot reach rank 0 over TCP: %s",
			       strerror(-fd));
	add_rank(w, fd, 0);
	return 0;
}

/* --- waiting -------------------------------------------------------------- */

static void drop(struct comm_watch *w, unsigned i)
{
	close(w->fd[i].fd);
	w->fd[i] = w->fd[--w->n];
	w->rank[i] = w->rank[w->n];
}

static void tell_all(struct comm_watch *w, uint32_t rank)
{
	for (unsigned i = 1; i < w->n; i++)
		send(w->fd[i].fd, &rank, sizeof(rank),
		     MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void hear(struct comm_watch *w, unsigned i)
{
	uint32_t rank = w->rank[i], word = rank;
	ssize_t n = recv(w->fd[i].fd, &word, sizeof(word), MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	drop(w, i);
	if (n == sizeof(word) && word == BYE)
		return;
	if (n == sizeof(word) && !w->first)
		rank = word;
	if (w->first)
		tell_all(w, rank);
	w->died(w->ctx, rank);
}

bool watch_wait(struct comm_watch *w, int fd, uint64_t ns)
{
	/* poll ignores a negative descriptor */
	w->fd[0] = (struct pollfd){ .fd = fd, .events = POLLIN };
	if (tick_poll(w->fd, w->n, util_plus(tick_wall(), ns)) <= 0)
		return false;
	for (unsigned i = w->n; i-- > 1;)
		if (w->fd[i].revents)
			hear(w, i);
	return w->fd[0].revents;
}

void watch_close(struct comm_watch *w)
{
	if (w->listening >= 0)
		close(w->listening);
	tell_all(w, BYE);
	while (w->n > 1)
		drop(w, 1);
	free(w->fd);
	free(w->rank);
	*w = (struct comm_watch){ .listening = -1 };
}
