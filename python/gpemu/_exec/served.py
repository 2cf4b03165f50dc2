# SPDX-License-Identifier: MIT
"""The GPU of a gpemu-gpud, which other jobs use, too. When a part of a step is
computed is known once the server says so: until then it is a Part."""
from __future__ import annotations

import threading
from collections import deque
from functools import partial

import torch

from gpemu._library import Error

_E2BIG = 7
_IN_FLIGHT = 2  # as gpemu_card_submit()
# Of the record, in their order
_ENTRIES = {"begin_epoch", "copied", "forget", "reduced", "step", "waited",
            "worked"}


class Part:
    """Of a step, on its way. Those of a process are computed in their order."""

    def __init__(self, number, ready_ns):
        self.number, self._ready_ns = number, ready_ns
        self.times = None  #: begin, end, when it was submitted

    def ended(self, begin, end):
        self.times = begin, end, self._ready_ns


class Served:
    """The job of this process on the server. Has one model."""

    def __init__(self, card, where):
        self._card, self._where = card, where
        self._model, self._batch, self._n = None, 0, 0
        self._parts, self._entries = deque(), deque()
        self._lock = threading.RLock()

    def _join(self, model, samples):
        if model == self._model and samples <= self._batch:
            return
        if model != self._model is not None:
            raise RuntimeError(
                f"gpemu exec: {self._where()}: {model} after {self._model}: on "
                "a server's GPU a process has one model")
        self.drain()
        try:
            self._card.join(model, samples)
        except Error as error:
            if error.errno == _E2BIG:
                raise torch.cuda.OutOfMemoryError(
                    f"CUDA out of memory. gpemu: {error}") from None
            raise
        self._model, self._batch = model, samples

    def submit(self, part, model, samples):
        """Waits while too many are in flight."""
        with self._lock:
            self._join(model, samples)
            self._card.submit(part, samples)
            self._n += 1
            out = Part(self._n, self._card.now())
            self._parts.append(out)
            while len(self._parts) > _IN_FLIGHT:
                self._fetch()
            return out

    def _fetch(self):
        self._parts.popleft().ended(*self._card.done())
        self._write()

    def wait(self, part):
        """Its times."""
        with self._lock:
            while part.times is None:
                self._fetch()
        return part.times

    def drain(self):
        with self._lock:
            while self._parts:
                self._fetch()

    # --- the record ---

    def entry(self, method, *arguments):
        """In the order of the calls, when their parts are computed."""
        with self._lock:
            self._entries.append((method, arguments))
            self._write()

    def _write(self):
        while self._entries:
            method, arguments = self._entries[0]
            if any(isinstance(a, Part) and a.times is None for a in arguments):
                return
            self._entries.popleft()
            method(*(a.times if isinstance(a, Part) else a for a in arguments))


class Account:
    """The record of a job of a server."""

    def __init__(self, record, served):
        self._record, self._served = record, served

    def __getattr__(self, name):
        value = getattr(self._record, name)
        return partial(self._served.entry, value) if name in _ENTRIES \
            else value

    def end(self, models):
        self._served.drain()
        self._record.end(models)


class Moment:
    """A time, and a part of a step that ends no earlier."""

    def __init__(self, ns=0, part=None):
        self._ns, self._part = ns, part

    @property
    def known_ns(self):
        return self._ns

    def ns(self, served):
        """Waits for the part."""
        if self._part:
            self._ns = max(self._ns, served.wait(self._part)[1])
            self._part = None
        return self._ns

    def latest(self, other):
        parts = [p for p in (self._part, other._part) if p]
        return Moment(max(self._ns, other._ns),
                      max(parts, key=lambda p: p.number, default=None))
