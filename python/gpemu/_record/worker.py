# SPDX-License-Identifier: MIT
"""What samples cost where they are made: in the workers of a DataLoader, or in
the process itself. A line of JSON for each batch goes to one file of all
processes, which the first one has open.

The time of a sample is divided into CPU time, waiting for a CPU (schedstat), and
the rest, in which it was blocked: reads, as a rule.
"""
from __future__ import annotations

import contextlib
import errno
import json
import os
import stat
import sys
import time
from collections import defaultdict

import torch.utils.data._utils.fetch as fetchers

# Samples that a process writes; then it only counts. arbitrary: some 10 MB
MOST = 100_000
LOADER = "GPEMU_RECORD_LOADER"  # its number, in the environment


def cost():
    """ns: of wall time, of CPU time, of waiting for a CPU, of this thread."""
    wall = time.perf_counter_ns()
    try:
        with open("/proc/thread-self/schedstat", "rb", 0) as f:
            cpu, delay, _ = map(int, f.read().split())
    except OSError:  # a kernel without it
        cpu, delay = time.thread_time_ns(), 0
    return wall, cpu, delay


class Watch:
    """Of this process."""

    def __init__(self, path):
        self.path, self.pid = path, 0
        self.sampling = False
        sys.addaudithook(self._opened)

    def begin(self):
        if self.pid != os.getpid():  # first, or after a fork
            self.pid, self.n = os.getpid(), 0
            try:
                self.out = _open(self.path, os.O_WRONLY | os.O_APPEND)
            except OSError as error:
                self.stop(error)
        self.samples, self.files = [], []
        self.transforms = defaultdict(int)
        self.sampling = self.n < MOST
        return self.sampling

    def stop(self, error):
        """The script goes on, and its samples are no longer recorded."""
        self.n = MOST
        print(f"gpemu record: a temporary file: {error.strerror}: further "
              "samples of this process are not recorded", file=sys.stderr)

    def sample(self, before, after, n=1):
        each = [(b - a) // n for a, b in zip(before, after)]
        self.samples += [each] * n

    def end(self, total):
        self.sampling = False
        samples = self.samples
        self.n += len(samples)
        if not samples:
            return
        line = {"process": self.pid, "loader": int(os.environ.get(LOADER, 0)),
                "batch": [b - a for a, b in zip(*total)],
                "samples": samples, "files": self.files,
                "transforms": self.transforms}
        try:
            line = json.dumps(line).encode() + b"\n"
            if os.write(self.out, line) < len(line):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        except OSError as error:
            self.stop(error)

    def _opened(self, event, arguments):
        if event != "open" or not self.sampling or self.pid != os.getpid():
            return
        path, _, flags = arguments
        if isinstance(path, (str, bytes)) and not \
                (isinstance(flags, int) and flags & os.O_ACCMODE):
            path = os.path.abspath(os.fsdecode(path))
            if not path.startswith(("/proc/", "/sys/", "/dev/")) and \
                    not path.endswith((".py", ".pyc", ".so")):
                self.files.append(path)


class Timed:
    """A dataset, or an iterator of one, whose samples are timed."""

    def __init__(self, inner, watch):
        self._inner, self._watch = inner, watch

    def __getattr__(self, name):
        return getattr(self._inner, name)

    def __getitem__(self, i):
        before = cost()
        out = self._inner[i]
        self._watch.sample(before, cost())
        return out

    def __len__(self):
        return len(self._inner)

    def __next__(self):
        before = cost()
        out = next(self._inner)
        self._watch.sample(before, cost())
        return out


class TimedBatches(Timed):
    """One that makes several samples in one call."""

    def __getitems__(self, some):
        before = cost()
        out = self._inner.__getitems__(some)
        self._watch.sample(before, cost(), len(some))
        return out


def _timed(inner, watch):
    if isinstance(inner, Timed):
        return inner
    many = getattr(inner, "__getitems__", None)
    return (TimedBatches if many else Timed)(inner, watch)


def _fetch(original, attribute, watch):
    def fetch(self, index):
        if not watch.begin():
            return original(self, index)
        setattr(self, attribute, _timed(getattr(self, attribute), watch))
        _compositions(watch)
        before = cost()
        out = original(self, index)
        watch.end((before, cost()))
        return out
    return fetch


def _composed(watch):
    """Compose of torchvision, whose transforms are timed."""
    def call(self, *inputs):
        for transform in self.transforms:
            begin = time.thread_time_ns()
            out = transform(*inputs)
            watch.transforms[type(transform).__name__] += \
                time.thread_time_ns() - begin
            inputs = out if len(inputs) > 1 else (out,)
        return inputs if len(inputs) > 1 else inputs[0]
    return call


def _compositions(watch):
    """Where the script has imported them by now."""
    for module, method in (("torchvision.transforms.transforms", "__call__"),
                           ("torchvision.transforms.v2._container", "forward")):
        there = sys.modules.get(module)
        if there and not hasattr(there.Compose, "gpemu_timed"):
            there.Compose.gpemu_timed = True
            setattr(there.Compose, method, _composed(watch))


def install(path):
    watch = Watch(path)
    for kind, attribute in ((fetchers._MapDatasetFetcher, "dataset"),
                            (fetchers._IterableDatasetFetcher,
                             "dataset_iter")):
        kind.fetch = _fetch(kind.fetch, attribute, watch)


class Begun:
    """In a worker, before its first batch: the number of its loader, however the
    process was started."""

    def __init__(self, number, then):
        self._number, self._then = number, then

    def __call__(self, worker):
        os.environ[LOADER] = self._number
        if self._then:
            self._then(worker)


# Instead of a batch: a process has written the record
_TOLD = b"{}\n"


def tell(path):
    with contextlib.suppress(OSError), \
            open(_open(path, os.O_WRONLY | os.O_APPEND), "ab") as f:
        f.write(_TOLD)


def _open(path, flags):
    """A file without a name, that a process has open. Its descriptor may be
    another file's by now."""
    file = os.open(path, flags | os.O_CLOEXEC)
    if not os.fstat(file).st_nlink:
        return file
    os.close(file)
    raise FileNotFoundError(errno.ENOENT, "its process has ended")


def told(path):
    with open(_open(path, os.O_RDONLY), "rb") as f:
        return _TOLD in f


def read(path, loader):
    """What the workers of this loader wrote, batch by batch."""
    by = defaultdict(list)
    try:
        file = _open(path, os.O_RDONLY)
    except OSError as error:
        print(f"gpemu record: the samples of workers: {error.strerror}",
              file=sys.stderr)
        return []
    with open(file, "rb") as f:
        for line in f:
            try:
                batch = json.loads(line)
            except ValueError:  # there was no space for all of it
                continue
            if batch and batch["loader"] == loader:
                by[batch["process"]].append(batch)
    for mine in by.values():
        # imports, first touches
        mine[0]["warm_up"] = len(mine) > 1
    return [batch for mine in by.values() for batch in mine]


def sizes(files):
    """{path: bytes} of regular files that are still there."""
    found = {}
    for path in files:
        try:
            st = os.stat(path)
        except OSError:
            continue
        if stat.S_ISREG(st.st_mode):
            found[path] = st.st_size
    return found
