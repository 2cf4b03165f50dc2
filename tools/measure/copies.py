# SPDX-License-Identifier: MIT
"""Copies between host and device as a loader makes them, by bytes.

One thread, as PyTorch's pin thread has; memory that was used before, as its
allocator of pinned memory hands blocks out again; all sizes upwards and then
downwards, so that what the order does to a size shows as a difference.
"""
import statistics
import time

import torch

SMALLEST = 2**14  # bytes; below, the fixed cost is all
LEAST = 3  # copies of a size and a direction
MOST = 2000
APART = 1.1  # the two directions differ by more: said


def sizes(largest):
    """Powers of two and the midpoints between them, the last >= largest."""
    found, power = [], SMALLEST
    while not found or found[-1] < largest:
        found += [power, power * 3 // 2]
        power *= 2
    if len(found) > 1 and found[-2] >= largest:
        found.pop()
    return found


class Buffers:
    """A batch of `n` bytes in pageable and in pinned memory."""

    def __init__(self, backend, n):
        self.backend = backend
        self.pageable = torch.zeros(n, dtype=torch.uint8)
        self.pinned = backend.pinned(self.pageable)

    def ways(self):
        upload, pinned = self.backend.upload, self.backend.pinned
        return {
            "pageable_ms": lambda: upload([self.pageable]),
            "pinned_ms": lambda: upload([self.pinned], non_blocking=True),
            # as DataLoader does: a block of an earlier batch is used again
            "pin_copy_ms": lambda: pinned(self.pageable),
        }


def time_way(backend, way, seconds):
    """The median of this way, in ms."""
    times = []
    for _ in range(2):  # first touches
        way()
    end = time.perf_counter() + seconds
    while len(times) < LEAST or (
        time.perf_counter() < end and len(times) < MOST
    ):
        backend.sync()
        start = time.perf_counter()
        way()
        backend.sync()
        times.append(time.perf_counter() - start)
    return statistics.median(times) * 1e3


def one_pass(backend, order, seconds, found):
    """Measures the sizes in this order; returns the one that was out of
    memory, or None."""
    for n in order:
        try:
            ways = Buffers(backend, n).ways()
            for key, way in ways.items():
                ms = time_way(backend, way, seconds)
                found.setdefault(n, {}).setdefault(key, []).append(ms)
        except (RuntimeError, MemoryError) as error:
            if not backend.is_oom(error):
                raise
            found.pop(n, None)
            return n
        finally:
            ways = None
            backend.release()
    return None


def measure(backend, largest, seconds, say):
    """{bytes: {way_ms: ms}} up to `largest` bytes, or what fits."""
    found, order = {}, sizes(largest)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        over = one_pass(backend, order, seconds / 20, found)
        if over:
            say(f"copies: {over} bytes are out of memory")
        one_pass(backend, sorted(found, reverse=True), seconds / 20, found)
    finally:
        torch.set_num_threads(threads)
    apart = [
        (max(both) / min(both), key, n, *both)
        for n, ways in found.items()
        for key, both in ways.items()
    ]
    n_apart = sum(a[0] > APART for a in apart)
    if n_apart:
        _, key, n, up, down = max(apart)
        say(
            f"copies: {n_apart} of {len(apart)} times depend on the order or "
            f"on other programs, at most {key} of {n} bytes: {up:.4g} "
            f"upwards, {down:.4g} downwards"
        )
    return {
        n: {key: statistics.mean(both) for key, both in ways.items()}
        for n, ways in found.items()
    }
