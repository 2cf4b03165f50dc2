/* SPDX-License-Identifier: MIT */
/*
 * Cleanup attributes, and the few macros and functions that every file may
 * use.
 *
 * An owning local is marked at its declaration (`_cleanup_free_ char *p =
 * NULL;`) and hands over visibly (`*ret = TAKE_PTR(p);`).
 */
#ifndef GPEMU_COMMON_UTIL_H
#define GPEMU_COMMON_UTIL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
/* Both may evaluate an argument twice: never a call that does something. */
#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define MAX(a, b) ((a) > (b) ? (a) : (b))
#define container_of(ptr, type, member) \
	((type *)((char *)(ptr)-offsetof(type, member)))

/* The largest errno; a number from elsewhere may be larger. Source: MAX_ERRNO,
 * include/linux/err.h */
enum { MAX_ERRNO = 4095 };

/* What is too large for a uint64_t is its largest value: of times, never. */
static inline uint64_t util_plus(uint64_t a, uint64_t b)
{
	return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

/* Without the fraction; 0 of what is negative or no number. */
static inline uint64_t util_whole(double v)
{
	/* 2^64; UINT64_MAX is no double */
	return v >= 18446744073709551616. ? UINT64_MAX
	       : v > 0			  ? (uint64_t)v
					  : 0;
}

/* aligned_alloc() for a size that need not be a multiple of `align`. */
static inline void *util_aligned_alloc(size_t align, size_t size)
{
	return aligned_alloc(align, (size + align - 1) / align * align);
}

/* A hint for memory that is read in no order: use huge pages, if it is large
 * and the system has some. Best before it is written. */
void util_want_huge(void *p, size_t bytes);

/* Pages for free(), of which *bytes is the number, rounded up. From 2 MiB on
 * huge pages, if there are some: what is touched front to back has fewer
 * faults, what a device reads into fewer pieces. NULL: no memory. */
void *util_alloc_pages(size_t *bytes);

static inline void util_freep(void *p)
{
	free(*(void **)p);
}

static inline void util_closep(int *fd)
{
	if (*fd >= 0)
		close(*fd);
}

static inline void util_fclosep(FILE **f)
{
	if (*f)
		fclose(*f);
}

/*
 * Room for `want` items of `item` bytes in an array of which *pp is the first:
 * it grows by half at least, and stays as it was where there is no memory.
 * -ENOMEM.
 */
int util_reserve(void *pp, size_t *capacity, size_t want, size_t item);
/* The same without keeping the items: allocates no more than requested.
 */
int util_reserve_anew(void *pp, size_t *capacity, size_t want, size_t item);
/* For qsort(3): uint64_t, ascending. */
int util_compare_u64(const void *a, const void *b);
/* The same of double. */
int util_compare_double(const void *a, const void *b);
/* Does the text end in `end`, with something in front of it? */
bool util_ends_in(const char *text, const char *end);
/* A text as printf(3) makes it, malloc'ed; NULL: no memory. */
char *util_text(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* Are the `n` bytes at `s` this word? */
bool util_is(const char *s, size_t n, const char *word);
/* Malloc'ed: "FOLDER/NAME"; NULL: no memory. */
char *util_join(const char *folder, const char *name);
/* The same of the folder that the file `path` is in; of a `name` that begins
 * with '/', that itself. */
char *util_beside(const char *path, const char *name);
/* The path of the running program, links resolved; malloc'ed. NULL with errno.
 */
char *util_program(void);
/* $XDG_CACHE_HOME/gpemu, else ~/.cache/gpemu; malloc'ed. NULL: neither is set
 * to an absolute path, or no memory. Source: XDG base directory specification
 */
char *util_cache_folder(void);
/* The length of the UTF-8 character at `s`; 0: invalid. */
size_t util_utf8(const char *s);
/* Write a word as sh(1) reads it back. */
void util_quote(const char *s, FILE *f);
/* Trims `s` in place. */
char *util_trim(char *s);
/*
 * Open a file for reading, with `flags` besides O_RDONLY, and return its type:
 * does not block on a pipe or device. -errno: -EISDIR, and -ESPIPE of what is
 * neither a file nor a folder.
 */
int util_open_file(int dirfd, const char *path, int flags, struct stat *ret);
/* The same as a stream, and also of a device, or of a pipe that is given as a
 * descriptor, /dev/stdin or /dev/fd/N: reads may block. NULL with errno. */
FILE *util_open_stream(const char *path);

/*
 * Files to write to, in folders where other users may write as well. A link of
 * another user leads to a file of one's own, which would be emptied or added
 * to. The kernel refuses to follow it in a sticky folder alone, and with
 * fs.protected_symlinks alone; hard links, and files and pipes that another
 * user has put there, are the matter of fs.protected_hardlinks,
 * fs.protected_regular and fs.protected_fifos.
 */

/* May a link of this user be followed, a key of this user be used? Root's and
 * one's own may. */
bool util_follows(uid_t owner);

/*
 * A lock on one byte of a file, which need not be so long: `type` is F_WRLCK,
 * F_RDLCK or F_UNLCK. It is that of the open file (fcntl(2), F_OFD_SETLK):
 * closing another descriptor of the file drops nothing, and the kernel drops it
 * with the last descriptor. -EAGAIN: it is taken; -errno.
 */
int util_lock_byte(int fd, uint64_t byte, short type);
/* The same, and wait for it. */
int util_lock_byte_wait(int fd, uint64_t byte, short type);
/* Does another open file have it? -errno. */
int util_byte_is_locked(int fd, uint64_t byte);
/*
 * open(2) to write, with `flags` besides O_WRONLY and O_CLOEXEC; with O_CREAT
 * the mode is what the umask leaves of 0666. -errno: -EACCES of a link of
 * another user, who is not root.
 */
int util_open_output(const char *path, int flags);
/* The same as a stream. 0 or -errno. */
int util_output_stream(const char *path, int flags, FILE **ret);
/*
 * A new file in the place of what is there, be it a link or a pipe, which is
 * removed: for folders that are this program's own. -errno.
 */
int util_new_file(const char *path, int flags);
int util_new_stream(const char *path, FILE **ret);
/* Was all that was printed written? 0 or -errno; -EIO: an earlier write failed,
 * and stdio has not kept why. */
int util_flush(FILE *f);
/* write(2) until all is written. -errno. */
int util_write_all(int fd, const void *buf, size_t n);
/*
 * pread(2) until `n` bytes are there or the file ends, or read(2) where
 * `offset` is UTIL_HERE. How many they are, or -errno.
 */
ssize_t util_read_all(int fd, void *buf, size_t n, int64_t offset);
enum { UTIL_HERE = -1 };
/*
 * All that can be read from `fd`, from where it stands: its end counts, and
 * not the size that it says (a file of /proc says 0). Malloc'ed, with a NUL
 * behind the bytes, so that text is a string. -ENOMEM; -EFBIG: more than
 * `most` bytes (SIZE_MAX: no limit); what read(2) fails with, such as -EISDIR.
 */
int util_read_whole(int fd, size_t most, char **ret, size_t *ret_n);
/* The same of a path that util_open_stream() opens: also what open(2) fails
 * with; -ESPIPE of a pipe that is not given as a descriptor. */
int util_read_file(const char *path, size_t most, char **ret, size_t *ret_n);

#define _cleanup_(fn) __attribute__((cleanup(fn)))
#define _cleanup_free_ _cleanup_(util_freep)
#define _cleanup_close_ _cleanup_(util_closep)
#define _cleanup_fclose_ _cleanup_(util_fclosep)

#define TAKE_PTR(p)                        \
	({                                 \
		__auto_type take_p_ = (p); \
		(p) = NULL;                \
		take_p_;                   \
	})
#define TAKE_FD(fd)                  \
	({                           \
		int take_fd_ = (fd); \
		(fd) = -1;           \
		take_fd_;            \
	})

/*
 * From lib/pythonX.Y/site-packages/gpemu.scripts, where auditwheel puts the
 * programs of a wheel, to a folder as near to the prefix as bin.
 */
#define UTIL_WHEEL_UP "../../.."

#endif
