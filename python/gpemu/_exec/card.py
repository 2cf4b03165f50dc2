# SPDX-License-Identifier: MIT
"""libgpemu's part: what work costs, a clock, engines, page-locked memory."""
from __future__ import annotations

import json
import threading
import weakref
from ctypes import (POINTER, Structure, byref, c_char_p, c_double, c_int,
                    c_size_t, c_ubyte, c_uint, c_uint64, c_void_p,
                    create_string_buffer)
from collections import defaultdict

from gpemu._library import library, raise_error, words

COMPUTE, COPY_IN, COPY_OUT = range(3)
_TEXT_BYTES = 2048


class Cost(Structure):
    _fields_ = [("forward_ns", c_uint64), ("backward_ns", c_uint64),
                ("optimizer_ns", c_uint64), ("peak_bytes", c_uint64),
                ("persistent_bytes", c_uint64), ("extrapolated", c_uint64),
                ("reserved", c_uint64 * 6)]


_FUNCTIONS = {
    "gpemu_card_close": (None, c_void_p),
    "gpemu_card_copy_ns": (c_uint64, c_void_p, c_char_p, c_uint64, c_int),
    "gpemu_card_cost": (c_int, c_void_p, c_char_p, c_uint64, c_int,
                        POINTER(Cost), c_char_p, c_size_t),
    "gpemu_card_now_ns": (c_uint64, c_void_p),
    "gpemu_card_open": (c_int, c_void_p, POINTER(c_void_p), c_char_p,
                        c_size_t),
    "gpemu_card_profile": (c_char_p, c_void_p),
    "gpemu_card_queue": (c_int, c_void_p, c_uint, c_uint64, c_uint64,
                         POINTER(c_uint64), POINTER(c_uint64)),
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
        keys = {k: options.get(k) for k in ("gpu", "gpu_memory", "time_scale")}
        code = self._lib.gpemu_card_open(words(keys), byref(self._handle),
                                         text, _TEXT_BYTES)
        if code < 0:
            raise_error(code, text.value)
        self.profile = json.loads(self._lib.gpemu_card_profile(self._handle))
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
