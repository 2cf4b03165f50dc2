/* SPDX-License-Identifier: MIT */
/* Commands to a mount's control file, on a server of a synthetic dataset. */
#include <string.h>

#include "common/util.h"
#include "fs/control/ctl.h"
#include "fs/control/warm.h"
#include "fs/layer/layer_fault.h"
#include "net/nic.h"
#include "tests/fuzz/fuzz.h"

struct options {
	char *storage, *cache_policy;
	struct units_capacity cache_size;
	struct conf_list faults;
};

static const struct conf_field fields[] = {
	{ "storage", CONF_STRING, offsetof(struct options, storage) },
	{ "cache_policy", CONF_STRING, offsetof(struct options, cache_policy) },
	{ "cache_size", CONF_CAPACITY, offsetof(struct options, cache_size) },
	{ "fault", CONF_LIST, offsetof(struct options, faults),
	  .item = CONF_STRING, .item_size = sizeof(char *) },
	{ 0 },
};

extern const struct source_ops source_synth;

/* Shared by all inputs: each finds the state that the one before left. */
static struct {
	struct tree tree;
	void *source;
	struct options o;
	pthread_mutex_t lock;
	struct ctl ctl;
} all = { .lock = PTHREAD_MUTEX_INITIALIZER };

static void begin(void)
{
	struct err err = { 0 };
	struct server_config c = { .tick = tick_new(1, 0),
				   .source = &source_synth,
				   .tree = &all.tree,
				   .storage = "ideal",
				   .cache_policy = "lru",
				   .cache_size = { .fraction = 1 } };

	all.source = calloc(1, source_synth.plugin.state_size);
	c.source_state = all.source;
	PROMISED(all.source && tree_init(&all.tree) == 0);
	PROMISED(
		source_synth.init(all.source,
				  "imagenette,files=8,classes=2,content=random",
				  &err) == 0);
	PROMISED(source_synth.scan(all.source, &all.tree, &err) == 0);
	all.o = (struct options){ .storage = strdup(c.storage),
				  .cache_policy = strdup(c.cache_policy),
				  .cache_size = c.cache_size };
	all.ctl = (struct ctl){ .fields = fields,
				.options = &all.o,
				.storage = &all.o.storage,
				.cache_policy = &all.o.cache_policy,
				.cache_size = &all.o.cache_size,
				.lock = &all.lock,
				.nic = nic_new() };
	PROMISED(all.ctl.nic);
	nic_limit(all.ctl.nic, 1e9, 1000);
	PROMISED(server_new(&c, &all.ctl.server, &err) == 0);
	PROMISED(warm_new(all.ctl.server, &all.ctl.warm) == 0);
}

/* Commands name files, and some files must not be opened. */
static bool is_safe(const uint8_t *data, size_t n)
{
	static const char *const words[] = { "dev", "proc", "sys" };

	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		if (memmem(data, n, words[i], strlen(words[i])))
			return false;
	return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct err err = { 0 };
	int r;

	if (!all.ctl.server)
		begin();
	if (!is_safe(data, n))
		return -1;
	r = ctl_command(&all.ctl, (const char *)data, n, &err);
	PROMISED(r == 0 || (r < 0 && err.text[0]));
	for (int i = 0; r == 0 && i < CTL_N_FILES; i++) {
		char *text = NULL;
		size_t n_text;

		PROMISED(ctl_read(&all.ctl, (enum ctl_file)i, &text, &n_text) ==
			 0);
		ctl_free(&all.ctl, text, n_text);
	}
	server_fault_clear(all.ctl.server, 0, NULL);
	return 0;
}
