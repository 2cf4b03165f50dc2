# SPDX-License-Identifier: MIT
"""PyTorch, watched: nothing is changed in what it computes."""
from __future__ import annotations

import atexit
import functools
import json
import multiprocessing
import os
import sys
import tempfile
import threading
import time
from collections import deque

import torch
import torch.utils.data
from torch.optim import optimizer as optimizers
from torch.utils._pytree import tree_flatten

from gpemu._exec.models import precision_of
from gpemu._record import marks, training, worker

_T = torch.Tensor
_now = time.perf_counter_ns
# Copies below this are labels and the like. arbitrary: a page
_COPY_BYTES = 4096
_COPIES = 10_000  # that are timed. arbitrary
_SETTLED = 5  # steps, after which memory is allocated as in all later ones


class Step:
    """Marks of the parts of a step: (begin, end) of each."""

    def __init__(self, begin_ns):
        self.begin_ns, self.host_ns, self.samples = begin_ns, 0, 0
        self.batch, self.largest = None, 0  # of the loader; of its samples
        self.optimizers = set()
        self.parts = {"forward": [], "backward": [], "optimizer": []}


class Recorder:
    def __init__(self):
        self.pid, self.thread = os.getpid(), threading.get_ident()
        self.device = self.model = self.step = self.epoch = self.open = None
        self.batches = 0  # that the loader gave
        self.pending, self.epochs, self.copies = deque(), [], []
        self.loaders, self.precision = {}, None
        self.ended = self.persistent_bytes = 0
        self.samples = None  # a file without a name: nothing is left of it

    def here(self):
        return os.getpid() == self.pid and \
            threading.get_ident() == self.thread

    # --- a step ---

    def begin(self, module, inputs):
        if self.device is None:
            self.device = marks.of(next(module.parameters()))
        if self.step is None:
            self.step = Step(_now())
        if not self.model:
            self.model = module
            self.precision = _precision(module)
        shape = inputs[0].shape if inputs else ()
        self.count(self.step, shape[0] if len(shape) else 1)

    def count(self, step, samples):
        """Batches add up; a batch that several models see is one."""
        loader = self.epoch and self.epoch["loader"]
        if loader is None or step.batch != self.batches:
            step.batch, step.largest = self.batches, 0
        step.samples += max(0, samples - step.largest)
        step.largest = max(samples, step.largest)

    def part(self, name, begin):
        if self.step:
            self.step.parts[name].append((begin, self.device.mark()))

    def end(self, optimizer):
        """It has been called."""
        step, self.step = self.step, None
        if not step or not step.parts["backward"]:
            return
        if self.epoch is None:
            self.begin_epoch(None)
            self.epoch["begin_ns"] = step.begin_ns
        last = self.open
        if last and self.epoch["loader"] is not None and \
                last.batch == step.batch and \
                optimizer not in last.optimizers:
            # a GAN's: one step, of two optimisers
            for name, spans in step.parts.items():
                last.parts[name] += spans
            last.samples = max(last.samples, step.samples)
            step = last
        else:
            self.push()
            self.ended += 1
        step.optimizers.add(optimizer)
        step.ended_ns, step.waited_ns = _now(), self.epoch["wait_ns"]
        step.host_ns = step.ended_ns - step.begin_ns
        if self.ended == _SETTLED:
            self.persistent_bytes = self.device.memory()[1]
        self.open = step

    def push(self):
        """No more optimisers follow in this step."""
        if self.open:
            self.pending.append((self.epoch, self.open))
            self.open = None
            self.settle(False)

    def settle(self, all):
        """Steps that the device has done become numbers."""
        while self.pending:
            epoch, step = self.pending[0]
            last = step.parts["optimizer"][-1][1]
            if not all and not self.device.done(last):
                return
            self.pending.popleft()
            times = {name: sum(self.device.between_ns(a, b) for a, b in spans)
                     for name, spans in step.parts.items()}
            if epoch["anchor"] is None:
                epoch["anchor"] = step.parts["forward"][0][0]
                epoch["anchor_ns"] = step.begin_ns
            epoch["end_ns"] = max(epoch["end_ns"], epoch["anchor_ns"] +
                                  self.device.between_ns(epoch["anchor"], last))
            ended, waited = epoch["last"] or (None, None)
            epoch["last"] = step.ended_ns, step.waited_ns
            # from the step before to this one, without the loader
            cycle = step.ended_ns - ended - (step.waited_ns - waited) \
                if ended else None
            epoch["steps"].append({
                "samples": step.samples, "host_ns": step.host_ns,
                "cycle_ns": cycle, **times})

    # --- an epoch ---

    def begin_epoch(self, loader):
        self.close()
        self.epoch = {"loader": loader, "begin_ns": _now(), "end_ns": 0,
                      "wait_ns": 0, "steps": [], "anchor": None,
                      "last": None, "batches": 0}

    def close(self):
        if self.epoch:
            self.push()
            self.settle(True)
            if self.epoch["steps"]:
                self.epoch["end_ns"] = max(self.epoch["end_ns"],
                                           self.epoch.get("loaded_ns", 0))
                self.epochs.append(self.epoch)
        self.epoch = None

    def loader(self, loader):
        """Its number; what it is."""
        key = id(loader.dataset)  # some scripts make a loader for each epoch
        if key not in self.loaders:
            self.loaders[key] = (len(self.loaders), loader)
        return self.loaders[key][0]


recorder: Recorder = None


def _precision(module):
    kind = next(module.parameters()).device.type
    autocast = torch.get_autocast_dtype(kind) \
        if torch.is_autocast_enabled(kind) else None
    capability = torch.cuda.get_device_capability()[0] \
        if kind == "cuda" else 0
    return precision_of(module, autocast, capability)


def _modules():
    """The outermost module with parameters; those within are not touched."""
    module = torch.nn.Module
    original = module.__call__

    def call(self, *args, **kwargs):
        r = recorder
        if not r.here() or not torch.is_grad_enabled() or \
                next(self.parameters(), None) is None:
            return original(self, *args, **kwargs)
        r.begin(self, [t for t in tree_flatten((args, kwargs))[0]
                       if isinstance(t, _T)])
        begin = r.device.mark()
        module.__call__ = original
        try:
            return original(self, *args, **kwargs)
        finally:
            module.__call__ = call
            r.part("forward", begin)
    module.__call__ = call


def _backward():
    original = torch.autograd.backward

    @functools.wraps(original)
    def backward(*args, **kwargs):
        r = recorder
        if not r.here() or not r.step:
            return original(*args, **kwargs)
        begin = r.device.mark()
        try:
            return original(*args, **kwargs)
        finally:
            r.part("backward", begin)
    torch.autograd.backward = backward


def _optimizers():
    begins = {}

    def before(optimizer, *_):
        if recorder.here():
            step = recorder.step
            begins[id(optimizer)] = \
                step and (recorder.device.mark(), len(step.parts["backward"]))

    def after(optimizer, *_):
        begin, n = begins.pop(id(optimizer), None) or (None, 0)
        step = recorder.step if recorder.here() else None
        if not step:
            return
        if len(step.parts["backward"]) > n:  # a closure has computed in it
            begin = step.parts["backward"][-1][1]
        if begin:
            recorder.part("optimizer", begin)
            recorder.end(id(optimizer))
    optimizers.register_optimizer_step_pre_hook(before)
    optimizers.register_optimizer_step_post_hook(after)


def _copies():
    """Batches on their way to the device."""
    def timed(original):
        @functools.wraps(original)
        def copy(self, *args, **kwargs):
            r = recorder
            size = self.numel() * self.element_size()
            if self.is_cuda or size < _COPY_BYTES or not r.here() or \
                    len(r.copies) >= _COPIES or \
                    not torch.cuda.is_initialized():
                return original(self, *args, **kwargs)
            begin, pinned = marks.Cuda.mark(None), self.is_pinned()
            out = original(self, *args, **kwargs)
            if out.is_cuda:
                r.copies.append((size, pinned, begin, marks.Cuda.mark(None)))
            return out
        return copy
    if torch.cuda.is_available():
        _T.to, _T.cuda = timed(_T.to), timed(_T.cuda)


def _loader():
    loader = torch.utils.data.DataLoader
    base = torch.utils.data.dataloader._BaseDataLoaderIter
    begin, following = loader.__iter__, base.__next__

    def __iter__(self):
        if not recorder.here():
            return begin(self)
        number = recorder.loader(self)
        os.environ[worker.LOADER] = str(number)
        trains = torch.is_grad_enabled()
        if trains:
            recorder.begin_epoch(number)
        before = self.worker_init_fn
        self.worker_init_fn = worker.Begun(str(number), before)
        try:
            out = begin(self)
        finally:
            self.worker_init_fn = before
        # not that of a loader for validation, during the epoch or after it
        out.gpemu_epoch = recorder.epoch if trains else None
        return out

    def __next__(self):
        epoch = getattr(self, "gpemu_epoch", None)
        if not epoch or epoch is not recorder.epoch or not recorder.here():
            return following(self)
        start = _now()
        try:
            out = following(self)
            epoch["batches"] += 1
            return out
        except StopIteration:
            epoch["loaded_ns"] = _now()
            epoch["stop_ns"] = epoch["loaded_ns"] - start
            raise
        finally:
            recorder.batches += 1
            epoch.setdefault("first_ns", _now())
            epoch["wait_ns"] += _now() - start
    loader.__iter__, base.__next__ = __iter__, __next__


def _end(options):
    if os.getpid() != recorder.pid:
        return
    try:
        recorder.close()
        training.write(recorder, options)
    except KeyboardInterrupt:
        print("gpemu record: interrupted: nothing is written", file=sys.stderr)


def install() -> None:
    """After the import of torch."""
    global recorder
    options = json.loads(os.environ["GPEMU_RECORD"])
    recorder = Recorder()
    if "samples" not in options:  # the first; others inherit it
        recorder.samples = tempfile.TemporaryFile()
        options["samples"] = \
            f"/proc/{os.getpid()}/fd/{recorder.samples.fileno()}"
        os.environ["GPEMU_RECORD"] = json.dumps(options)
    worker.install(options["samples"])
    if os.environ.get("RANK", "0") != "0":
        return  # the first of several processes is the one that is recorded
    if multiprocessing.parent_process() or \
            getattr(multiprocessing.current_process(), "_inheriting", False):
        return  # a worker, or one that is being spawned
    _modules()
    _backward()
    _optimizers()
    _copies()
    _loader()
    atexit.register(_end, options)
