/* SPDX-License-Identifier: MIT */
#include "store/account.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/util.h"

/* arbitrary: profiles have some hundred bytes */
enum { MOST_FILE = 1 << 20 };

/* --- the files --------------------------------------------------------- */

/* Is it the section of the profile? [profile default] is [default]. */
static bool is_section(char *line, const char *name, bool config)
{
	char *end = strchr(line, ']');

	*end = 0;
	line = util_trim(line + 1);
	if (config && strcmp(line, "default") != 0) {
		if (strncmp(line, "profile", 7) != 0 || !strchr(" \t", line[7]))
			return false;
		line = util_trim(line + 7);
	}
	return !strcmp(line, name);
}

static void keep_first(const char **to, const char *value)
{
	if (!*to && *value)
		*to = value;
}

static void take_setting(struct account_profile *p, const char *key,
			 const char *value)
{
	static const char *const fetched[] = {
		"role_arn",	  "credential_process",
		"sso_start_url",  "sso_session",
		"sso_account_id", "web_identity_token_file",
		"login_session",
	};

	if (!strcmp(key, "aws_access_key_id"))
		keep_first(&p->id, value);
	else if (!strcmp(key, "aws_secret_access_key"))
		keep_first(&p->secret, value);
	else if (!strcmp(key, "aws_session_token"))
		keep_first(&p->token, value);
	else if (!strcmp(key, "region"))
		keep_first(&p->region, value);
	else if (!strcmp(key, "endpoint_url"))
		keep_first(&p->endpoint, value);
	else if (!strcmp(key, "services"))
		keep_first(&p->services, value);
	for (size_t i = 0; i < ARRAY_SIZE(fetched); i++)
		if (!strcmp(key, fetched[i]))
			keep_first(&p->fetched, fetched[i]);
}

int account_parse(char *text, size_t n, const char *file, const char *name,
		  bool config, struct account_profile *ret, struct err *err)
{
	char *at = text, *end = text + n;
	bool ours = false;
	unsigned line = 0;

	if (memchr(text, 0, n))
		return err_set(err, -EINVAL, "%s: contains a NUL", file);
	while (at < end) {
		char *newline = memchr(at, '\n', (size_t)(end - at));
		/* indented: of a key with keys of its own, such as `s3` */
		bool nested = *at == ' ' || *at == '\t';
		char *word, *value;

		*(newline ? newline : end) = 0;
		line++;
		word = util_trim(at);
		at = newline ? newline + 1 : end;
		if (!*word || *word == '#' || *word == ';' || nested)
			continue;
		if (*word == '[' && !strchr(word, ']'))
			return err_set(err, -EINVAL, "%s:%u:1: expected ]",
				       file, line);
		if (*word == '[') {
			ours = is_section(word, name, config);
			ret->found |= ours;
			continue;
		}
		value = strchr(word, '=');
		if (!value)
			return err_set(err, -EINVAL,
				       "%s:%u:1: expected KEY = VALUE", file,
				       line);
		*value++ = 0;
		if (ours)
			take_setting(ret, util_trim(word), util_trim(value));
	}
	return 0;
}

/* --- where they are ---------------------------------------------------- */

/* A variable that is set and not empty; or NULL. */
static const char *variable(const char *name)
{
	const char *value = secure_getenv(name);

	return value && *value ? value : NULL;
}

/* The texts of both files, from which the profile borrows. */
struct files {
	struct text {
		char *bytes;
		size_t n;
	} credentials, config;
	struct account_profile profile;
	const char *name; /* of the profile */
};

static void text_fini(struct text *t)
{
	if (t->bytes) /* it may have secrets */
		explicit_bzero(t->bytes, t->n);
	free(t->bytes);
}

static void files_fini(struct files *f)
{
	text_fini(&f->credentials);
	text_fini(&f->config);
}

/* Read `named`, the value of `variable_name`, or ~/.aws/`usual` if there is
 * such a file. */
static int read_file(struct files *f, const char *variable_name,
		     const char *usual, bool config, struct text *ret,
		     struct err *err)
{
	const char *named = variable(variable_name), *home = variable("HOME");
	_cleanup_free_ char *path = NULL;
	int r;

	if (named)
		path = strdup(named);
	else if (!home)
		return 0;
	else if (asprintf(&path, "%s/.aws/%s", home, usual) < 0)
		path = NULL;
	if (!path)
		return err_set(err, -ENOMEM, "out of memory");
	r = util_read_file(path, MOST_FILE, &ret->bytes, &ret->n);
	if (r == -ENOENT && !named)
		return 0;
	if (r < 0)
		return err_set(err, r, "%s: %s", path, strerror(-r));
	return account_parse(ret->bytes, ret->n, path, f->name, config,
			     &f->profile, err);
}

static int read_files(struct files *f, struct err *err)
{
	const char *named = variable("AWS_PROFILE");
	int r;

	if (!named)
		named = variable("AWS_DEFAULT_PROFILE");
	f->name = named ? named : "default";
	r = read_file(f, "AWS_SHARED_CREDENTIALS_FILE", "credentials", false,
		      &f->credentials, err);
	if (r == 0)
		r = read_file(f, "AWS_CONFIG_FILE", "config", true, &f->config,
			      err);
	if (r == 0 && named && !f->profile.found)
		r = err_set(
			err, -EINVAL,
			"AWS_PROFILE: no profile '%s' in ~/.aws/credentials "
			"and ~/.aws/config",
			named);
	return r;
}

/* --- the account ------------------------------------------------------- */

/* Copy a value if there is one. */
static int copy(char **to, const char *value)
{
	*to = value ? strdup(value) : NULL;
	return value && !*to ? -ENOMEM : 0;
}

static int no_keys(const struct account_profile *p, const char *name,
		   struct err *err)
{
	static const char *const variables[] = {
		"AWS_WEB_IDENTITY_TOKEN_FILE",
		"AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
		"AWS_CONTAINER_CREDENTIALS_FULL_URI",
	};
	const char *by = p->fetched;

	for (size_t i = 0; !by && i < ARRAY_SIZE(variables); i++)
		if (variable(variables[i]))
			by = variables[i];
	if (by)
		return err_set(err, -EINVAL,
			       "profile '%s' gets its keys by %s, which is not "
			       "supported: eval \"$(aws configure "
			       "export-credentials --format env)\"",
			       name, by);
	return err_set(err, -EINVAL,
		       "no keys for the object store: set AWS_ACCESS_KEY_ID "
		       "and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE, or "
		       "AWS_NO_SIGN_REQUEST=yes for a public bucket");
}

static int find_keys(struct account *a, const struct files *f, struct err *err)
{
	const char *id = variable("AWS_ACCESS_KEY_ID");
	const char *secret = variable("AWS_SECRET_ACCESS_KEY");
	const char *token = variable("AWS_SESSION_TOKEN");
	const char *unsigned_ = variable("AWS_NO_SIGN_REQUEST");
	const struct account_profile *p = &f->profile;

	if (unsigned_ &&
	    (!strcasecmp(unsigned_, "yes") || !strcasecmp(unsigned_, "true") ||
	     !strcmp(unsigned_, "1")))
		return 0;
	if (!id != !secret)
		return err_set(err, -EINVAL,
			       "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY go "
			       "together: %s is not set",
			       id ? "AWS_SECRET_ACCESS_KEY"
				  : "AWS_ACCESS_KEY_ID");
	if (!id) {
		id = p->id;
		secret = p->secret;
		token = p->token;
		if (!id || !secret || p->fetched)
			return no_keys(p, f->name, err);
	}
	return copy(&a->id, id) < 0 || copy(&a->secret, secret) < 0 ||
			       copy(&a->token, token) < 0
		       ? err_set(err, -ENOMEM, "out of memory")
		       : 0;
}

/* "http://HOST" or "https://HOST", with a port or not, and no path: keys are
 * sent nowhere else. */
static int set_endpoint(struct account *a, const char *url, struct err *err)
{
	size_t scheme = !strncasecmp(url, "http://", 7)	   ? 7
			: !strncasecmp(url, "https://", 8) ? 8
							   : 0;
	size_t n = strlen(url);

	while (n && url[n - 1] == '/')
		n--;
	if (!scheme || n <= scheme ||
	    strcspn(url + scheme, "/?#@ ") < n - scheme)
		return err_set(err, -EINVAL,
			       "the endpoint of the object store, %s, is not "
			       "http://HOST:PORT or https://HOST:PORT",
			       url);
	a->endpoint = strndup(url, n);
	return a->endpoint ? 0 : err_set(err, -ENOMEM, "out of memory");
}

static int find_endpoint(struct account *a, const struct account_profile *p,
			 struct err *err)
{
	const char *url = variable("AWS_ENDPOINT_URL_S3");

	if (!url)
		url = variable("AWS_ENDPOINT_URL");
	if (!url && p->services)
		return err_set(err, -EINVAL,
			       "'services' of ~/.aws/config is not supported: "
			       "set AWS_ENDPOINT_URL_S3");
	if (!url)
		url = p->endpoint;
	return url ? set_endpoint(a, url, err) : 0;
}

static int find_region(struct account *a, const struct account_profile *p,
		       struct err *err)
{
	const char *region = variable("AWS_REGION");

	if (!region)
		region = variable("AWS_DEFAULT_REGION");
	if (!region)
		region = p->region ? p->region : "us-east-1";
	/* it becomes part of a name of a host */
	if (strspn(region, "abcdefghijklmnopqrstuvwxyz0123456789-") !=
	    strlen(region))
		return err_set(err, -EINVAL, "'%s' is no name of a region",
			       region);
	return copy(&a->region, region) < 0
		       ? err_set(err, -ENOMEM, "out of memory")
		       : 0;
}

int account_find(struct account *ret, struct err *err)
{
	_cleanup_(files_fini) struct files f = { 0 };
	int r;

	*ret = (struct account){ 0 };
	r = read_files(&f, err);
	if (r == 0)
		r = find_keys(ret, &f, err);
	if (r == 0)
		r = find_endpoint(ret, &f.profile, err);
	if (r == 0)
		r = find_region(ret, &f.profile, err);
	if (r == 0 && copy(&ret->ca_file, variable("AWS_CA_BUNDLE")) < 0)
		r = err_set(err, -ENOMEM, "out of memory");
	return r;
}

void account_fini(struct account *a)
{
	if (a->secret)
		explicit_bzero(a->secret, strlen(a->secret));
	if (a->token)
		explicit_bzero(a->token, strlen(a->token));
	free(a->id);
	free(a->secret);
	free(a->token);
	free(a->region);
	free(a->endpoint);
	free(a->ca_file);
	*a = (struct account){ 0 };
}
