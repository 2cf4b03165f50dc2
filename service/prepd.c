/* SPDX-License-Identifier: MIT */
/*
 * gpemu-prepd: preparation of batches outside of the trainer.
 *
 * Rooms, in the order in which a batch meets them:
 *
 *	service/core	who prepares which part of an epoch; the journal
 *	service/dispatcher
 *			hands these parts to workers
 *	service/worker	runs the loader's stages over them
 *	loader		dataset, order, pipeline
 *	service/proto	messages
 *	net		connections over an emulated network card
 *	service/client	the trainer's end, a part of the loader
 */
#include "common/program/cli.h"
#include "service/prepd.h"

static const struct cli_command commands[] = {
	{ "dispatcher", "hand out parts of epochs to workers",
	  prepd_dispatcher_main },
	{ "worker", "prepare batches for trainers", prepd_worker_main },
	{ 0 },
};

int main(int argc, char **argv)
{
	return cli_dispatch("gpemu-prepd",
			    "Prepare batches outside of the trainer, for "
			    "gpemu-train --loader service.",
			    commands, argc, argv);
}
