/* SPDX-License-Identifier: MIT */
/*
 * libsodium does all that is needed here in a few calls that are hard to
 * misuse. TLS with a pre-shared key would bring certificates, cipher
 * negotiation and renegotiation, all to be turned off.
 */
#include "net/seal.h"

#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <string.h>
#include <sys/stat.h>

#include "common/util.h"
#include "net/wire.h"

/* --- files with secrets -------------------------------------------------- */

ssize_t key_file_read(const char *path, void *buf, size_t n, struct err *err)
{
	struct stat st;
	_cleanup_close_ int fd = util_open_file(AT_FDCWD, path, 0, &st);
	ssize_t r;

	if (fd < 0)
		return err_set(err, fd, "%s: %s", path, strerror(-fd));
	if (!util_follows(st.st_uid))
		return err_set(err, -EACCES,
			       "%s: owned by user %u, who knows the key: use "
			       "one of your own",
			       path, (unsigned)st.st_uid);
	if (st.st_mode & 077)
		return err_set(err, -EACCES,
			       "%s: other users may access the key: chmod 600",
			       path);
	r = util_read_all(fd, buf, n, UTIL_HERE);
	return r < 0 ? err_set(err, (int)r, "%s: %s", path, strerror((int)-r))
		     : r;
}

_Static_assert(SEAL_KEY == crypto_aead_chacha20poly1305_ietf_KEYBYTES, "");
_Static_assert(SEAL_TAG == crypto_aead_chacha20poly1305_ietf_ABYTES, "");

int seal_init(struct err *err)
{
	return sodium_init() < 0 ? err_set(err, -EIO, "libsodium cannot start")
				 : 0;
}

static void hash_secret(const void *bytes, size_t n, struct seal_secret *ret)
{
	crypto_generichash(ret->bytes, sizeof(ret->bytes), bytes, n, NULL, 0);
}

int seal_read_secret(const char *path, struct seal_secret *ret, struct err *err)
{
	unsigned char bytes[SEAL_MOST_FILE + 1];
	ssize_t n = key_file_read(path, bytes, sizeof(bytes), err);
	int r = (int)MIN(n, 0);

	if (n >= 0 && (n < SEAL_LEAST_FILE || n > SEAL_MOST_FILE))
		r = err_set(err, -EINVAL,
			    "%s: a key has %d to %d bytes: head -c 32 "
			    "/dev/urandom >FILE makes one",
			    path, SEAL_LEAST_FILE, SEAL_MOST_FILE);
	else if (n >= 0)
		hash_secret(bytes, (size_t)n, ret);
	seal_forget(bytes, sizeof(bytes));
	return r;
}

void seal_forget(void *secret, size_t n)
{
	sodium_memzero(secret, n);
}

void seal_nonce(unsigned char ret[SEAL_NONCE])
{
	randombytes_buf(ret, SEAL_NONCE);
}

void seal_agree(const struct seal_secret *secret, const unsigned char *dialer,
		const unsigned char *listener, size_t n, int dialed,
		struct seal *ret)
{
	static const char name[] = "gpemu";
	unsigned char keys[2][SEAL_KEY];
	crypto_generichash_state h;

	crypto_generichash_init(&h, secret->bytes, sizeof(secret->bytes),
				sizeof(keys));
	crypto_generichash_update(&h, (const void *)name, sizeof(name) - 1);
	crypto_generichash_update(&h, dialer, n);
	crypto_generichash_update(&h, listener, n);
	crypto_generichash_final(&h, &keys[0][0], sizeof(keys));
	memcpy(ret->out, keys[dialed ? 0 : 1], SEAL_KEY);
	memcpy(ret->in, keys[dialed ? 1 : 0], SEAL_KEY);
	ret->n_out = ret->n_in = 0;
	seal_forget(keys, sizeof(keys));
	seal_forget(&h, sizeof(h));
}

enum { NONCE = crypto_aead_chacha20poly1305_ietf_NPUBBYTES };

static void nonce_of(uint64_t n, unsigned char ret[NONCE])
{
	memset(ret, 0, NONCE);
	wire_put(ret + NONCE - 8, n, 8);
}

void seal_close(struct seal *s, unsigned char *message, size_t head, size_t n)
{
	unsigned char nonce[NONCE], *body = message + head;

	nonce_of(s->n_out++, nonce);
	crypto_aead_chacha20poly1305_ietf_encrypt(body, NULL, body, n, message,
						  head, NULL, nonce, s->out);
}

int seal_open_apart(struct seal *s, const unsigned char *header, size_t head,
		    unsigned char *message, size_t n)
{
	unsigned char nonce[NONCE];

	nonce_of(s->n_in++, nonce);
	return crypto_aead_chacha20poly1305_ietf_decrypt(message, NULL, NULL,
							 message, n, header,
							 head, nonce, s->in) < 0
		       ? -EBADMSG
		       : 0;
}

int seal_open(struct seal *s, unsigned char *message, size_t head, size_t n)
{
	return seal_open_apart(s, message, head, message + head, n);
}

void seal_draw(struct seal_key *ret)
{
	randombytes_buf(ret->bytes, sizeof(ret->bytes));
}

void seal_close_common(const struct seal_key *k, uint64_t whose,
		       uint64_t number, unsigned char *message, size_t n)
{
	unsigned char nonce[NONCE], owner[8];

	nonce_of(number, nonce);
	wire_put(owner, whose, sizeof(owner));
	crypto_aead_chacha20poly1305_ietf_encrypt(message, NULL, message, n,
						  owner, sizeof(owner), NULL,
						  nonce, k->bytes);
}

int seal_open_common(const struct seal_key *k, uint64_t whose, uint64_t number,
		     unsigned char *message, size_t n)
{
	unsigned char nonce[NONCE], owner[8];

	nonce_of(number, nonce);
	wire_put(owner, whose, sizeof(owner));
	return crypto_aead_chacha20poly1305_ietf_decrypt(message, NULL, NULL,
							 message, n, owner,
							 sizeof(owner), nonce,
							 k->bytes) < 0
		       ? -EBADMSG
		       : 0;
}
