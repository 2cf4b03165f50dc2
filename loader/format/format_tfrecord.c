/* SPDX-License-Identifier: MIT */
/*
 * TFRecord files. A record is
 *
 *	uint64 length; uint32 masked_crc32c(length);
 *	uint8 data[length]; uint32 masked_crc32c(data);
 *
 * little-endian. The sums of the lengths are always checked: after a wrong
 * length everything is misread. Those of the data are checked only on request,
 * since that reads the whole file.
 *
 * A record that is a tf.train.Example is the image of one of its features, with
 * the label of another: the options name them, or the usual names are tried.
 * Any other record is a sample as a whole, without a label.
 */
#include "loader/dataset/format.h"

#include <ctype.h>
#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "common/conf/conf.h"
#include "common/util.h"
#include "loader/format/crc32c.h"
#include "loader/format/example.h"

enum { HEAD = 12, TAIL = 4 };

struct record {
	uint64_t at, data, length;
};

static int bad(struct err *err, const struct record *x, const char *what)
{
	return err_set(err, -EINVAL, "the record at byte %" PRIu64 ": %s",
		       x->at, what);
}

static int failed(struct err *err, const struct record *x, int r)
{
	if (r == -ENODATA)
		return bad(err, x, "truncated");
	return err_set(err, r, "the record at byte %" PRIu64 ": %s", x->at,
		       strerror(-r));
}

static uint32_t get32(const uint8_t *v)
{
	uint32_t x;

	memcpy(&x, v, sizeof(x));
	return le32toh(x);
}

static bool length_is_right(const uint8_t *head)
{
	return crc32c_mask(crc32c(0, head, 8)) == get32(head + 8);
}

static int read_record(struct peek *p, uint64_t at, struct record *x,
		       struct err *err)
{
	const uint8_t *v;
	uint64_t length;
	int r;

	*x = (struct record){ .at = at, .data = at + HEAD };
	r = peek_get(p, at, HEAD, &v);
	if (r < 0)
		return failed(err, x, r);
	if (at == 0 && v[0] == 0x1f && v[1] == 0x8b)
		return bad(err, x, "compressed with gzip: not supported");
	if (!length_is_right(v))
		return bad(err, x, "the checksum of its length is wrong");
	memcpy(&length, v, sizeof(length));
	x->length = le64toh(length);
	if (x->length > p->size - x->data ||
	    p->size - x->data - x->length < TAIL)
		return bad(err, x, "truncated: longer than the file");
	return 0;
}

static int verify(struct peek *p, const struct record *x, struct err *err)
{
	uint64_t at = x->data, end = x->data + x->length;
	const uint8_t *v;
	uint32_t crc = 0;
	int r = 0;

	while (r == 0 && at < end) {
		size_t n = MIN(end - at, PEEK_MOST);

		r = peek_get(p, at, n, &v);
		if (r == 0)
			crc = crc32c(crc, v, n);
		at += n;
	}
	if (r == 0)
		r = peek_get(p, end, TAIL, &v);
	if (r < 0)
		return failed(err, x, r);
	return get32(v) == crc32c_mask(crc)
		       ? 0
		       : bad(err, x, "the checksum of its data is wrong");
}

/* --- the features of an Example ------------------------------------------- */

struct options {
	char *image, *label;
	bool verify;
};

static const struct note_kind image_feature = { "image_feature" };
static const struct note_kind label_feature = { "label_feature" };
static const struct note_kind no_image = {
	"records_without_image",
	"records read as a whole, without a feature that image= names; they "
	"begin with feature",
};
static const struct note_kind other_image = {
	"images_of_another_type",
	"records read as a whole, as their image feature is not of type bytes",
};
static const struct note_kind other_label = {
	"labels_of_another_type",
	"records without a label, as the label feature is not an integer",
};

/* What was found of one feature, and what was not. */
static int note_feature(struct dataset_part *p, const struct example_feature *f,
			const struct note_kind *found,
			const struct note_kind *other)
{
	if (f->rank < 0)
		return 0;
	return notes_add(&p->notes, f->found ? found : other, 1, f->key);
}

static int note_example(struct dataset_part *p, const struct example *e)
{
	int r = note_feature(p, &e->image, &image_feature, &other_image);

	if (r == 0)
		r = note_feature(p, &e->label, &label_feature, &other_label);
	return r < 0 || e->image.rank >= 0
		       ? r
		       : notes_add(&p->notes, &no_image, 1, e->first);
}

static int take_record(struct peek *p, const struct record *x,
		       const struct options *o, struct dataset_part *ret,
		       struct err *err)
{
	const struct example_names names = { o->image, o->label };
	uint32_t label = PART_BY_FOLDER;
	struct example e;
	int r = example_find(p, x->data, x->length, &names, &e);

	if (r < 0 && r != -EBADMSG)
		return failed(err, x, r);
	/* bytes that happen to be an Example of nothing are none */
	if (r == 0 && e.n_features && note_example(ret, &e) < 0)
		return failed(err, x, -ENOMEM);
	if (r < 0 || !e.image.found) {
		e.offset = x->data;
		e.size = x->length;
	}
	if (r == 0 && e.label.found) {
		if (e.value < 0 || e.value >= INT32_MAX)
			return bad(err, x, "a label outside 0..2147483646");
		label = (uint32_t)e.value;
	}
	r = part_add(ret, NULL, 0, e.offset, e.size, label);
	return r < 0 ? failed(err, x, r) : 0;
}

static int check_feature(const void *object, struct err *err)
{
	const char *name = *(char *const *)object;

	return *name ? 0
		     : err_set(err, -EINVAL,
			       "a name of a feature, such as image/encoded");
}

static const struct conf_field fields[] = {
	{ CONF_KEY(image, CONF_STRING, struct options), .check = check_feature,
	  .arg = "FEATURE,...",
	  .help = "features of an Example that hold the sample; the first one "
		  "present is read" },
	{ CONF_KEY(label, CONF_STRING, struct options), .check = check_feature,
	  .arg = "FEATURE,...", .help = "features that hold the label" },
	{ CONF_KEY(verify, CONF_BOOL, struct options), .arg = "on|off",
	  .help = "also verify the checksums of the data, which reads all of "
		  "it" },
	{ 0 },
};

/* Source: the writers of TensorFlow's models (slim) and TensorFlow Datasets,
 * then what scripts of users have, the likeliest first */
static const struct options defaults = {
	.image = (char *)"image/encoded,image,image_raw,jpg",
	.label = (char *)"image/class/label,label",
};

static int scan(struct peek *p, const void *options, struct dataset_part *ret,
		struct err *err)
{
	const struct options *o = options ? options : &defaults;
	int r = 0;

	for (uint64_t at = 0; r == 0 && at < p->size;) {
		struct record x;

		r = read_record(p, at, &x, err);
		if (r == 0 && o->verify)
			r = verify(p, &x, err);
		if (r == 0)
			r = take_record(p, &x, o, ret, err);
		at = x.data + x.length + TAIL;
	}
	if (r == 0 && part_note_labels(ret, p->path) < 0)
		r = err_set(err, -ENOMEM, "out of memory");
	return r;
}

/* "x.tfrecord", "x.tfrecords", "x.tfrecord-00000-of-00004", and TensorFlow's
 * names of shards: "train-00000-of-01024". */
static bool named(const char *name)
{
	static const char mould[] = "-00000-of-00000";
	const char *dot = strstr(name, ".tfrecord");
	size_t n = strlen(name), m = sizeof(mould) - 1;
	const char *at = name + n - MIN(n, m);

	if (dot) {
		dot += strlen(".tfrecord");
		dot += *dot == 's';
		return !*dot || *dot == '-';
	}
	if (n <= m)
		return false;
	for (size_t i = 0; i < m; i++)
		if (mould[i] == '0' ? !isdigit((unsigned char)at[i])
				    : at[i] != mould[i])
			return false;
	return true;
}

static bool looks(const uint8_t *head, size_t n)
{
	return n >= HEAD && length_is_right(head);
}

const struct format_ops format_tfrecord = {
	.plugin = { .name = "tfrecord",
		    .summary = "TFRecord files: a record is a sample, or the "
			       "image of its Example",
		    PLUGIN_OPTIONS(fields, defaults) },
	.named = named,
	.looks = looks,
	.scan = scan,
};
