/* SPDX-License-Identifier: MIT */
#include "common/util.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>

/* arbitrary: whoever puts something there again and again is at work there */
enum { TRIES = 100 };

int util_reserve(void *pp, size_t *capacity, size_t want, size_t item)
{
	size_t room = MAX(*capacity + *capacity / 2, MAX(want, 64));
	void *p;

	if (want <= *capacity)
		return 0;
	p = reallocarray(*(void **)pp, room, item);
	if (!p)
		return -ENOMEM;
	*(void **)pp = p;
	*capacity = room;
	return 0;
}

int util_reserve_anew(void *pp, size_t *capacity, size_t want, size_t item)
{
	void **p = pp;

	if (want <= *capacity)
		return 0;
	free(*p);
	*capacity = 0;
	*p = reallocarray(NULL, want, item);
	if (!*p)
		return -ENOMEM;
	*capacity = want;
	return 0;
}

void util_want_huge(void *p, size_t bytes)
{
	/* arbitrary: two huge pages of x86 and Arm */
	const size_t large = (size_t)4 << 20, page = (size_t)getpagesize();
	size_t head = -(uintptr_t)p & (page - 1);

	if (bytes >= large)
		madvise((char *)p + head, (bytes - head) & -page,
			MADV_HUGEPAGE);
}

void *util_alloc_pages(size_t *bytes)
{
	const size_t huge = 2 << 20; /* of x86 and Arm */
	size_t align = *bytes >= huge ? huge : 4096;
	size_t size = (*bytes + align - 1) & -align;
	/* else it has overflown */
	void *p = size >= *bytes ? aligned_alloc(align, size) : NULL;

	if (p && align == huge)
		madvise(p, size, MADV_HUGEPAGE); /* a hint; may be refused */
	*bytes = size;
	return p;
}

int util_compare_u64(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

int util_compare_double(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

bool util_ends_in(const char *text, const char *end)
{
	size_t n = strlen(text), m = strlen(end);

	return n > m && !strcmp(text + n - m, end);
}

char *util_text(const char *fmt, ...)
{
	char *text;
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vasprintf(&text, fmt, ap);
	va_end(ap);
	return n < 0 ? NULL : text;
}

bool util_is(const char *s, size_t n, const char *word)
{
	return strlen(word) == n && !strncmp(s, word, n);
}

char *util_join(const char *folder, const char *name)
{
	return util_text("%s/%s", folder, name);
}

char *util_beside(const char *path, const char *name)
{
	_cleanup_free_ char *copy = strdup(path);

	if (name[0] == '/')
		return strdup(name);
	return copy ? util_join(dirname(copy), name) : NULL;
}

char *util_program(void)
{
	char path[PATH_MAX];
	/* of a file that was replaced, too, unlike realpath(3) */
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path));

	return n < 0 ? NULL : strndup(path, (size_t)n);
}

char *util_cache_folder(void)
{
	const char *cache = secure_getenv("XDG_CACHE_HOME"),
		   *home = secure_getenv("HOME");

	if (cache && *cache == '/')
		return util_join(cache, "gpemu");
	return home && *home == '/' ? util_join(home, ".cache/gpemu") : NULL;
}

void util_quote(const char *s, FILE *f)
{
	fputc('\'', f);
	for (; *s; s++)
		if (*s == '\'')
			fputs("'\\''", f);
		else
			fputc(*s, f);
	fputc('\'', f);
}

size_t util_utf8(const char *text)
{
	const unsigned char *s = (const unsigned char *)text;
	size_t n = *s < 0x80   ? 1
		   : *s < 0xc2 ? 0
		   : *s < 0xe0 ? 2
		   : *s < 0xf0 ? 3
		   : *s < 0xf5 ? 4
			       : 0;

	for (size_t i = 1; i < n; i++)
		if ((s[i] & 0xc0) != 0x80)
			return 0;
	/* longer than it need be, half of a pair, beyond the last */
	if ((*s == 0xe0 && s[1] < 0xa0) || (*s == 0xed && s[1] >= 0xa0) ||
	    (*s == 0xf0 && s[1] < 0x90) || (*s == 0xf4 && s[1] >= 0x90))
		return 0;
	return n;
}

char *util_trim(char *s)
{
	char *end = s + strlen(s);

	while (end > s && strchr(" \t\r", end[-1]))
		*--end = 0;
	return s + strspn(s, " \t\r");
}

int util_open_file(int dirfd, const char *path, int flags, struct stat *ret)
{
	_cleanup_close_ int fd = -1;

	flags |= O_RDONLY | O_CLOEXEC | O_NONBLOCK;
	do
		fd = openat(dirfd, path, flags);
	while (fd < 0 && errno == EINTR);
	if (fd < 0 || fstat(fd, ret) < 0)
		return -errno;
	if (!S_ISREG(ret->st_mode))
		return S_ISDIR(ret->st_mode) ? -EISDIR : -ESPIPE;
	return TAKE_FD(fd);
}

/* Does the path name a descriptor that the caller passed on? */
static bool is_descriptor(const char *path)
{
	static const char *const folders[] = { "/dev/fd/", "/proc/self/fd/" };

	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++)
		if (!strncmp(path, folders[i], strlen(folders[i])))
			return true;
	return !strcmp(path, "/dev/stdin");
}

/*
 * A file or a device; -1 with errno. A pipe only as a descriptor: its open has
 * a writer already, and no other user can have put it there. O_NONBLOCK is for
 * the open alone: a read of a terminal waits.
 */
static int open_input(const char *path)
{
	_cleanup_close_ int fd = -1;
	struct stat st;

	do
		fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	while (fd < 0 && errno == EINTR);
	if (fd < 0 || fstat(fd, &st) < 0)
		return -1;
	if (S_ISFIFO(st.st_mode) && !is_descriptor(path)) {
		errno = ESPIPE;
		return -1;
	}
	if (fcntl(fd, F_SETFL, 0) < 0)
		return -1;
	return TAKE_FD(fd);
}

FILE *util_open_stream(const char *path)
{
	_cleanup_close_ int fd = open_input(path);
	FILE *f;

	if (fd < 0)
		return NULL;
	f = fdopen(fd, "r");
	fd = f ? -1 : fd;
	return f;
}

bool util_follows(uid_t owner)
{
	return owner == 0 || owner == geteuid();
}

int util_open_output(const char *path, int flags)
{
	struct stat st;
	int fd;

	flags |= O_WRONLY | O_CLOEXEC | O_NOFOLLOW;
	if (lstat(path, &st) == 0 && S_ISLNK(st.st_mode)) {
		if (!util_follows(st.st_uid))
			return -EACCES;
		flags &= ~O_NOFOLLOW;
	}
	fd = open(path, flags, 0666);
	return fd < 0 ? -errno : fd;
}

static int stream(int fd, FILE **ret)
{
	if (fd < 0)
		return fd;
	*ret = fdopen(fd, "w");
	if (*ret)
		return 0;
	close(fd);
	return -ENOMEM;
}

int util_output_stream(const char *path, int flags, FILE **ret)
{
	return stream(util_open_output(path, flags), ret);
}

int util_new_file(const char *path, int flags)
{
	int fd = -1;

	flags |= O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC;
	for (int i = 0; fd < 0 && i < TRIES; i++) {
		if (unlink(path) < 0 && errno != ENOENT)
			return -errno;
		fd = open(path, flags, 0666);
		if (fd < 0 && errno != EEXIST)
			break;
	}
	return fd < 0 ? -errno : fd;
}

int util_new_stream(const char *path, FILE **ret)
{
	return stream(util_new_file(path, 0), ret);
}

int util_flush(FILE *f)
{
	errno = 0;
	if (fflush(f))
		return errno ? -errno : -EIO;
	return ferror(f) ? -EIO : 0;
}

int util_write_all(int fd, const void *buf, size_t n)
{
	for (const char *p = buf; n;) {
		ssize_t put = write(fd, p, n);

		if (put < 0 && errno == EINTR)
			continue;
		if (put <= 0)
			return put < 0 ? -errno : -EIO;
		p += put;
		n -= (size_t)put;
	}
	return 0;
}

ssize_t util_read_all(int fd, void *buf, size_t n, int64_t offset)
{
	size_t done = 0;

	while (done < n) {
		char *p = (char *)buf + done;
		ssize_t got = offset == UTIL_HERE
				      ? read(fd, p, n - done)
				      : pread(fd, p, n - done,
					      offset + (int64_t)done);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		if (got == 0)
			break;
		done += (size_t)got;
	}
	return (ssize_t)done;
}

int util_read_whole(int fd, size_t most, char **ret, size_t *ret_n)
{
	_cleanup_free_ char *buf = NULL;
	size_t n = 0, capacity = 0, want = 4096;
	struct stat st;

	/* one byte more than the file has is the NUL's, and shows its end */
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 0)
		want = MIN((size_t)st.st_size, most) + 1;
	do {
		ssize_t got;

		if (util_reserve(&buf, &capacity, n + want, 1) < 0)
			return -ENOMEM;
		got = util_read_all(fd, buf + n, capacity - n, UTIL_HERE);
		if (got < 0)
			return (int)got;
		n += (size_t)got;
		if (n > most)
			return -EFBIG;
		want = 1;
	} while (n == capacity);
	buf[n] = 0;
	*ret = TAKE_PTR(buf);
	*ret_n = n;
	return 0;
}

int util_read_file(const char *path, size_t most, char **ret, size_t *ret_n)
{
	_cleanup_close_ int fd = open_input(path);

	return fd < 0 ? -errno : util_read_whole(fd, most, ret, ret_n);
}

static int lock_byte(int fd, uint64_t byte, short type, int how)
{
	struct flock l = { .l_type = type,
			   .l_whence = SEEK_SET,
			   .l_start = (off_t)byte,
			   .l_len = 1 };

	while (fcntl(fd, how, &l) < 0)
		if (errno != EINTR)
			return errno == EACCES ? -EAGAIN : -errno;
	return how == F_OFD_GETLK && l.l_type != F_UNLCK;
}

int util_lock_byte(int fd, uint64_t byte, short type)
{
	return lock_byte(fd, byte, type, F_OFD_SETLK);
}

int util_lock_byte_wait(int fd, uint64_t byte, short type)
{
	return lock_byte(fd, byte, type, F_OFD_SETLKW);
}

int util_byte_is_locked(int fd, uint64_t byte)
{
	return lock_byte(fd, byte, F_WRLCK, F_OFD_GETLK);
}
