# SPDX-License-Identifier: MIT
"""gpemu record: set up the environment of the command and become it."""
from __future__ import annotations

import argparse
import os
import sys
import tempfile

from gpemu._exec.launch import become, parse
from gpemu._record.job import name_of


def _arguments(words):
    parser = argparse.ArgumentParser(
        prog="gpemu record", allow_abbrev=False,
        usage="gpemu record -o FOLDER [options] -- COMMAND [arguments]",
        description="Run an unmodified PyTorch script on its real device and "
        "write what its GPU,\nloader and transforms took: profiles, and a "
        "workload that repeats the job:\ngpemu run FOLDER/workload.yaml. Needs "
        "PyTorch 2.4 or later.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="commands:\n  import                "
        "write the folder from a trace of strace or DFTracer")
    add = parser.add_argument
    add("-o", "--output", metavar="FOLDER", required=True,
        help="where the files go; made if missing")
    add("--hash-names", action="store_true",
        help="name no folder of the dataset: the workload reads synthetic "
        "files of the same number and mean size")
    return parse(parser, words, "gpemu record -o job -- python3 train.py")


def main(words=None) -> None:
    words = sys.argv[1:] if words is None else words
    if words[:1] == ["import"]:
        from gpemu._import import launch
        return launch.main(words[1:])
    options = _arguments(words)
    folder = os.path.abspath(options.output)
    try:
        os.makedirs(folder, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()  # now, not at the end
    except OSError as error:
        sys.exit(f"gpemu record: {folder}: {error.strerror}")
    become(options.command, "record", {
        "output": folder, "name": name_of(folder),
        "hash_names": options.hash_names})
