# SPDX-License-Identifier: MIT
"""The PyTorch part of gpemu-profile measure and validate.

    python3 tools/measure measure|validate OPTIONS

OPTIONS is a JSON object, which gpemu-profile makes of its own options. The
result goes to stdout as JSON, progress to stderr. Exit status: 0 done, 1
failed or a model failed, 2 usage, 75 what is needed is not there.
"""
import ctypes
import json
import os
import re
import resource
import signal
import sys

USAGE, NOT_THERE = 2, 75
MODEL_FAILED = 3  # of a worker


def say(text):
    print(text, file=sys.stderr, flush=True)


def leave(status, text):
    say(f"gpemu-profile {sys.argv[1]}: {text}")
    sys.exit(status)


try:
    import torch  # noqa: F401
except ImportError as missing:
    leave(NOT_THERE, f"{missing}: install python3-torch")

import assemble
import backends
import copies
import journal
import zoo
from job import Job, OutOfMemory

DEFAULT_AUTO = 256


def auto_batches(most):
    """1 2 3 4 6 8 12 16 ...: powers of two and the midpoints between them."""
    power, found = 1, {most}
    while power <= most:
        found |= {power, power * 3 // 2}
        power *= 2
    return sorted(b for b in found if b <= most)


def parse_batches(text):
    """"auto", "auto:512", "1,2,4-8": (batch sizes, may it stop early)."""
    auto = re.fullmatch(r"auto(?::([1-9]\d{0,5}))?", text)
    if auto:
        return auto_batches(int(auto[1] or DEFAULT_AUTO)), True
    found = set()
    for word in text.split(","):
        span = re.fullmatch(r"([1-9]\d{0,5})(?:-([1-9]\d{0,5}))?", word)
        if not span or int(span[2] or span[1]) < int(span[1]):
            raise ValueError(
                f"batch sizes '{text}': give auto, auto:N or a list such as "
                "1,2,4-8"
            )
        found |= set(range(int(span[1]), int(span[2] or span[1]) + 1))
    return sorted(found), False


def parse_list(text, known, what):
    words = text.split(",")
    for word in words:
        if word not in known:
            raise ValueError(f"unknown {what} '{word}' (known: {' '.join(known)})")
    return words


def variants_of(o):
    layouts = {"off": [False], "on": [True], "both": [False, True]}
    parse_list(o["channels_last"], layouts, "choice of channels-last")
    for model in zoo.expand(o["models"].split(",")):
        for precision in parse_list(o["precision"], zoo.PRECISIONS, "precision"):
            if model in zoo.TEXT:
                for length in o["sequence"].split(","):
                    yield zoo.parse(f"{model}:seq{length}:{precision}")
                continue
            for last in layouts[o["channels_last"]]:
                yield zoo.Variant(
                    model,
                    pixels=o["image_size"],
                    precision=precision,
                    channels_last=last,
                )


class Run:
    """One measurement: a backend, the journal, and the options."""

    def __init__(self, o):
        self.o = o
        self.batches, self.may_stop = parse_batches(o["batches"])
        self.variants = list(variants_of(o))
        if o["threads"]:
            torch.set_num_threads(o["threads"])
        self.backend = backends.open_backend(o["device"], o["memory_mib"])
        self.journal = journal.Journal(
            o["state"],
            {
                "device": self.backend.facts()["name"],
                "torch": str(torch.__version__),
                "threads": torch.get_num_threads(),
                "memory_mib": round(self.backend.total_mib),
            },
        )

    def attempt(self, name, batch):
        """The next step may kill the process: see supervise()."""
        if self.backend.dies:
            self.journal.add("attempt", model=name, batch=batch)

    def copies(self):
        """Measure copies up to the largest batch that was measured."""
        kinds = {str(v): v.sample_bytes for v in self.variants}
        most = max(
            (b * kinds[m] for m, b in self.journal.points if m in kinds),
            default=0,
        )
        if not most or max(self.journal.copies, default=0) >= most:
            return True
        say(f"copies of up to {most} bytes")
        found = copies.measure(self.backend, most, self.o["seconds"], say)
        for n, times in found.items():
            self.journal.add("copies", bytes=n, **times)
        return bool(found)

    def point(self, job, name, batch):
        """Measure a row, unless it runs out of memory."""
        try:
            self.attempt(name, batch)
            row = job().measure(batch, self.o["seconds"])
        except OutOfMemory:
            self.journal.add("trial", model=name, batch=batch, fits=False)
            say(f"{name}: batch size {batch} is out of memory")
            return
        self.journal.add("point", model=name, batch=batch, **row)
        say(
            f"{name}: batch size {batch}: {row['forward_ms']:.4g} + "
            f"{row['backward_ms']:.4g} ms (spread {row['spread_pct']:.2g} %, "
            f"{row['steps']} steps), peak {row['peak_mib']:.0f} MiB"
        )

    def hold_out(self, job, name):
        """Measure steps between the rows, which make no rows themselves: what
        the profile is off there."""
        rows = sorted(b for m, b in self.journal.points if m == name)
        for batch in assemble.midpoints(rows):
            if (name, batch) in self.journal.held or (
                self.journal.fits(name, batch) is False
            ):
                continue
            self.attempt(name, batch)
            try:
                row = job().train(batch, self.o["seconds"])
            except OutOfMemory:
                say(f"{name}: batch size {batch}, held out, is out of memory")
                continue
            self.journal.add("held", model=name, batch=batch, **row)
            say(
                f"{name}: batch size {batch}, held out: "
                f"{row['step_ms']:.4g} ms"
            )

    def trial(self, job, name, batch):
        try:
            self.attempt(name, batch)
            return job().fits(batch)
        except OutOfMemory:
            return False

    def boundary(self, job, name, fits, fails):
        """Bisect to the largest batch size that fits, and measure it."""
        while fails - fits > 1:
            middle = (fits + fails) // 2
            there = self.journal.fits(name, middle)
            if there is None:
                there = self.trial(job, name, middle)
                self.journal.add("trial", model=name, batch=middle, fits=there)
            if there:
                fits = middle
            else:
                fails = middle
        # two steps may fit where a longer measurement does not
        while fits and (name, fits) not in self.journal.points:
            self.point(job, name, fits)
            if (name, fits) not in self.journal.points:
                fits -= 1
        say(
            f"{name}: the largest batch size is {fits}"
            if fits
            else f"{name}: does not fit the device"
        )

    def build(self, variant):
        try:
            return Job(variant, self.backend)
        except (RuntimeError, MemoryError) as error:
            if not self.backend.is_oom(error):
                raise
            raise OutOfMemory(str(error)) from None

    def model(self, variant):
        name = str(variant)
        kept = []

        def job():  # built only if there is something left to measure
            if not kept:
                kept.append(self.build(variant))
                self.journal.add(
                    "model",
                    model=name,
                    parameters=kept[0].parameters,
                    model_transfer_ms=kept[0].upload_ms,
                )
            return kept[0]

        try:
            self.ladder(name, job)
            self.hold_out(job, name)
        finally:
            if kept:
                clocks = self.backend.clocks()
                if clocks:
                    self.journal.add("clocks", **clocks)
                kept[0].close()

    def ladder(self, name, job):
        fits = 0
        for batch in self.batches:
            there = self.journal.fits(name, batch)
            if there is None or (there and (name, batch) not in self.journal.points):
                self.point(job, name, batch)
                there = self.journal.fits(name, batch)
            if not there:
                self.boundary(job, name, fits, batch)
                return
            fits = batch
            row = self.journal.points[name, batch]
            step_s = (row["forward_ms"] + row["backward_ms"]) / 1e3
            if self.may_stop and step_s > self.o["seconds"]:
                say(
                    f"{name}: no larger batch sizes, a step took {step_s:.3g} "
                    "s, more than --seconds"
                )
                return

    def one(self, number):
        """Measure variant `number`; False: it failed."""
        variant = self.variants[number]
        say(f"[{number + 1}/{len(self.variants)}] {variant}")
        why = self.backend.refuses(variant.precision)
        if why:
            say(f"{variant}: left out, {why}")
            return True
        try:
            self.model(variant)
        except OutOfMemory:
            say(f"{variant}: does not fit the device")
        except (RuntimeError, ValueError, TypeError) as error:
            say(f"{variant}: failed: {' '.join(str(error).split())[:300]}")
            return False
        return True

    def finish(self, failed):
        result = assemble.profile(
            self.backend, self.journal, self.variants, self.o
        )
        if result:
            json.dump(result, sys.stdout)
        if failed:
            leave(1, f"{failed} of {len(self.variants)} models failed")
        if not result:
            leave(1, "nothing was measured")


def in_worker(o, number):
    """Measure one variant, or the copies (None), in a separate process;
    False: it failed.

    So a model finds the memory as the one before it did. And where the host
    runs out of it, libraries below PyTorch take an allocation for granted and
    crash, or the kernel ends the process: the batch size that a process died
    at counts as out of memory, and the next process goes on.
    """
    while True:
        worker = os.fork()
        if worker == 0:
            ctypes.CDLL(None).prctl(1, signal.SIGTERM)  # PR_SET_PDEATHSIG
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            run = Run(o)
            done = run.copies() if number is None else run.one(number)
            sys.exit(0 if done else MODEL_FAILED)
        _, status = os.waitpid(worker, 0)
        code = os.waitstatus_to_exitcode(status)
        if code in (0, MODEL_FAILED):
            return code == 0
        if code > 0:
            sys.exit(code)
        at = journal.died_at(o["state"])
        if not at:
            os.kill(os.getpid(), -code)
        say(
            f"{at['model']}: batch size {at['batch']} is out of memory (the "
            f"process died of signal {-code})"
        )


def measure(o):
    o["device"] = backends.resolve(o["device"])
    if backends.KINDS[o["device"].split(":")[0]].dies:
        # the parent must not compute before the last fork: its threads would
        # be missing in the worker
        numbers = range(len(list(variants_of(o))))
        failed = sum(not in_worker(o, n) for n in numbers)
        in_worker(o, None)
        run = Run(o)
    else:
        run = Run(o)
        failed = sum(not run.one(n) for n in range(len(run.variants)))
        run.copies()
    run.finish(failed)


def validate(o):
    if o["threads"]:
        torch.set_num_threads(o["threads"])
    variants = {name: zoo.parse(name) for name in o["points"]}
    backend = backends.open_backend(o["device"], 0)
    results = []
    for name, variant in variants.items():
        why = backend.refuses(variant.precision)
        if why:
            say(f"{name}: left out, {why}")
            continue
        job = Job(variant, backend)
        for batch in o["points"][name]:
            try:
                row = job.train(batch, o["seconds"])
            except OutOfMemory:
                say(f"{name}: batch size {batch} is out of memory")
                continue
            say(f"{name}: batch size {batch}: {row['step_ms']:.4g} ms")
            results.append({"model": name, "batch": batch, **row})
        job.close()
    json.dump({"device": backend.facts()["name"], "steps": results}, sys.stdout)


def main():
    command = {"measure": measure, "validate": validate}[sys.argv[1]]
    try:
        command(json.loads(sys.argv[2]))
    except (ValueError, zoo.Unknown) as error:
        leave(USAGE, error)
    except backends.Missing as error:
        leave(NOT_THERE, error)
    except OSError as error:
        leave(1, f"{error.filename}: {error.strerror}" if error.filename else error)
    except journal.Mismatch as error:
        leave(1, error)
    except KeyboardInterrupt:
        sys.exit(130)


main()
