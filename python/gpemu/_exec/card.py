# SPDX-License-Identifier: MIT
"""libgpemu's part: what work costs, a clock, engines, page-locked memory."""
from __future__ import annotations

import json
import os
import threading
import weakref
from ctypes import (POINTER, Structure, byref, c_char_p, c_double, c_int,
                    c_size_t, c_ubyte, c_uint, c_uint64, c_void_p,
                    create_string_buffer)
from collections import defaultdict
from functools import partial

from gpemu._library import Start, library, raise_error, words

COMPUTE, COPY_IN, COPY_OUT = range(3)
PARTS = {"forward": 1, "backward": 2, "optimizer": 4}  # of a step
_TEXT_BYTES = 2048


class Cost(Structure):
    _fields_ = [("forward_ns", c_uint64), ("backward_ns", c_uint64),
                ("optimizer_ns", c_uint64), ("peak_bytes", c_uint64),
                ("persistent_bytes", c_uint64), ("extrapolated", c_uint64),
                ("reserved", c_uint64 * 6)]


class Pass(Structure):
    _fields_ = [("start_ns", c_uint64), ("end_ns", c_uint64)]


class Sharded(Structure):
    _fields_ = [(name, c_uint64) for name in (
        "ranks", "units", "prefetch", "weight_bytes", "gradient_bytes",
        "forward_ns", "backward_ns")]


_FUNCTIONS = {
    "gpemu_card_close": (None, c_void_p),
    "gpemu_card_copy_ns": (c_uint64, c_void_p, c_char_p, c_uint64, c_int),
    "gpemu_card_cost": (c_int, c_void_p, c_char_p, c_uint64, c_int,
                        POINTER(Cost), c_char_p, c_size_t),
    "gpemu_card_done": (c_int, c_void_p, POINTER(Pass), c_char_p, c_size_t),
    "gpemu_card_gpus": (c_uint, c_void_p),
    "gpemu_card_interrupt": (None, c_void_p),
    "gpemu_card_join": (c_int, c_void_p, c_char_p, c_uint64, c_int, c_char_p,
                        c_size_t),
    "gpemu_card_now_ns": (c_uint64, c_void_p),
    "gpemu_card_open": (c_int, c_void_p, POINTER(c_void_p), c_char_p,
                        c_size_t),
    "gpemu_card_profile": (c_char_p, c_void_p),
    "gpemu_card_queue": (c_int, c_void_p, c_uint, c_uint64, c_uint64,
                         POINTER(c_uint64), POINTER(c_uint64)),
    "gpemu_card_reduced_ns": (c_int, c_void_p, POINTER(Pass), c_size_t,
                              c_uint64, POINTER(c_uint64)),
    "gpemu_card_server": (c_char_p, c_void_p),
    "gpemu_card_submit": (c_int, c_void_p, c_uint, c_uint64, c_char_p,
                          c_size_t),
    "gpemu_card_sharded_ns": (c_int, c_void_p, POINTER(Sharded),
                              POINTER(c_uint64)),
    "gpemu_card_wait": (None, c_void_p, c_uint64),
    "gpemu_pin": (c_void_p, c_size_t),
    "gpemu_unpin": (None, c_void_p, c_size_t),
}


def _library():
    lib = library()
    for name, (result, *arguments) in _FUNCTIONS.items():
        function = getattr(lib, name)
        function.restype, function.argtypes = result, arguments
    return lib


class Card:
    """A GPU: its profile, its clock, its engines."""

    def __init__(self, options):
        self._lib, self._handle = _library(), c_void_p()
        text = create_string_buffer(_TEXT_BYTES)
        keys = {k: options.get(k) for k in ("gpu", "gpu_memory", "time_scale",
                                            "gpus", "node", "gpu_server",
                                            "server_user")}
        code = self._lib.gpemu_card_open(words(keys), byref(self._handle),
                                         text, _TEXT_BYTES)
        if code < 0:
            raise_error(code, text.value)
        self.profile = json.loads(self._lib.gpemu_card_profile(self._handle))
        self.gpus = self._lib.gpemu_card_gpus(self._handle)
        server = self._lib.gpemu_card_server(self._handle)
        self.server = server and os.fsdecode(server)  #: its socket, or None
        self._begin, self._end = c_uint64(), c_uint64()
        self._lock = threading.Lock()

    def close(self):
        self._lib.gpemu_card_close(self._handle)
        self._handle = c_void_p()

    def cost(self, model, n, extrapolate):
        cost, text = Cost(), create_string_buffer(_TEXT_BYTES)
        code = self._lib.gpemu_card_cost(
            self._handle, model.encode(), n, extrapolate, byref(cost), text,
            _TEXT_BYTES)
        if code < 0:
            raise_error(code, text.value)
        return cost

    def copy_ns(self, n_bytes, pinned, model=None):
        return self._lib.gpemu_card_copy_ns(
            self._handle, model.encode() if model else None, n_bytes, pinned)

    def reduced(self, passes, n_bytes):
        """When gradients are reduced; `passes`: (begin, end) of each GPU."""
        some, end = (Pass * len(passes))(*passes), c_uint64()
        code = self._lib.gpemu_card_reduced_ns(
            self._handle, some, len(passes), n_bytes, byref(end))
        if code < 0:
            raise_error(code, b"")
        return end.value

    def sharded_ns(self, *numbers):
        """What a step of FSDP takes longer; the fields of Sharded."""
        out = c_uint64()
        code = self._lib.gpemu_card_sharded_ns(
            self._handle, byref(Sharded(*numbers)), byref(out))
        if code < 0:
            raise_error(code, b"")
        return out.value

    def now(self):
        return self._lib.gpemu_card_now_ns(self._handle)

    def wait(self, until_ns):
        self._lib.gpemu_card_wait(self._handle, until_ns)

    def queue(self, engine, after_ns, ns):
        """Begin and end."""
        with self._lock:
            self._lib.gpemu_card_queue(
                self._handle, engine, after_ns, int(ns), byref(self._begin),
                byref(self._end))
            return self._begin.value, self._end.value


    # --- the GPU of a server ---

    def _call(self, function, *arguments):
        text = create_string_buffer(_TEXT_BYTES)
        code = function(self._handle, *arguments, text, _TEXT_BYTES)
        if code < 0:
            raise_error(code, text.value)

    def join(self, model, n):
        """May wait for memory. Ctrl-C ends that."""
        text = create_string_buffer(_TEXT_BYTES)
        code = Start(partial(self._lib.gpemu_card_join, self._handle,
                             model.encode(), n, True, text, _TEXT_BYTES),
                     partial(self._lib.gpemu_card_interrupt, self._handle),
                     lambda: None).wait()
        if code < 0:
            raise_error(code, text.value)

    def leave(self):
        """The server; workers that were forked have the connection, too."""
        self._lib.gpemu_card_interrupt(self._handle)

    def submit(self, part, n):
        self._call(self._lib.gpemu_card_submit, PARTS[part], n)

    def done(self):
        """Begin and end of the oldest part that was submitted. Waits for it."""
        out = Pass()
        self._call(self._lib.gpemu_card_done, byref(out))
        return out.start_ns, out.end_ns


class Pinned:
    """Page-locked memory in blocks of powers of two, used again, as PyTorch's
    caching host allocator has it."""

    SMALLEST = 4096  # bytes, a page

    def __init__(self):
        self._lib, self._free = _library(), defaultdict(list)
        self.blocks = {}  #: address: bytes, of blocks in use
        self.most_bytes = self._bytes = 0
        self.refused = False  #: the limit of locked memory was reached

    def buffer(self, n_bytes):
        """A ctypes array, whose end gives the block back; None: refused."""
        size = max(self.SMALLEST, 1 << (n_bytes - 1).bit_length())
        try:
            address = self._free[size].pop()
        except IndexError:
            address = self._lib.gpemu_pin(size)
            if not address:
                self.refused = True
                return None
            self._bytes += size
            self.most_bytes = max(self.most_bytes, self._bytes)
        array = (c_ubyte * n_bytes).from_address(address)
        self.blocks[address] = size
        weakref.finalize(array, self._back, address, size).atexit = False
        return array

    def _back(self, address, size):
        self.blocks.pop(address, None)
        self._free[size].append(address)
