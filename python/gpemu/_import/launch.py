# SPDX-License-Identifier: MIT
"""The command: gpemu record import."""
from __future__ import annotations

import argparse
import json
import os
import sys

import gpemu
from gpemu._import import dftracer, epochs, strace
from gpemu._import.job import Imported
from gpemu._import.lines import SECOND, TraceError
from gpemu._import.reads import Full, Reads
from gpemu._record import job

_MOST_BATCH = 1 << 20  # as of GPU profiles
_MOST_MS = 1e9


def _between(kind, least, most):
    def value(text):
        try:
            found = kind(text)
        except ValueError:
            found = most + 1
        if not least <= found <= most:
            raise argparse.ArgumentTypeError(
                f"{text}: not a number of {least} to {most:g}")
        return found
    return value


def _arguments(words):
    parser = argparse.ArgumentParser(
        prog=Imported.tool, allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        usage="gpemu record import --strace|--dftracer FILE... -o FOLDER "
        "[options]",
        description="Write the folder of gpemu record from a trace of a job.\n"
        "Wanted of strace, in one line:\n    " +
        strace.COMMAND.replace(" -e ", "\n    -e ") +
        "\nWanted of DFTracer: the .pfw or .pfw.gz files of the trainer and of "
        "its workers, with\n    DFTRACER_ENABLE=1 DFTRACER_INC_METADATA=1")
    add = parser.add_argument
    trace = parser.add_mutually_exclusive_group(required=True)
    for name in "strace", "dftracer":
        trace.add_argument(f"--{name}", metavar="FILE", nargs="+",
                           help=f"traces of {name}")
    add("-o", "--output", metavar="FOLDER", required=True,
        help="where the files go; made if missing")
    add("--data", metavar="FOLDER",
        help="the dataset is below this folder; default: all files of the "
        "kind of which most was read")
    add("--batch", metavar="N", type=_between(int, 1, _MOST_BATCH),
        help="samples of a step; default: as DFTracer has it")
    add("--step-ms", metavar="X", type=_between(float, 0, _MOST_MS),
        help="what a step of the GPU took; default: as DFTracer has it")
    add("--gpu", metavar="NAME",
        help="GPU profile of the steps, by name or file, with --model")
    add("--model", metavar="NAME", help="model of the profile")
    add("--workers", metavar="N", type=_between(int, 1, 1024),
        help="workers of the loader; default: threads that read")
    add("--prefetch", metavar="N", type=_between(int, 1, 1024), default=2,
        help="batches prefetched per worker (default 2)")
    add("--hash-names", action="store_true",
        help="name no folder of the dataset and no trace: the workload reads "
        "synthetic files of the same number and mean size")
    add("--version", action="version",
        version=f"gpemu {gpemu.__version__} (record import)")
    options = parser.parse_args(words)
    if bool(options.gpu) != bool(options.model):
        parser.error("--gpu and --model stand together")
    if options.gpu and options.step_ms is not None:
        parser.error("--step-ms or --gpu, not both")
    given = bool(options.gpu) or options.step_ms is not None
    if given != bool(options.batch):
        parser.error("--batch N stands with --step-ms X, or with --gpu NAME "
                     "--model NAME")
    if options.strace and not given:
        parser.error("strace does not show steps: --batch N with --step-ms X, "
                     "or with --gpu NAME --model NAME")
    return options


def _read(options, note):
    reads, events = Reads(options.data), dftracer.Events()
    try:
        for path in options.strace or options.dftracer:
            if options.strace:
                strace.parse(path, reads, note)
            else:
                dftracer.parse(path, reads, events, note)
    except Full as full:
        note(str(full))
    reads.end()
    return reads, events


def _scaled(step_ns, batch):
    return lambda n: {"forward": round(step_ns * n / batch)}


def _of_profile(options):
    """What a step costs by it; the words of the workload."""
    from gpemu._exec.card import Card
    gpu = os.path.abspath(options.gpu) if os.path.exists(options.gpu) \
        else options.gpu
    card = Card({"gpu": gpu, "time_scale": 1, "gpus": 1})
    costs = {}

    def cost(n):
        if n not in costs:
            found = card.cost(options.model, n, n != options.batch)
            costs[n] = {p: getattr(found, p + "_ns") for p in job.PARTS}
        return costs[n]
    cost(options.batch)
    return cost, f"gpu: {json.dumps(gpu, ensure_ascii=False)}, model: {json.dumps(options.model)}"


def _trainers(events):
    found = {s.reader[:2] for s in events.computes + events.trainings}
    if len(found) > 1:
        raise TraceError(
            "traces", f"{len(found)} processes train (" +
            ", ".join(str(pid) for _, pid in sorted(found)[:8]) +
            "): give the files of one, and of its workers")


def _job(options, notes):
    note = notes.append
    reads, events = _read(options, note)
    _trainers(events)
    openings = reads.dataset(note)
    if not openings:
        raise TraceError("traces", "no file of a dataset was read" + (
            f" below {options.data}" if options.data else ""))
    found = epochs.epochs(epochs.samples(openings, events.items), events, note)
    gpu = None
    if options.batch:
        if options.gpu:
            cost, gpu = _of_profile(options)
        else:
            cost = _scaled(options.step_ms * SECOND / 1000, options.batch)
        for epoch in found:
            epoch.steps.clear()
            epochs.train(epoch, options.batch, cost)
    if not found or not all(e.steps for e in found):
        raise TraceError("traces", "no step was seen: --batch N with --step-ms "
                         "X, or with --gpu NAME --model NAME")
    if not any(s.openings for e in found for s in e.samples):
        raise TraceError("traces", "no file was read while a sample was made")
    if not events.items and not any(reads.waited[o.reader] for o in openings):
        note("the trace does not show that readers wait: what they waited for "
             "their trainer counts as preparation")
    files = options.strace or options.dftracer
    workers = options.workers
    if not workers and {s.reader for s in events.computes} & \
            {o.reader for o in openings}:
        workers = 0  # it loads between its steps
    return Imported({
        "output": options.output, "hash_names": options.hash_names,
        "name": job.name_of(options.output), "workers": workers,
        "prefetch": options.prefetch, "step_given": bool(options.batch),
        "trace": "strace" if options.strace else "DFTracer",
        "names": ascii(" ".join(map(os.path.basename, files)))[1:-1][:200]},
        found, gpu)


def main(words=None) -> None:
    options, notes = _arguments(words), []
    options.output = os.path.abspath(options.output)
    try:
        os.makedirs(options.output, exist_ok=True)
        found = _job(options, notes)
    except (TraceError, gpemu.Error) as error:
        sys.exit("\n".join(f"{Imported.tool}: {text}"
                           for text in [*notes, error]))
    except OSError as error:
        sys.exit(f"{Imported.tool}: {options.output}: {error.strerror}")
    for text in notes:
        found.note(text)
    sys.exit(not job.write(found))
