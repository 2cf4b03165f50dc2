# SPDX-License-Identifier: MIT
"""Lines of DFTracer (and of DLIO, which uses it): JSON, one event each, between [ and ].

    {"name":"FH","cat":"dftracer","ph":"M","args":{"name":"/data/1.npz","value":"5f0e"}}
    {"name":"read","cat":"POSIX","pid":8,"tid":8,"ts":1700000000123456,"dur":12,
     "ph":"X","args":{"fhash":"5f0e","ret":4096}}            (one line)

Version 2 of pydftracer writes ph 4 for M and 1 for X; version 1 has the name of a file in
args, `fname`, and numbers as text. A reader is a thread.
"""
from __future__ import annotations

import json
import os
from typing import NamedTuple

from gpemu._import.lines import (MOST_BYTES, MOST_DURATION_NS, MOST_NS, Lines,
                                 number)
from gpemu._import.reads import MOST, Full

_OPENS = {"open", "open64", "openat", "openat64", "fopen", "fopen64"}
_READS = {"read", "pread", "pread64", "readv", "preadv", "fread"}
_CLOSES = {"close", "fclose"}
_UNITS_NS = {"NS": 1, "US": 1000, "MS": 10**6, "SEC": 10**9}
_PARTS = {"forward": "forward", "backward": "backward", "step": "optimizer"}


class Span(NamedTuple):
    reader: object
    begin: int  # ns
    end: int
    part: str = ""  # of a step; empty: all of it


class Events:
    """What the program itself says of its training."""

    def __init__(self):
        self.computes, self.items, self.trainings, self.epochs = [], [], [], []
        self.names = {}  # hash: name of a file

    def check_room(self):
        if MOST <= len(self.names) + sum(map(len, (
                self.computes, self.items, self.trainings, self.epochs))):
            raise Full


class _Trace:
    def __init__(self, path, reads, events, note):
        self.lines, self.reads, self.events = Lines(path, note), reads, events
        self.unit_ns = _UNITS_NS["US"]
        self.unnamed = 0

    def parse(self):
        self.lines.each(self.line)
        if self.unnamed:
            self.lines.note(f"{self.lines.path}: {self.unnamed} reads of files "
                            "that the trace does not name; DFTracer does with "
                            "DFTRACER_INC_METADATA=1")

    def line(self, line):
        text = line.strip().rstrip(b",")
        if text not in (b"", b"[", b"]"):
            self.event(line, self.decoded(text))

    def decoded(self, text):
        try:
            event = json.loads(text.decode(errors="surrogateescape"))
        except json.JSONDecodeError as error:
            raise self.lines.error(error.msg, error.colno) from None
        except (ValueError, RecursionError):  # digits, depth
            raise self.lines.error("a number or a nesting that is too "
                                   "large") from None
        if not isinstance(event, dict):
            raise self.lines.error("expected an object")
        return event

    def field(self, line, event, key, kind):
        value = event.get(key)
        if not isinstance(value, kind):
            raise self.lines.error(
                f"{key}: expected " + ("text" if kind is str else "an object"),
                line.find(b'"%s"' % key.encode()) + 1 or 1)
        return value

    def number(self, line, event, key, most, scale=1):
        value = event.get(key)
        if isinstance(value, float):
            value *= scale
            scale = 1
        value = number(value, most // scale)
        if value is None:
            raise self.lines.error(
                f"{key}: expected a number of 0 to {most // scale}",
                line.find(b'"%s"' % key.encode()) + 1 or 1)
        return value * scale

    def check_name(self, line, name):
        try:
            if b"\0" not in os.fsencode(name):
                return
        except UnicodeEncodeError:
            pass
        raise self.lines.error("not the name of a file",
                               line.find(b'"args"') + 1 or 1)

    def event(self, line, event):
        phase = event.get("ph")
        if phase in ("M", 4) and not isinstance(phase, bool):
            self.metadata(line, event)
        elif phase in ("X", 1) and not isinstance(phase, bool):
            self.complete(line, event)

    def metadata(self, line, event):
        name = self.field(line, event, "name", str)
        if name not in ("FH", "CM"):
            return
        args = self.field(line, event, "args", dict)
        key = self.field(line, args, "name", str)
        if name == "FH":
            self.check_name(line, key)
            self.events.check_room()
            self.events.names[str(args.get("value"))] = key
        elif key == "time_metric":
            unit = _UNITS_NS.get(str(args.get("value")).upper())
            if not unit:
                raise self.lines.error(
                    "time_metric: expected " + ", ".join(_UNITS_NS),
                    line.find(b'"value"') + 1 or 1)
            self.unit_ns = unit

    def complete(self, line, event):
        name = self.field(line, event, "name", str)
        category = self.field(line, event, "cat", str)
        begin = self.number(line, event, "ts", MOST_NS, self.unit_ns)
        took = self.number(line, event, "dur", MOST_DURATION_NS, self.unit_ns)
        args = event.get("args", {})
        if not isinstance(args, dict):
            raise self.lines.error("args: expected an object",
                                   line.find(b'"args"') + 1)
        # processes of several machines have the same numbers
        reader = (str(args.get("hhash", args.get("hostname"))),
                  self.number(line, event, "pid", 1 << 62),
                  self.number(line, event, "tid", 1 << 63))
        if category in ("POSIX", "STDIO"):
            self.file(line, name, args, reader, begin, took)
        else:
            self.of_program(name, category, Span(reader, begin, begin + took))

    def file(self, line, name, args, reader, begin, took):
        if name not in _OPENS | _READS | _CLOSES:
            return
        file = args.get("fname")
        if file is None and "fhash" in args:
            file = self.events.names.get(str(args["fhash"]))
        if not isinstance(file, str):
            self.unnamed += name in _READS
            return
        self.check_name(line, file)
        if name in _OPENS:
            self.reads.open(reader, file, begin, took)
        elif name in _CLOSES:
            self.reads.close(reader, file, begin, took)
        elif args.get("ret") not in (-1, "-1"):
            n = self.number(line, args, "ret", MOST_BYTES)
            if name == "fread":  # items
                size = args.get("size", 1)
                n *= self.number(line, {"size": size}, "size", MOST_BYTES)
            self.reads.read(reader, file, begin, took, min(n, MOST_BYTES))

    def of_program(self, name, category, span):
        """dftracer.ai has `compute`, `data`, `pipeline`; DLIO before it, its own."""
        events, call = self.events, name.rpartition(".")[2]
        events.check_room()
        if (category, name) == ("compute", "compute") or \
                (category, call) == ("ai_framework", "compute"):
            events.computes.append(span)
            self.reads.wait(span.reader, span.end - span.begin)
        elif category == "compute" and name in _PARTS:
            events.computes.append(span._replace(part=_PARTS[name]))
            self.reads.wait(span.reader, span.end - span.begin)
        elif (category, name) == ("data", "item") or \
                (category, call) == ("reader", "read_index"):
            events.items.append(span)
        elif (category, name) == ("pipeline", "train") or \
                (category, call) == ("dlio_benchmark", "_train"):
            events.trainings.append(span)
        elif (category, name) == ("pipeline", "epoch.block"):
            events.epochs.append(span)


def parse(path, reads, events, note):
    _Trace(path, reads, events, note).parse()
