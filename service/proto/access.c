/* SPDX-License-Identifier: MIT */
#include "service/proto/access.h"

#include <errno.h>
#include <string.h>

#include "common/util.h"
#include "net/own_key.h"

int access_init(struct access *a, const char *key, struct err *err)
{
	int r = seal_init(err);

	*a = (struct access){ .has_key = key, .nic = nic_new() };
	if (r == 0 && !a->nic)
		r = err_set(err, -ENOMEM, "out of memory");
	if (r < 0)
		return r;
	return key ? seal_read_secret(key, &a->secret, err)
		   : own_key_read(&a->secret, err);
}

void access_fini(struct access *a)
{
	seal_forget(&a->secret, sizeof(a->secret));
	nic_free(TAKE_PTR(a->nic));
}

int access_find(const struct access *a, const char *text, struct addr *ret,
		struct err *err)
{
	int r = addr_find(text, ret, err);

	if (r == 0 && !a->has_key && !addr_is_loopback(ret))
		r = err_set(err, -EINVAL,
			    "%s: other machines can reach this address: the "
			    "service needs a key file, the same for all",
			    text);
	return r;
}

void ends_count(struct ends *e, int why)
{
	switch (why) {
	case -ECANCELED: return;
	case -ETIMEDOUT: e->slow++; return;
	case -EBADMSG: e->garbage++; return;
	case -EPROTONOSUPPORT: e->version++; return;
	case -EMSGSIZE: e->too_long++; return;
	case -EPROTO: e->wrong++; return;
	case -EMFILE: e->too_many++; return;
	default: e->closed++;
	}
}

json_t *ends_json(const struct ends *e)
{
	return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "closed",
			 (json_int_t)e->closed, "slow", (json_int_t)e->slow,
			 "garbage", (json_int_t)e->garbage, "other_version",
			 (json_int_t)e->version, "too_long",
			 (json_int_t)e->too_long, "wrong_message",
			 (json_int_t)e->wrong, "too_many",
			 (json_int_t)e->too_many);
}

const char *ends_text(int why)
{
	switch (why) {
	case 0: return "";
	case -ETIMEDOUT: return "too slow";
	case -EBADMSG: return "it has a different key, or is not gpemu-prepd";
	case -EPROTONOSUPPORT: return "it has a different version";
	case -ECONNRESET: return "the connection was closed";
	default: return strerror(-why);
	}
}
