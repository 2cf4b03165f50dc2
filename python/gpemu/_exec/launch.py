# SPDX-License-Identifier: MIT
"""gpemu exec: set up the environment of the command and become it."""
from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import time
from pathlib import Path

import gpemu
from gpemu._exec import job
from gpemu._exec.card import Card
from gpemu._exec.output import output

_HERE = Path(__file__).resolve().parent


def _arguments(words):
    parser = argparse.ArgumentParser(
        prog="gpemu exec", allow_abbrev=False,
        usage="gpemu exec [options] -- COMMAND [arguments]",
        description="Run an unmodified PyTorch script on an emulated GPU. "
        "Nothing is computed; copies, forward and backward passes take the "
        "time of the GPU's profile. Needs PyTorch 2.4 or later; no GPU.")
    add = parser.add_argument
    add("--gpu", metavar="NAME",
        help="GPU profile, by name or file; default: that of the server that "
        "came with the job, else v100")
    add("--gpus", metavar="N", type=int,
        help="GPUs that the script sees; a process uses one (default 1, or "
        "those that came with the job)")
    add("--gpu-server", metavar="SOCKET",
        help="train on a GPU of this gpemu-gpud, which other jobs may use "
        "(default $GPEMU_GPU_SERVER, unless --gpu or --node is given)")
    add("--server-user", metavar="USER",
        help="also trust a server of this user (default $GPEMU_SERVER_USER)")
    add("--node", metavar="NAME",
        help="node profile, by name or file: the links between its GPUs; "
        "default: the PCIe link of the GPU's profile")
    add("--model", metavar="NAME",
        help="take the times of this model of the profile; default: the one "
        "with the script's parameters, precision and layout")
    add("--precision", metavar="WORD",
        help="fp32, tf32, fp16 or bf16; default: as the script computes")
    add("--estimate", action="store_true",
        help="a model that the profile lacks: count operations and bytes; "
        "the record says ESTIMATED")
    add("--extrapolate", action="store_true",
        help="allow batches larger than those measured")
    add("--gpu-memory", metavar="SIZE", help="memory of the GPU, as 40GiB")
    add("--record", metavar="FILE", help="write the record as JSON")
    add("--trace", metavar="FILE",
        help="write a timeline for Perfetto, in emulated time")
    add("--time-scale", metavar="X", type=float, default=1,
        help="wall seconds per emulated second (default 1)")
    options = parse(parser, words, "gpemu exec --gpu h100 -- python3 train.py")
    if options.gpus is not None and not 1 <= options.gpus <= 64:
        parser.error(f"--gpus {options.gpus}: not 1 to 64")
    return options


def parse(parser, words, example):
    """The options, and the command after them."""
    tool = parser.prog.split()[-1]
    parser.add_argument("--version", action="version",
                        version=f"gpemu {gpemu.__version__} ({tool})")
    parser.add_argument("command", nargs=argparse.REMAINDER,
                        help=argparse.SUPPRESS)
    options = parser.parse_args(words)
    if options.command[:1] == ["--"]:
        del options.command[0]
    if not options.command:
        parser.error(f"no command: {example}")
    return options


def main(words=None) -> None:
    options = _arguments(words)
    chosen = {k: v for k, v in vars(options).items() if k != "command"}
    try:
        card = Card(chosen)
        if options.model and options.model not in card.profile["models"]:
            card.cost(options.model, 1, True)
        card.close()
    except gpemu.Error as error:
        sys.exit(f"gpemu exec: {error}")
    for name in "record", "trace":
        if chosen[name]:
            chosen[name] = os.path.abspath(chosen[name])
            try:  # now, and not after the training
                output(chosen[name], "w").close()
            except OSError as error:
                sys.exit(f"gpemu exec: {chosen[name]}: {error.strerror}")
    for name in "gpu", "gpu_server":
        if chosen[name] and os.path.exists(chosen[name]):
            chosen[name] = os.path.abspath(chosen[name])
    os.environ["GPEMU_EXEC_BEGAN_NS"] = str(time.monotonic_ns())
    job.begin()
    become(options.command, "exec", chosen)


def become(command, tool, options):
    """Run the command in place of this process; its Python hooks PyTorch."""
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join(
        [str(_HERE / "site"), str(_HERE.parents[1])]
        + ([before] if before else []))
    os.environ["GPEMU_" + tool.upper()] = json.dumps(options)
    os.environ["GPEMU_COMMAND"] = str(os.getpid())
    if not shutil.which(command[0]):
        print(f"gpemu {tool}: {command[0]}: no such command", file=sys.stderr)
        sys.exit(127)
    sys.stdout.flush()
    os.execvp(command[0], command)


if __name__ == "__main__":
    main()
