# SPDX-License-Identifier: MIT
"""The files that were read: an opening is what one reader did with one file between
open and close."""
from __future__ import annotations

import os
import re
from collections import Counter, defaultdict
from typing import NamedTuple

# Openings, and names, spans and threads, that are kept; the trace is left at that.
# arbitrary: 2 GB of memory
MOST = 2_000_000
_NO_DATA = re.compile(
    r"/(proc|sys|dev)/|.*\.(py|pyc|pth|so)(\.[0-9.]+)?$|.*/ld\.so\.cache$")


class Opening(NamedTuple):
    reader: object
    file: str
    begin: int  # ns
    end: int
    bytes: int
    calls: int  # of read
    io_ns: int  # in open, read and close
    waited_ns: int  # by its reader, from the start of the trace until `begin`

    def with_more(self, later):
        """Of the same reader and file."""
        return self._replace(
            end=later.end, bytes=self.bytes + later.bytes,
            calls=self.calls + later.calls, io_ns=self.io_ns + later.io_ns)


class Full(Exception):
    """No more is kept."""

    def __init__(self):
        super().__init__(f"more than {MOST} files or steps: the rest of the "
                         "trace is left out")


class Reads:
    def __init__(self, data=None):
        self.below = os.path.join(os.path.abspath(data), "") if data else None
        self.openings = []
        self.waited = defaultdict(int)  # reader: ns
        self._names = {}
        self._open = {}  # (reader, file): an opening that goes on
        self._strange = {}  # file: (reader, file) that read it without open

    def is_data(self, path):
        if self.below:
            return path.startswith(self.below)
        return not _NO_DATA.match(path)

    def open(self, reader, path, begin, took):
        if self.is_data(path):
            self._end((reader, path))
            self._begin(reader, path, begin, took)

    def _begin(self, reader, path, begin, took):
        if len(self._open) + len(self.openings) >= MOST:
            raise Full
        name = self._names.setdefault(path, path)  # of which there are many
        self._open[reader, path] = Opening(
            reader, name, begin, begin + took, 0, 0, took, self.waited[reader])

    def read(self, reader, path, begin, took, n_bytes):
        if not self.is_data(path):
            return
        key = reader, path
        if key not in self._open:  # another thread opened it
            self._begin(reader, path, begin, 0)
            self._strange[path] = key
        was = self._open[key]
        self._open[key] = was._replace(
            end=begin + took, bytes=was.bytes + n_bytes,
            calls=was.calls + 1, io_ns=was.io_ns + took)

    def close(self, reader, path, begin, took):
        key = reader, path
        if was := self._open.get(key):
            self._open[key] = was._replace(end=begin + took,
                                           io_ns=was.io_ns + took)
        self._end(key)
        if key := self._strange.pop(path, None):
            self._end(key)

    def wait(self, reader, took):
        if len(self.waited) >= MOST and reader not in self.waited:
            raise Full
        self.waited[reader] += took

    def _end(self, key):
        was = self._open.pop(key, None)
        if was and was.calls:  # or it was mapped, or only looked at
            self.openings.append(was)

    def end(self):
        for key in list(self._open):
            self._end(key)

    # --- at the end of the trace ---

    def dataset(self, note):
        """The openings of the dataset: of the kind of file of which most was read,
        by those who read a part of it, in their order."""
        kinds = Counter()
        for o in self.openings:
            kinds[_kind(o.file)] += o.bytes
        found = self.openings
        if not self.below and len(kinds) > 1:
            kind = kinds.most_common(1)[0][0]
            found = [o for o in found if _kind(o.file) == kind]
            note(f"the dataset is taken for the files *{kind}, which have "
                 f"{100 * kinds[kind] / max(1, sum(kinds.values())):.0f} % of "
                 "the bytes that were read; --data FOLDER says otherwise")
        found = _merged(sorted(found, key=lambda o: (o.begin, o.end)))
        by = Counter(o.reader for o in found)
        most = max(by.values(), default=0)
        # others looked at a sample
        return [o for o in found if 10 * by[o.reader] >= most]


def _kind(path):
    return os.path.splitext(path)[1]


def _merged(openings):
    """A file that its reader opens twice in a row is one sample."""
    files = {o.file for o in openings}
    if len(files) <= 2 * len({o.reader for o in openings}):
        return openings  # few large ones
    out, last = [], {}
    for o in openings:
        at = last.get(o.reader)
        if at is not None and out[at].file == o.file:
            out[at] = out[at].with_more(o)
        else:
            last[o.reader] = len(out)
            out.append(o)
    return out
