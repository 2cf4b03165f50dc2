# SPDX-License-Identifier: MIT
"""Reads and steps, as samples and epochs.

A sample is an opening of a file, or what the program itself says is one. Between two
openings a reader reads, waits, and prepares: the rest. An epoch is what the program
says is one; else the k-th reading of each file belongs to epoch k.
"""
from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from statistics import median
from typing import NamedTuple, Optional

# Smaller epochs than that part of the largest one were cut off. arbitrary
_WHOLE = .9


class Sample(NamedTuple):
    reader: object
    openings: list  # that it was read by
    begin: int  # ns
    ready: int  # the reader has prepared it
    blocked_ns: int  # in open, read, close
    prepare_ns: Optional[int]  # None: the trace does not show its end

    @property
    def file(self):
        """The first."""
        return self.openings[0].file if self.openings else None


class Epoch:
    def __init__(self, samples, begin=None, end=None):
        self.samples = sorted(samples, key=lambda s: s.begin)
        self.begin = self.samples[0].begin if begin is None else begin
        self.end = end  # None: not known
        self.steps = []  # Step


class Step(NamedTuple):
    begin: int  # ns
    end: int
    samples: int
    parts: dict  # forward, backward, optimizer: ns
    # of the trainer: the step, and what it took besides though its batch was ready
    host_ns: int


def by_reader(things):
    found = defaultdict(list)
    for thing in things:
        found[thing.reader].append(thing)
    return found


def samples(openings, items):
    """In the order of their begin."""
    out = []
    if items:
        of = by_reader(openings)
        for reader, mine in by_reader(sorted(items,
                                             key=lambda i: i.begin)).items():
            reads = of.get(reader, [])
            begins = [o.begin for o in reads]
            for item in mine:
                inside = reads[bisect_right(begins, item.begin - 1):
                               bisect_right(begins, item.end - 1)]
                io_ns = sum(o.io_ns for o in inside)
                out.append(Sample(
                    reader, inside, item.begin, item.end, io_ns,
                    max(0, item.end - item.begin - io_ns)))
    else:
        for reader, mine in by_reader(openings).items():
            for o, after in zip(mine, mine[1:] + [None]):
                prepare = after and max(0, after.begin - o.begin - o.io_ns -
                                        (after.waited_ns - o.waited_ns))
                out.append(Sample(reader, [o], o.begin,
                                  o.begin + o.io_ns + (prepare or 0), o.io_ns,
                                  prepare))
    return sorted(out, key=lambda s: s.begin)


def _within(found, spans):
    """By the epochs that the program named."""
    spans = sorted(spans, key=lambda s: s.begin)
    begins = [s.begin for s in spans]
    of = defaultdict(list)
    for sample in found:
        at = bisect_right(begins, sample.begin) - 1
        if at >= 0 and sample.begin <= spans[at].end:
            of[at].append(sample)
    return [Epoch(of[i], spans[i].begin, spans[i].end) for i in sorted(of)]


def _readings(found, note):
    """By how often a file was read before."""
    files = len({s.file for s in found if s.file is not None})
    times, of, looked_at = Counter(), defaultdict(dict), 0
    for sample in found:
        if sample.file is None:
            continue
        n = times[sample.file]
        if n == 1 and 2 * len(times) < files:
            # the first was a look before the training began
            of[0][sample.file] = sample
            looked_at += 1
            continue
        of[n][sample.file] = sample
        times[sample.file] += 1
    if looked_at:
        note(f"{looked_at} readings of files that were read again before half "
             "of all had been are left out")
    return [Epoch(of[n].values()) for n in sorted(of)]


def _closed(epoch):
    """After a reader's last sample in an epoch comes one of the next epoch: how long
    its preparation took is not known, and taken for the median."""
    last = {s.reader: s for s in epoch.samples}
    known = [s.prepare_ns for s in epoch.samples
             if s.prepare_ns is not None and s is not last[s.reader]]
    usual = round(median(known)) if known else 0
    epoch.samples = [
        s._replace(ready=s.begin + s.blocked_ns + usual, prepare_ns=None)
        if s is last[s.reader] else s for s in epoch.samples]


def epochs(found, events, note):
    spans = events.trainings or events.epochs
    out = _within(found, spans) if spans else _readings(found, note)
    _give_steps(out, _steps(events.computes), bool(spans))
    most = max((len(e.samples) for e in out), default=0)
    whole = [e for e in out if len(e.samples) >= _WHOLE * most]
    if len(whole) < len(out):
        note(f"{len(out) - len(whole)} epochs of fewer than {_WHOLE:.0%} of "
             f"{most} samples are left out")
    if not events.items:
        for e in whole:
            _closed(e)
    return whole


# --- steps ---

def _steps(computes):
    """(begin, end, parts); a step of parts ends with its optimiser, or else with
    its backward pass."""
    computes = sorted(computes, key=lambda c: c.begin)
    if any(not c.part for c in computes):
        return [(c.begin, c.end, {"forward": c.end - c.begin})
                for c in computes if not c.part]
    kinds = {c.part for c in computes}
    last = next((p for p in ("optimizer", "backward") if p in kinds), "forward")
    out, begin, parts = [], None, Counter()
    for c in computes:
        begin = c.begin if begin is None else begin
        parts[c.part] += c.end - c.begin
        if c.part == last:
            out.append((begin, c.end, dict(parts)))
            begin, parts = None, Counter()
    return out


def _give_steps(found, steps, named):
    begins = [s[0] for s in steps]
    for e, after in zip(found, found[1:] + [None]):
        until = e.end if named else after and after.begin - 1
        mine = steps[bisect_right(begins, e.begin - 1):
                     len(steps) if until is None
                     else bisect_right(begins, until)]
        n = len(e.samples)
        batch = -(-n // max(1, len(mine)))
        ready, last = sorted(s.ready for s in e.samples), e.begin
        for i, (begin, end, parts) in enumerate(mine):
            more = begin - max(last, ready[min(n, (i + 1) * batch) - 1])
            e.steps.append(Step(begin, end, max(1, min(batch, n - i * batch)),
                                parts, end - begin + max(0, more)))
            last = end


def train(epoch, batch, cost):
    """Steps that the trace does not have: a trainer that takes each batch when it
    is ready, and whose step takes `cost(samples)`: ns by part."""
    ready = sorted(s.ready for s in epoch.samples)
    now = epoch.begin
    for first in range(0, len(ready), batch):
        n = min(batch, len(ready) - first)
        begin = max(now, ready[first + n - 1])
        parts = cost(n)
        now = begin + sum(parts.values())
        epoch.steps.append(Step(begin, now, n, parts, now - begin))
