/* SPDX-License-Identifier: MIT */
/*
 * gpemu-profile: shows, checks and makes profiles of the database.
 *
 * Rooms, in the order in which a profile meets them:
 *
 *	profiles/	the database: YAML, one file a profile
 *	emu/profile	reads and checks it, evaluates it, writes it
 *	emu/node	does so for nodes
 *	emu/tool	a file a subcommand
 *	tools/measure	the part in Python, on PyTorch: measure, validate
 */
#include "emu/tool/profile_tool.h"

int main(int argc, char **argv)
{
	static const struct cli_command commands[] = {
		{ "list", "list the profiles", profile_tool_list },
		{ "show", "show a profile, or a training step of a GPU",
		  profile_tool_show },
		{ "check", "read profiles and report errors",
		  profile_tool_check },
		{ "fit", "list the batch sizes that fit the memory of a GPU",
		  profile_tool_fit },
		{ "import", "make a GPU profile from measured tables",
		  profile_tool_import },
		{ "new", "make a profile from numbers that you know",
		  profile_tool_new },
		{ "measure", "make a GPU profile of the local device",
		  profile_tool_measure },
		{ "validate",
		  "compare a GPU profile with training steps on the device",
		  profile_tool_validate },
		{ "verify", "compare a GPU profile with its tables",
		  profile_tool_verify },
		{ 0 },
	};

	return cli_dispatch("gpemu-profile",
			    "Show, check and measure profiles of GPUs, storage "
			    "devices, datasets, transforms and nodes.",
			    commands, argc, argv);
}
