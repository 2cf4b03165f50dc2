# SPDX-License-Identifier: MIT
"""A timeline in the Trace Event Format, for Perfetto: emulated time."""
from __future__ import annotations

import json
import os

from gpemu._exec.output import output

TRACKS = ("script", "copies to the GPU", "GPU", "gradients",
          "copies from the GPU")
SCRIPT, IN, GPU, GRADIENTS, OUT = range(len(TRACKS))


class Trace:
    def __init__(self, path, rank):
        self._path, self._file = path, None
        self._rank, self._pid = rank, os.getpid()

    def _open(self):
        """At the first span: a launcher has none, and its rank 0 the file."""
        self._file = output(self._path)
        self._file.write("[\n")
        self._meta("process_name", 0, f"rank {self._rank}")
        for i, name in enumerate(TRACKS):
            self._meta("thread_name", i, name)

    def _meta(self, what, track, name):
        self._put({"ph": "M", "name": what, "tid": track,
                   "args": {"name": name}})

    def _put(self, event):
        self._file.write(json.dumps({"pid": self._rank, **event}) + ",\n")

    def span(self, track, name, begin_ns, end_ns, **more):
        if self._path and end_ns > begin_ns and os.getpid() == self._pid:
            if not self._file:
                self._open()
            self._put({"ph": "X", "name": name, "tid": track,
                       "ts": begin_ns / 1e3, "dur": (end_ns - begin_ns) / 1e3,
                       **({"args": more} if more else {})})

    def close(self):
        if self._file:
            self._file.write("{}]\n")
            self._file.close()
        self._path = None
