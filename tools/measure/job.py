# SPDX-License-Identifier: MIT
"""Training steps of one variant on one device, timed."""
import contextlib
import statistics
import time

import torch

import zoo

WARM_UP = 2  # minimum of steps; then a fifth of the budget
LEAST = 3  # minimum of measured steps
MOST = 2000  # maximum of steps
WARM_STEPS = 5  # of a job, measured as its first
LAUNCHES = 10  # steps whose launch is measured


class OutOfMemory(Exception):
    pass


def set_precision(precision):
    tf32 = precision == "tf32"
    torch.backends.cuda.matmul.allow_tf32 = tf32
    torch.backends.cudnn.allow_tf32 = tf32


def spread_pct(values):
    """1.4826 times the median absolute deviation, of the median."""
    middle = statistics.median(values)
    mad = statistics.median(abs(v - middle) for v in values)
    return 148.26 * mad / middle if middle > 0 else 0.0


class Job:
    """A model with its optimiser on a device; close() releases both."""

    def __init__(self, variant, backend):
        self.variant = variant
        self.backend = backend
        self.stepped = False
        set_precision(variant.precision)
        torch.manual_seed(0)
        self.model = zoo.build(variant)
        self.parameters = sum(p.numel() for p in self.model.parameters())
        times = [backend.upload_model(self.model) for _ in range(5)]
        self.upload_ms = statistics.median(times) * 1e3
        self.model.to(backend.device)
        self.optimizer = zoo.optimizer(variant, self.model)

    def close(self):
        self.model = self.optimizer = None
        self.backend.release()

    def step(self, inputs, labels, marks):
        """Forward; loss and backward; optimiser: a mark around each."""
        mark = self.backend.mark
        amp = contextlib.nullcontext()
        if self.variant.precision == "bf16":
            amp = torch.autocast(self.backend.kind, dtype=torch.bfloat16)
        marks.append(mark())
        with amp:
            output = self.model(inputs)
            marks.append(mark())
            loss = zoo.loss(self.variant, output, labels)
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        marks.append(mark())
        self.optimizer.step()
        marks.append(mark())

    def held(self, batch):
        """The tensors that persist between steps."""
        yield from batch
        yield from self.model.buffers()
        for p in self.model.parameters():
            yield p
            if p.grad is not None:
                yield p.grad
        for state in self.optimizer.state.values():
            yield from (v for v in state.values() if torch.is_tensor(v))

    def chunk(self, batch, n):
        """Seconds of `n` steps: (forward, backward, optimiser) of each."""
        steps = [[] for _ in range(n)]
        for marks in steps:
            self.step(*batch, marks)
        self.backend.sync()
        between = self.backend.between
        return [[between(m[i], m[i + 1]) for i in range(3)] for m in steps]

    def guarded(self, function, *args):
        """Call; raises OutOfMemory if the device runs out of memory."""
        failed = None
        try:
            return function(*args)
        except (RuntimeError, MemoryError) as error:
            if not self.backend.is_oom(error):
                raise
            failed = str(error)
        # the frames that held the step's tensors are gone now
        self.optimizer.zero_grad(set_to_none=True)
        self.backend.release()
        raise OutOfMemory(failed)

    def fits(self, n):
        """Do two steps of `n` samples fit the device?"""
        def trial():
            batch = self.backend.upload(zoo.host_batch(self.variant, n))
            self.chunk(batch, 2)

        self.backend.release()
        try:
            self.guarded(trial)
        except OutOfMemory:
            return False
        self.backend.release()
        return True

    def measure(self, n, seconds):
        """The numbers of a row, in ms and MiB; OutOfMemory."""
        self.backend.release()
        return self.guarded(self._measure, n, seconds)

    def _measure(self, n, seconds):
        batch = self.backend.upload(zoo.host_batch(self.variant, n))
        self.backend.watch_memory()
        first = self.first_steps(batch)
        self.warm_up(lambda: self.chunk(batch, 1), seconds)
        steps = []
        end = time.perf_counter() + seconds
        while len(steps) < LEAST or (
            time.perf_counter() < end and len(steps) < MOST
        ):
            steps += self.chunk(batch, self.backend.ahead)
        peak, persistent = self.backend.memory(self.held(batch))
        forward, backward, optimizer = (
            statistics.median(s[i] for s in steps) * 1e3 for i in range(3)
        )
        return {
            "forward_ms": forward,
            "backward_ms": backward + optimizer,
            "optimizer_ms": optimizer,
            "peak_mib": peak,
            "persistent_mib": persistent,
            "spread_pct": spread_pct([sum(s) for s in steps]),
            "steps": len(steps),
            "host_ms": self.host_ms(batch),
            **({"first_ms": first} if first else {}),
        }

    def first_steps(self, batch):
        """The first steps of the job, ms; None: they were done before."""
        if self.stepped or not self.backend.launches:
            return None
        self.stepped = True
        return [sum(self.chunk(batch, 1)[0]) * 1e3 for _ in range(WARM_STEPS)]

    def host_ms(self, batch):
        """To launch a step on an idle device; 0 where the host computes."""
        times = []
        for _ in range(LAUNCHES if self.backend.launches else 0):
            self.backend.sync()
            start = time.perf_counter()
            self.step(*batch, [])
            times.append((time.perf_counter() - start) * 1e3)
        self.backend.sync()
        return statistics.median(times) if times else 0.0

    @staticmethod
    def warm_up(step, seconds):
        end = time.perf_counter() + seconds / 5
        n = 0
        while n < WARM_UP or (time.perf_counter() < end and n < MOST):
            step()
            n += 1

    def train(self, n, seconds):
        """A training loop as programs write it: batches from pinned memory,
        no waits between steps. Seconds per step and their spread."""
        return self.guarded(self._train, n, seconds)

    def _train(self, n, seconds):
        host = [self.backend.pinned(t) for t in zoo.host_batch(self.variant, n)]
        ahead = self.backend.ahead

        def loop():
            start = time.perf_counter()
            for _ in range(ahead):
                self.step(*self.backend.upload(host, non_blocking=True), [])
            self.backend.sync()
            return (time.perf_counter() - start) / ahead

        self.warm_up(loop, seconds)
        end = time.perf_counter() + seconds
        steps = []
        while len(steps) < LEAST or (
            time.perf_counter() < end and len(steps) < MOST
        ):
            steps.append(loop())
        return {
            "step_ms": statistics.median(steps) * 1e3,
            "spread_pct": spread_pct(steps),
            "steps": len(steps) * ahead,
        }
