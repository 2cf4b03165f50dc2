/* SPDX-License-Identifier: MIT */
/*
 * The keys of a connection. Both ends know a secret. Each sends a fresh random
 * nonce; both nonces and the secret give one key for each direction:
 *
 *	k1 || k2 = BLAKE2b-512(key: secret,
 *		"gpemu" || greeting of the dialer || greeting of the listener)
 *
 * k1 seals what the dialer sends, k2 what the listener sends, each message with
 * ChaCha20-Poly1305 and its number as the nonce. So a message that opens was
 * made by a holder of the secret for this connection, this direction and this
 * position: nothing can be replayed, reflected, reordered or changed. The
 * library compares tags in constant time.
 *
 * What goes over several connections is sealed once, under a key that one end
 * draws and sends over each of them. The nonce is a number that both ends know
 * from a message of the connection, so that the same holds, but that who has
 * the key may have made it.
 *
 * There is no forward secrecy: whoever learns the secret can read traffic that
 * was recorded before.
 */
#ifndef GPEMU_NET_SEAL_H
#define GPEMU_NET_SEAL_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/err.h"

/*
 * --- files with secrets ---------------------------------------------------
 */

/*
 * Read up to `n` bytes of a file that only its owner may access: this user, or
 * root. Returns their number; -EACCES (others know it), and the errors of
 * open(2) and read(2); with a text.
 */
ssize_t key_file_read(const char *path, void *buf, size_t n, struct err *err);

enum {
	SEAL_KEY = 32,
	SEAL_NONCE = 32,
	SEAL_TAG = 16,	      /* bytes that sealing adds */
	SEAL_LEAST_FILE = 32, /* bytes of a key file */
	SEAL_MOST_FILE = 4096,
};

struct seal_secret {
	unsigned char bytes[SEAL_KEY];
};

/* The keys of one end, and the numbers of the next messages. */
struct seal {
	unsigned char out[SEAL_KEY], in[SEAL_KEY];
	uint64_t n_out, n_in;
};

/* A key that several connections have in common (net/parcel.h). */
struct seal_key {
	unsigned char bytes[SEAL_KEY];
};

/* Call before all others. -EIO with a text: the library cannot start. */
int seal_init(struct err *err);
/*
 * The secret in a file of SEAL_LEAST_FILE to SEAL_MOST_FILE bytes, which only
 * its owner may access: this user, or root. -EINVAL, -EACCES (others know it),
 * and the errors of open(2) and read(2); with a text.
 */
int seal_read_secret(const char *path, struct seal_secret *ret,
		     struct err *err);
/* Overwrite `n` bytes of secrets. */
void seal_forget(void *secret, size_t n);
void seal_nonce(unsigned char ret[SEAL_NONCE]);

/* From the greetings of both ends, `n` bytes each. */
void seal_agree(const struct seal_secret *secret, const unsigned char *dialer,
		const unsigned char *listener, size_t n, int dialed,
		struct seal *ret);
/* Seal the `n` bytes behind the `head` bytes of a header, in place. The header
 * is authenticated too. There is room for the tag. */
void seal_close(struct seal *s, unsigned char *message, size_t head, size_t n);
/* The inverse, `n` with the tag. -EBADMSG: it is not the next message of the
 * other end. */
int seal_open(struct seal *s, unsigned char *message, size_t head, size_t n);
/* The same where the header is elsewhere: `message` begins behind it. */
int seal_open_apart(struct seal *s, const unsigned char *header, size_t head,
		    unsigned char *message, size_t n);

/* A key that nobody has had before. */
void seal_draw(struct seal_key *ret);
/*
 * Seal `n` bytes in place under a common key. There is room for the tag. The
 * number is the nonce: never two messages of one number under one key. `whose`
 * is authenticated too.
 */
void seal_close_common(const struct seal_key *k, uint64_t whose,
		       uint64_t number, unsigned char *message, size_t n);
/* The inverse, `n` with the tag. -EBADMSG: it is not this message. */
int seal_open_common(const struct seal_key *k, uint64_t whose, uint64_t number,
		     unsigned char *message, size_t n);

#endif
