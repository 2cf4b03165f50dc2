# SPDX-License-Identifier: MIT
"""The state file: one JSON object per line, so that a run can be resumed.

The first line is the head: what a measurement depends on besides the model.
A line that a killed run left unfinished is cut off.
"""
import json
import os


class Mismatch(Exception):
    pass


def died_at(path):
    """After a process died: mark the attempt that it had begun as out of
    memory and return it; None if there was none."""
    open_attempt = None
    try:
        lines = read(path)
    except (OSError, Mismatch):
        return None
    for line in lines:
        if line["kind"] == "attempt":
            open_attempt = line
        elif line["kind"] in ("point", "trial", "held"):
            open_attempt = None
    if open_attempt:
        open_attempt.update(kind="trial", fits=False)
        with open(path, "a") as f:
            f.write(json.dumps(open_attempt) + "\n")
    return open_attempt


def read(path):
    """The lines of a file; drops an unfinished last line."""
    if not os.path.exists(path):
        return []
    with open(path, "rb+") as f:
        text = f.read()
        whole = text.rfind(b"\n") + 1
        f.truncate(whole)
    lines = []
    for number, line in enumerate(text[:whole].splitlines(), 1):
        try:
            lines.append(json.loads(line))
            lines[-1]["kind"]
        except (ValueError, KeyError, TypeError):
            raise Mismatch(f"{path}:{number}: not a measurement") from None
    return lines


class Journal:
    def __init__(self, path, head):
        self.path = path
        self.points = {}  # (model, batch): row
        self.trials = {}  # (model, batch): did it fit
        self.models = {}  # model: facts
        self.held = {}  # (model, batch): a step that makes no row
        self.copies = {}  # bytes: ms of each way
        self.clocks = []
        lines = read(path)
        if lines:
            self._compare(lines[0], head)
        self.f = open(path, "ab", buffering=0)
        if not lines:
            self._write({"kind": "head", **head})
        for line in lines[1:]:
            self._take(line)
        for model, _ in self.points:
            if model not in self.models:
                raise Mismatch(f"{path}: no line about the model {model}")

    def _compare(self, old, head):
        for key, value in head.items():
            if old.get(key) != value:
                raise Mismatch(
                    f"{self.path} was measured with {key} {old.get(key)}, "
                    f"this is {value}: name another --state"
                )

    def _take(self, line):
        kind = line["kind"]
        try:
            if kind == "point":
                self.points[line["model"], line["batch"]] = line
            elif kind == "trial":
                self.trials[line["model"], line["batch"]] = line["fits"]
            elif kind == "model":
                self.models[line["model"]] = line
            elif kind == "held":
                self.held[line["model"], line["batch"]] = line
            elif kind == "copies":
                self.copies[line["bytes"]] = line
            elif kind == "clocks":
                self.clocks.append(line)
        except KeyError as key:
            raise Mismatch(f"{self.path}: a {kind} without {key}") from None

    def _write(self, line):
        rest = (json.dumps(line) + "\n").encode()
        try:
            while rest:
                rest = rest[self.f.write(rest) :]
        except OSError as error:
            raise OSError(error.errno, os.strerror(error.errno), self.path) from None

    def add(self, kind, **line):
        line = {"kind": kind, **line}
        self._write(line)
        self._take(line)

    def fits(self, model, batch):
        """True, False, or None: not tried."""
        if (model, batch) in self.points:
            return True
        return self.trials.get((model, batch))
