#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A cache policy in Python, slow and for trying ideas: `make` builds a part of
gpemu that asks it. Change the class; what is below it talks to gpemu."""
import collections
import signal
import socket
import struct
import sys


class Policy:
    """First in, first out.

    An object has `key`, `bytes` (its part of the capacity), `file_bytes` (of its
    file), `importance` (as a loader announces it; 0), `label` (of its class) and
    `next_use` (of the request, where the host knows the future). The cache keeps
    what it holds: inserted, hit, removed and victim are about the same objects.
    """

    def __init__(self, capacity, seed):
        self.queue = collections.OrderedDict()

    # def admit(self, obj): a miss: is it to be cached? Without it: yes.

    def inserted(self, obj):
        self.queue[obj.key] = obj

    # def hit(self, obj): it was read again.
    # def reweighed(self, obj): its importance has changed.

    def removed(self, obj):
        del self.queue[obj.key]

    def victim(self):
        """The object that makes room; there is one. It is removed next."""
        return next(iter(self.queue.values()))


# --- gpemu asks -------------------------------------------------------------

class Object:
    __slots__ = ("key", "bytes", "file_bytes", "next_use", "importance",
                 "label", "slot")


class Host:
    """Answers the part: a message is of policy_python.c's struct message."""
    MESSAGE = struct.Struct("=IIQQQQQd")
    HOOKS = "start", "admit", "inserted", "hit", "reweighed", "removed", "victim"

    def __init__(self, connection):
        self.connection = connection
        self.held = {}  # what is cached, by its slot

    def start(self, capacity, seed):
        policy = Policy(capacity, seed)
        self.hooks = [getattr(policy, name, None) for name in self.HOOKS]
        return sum(1 << i for i, hook in enumerate(self.hooks) if hook)

    def victim(self, hook):
        obj = hook()
        if not isinstance(obj, Object) or self.held.get(obj.slot) is not obj:
            raise ValueError(f"victim() returned {obj!r}: no cached object")
        return obj.slot

    def answer(self, name, hook, slot, label, key, size, file_bytes, next_use,
               importance):
        """What the part waits for; None: nothing."""
        if name == "start":
            return self.start(size, key)
        if name == "victim":
            return self.victim(hook)
        obj = Object() if name in ("admit", "inserted") else self.held[slot]
        if name in ("admit", "inserted"):
            obj.key, obj.bytes, obj.file_bytes = key, size, file_bytes
            obj.label, obj.slot = label, slot
        obj.next_use, obj.importance = next_use, importance
        if name == "inserted":
            self.held[slot] = obj
        elif name == "removed":
            del self.held[slot]
        if name == "admit":
            return bool(hook(obj))
        if hook:
            hook(obj)

    def run(self):
        self.hooks = [None] * len(self.HOOKS)
        source = self.connection.makefile("rb")
        while message := source.read(self.MESSAGE.size):
            what, label, slot, *fields = self.MESSAGE.unpack(message)
            answer = self.answer(self.HOOKS[what], self.hooks[what], slot, label,
                                 *fields)
            if answer is not None:
                self.connection.sendall(struct.pack("=Q", answer))


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("gpemu starts this: gpemu cachesim --policies ./NAME.so")
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # gpemu ends it
    Host(socket.socket(fileno=int(sys.argv[1]))).run()
