# SPDX-License-Identifier: MIT
"""A trace, line by line, and numbers in it within their bounds."""
from __future__ import annotations

import gzip
import zlib

# Of a line. arbitrary: above what the tracers write
_LINE_BYTES = 1 << 20
SECOND = 10**9  # ns
# Bounds that no trace reaches; they keep sums in 64 bits
MOST_NS = 1 << 62
MOST_BYTES = 1 << 62
MOST_DURATION_NS = 10**7 * SECOND


class TraceError(Exception):
    def __init__(self, path, text, line=0, column=1):
        place = f"{path}:{line}:{column}" if line else path
        super().__init__(f"{place}: {text}")


class Lines:
    """Of a file, also one of gzip: bytes without the newline. `note` takes what the
    reader of the trace should know."""

    def __init__(self, path, note):
        self.path, self.note, self.n = path, note, 0
        self.whole = True  # the line has its end

    def each(self, take):
        for line in self:
            try:
                take(line)
            except TraceError as error:
                if self.whole:
                    raise
                self.note(f"{error}: the last line is cut off")

    def __iter__(self):
        try:
            with open(self.path, "rb") as raw:
                packed = raw.peek(2)[:2] == b"\x1f\x8b"  # also of a pipe
                yield from self._lines(gzip.open(raw) if packed else raw)
        except (EOFError, zlib.error) as error:
            self.note(f"{self.path}: cut off after line {self.n}: {error}")
        except gzip.BadGzipFile as error:
            raise TraceError(self.path, error) from None
        except OSError as error:
            raise TraceError(self.path, error.strerror) from None

    def _lines(self, file):
        while line := file.readline(_LINE_BYTES):
            self.n += 1
            if line.endswith(b"\n"):
                yield line[:-1].rstrip(b"\r")
            elif len(line) == _LINE_BYTES:
                raise self.error(f"a line of more than {_LINE_BYTES} bytes")
            else:
                self.whole = False
                yield line

    def error(self, text, column=1):
        return TraceError(self.path, text, self.n, column)


def ns_of(seconds, fraction):
    """Of the digits before and after the point; None: out of range."""
    if len(seconds) > 10:
        return None
    return int(seconds) * SECOND + int(fraction.ljust(9, b"0")[:9])


def number(value, most):
    """An integer of 0 to `most`, also of text; None: it is none."""
    if isinstance(value, str) and len(value) < 32:
        try:
            value = float(value) if "." in value else int(value)
        except ValueError:
            return None
    # not a number is in no range
    if isinstance(value, bool) or not isinstance(value, (int, float)) or \
            not 0 <= value <= most:
        return None
    return int(value)
