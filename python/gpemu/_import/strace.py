# SPDX-License-Identifier: MIT
"""Lines of strace:

    1234 1700000000.123456 read(5</data/1.jpg>, ""..., 4096) = 4096 <0.000012>
    1234 1700000000.123499 read(5</data/1.jpg>,  <unfinished ...>
    1234 1700000000.123999 <... read resumed>""..., 4096) = 4096 <0.000500>

A reader is a thread. What it waits for other threads and processes is no work.
"""
from __future__ import annotations

import os
import re

from gpemu._import.lines import MOST_BYTES, MOST_DURATION_NS, Lines, ns_of

_OPENS = "open", "openat"
_READS = "read", "pread64", "readv", "preadv"
_WAITS = ("poll", "ppoll", "select", "pselect6", "epoll_wait", "epoll_pwait",
          "futex")
_OTHERS = "close",
# some do not exist on each architecture
COMMAND = ("strace -f --seccomp-bpf -ttt -T -y -s 0 -o FILE -e 'trace=" + ",".join(
    "?" + w for w in _OPENS + _READS + _OTHERS + _WAITS) + "' COMMAND")

# Unfinished ones, one of a thread. arbitrary: 0.5 GB of memory
_MOST_CALLS = 1 << 16

_HEAD = re.compile(rb"(?:\[pid +(\d+)\] |(\d+) +)?(\d+)\.(\d{6,9}) ")
_CALL = re.compile(rb"(\w+)\(")
_RESUMED = re.compile(rb"<\.\.\. (\w+) resumed>")
_FD = re.compile(rb"-?\d+(?:<([^>]*)>)?")
_DURATION = re.compile(rb" <(\d+)\.(\d{6,9})>$")
# a path that the result of an open names; strace escapes < and > in it
_RESULT = re.compile(
    rb".*\) += (-?\d+)(?:<([^<>]*)>)?(?:\(deleted\))?( E[A-Z0-9]+ \(.*\))?$")
_ESCAPE = re.compile(rb"\\([0-7]{1,3}|x[0-9a-f]{2}|.)")
_LETTERS = {b"n": b"\n", b"t": b"\t", b"r": b"\r", b"v": b"\v", b"f": b"\f"}
_KNOWN = {w.encode(): w for w in _OPENS + _READS + _OTHERS + _WAITS}


def _unescaped(found):
    word = found[1]
    if word[:1] in b"01234567":
        return bytes([int(word, 8) & 255])
    if len(word) > 1:
        return bytes([int(word[1:], 16)])
    return _LETTERS.get(word, word)


def _path(text):
    return os.fsdecode(_ESCAPE.sub(_unescaped, text))


class _Trace:
    def __init__(self, path, reads, note):
        self.lines, self.reads = Lines(path, note), reads
        self.unfinished = {}  # thread: begin, call, arguments
        # strace -ff -o writes a file for each thread, of that suffix
        suffix = os.path.splitext(path)[1][1:]
        self.thread = int(suffix) if re.fullmatch("[0-9]{1,10}", suffix) else 0

    def parse(self):
        self.lines.each(self.line)

    def line(self, line):
        if line.startswith(b"strace: ") or not line:
            return
        head = _HEAD.match(line)
        if not head:
            raise self.lines.error("expected a time, as of strace -ttt")
        begin = ns_of(head[3], head[4])
        thread = head[1] or head[2] or b"%d" % self.thread
        if begin is None or len(thread) > 10:
            raise self.lines.error("out of range")
        thread, at = int(thread), head.end()
        if call := _CALL.match(line, at):
            if kind := _KNOWN.get(call[1]):
                self.call(line, thread, begin, kind, call.end())
        elif resumed := _RESUMED.match(line, at):
            kind = _KNOWN.get(resumed[1])
            was = self.unfinished.pop(thread, None)
            if kind and was and was[1] == kind:
                self.result(thread, was[0], kind, was[2], line, resumed.end())
        elif line[at:at + 3] not in (b"---", b"+++"):
            raise self.lines.error("expected a system call", at + 1)

    def call(self, line, thread, begin, kind, at):
        if line.endswith(b" <unfinished ...>"):
            if len(self.unfinished) >= _MOST_CALLS:
                raise self.lines.error(
                    f"more than {_MOST_CALLS} unfinished calls")
            self.unfinished[thread] = begin, kind, line[at:at + 8192]
        else:
            self.result(thread, begin, kind, line[at:], line, at)

    def result(self, thread, begin, kind, arguments, line, at):
        """`line` from `at` has the end of the call."""
        end = _DURATION.search(line, at)
        if not end:
            # of a process that ended in it, or of a trace that was cut off
            if line.rstrip().endswith((b"= ?", b"<unfinished ...>")):
                return
            raise self.lines.error("expected <seconds>, as of strace -T",
                                   len(line) + 1)
        took = ns_of(*end.groups())
        if took is None or took > MOST_DURATION_NS:
            raise self.lines.error("out of range", end.start() + 2)
        if kind in _WAITS:
            self.reads.wait(thread, took)
            return
        found = _RESULT.match(line, at, end.start())
        if not found:
            if line.find(b" = ? ", at) >= 0:  # it is restarted
                return
            raise self.lines.error("expected ) = and a number", at + 1)
        value = int(found[1]) if len(found[1]) < 20 else MOST_BYTES + 1
        if value > MOST_BYTES:
            raise self.lines.error("out of range", found.start(1) + 1)
        if kind in _OPENS:
            if value >= 0 and found[2] is None:
                raise self.lines.error("expected <path>, as of strace -y",
                                       found.end(1) + 1)
            if value >= 0:
                self.reads.open(thread, _path(found[2]), begin, took)
            return
        file = _FD.match(arguments)
        if not file or (file[1] is None and value >= 0):
            raise self.lines.error("expected <path>, as of strace -y", at + 1)
        if not file[1] or not file[1].startswith(b"/"):
            if kind in _READS:  # a pipe, a socket
                self.reads.wait(thread, took)
        elif kind in _READS:
            if value >= 0:
                self.reads.read(thread, _path(file[1]), begin, took, value)
        else:
            self.reads.close(thread, _path(file[1]), begin, took)


def parse(path, reads, note):
    _Trace(path, reads, note).parse()
