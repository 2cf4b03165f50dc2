# SPDX-License-Identifier: MIT
"""What a trace shows, as a job."""
from __future__ import annotations

import os
from statistics import median

from gpemu._record import job

# A correlation from which two orders are one. arbitrary: workers mix their batches
_ALIKE = .9
# As workloads of DLIO have it: memory is in no trace, so any batch fits
_ANY_BYTES = 1 << 40


def _alike(a, b):
    """Spearman's correlation of two orders of the same things is near 1."""
    place = {x: i for i, x in enumerate(b)}
    n = len(place)
    if n < 3 or len(a) != n or set(a) != set(place):
        return False
    d = sum((i - place[x])**2 for i, x in enumerate(a))
    return 1 - 6 * d / (n * (n**2 - 1)) >= _ALIKE


def _samples(found):
    out = job.Samples()
    known = [s for e in found for s in e.samples if s.prepare_ns is not None]
    out.n, out.made = len(known), sum(len(e.samples) for e in found)
    out.prepare_ns = [s.prepare_ns for s in known]
    out.blocked_ns = [s.blocked_ns for s in known]
    for o in _openings(found):
        out.files[o.file] += 1
        # as far as it was read
        out.sizes[o.file] = max(out.sizes.get(o.file, 0), o.bytes)
    return out


def _openings(found):
    return [o for e in found for s in e.samples for o in s.openings]


def _of_record(epoch):
    """An epoch, as Job has it."""
    end = max(s.end for s in epoch.steps)
    busy = sum(s.host_ns for s in epoch.steps)
    return {"begin_ns": epoch.begin, "end_ns": end,
            "wait_ns": max(0, end - epoch.begin - busy),
            "steps": [{"samples": s.samples, "host_ns": s.host_ns, **{
                p: s.parts.get(p, 0) for p in job.PARTS}}
                for s in epoch.steps]}


class Imported(job.Job):
    tool = "gpemu record import"
    gpu_notes = ("The batch sizes that ran: means, without the first tenth. "
                 "host_ms: the step, which the\n  trainer waits for, and what "
                 "it took besides. Copies and memory were not traced: they\n  "
                 "take nothing.")
    prep_notes = ("What a reader took between the reads of two samples and did "
                  "not wait in")
    storage_notes = "What open, read and close of a sample took"

    def __init__(self, options, found, gpu):
        self.found, self.openings = found, _openings(found)
        self.gpu_words = gpu  # of the workload; None: as traced
        device = job.Device(name="traced", model="", precision="",
                            memory_bytes=_ANY_BYTES)
        super().__init__(options, device, [_of_record(e) for e in found],
                         _samples(found))
        self.readers = round(median(
            len({s.reader for s in e.samples}) for e in found))
        self.workers, self.the_order = options["workers"], self._order()
        if self.workers is None:
            self.workers = self.readers

    def _order(self):
        """Of the files, by the first two epochs."""
        orders = [[s.file for s in e.samples if s.file is not None]
                  for e in self.found[:2]]
        if _alike(orders[0], sorted(set(orders[0]))):
            return "sequential"
        if len(orders) > 1 and _alike(*orders):
            return "frozen"
        return "shuffle"

    def order(self):
        return self.the_order

    def loading(self):
        return {"samples": max(len(e.samples) for e in self.found),
                "batch": self.batch, "workers": self.workers,
                "prefetch": self.o["prefetch"], "order": self.the_order}

    def about(self):
        return "from " + self.o["trace"] + (
            "" if self.o["hash_names"] else ": " + self.o["names"])

    def more(self):
        calls = sum(o.calls for o in self.openings)
        n_bytes = sum(o.bytes for o in self.openings)
        whole = sum(o.bytes >= self.samples.sizes.get(o.file, 0)
                    for o in self.openings)
        return {"trace": self.o["trace"], "readers": self.readers, "reads": {
            "openings": len(self.openings), "calls": calls, "bytes": n_bytes,
            "bytes_per_call": n_bytes / calls,
            "calls_per_opening": calls / len(self.openings),
            "folders": len(set(map(os.path.dirname, self.samples.sizes))),
            "whole_files": whole / len(self.openings)}}

    def host_ms(self):
        """With the step, for which it waits."""
        return 0 if self.o["step_given"] else \
            job.mean([s["host_ns"] for s in self.steps]) / 1e6

    def sample_bytes(self):
        return max(1, round(sum(o.bytes for o in self.openings) /
                            self.samples.made))

    def base_gpu(self):
        return self.gpu_words or super().base_gpu()
