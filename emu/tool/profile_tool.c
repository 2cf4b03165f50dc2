/* SPDX-License-Identifier: MIT */
/*
 * gpemu-profile: what the profile database holds, and making more of it.
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
		{ "list", "the profiles there are", profile_tool_list },
		{ "show", "one profile, or one training step of a GPU",
		  profile_tool_show },
		{ "check", "read profiles and say what is wrong",
		  profile_tool_check },
		{ "fit", "which batch sizes fit a GPU's memory",
		  profile_tool_fit },
		{ "import", "make a GPU profile of measured tables",
		  profile_tool_import },
		{ "measure", "make a GPU profile of the device at hand",
		  profile_tool_measure },
		{ "validate",
		  "a GPU profile against training steps on the "
		  "device",
		  profile_tool_validate },
		{ "verify", "how far a GPU profile is from its tables",
		  profile_tool_verify },
		{ 0 },
	};

	return cli_dispatch("gpemu-profile",
			    "The profiles of GPUs, storage devices, "
			    "datasets, preprocessing and nodes.",
			    commands, argc, argv);
}
