# SPDX-License-Identifier: MIT
"""The device's clock. A mark is a point in the order of its work."""
from __future__ import annotations

import time

import torch


class Host:
    """A device that computes while the host waits, as a CPU."""

    name, launches = "cpu", False

    def mark(self):
        return time.perf_counter_ns()

    def done(self, mark):
        return True

    def between_ns(self, a, b):
        return b - a

    def memory(self):
        return 0, 0


class Cuda:
    """Events of the current stream."""

    name, launches = "cuda", True

    def __init__(self):
        torch.cuda.reset_peak_memory_stats()

    def mark(self):
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def done(self, mark):
        return mark.query()

    def between_ns(self, a, b):
        b.synchronize()
        return a.elapsed_time(b) * 1e6

    def memory(self):
        """Bytes: at most, and now."""
        return (torch.cuda.max_memory_allocated(),
                torch.cuda.memory_allocated())


def of(tensor):
    return Cuda() if tensor.device.type == "cuda" else Host()
