# SPDX-License-Identifier: MIT
"""A timeline in the Trace Event Format, for Perfetto: emulated time since gpemu
exec began. The processes of a job append to one file, which is whole JSON
between any two of them."""
from __future__ import annotations

import contextlib
import fcntl
import json
import os
import sys
import time

from gpemu._exec.output import output

TRACKS = ("script", "copies to the GPU", "GPU", "gradients",
          "copies from the GPU")
SCRIPT, IN, GPU, GRADIENTS, OUT = range(len(TRACKS))
_HEAD, _BETWEEN, _TAIL = b"[\n", b",\n", b"\n]\n"
# Of a process, before it takes the lock. arbitrary: some hundred spans
_KEPT = 1 << 16


def _append(path, lines):
    """All of them, or none."""
    with output(path, "r+b", buffering=0) as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        size = file.seek(0, os.SEEK_END)
        at = max(0, size - len(_TAIL))
        left = (_BETWEEN if at else _HEAD) + _BETWEEN.join(lines) + _TAIL
        try:
            file.seek(at)
            while left:
                left = left[file.write(left):]
        except OSError:
            with contextlib.suppress(OSError):
                file.truncate(at)
                os.pwrite(file.fileno(), _TAIL if at else b"", at)
            raise


class Trace:
    """Of a process, a row of its own."""

    def __init__(self, path, clock, scale):
        began_ns = int(os.environ.get("GPEMU_EXEC_BEGAN_NS", 0))
        self._path, self._pid = path, os.getpid()
        self._ahead_ns = (time.monotonic_ns() - began_ns) / scale - clock()
        self._lines, self._size, self._named = [], 0, None
        self.rank, self.ranks = 0, 1

    def _meta(self, what, track, **args):
        self._put({"ph": "M", "name": what, "tid": track, "args": args})

    def _names(self):
        """Of the rows; as late as it can be: ranks learn theirs late."""
        name = f"rank {self.rank}" if self.ranks > 1 else \
            os.path.basename(sys.argv[0]) or "python"
        if name == self._named:
            return
        self._named = name
        self._meta("process_name", 0, name=name)
        self._meta("process_sort_index", 0, sort_index=self.rank)
        for i, track in enumerate(TRACKS):
            self._meta("thread_name", i, name=track)
            self._meta("thread_sort_index", i, sort_index=i)

    def _put(self, event):
        # Perfetto knows a thread by its number alone
        tid = self._pid * len(TRACKS) + event["tid"]
        line = json.dumps({"pid": self._pid, **event, "tid": tid}).encode()
        self._lines.append(line)
        self._size += len(line)

    def span(self, track, name, begin_ns, end_ns, **more):
        if self._path and end_ns > begin_ns:
            if os.getpid() != self._pid:  # its parent has these
                self._pid, self._named = os.getpid(), None
                self._lines, self._size = [], 0
            self._put({"ph": "X", "name": name, "tid": track,
                       "ts": (begin_ns + self._ahead_ns) / 1e3,
                       "dur": (end_ns - begin_ns) / 1e3,
                       **({"args": more} if more else {})})
            if self._size > _KEPT:
                self._flush()

    def _flush(self):
        if not self._path or not self._lines or os.getpid() != self._pid:
            return
        self._names()
        lines, self._lines, self._size = self._lines, [], 0
        try:
            _append(self._path, lines)
        except OSError as error:
            print(f"gpemu exec: {self._path}: {error.strerror}",
                  file=sys.stderr)
            self._path = None

    def close(self):
        self._flush()
        self._path = None
