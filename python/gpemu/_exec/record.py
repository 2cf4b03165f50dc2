# SPDX-License-Identifier: MIT
"""The account of a script: steps, what the GPU waited for, what was emulated."""
from __future__ import annotations

import json
import os
import sys
from statistics import median

import gpemu
from gpemu._exec import job, trace
from gpemu._exec.output import output


def _overlap(begin, end, spans):
    return sum(max(0, min(end, e) - max(begin, b)) for b, e in spans)


class Record:
    def __init__(self, device):
        self._device = device
        self.notes = {}  #: key: text
        self.epochs, self._epoch = [], None
        self._copies, self._waits = [], []  # since the last step
        self._last_ns = 0  # end of the last work
        self._compute_ns, self._begin_ns = 0, None  # of this step
        # the wait for the loader, the copy, the host; other jobs of a server
        self._gap, self._shared_ns, self._reduced_ns = (0, 0, 0), 0, 0
        self.copied_bytes = {"in_pinned": 0, "in_pageable": 0, "out": 0}
        self.evaluated = 0
        options = device.options
        self.trace = trace.Trace(options.get("trace"), device.card.now,
                                 options["time_scale"])
        if "RANK" in os.environ:  # of torchrun, whose children have one job
            self.join(int(os.environ["RANK"]),
                      int(os.environ.get("WORLD_SIZE", 1)),
                      f"{os.getppid()}."
                      f"{os.environ.get('TORCHELASTIC_RESTART_COUNT', 0)}")
        else:
            self.join(0, 1, os.getpid())

    def join(self, rank, ranks, number):
        """The process is one of a job, which has that number."""
        self.rank, self.ranks, self._job = rank, ranks, str(number)
        self.trace.rank, self.trace.ranks = rank, ranks
        self._ended = None
        try:
            self._ended = job.joined() if ranks > 1 else None
        except OSError as error:
            print(f"gpemu exec: rank {rank} is in no record: the command "
                  f"ended before: {error.strerror}", file=sys.stderr)

    def copied(self, begin, end, size, out, pinned):
        self.copied_bytes["out" if out else "in_pinned" if pinned
                          else "in_pageable"] += size
        self.trace.span(trace.OUT if out else trace.IN, "copy", begin, end,
                        bytes=size, pinned=bool(pinned))
        if not out:
            self._copies.append((begin, end))

    def waited(self, begin, end, trains):
        """The script, for its loader, which may be one for validation."""
        self._waits.append((begin, end))
        self.trace.span(trace.SCRIPT, "waits for the loader", begin, end)
        if self._epoch and trains:
            self._epoch["wait_ns"] += end - begin

    def worked(self, times, what):
        """The GPU, for a part of a step; it was ready at `ready`."""
        begin, end, ready = times
        self.trace.span(trace.GPU, what, begin, end)
        self._compute_ns += end - begin
        shared = max(0, begin - max(ready, self._last_ns))
        self._shared_ns += shared
        begin -= shared
        if self._begin_ns is not None:  # idle between two parts
            wait, copy, host = self._gap
            self._gap = wait, copy, host + max(0, begin - self._last_ns)
        if self._begin_ns is None:
            self._begin_ns = begin
            last = max(self._last_ns,
                       self._epoch["begin_ns"] if self._epoch else begin)
            idle = (min(last, begin), begin)
            copy = _overlap(*idle, self._copies)
            wait = min(_overlap(*idle, self._waits), begin - idle[0] - copy)
            self._gap = (wait, copy, begin - idle[0] - wait - copy)
            self._copies.clear()
            self._waits.clear()
        self._last_ns = end

    def reduced(self, begin, end):
        """Gradients, beyond the backward pass; with the slower ranks' part."""
        self._reduced_ns += end - begin
        self.trace.span(trace.GRADIENTS, "all-reduce, exposed", begin, end)
        self._last_ns = end

    def begin_epoch(self, now):
        self._close()
        self._epoch = {"begin_ns": now, "steps": [],
                       "samples": 0, "wait_ns": 0}

    def _close(self):
        if self._epoch and self._epoch["steps"]:
            self.epochs.append(self._epoch)
        self._epoch = None

    def step(self, samples):
        """Ended: the optimiser was queued."""
        if self._epoch is None:
            self.begin_epoch(self._begin_ns or 0)
        self._epoch["steps"].append(
            (self._begin_ns or self._last_ns, self._last_ns, self._compute_ns,
             *self._gap, self._reduced_ns, self._shared_ns))
        self._epoch["samples"] += samples
        self._compute_ns, self._begin_ns = 0, None
        self._reduced_ns = self._shared_ns = 0

    def forget(self):
        """An evaluation: no step."""
        self._compute_ns, self._begin_ns, self._shared_ns = 0, None, 0
        self.evaluated += 1

    # --- the end ---

    @staticmethod
    def _summary(number, e):
        steps = e["steps"]
        seconds = (steps[-1][1] - e["begin_ns"]) / 1e9
        compute = [s[2] / 1e9 for s in steps]
        span = (steps[-1][1] - steps[0][1]) / 1e9
        return {
            "epoch": number, "seconds": seconds, "samples": e["samples"],
            "steps": len(steps), "startup_s":
                max(0, steps[0][0] - e["begin_ns"]) / 1e9,
            "compute_s": sum(compute),
            "data_wait_s": sum(s[3] for s in steps) / 1e9,
            "transfer_stall_s": sum(s[4] for s in steps) / 1e9,
            "host_s": sum(s[5] for s in steps) / 1e9,
            "allreduce_s": sum(s[6] for s in steps) / 1e9,
            "share_wait_s": sum(s[7] for s in steps) / 1e9,
            "loader_wait_s": e["wait_ns"] / 1e9,
            # as MLPerf Storage and gpemu-train: without the first step
            "au": sum(compute[1:]) / span if len(steps) > 1 and span else None,
            "samples_per_s": e["samples"] / seconds if seconds else None,
            "step_ms": [round(c * 1e3, 4) for c in compute],
            "step_ms_median": median(compute) * 1e3}

    def result(self, models):
        self._close()
        device = self._device
        epochs = [self._summary(i, e) for i, e in enumerate(self.epochs)]
        return {
            "tool": "gpemu-exec", "version": gpemu.__version__,
            "estimated": "ESTIMATED" in models,
            "gpu": device.card.profile["name"], "server": device.card.server,
            "torch": sys.modules["torch"].__version__,
            "options": device.options, "command": sys.argv,
            "models": models, "epochs": epochs,
            "totals": job.totals(epochs, self.evaluated),
            "copied_bytes": self.copied_bytes,
            "pinned": {"most_bytes": device.pinned.most_bytes,
                       "refused": device.pinned.refused},
            "notes": list(self.notes.values())}

    def end(self, models):
        self.trace.close()
        if self._begin_ns is not None:
            self._device.note("forward and backward passes that no optimiser "
                              "of torch.optim followed are in no epoch")
        found = self.result(models)
        if not found["epochs"] and not self.evaluated:
            return
        if self.ranks == 1:
            self._report(found)
        elif self._ended:
            mine = {"rank": self.rank, **found}
            with job.ended(self._ended, self._job, mine) as ranks:
                self._report(job.merged(ranks, self.ranks),
                             len(ranks) == self.ranks)

    def _report(self, found, whole=True):
        """`whole`: all ranks are in it."""
        if whole:
            self._print(found)
        file = self._device.options.get("record")
        if not file:
            return
        try:
            with output(file) as f:
                json.dump(found, f, indent=1)
        except OSError as error:
            print(f"gpemu exec: {file}: {error.strerror}", file=sys.stderr)

    def _print(self, found):
        models = list(found["models"])
        out = [f"gpemu exec: {found['gpu']}, "
               + (f"{self.ranks} ranks, " if self.ranks > 1 else "")
               + ", ".join(models)
               + (", ESTIMATED" if found["estimated"]
                  and models != ["ESTIMATED"] else ""),
               "epoch  seconds  steps  step ms  data wait s  copy s  host s"
               "     AU"]
        for e in found["epochs"]:
            au = "-" if e["au"] is None else f"{e['au']:.1%}"
            out.append(f"{e['epoch']:5} {e['seconds']:8.3f} {e['steps']:6} "
                       f"{e['step_ms_median']:8.3f} {e['data_wait_s']:12.3f} "
                       f"{e['transfer_stall_s']:7.3f} {e['host_s']:7.3f} "
                       f"{au:>6}")
        if found["server"]:
            wait = sum(e["share_wait_s"] for e in found["epochs"])
            out.append(f"gpemu exec: GPU of {found['server']}: {wait:.3f} s "
                       "waiting for other jobs")
        print("\n".join(out), file=sys.stderr)
