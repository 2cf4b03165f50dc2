# SPDX-License-Identifier: MIT
"""The emulated device of this process: streams, waits, copies, memory."""
from __future__ import annotations

import multiprocessing.util
import os
import sys
from collections import deque

import torch

from gpemu._exec.card import COMPUTE, COPY_IN, COPY_OUT, Card, Pinned
from gpemu._exec.record import Record
from gpemu._exec.served import Account, Moment, Part, Served

# Kernels that a stream takes before the host has to wait. Source: CUDA's
# launch queue has 1,024 entries (measured by many, in no manual)
_QUEUE = 1024
_MIB = 1 << 20
_TORCH = os.path.dirname(torch.__file__)
_OWN = os.path.dirname(os.path.abspath(__file__))


class Stream:
    """As torch.cuda.Stream: the time at which its last work ends."""

    def __init__(self, device=None, priority=0, **_):
        self.moment, self.priority = Moment(), priority
        self.device = torch.device("cuda", state.index)
        self.cuda_stream = self.stream_id = id(self)

    @property
    def end_ns(self):
        return self.moment.ns(state.served)

    @end_ns.setter
    def end_ns(self, ns):
        self.moment = Moment(ns)

    def synchronize(self):
        state.card.wait(self.end_ns)

    def query(self):
        return state.card.now() >= self.end_ns

    def is_capturing(self):
        return False

    def wait_event(self, event):
        if event.moment:
            self.moment = self.moment.latest(event.moment)

    def wait_stream(self, stream):
        self.moment = self.moment.latest(stream.moment)

    def record_event(self, event=None):
        event = event or Event()
        event.record(self)
        return event

    def __enter__(self):
        self._before = state.stream
        state.stream = self
        return self

    def __exit__(self, *_):
        state.stream = self._before


class Event:
    """As torch.cuda.Event."""

    def __init__(self, enable_timing=False, blocking=False,
                 interprocess=False, **_):
        self.moment = None

    @property
    def ns(self):
        return self.moment and self.moment.ns(state.served)

    def record(self, stream=None):
        self.moment = (stream or state.stream).moment.latest(
            Moment(state.card.now()))

    def wait(self, stream=None):
        (stream or state.stream).wait_event(self)

    def synchronize(self):
        state.card.wait(self.ns or 0)

    def query(self):
        return state.card.now() >= (self.ns or 0)

    def elapsed_time(self, end):
        if self.ns is None or end.ns is None:
            raise RuntimeError("Both events must be recorded before "
                               "calculating elapsed time.")
        return (end.ns - self.ns) / 1e6


class Device:
    def __init__(self, options):
        self.options, self.index = options, 0
        self.card, self.pinned = Card(options), Pinned()
        self.gpus = self.card.gpus
        self.used = None  #: the one GPU of this process
        self.record, self.served = Record(self), None
        self.at_end = None  # a function
        if self.card.server:
            self.served = Served(self.card, self.where)
            self.record = Account(self.record, self.served)
        self._queue, self._launched = deque(), 0
        self.allocated = self.peak = self.reserved_model = 0
        self.total = int(self.card.profile["memory_mib"] * _MIB)

    # --- words to the user ---

    def where(self):
        """FILE:LINE of the script."""
        frame = sys._getframe(1)
        while frame:
            name = frame.f_code.co_filename
            if not name.startswith((_TORCH, _OWN, "<")):
                return f"{name}:{frame.f_lineno}"
            frame = frame.f_back
        return "?"

    def note(self, text, key=None):
        """Once, on stderr and in the record."""
        if (key or text) not in self.record.notes:
            self.record.notes[key or text] = text
            print(f"gpemu exec: {text}", file=sys.stderr)

    # --- which GPU ---

    def choose(self, device):
        """torch.device of CUDA, checked."""
        if os.getpid() != pid:
            self._forked()
        index = self.index if device.index is None else device.index
        if index >= self.gpus:
            raise RuntimeError(
                f"CUDA error: invalid device ordinal: cuda:{index}; gpemu "
                f"exec shows {self.gpus}: --gpus")
        if self.used is None:
            self.used = self.index = index
        elif index != self.used:
            raise RuntimeError(
                f"gpemu exec: {self.where()}: cuda:{index} after cuda:"
                f"{self.used}: a process uses one emulated GPU")

    def _forked(self):
        """In another process, which may begin where its parent has not."""
        global pid
        if self.used is not None or self.served:
            raise RuntimeError(
                "Cannot re-initialize CUDA in forked subprocess. To use CUDA "
                "with multiprocessing, you must use the 'spawn' start method")
        pid = os.getpid()
        multiprocessing.util.Finalize(None, self.at_end, exitpriority=0)

    # --- time ---

    def compute(self, ns, launches, job, launched_ns=0, warmup_ns=0):
        """Queue work on the current stream; (begin, end, begin), or a Part. The
        host has launched it at `launched_ns`, and it ends no earlier (as
        emu/gpu/gpu.h has it). `job`: which part of a step, the model, samples.
        """
        stream = self.stream
        if self.served:
            return self._compute_there(ns, job, launched_ns, warmup_ns)
        after = max(self.card.now(), stream.end_ns) + int(warmup_ns)
        begin, end = self.card.queue(COMPUTE, max(after, launched_ns - ns), ns)
        stream.end_ns = end
        self._queue.append((end, launches))
        self._launched += launches
        while self._launched > _QUEUE and len(self._queue) > 1:
            until, n = self._queue.popleft()
            self._launched -= n
            self.card.wait(until)
        self.card.wait(max(launched_ns, begin if warmup_ns else 0))
        return begin, end, begin

    def _compute_there(self, ns, job, launched_ns, warmup_ns):
        """The server knows nothing of copies, and of what the host launches."""
        stream = self.stream
        if warmup_ns:
            self.card.wait(max(self.card.now(), stream.end_ns) + warmup_ns)
        self.card.wait(max(stream.moment.known_ns, launched_ns - int(ns)))
        part = self.served.submit(*job)
        stream.moment = Moment(stream.moment.known_ns, part)
        self.card.wait(launched_ns)
        return part

    def times(self, done):
        """Begin and end of what compute() gave."""
        return (self.served.wait(done) if isinstance(done, Part) else done)[:2]

    def copy(self, size, out, pinned, asynchronous):
        """Between host and device, of so many bytes."""
        if not size:
            return
        ns = self.card.copy_ns(size, pinned)
        stream = self.stream
        begin, end = self.card.queue(
            COPY_OUT if out else COPY_IN,
            max(self.card.now(), stream.end_ns), ns)
        stream.end_ns = end
        self.record.copied(begin, end, size, out, pinned)
        # from pageable memory the host waits, non_blocking or not
        if not (pinned and asynchronous):
            self.card.wait(end)

    def synchronize(self):
        """Of the current stream, as what reads a value does."""
        self.card.wait(self.stream.end_ns)

    # --- memory ---

    def check_alloc(self, n_bytes):
        if n_bytes > self.total - self.allocated:
            raise torch.cuda.OutOfMemoryError(
                f"CUDA out of memory. Tried to allocate {n_bytes / _MIB:.2f} "
                f"MiB. GPU {self.index} has a total capacity of "
                f"{self.total / _MIB / 1024:.2f} GiB of which "
                f"{(self.total - self.allocated) / _MIB:.2f} MiB is free.")

    def used_by_step(self, cost):
        self.allocated = max(self.allocated, cost.persistent_bytes)
        self.peak = max(self.peak, self.allocated, cost.peak_bytes)


state: Device = None  # made by open_device
pid = None


def open_device(options) -> Device:
    global state, pid
    state, pid = Device(options), os.getpid()
    state.default_stream = state.stream = Stream()
    return state
