# SPDX-License-Identifier: MIT
"""The batches of a Loader.

Who holds the memory of a batch: the library, until the batch is stepped or
released; from then on the arrays that were made of it. They refer to a Memory,
which keeps the bytes in the library (gpemu_keep) and drops them when the last
array is gone.
"""
from __future__ import annotations

import ctypes
import os
import threading
import weakref
from ctypes import c_void_p
from typing import TYPE_CHECKING, Any, Iterator, List

from gpemu._library import Step, check_process, raise_error

if TYPE_CHECKING:
    from gpemu._loader import Loader


# Which memory is a batch's, for those who pass an array of it.
_lent: "weakref.WeakSet[Memory]" = weakref.WeakSet()
_lent_lock = threading.RLock()


def is_of_another(array: Any, memory: Memory | None) -> bool:
    """Is an array or a tensor in the memory of a batch, but not in this?"""
    if hasattr(array, "data_ptr"):
        try:
            at = array.data_ptr()
        except RuntimeError:  # a sparse one has none
            return False
    else:
        data = getattr(array, "__array_interface__", {}).get("data")
        at = data[0] if isinstance(data, tuple) else 0
    if memory is not None and memory.has(at):
        return False
    with _lent_lock:
        return any(other.has(at) for other in _lent)


class Memory(ctypes.c_char * (1 << 62)):
    """Where bytes of a batch begin; arrays made of it know where they end, and
    refer to it. (numpy takes this for a buffer ten times faster than an
    __array_interface__.)"""

    __hash__ = object.__hash__  # by identity, as it compares

    _kept = None
    _loader = None

    @classmethod
    def at(cls, loader: Loader, address: int, size: int) -> Memory:
        memory = cls.from_address(address)
        memory._loader = loader  # not to be closed by the garbage collector
        memory._begin, memory._end = address, address + size
        with _lent_lock:
            _lent.add(memory)
        return memory

    def has(self, address: int) -> bool:
        return self._begin <= address < self._end

    def keep(self, lib, handle, batch, pid: int) -> None:
        """The bytes have to outlive the batch."""
        if self._kept is not None:
            return
        kept = c_void_p()
        code = lib.gpemu_keep(handle, batch, kept)
        if code < 0:
            raise_error(code, lib.gpemu_error(handle))
        self._drop, self._pid, self._kept = lib.gpemu_drop, pid, kept
        self._loader = None

    def __del__(self, getpid=os.getpid) -> None:
        if self._kept is not None and getpid() == self._pid:
            self._drop(self._kept)


class Batch:
    """A batch of a Loader: `images, labels = batch`, or by name.

    `data` and `paths` can be read until the batch is stepped or released, that
    is, at most until the next one is taken; what was read of them stays valid.
    labels, index and errors are arrays of their own. Of an epoch that threads
    share, all can be read at any time.
    """

    n: int  #: samples
    ready_ns: int  #: emulated ns; since then it can be copied to the GPU

    __slots__ = ("n", "ready_ns", "_loader", "_records", "_columns",
                 "_tensor", "_memory", "_data", "_labels", "_index",
                 "_errors", "_own", "_paths", "__weakref__")

    def __init__(self, loader: Loader, n: int, ready_ns: int, records):
        self._loader: Loader | None = loader
        self._records = records  # a copy
        self._columns, self._tensor = loader._columns, loader._tensor
        self._memory = self._data = None
        self._labels = self._index = self._errors = self._paths = None
        self._own = False  # `_data` stays: a copy
        self.n = n
        self.ready_ns = ready_ns

    @property
    def labels(self) -> Any:
        """The class of each sample, from 0: int64."""
        if self._labels is None:
            self._labels = self._column("label", "i8")
        return self._labels

    @property
    def index(self) -> Any:
        """Where the samples are in the dataset, sorted by path: int64."""
        if self._index is None:
            self._index = self._column("index", "i8")
        return self._index

    @property
    def errors(self) -> Any:
        """0, or the errno of a sample that could not be used but stays
        (bad_samples="P%,zeros"; its data are zeros): ESTALE, its size changed; EBADMSG, not a whole image. int32."""
        if self._errors is None and self._records is not None:
            self._errors = -self._column("error", "i4")
        return self._errors

    @property
    def data(self) -> Any:
        """The samples, without a copy: an array [n, channels, rows, columns]
        of float32 or uint8; with prep="tokens" [n, 2, length] of int64, inputs
        and labels; with prep="none" a list of their bytes (uint8); None with
        loader="null"."""
        # in this order: a batch that is given back has its copy before
        loader, data = self._loader, self._data
        if data is None:
            if loader is None:
                loader = self._held()
            with loader._locked():
                if self._data is None:
                    self._held()  # no other thread was faster
                    self._data, self._memory = loader._arrays(self._records)
                data = self._data
        return data

    @property
    def paths(self) -> List[str]:
        """Of the samples, in the dataset or in their shard."""
        if self._paths is not None:
            return self._paths
        return [os.fsdecode(ctypes.string_at(int(path)))
                for path in self._held()._read(self._records)["path"]]

    def _keep(self) -> None:
        """Make it independent of the loader, unless it was given back."""
        loader = self._loader
        if loader is None or self._records is None:
            return
        with loader._locked():
            if self._loader is None or self._own:
                return
            data = self.data
            self._paths = self.paths
            if self._memory is not None:
                copy = "clone" if self._tensor else "copy"
                data = [getattr(d, copy)() for d in data] \
                    if isinstance(data, list) else getattr(data, copy)()
            self._data, self._own = data, True

    def step(self) -> Step:
        """Train on the batch: see Loader.step."""
        return self._held().step(self)

    def release(self) -> None:
        """Give the batch back without training on it: it makes no step."""
        self._held()._release(self)

    def __len__(self) -> int:
        return self.n

    @property
    def shape(self) -> tuple:
        """As an array's: gpemu.GPU.step takes both."""
        return (self.n,)

    def __iter__(self) -> Iterator[Any]:
        return iter((self.data, self.labels))

    def __repr__(self) -> str:
        held = "" if self._loader else ", given back"
        return f"<gpemu.Batch of {self.n}{held}>"

    def _column(self, name: str, dtype: str) -> Any:
        if self._records is None:
            return None
        column = self._columns[name](self.n, self._records).astype(dtype)
        return self._tensor(column) if self._tensor else column

    def _held(self) -> Loader:
        if self._loader is None:
            raise RuntimeError("the batch was given back: read its data "
                               "before its step, and before the next batch; "
                               "it makes at most one step")
        return self._loader


class Batches:
    """The rest of an epoch: what iter() of a Loader returns.

    Threads may share it: each batch goes to one of them. Since the next one of
    any thread takes the last one back, their batches have copies.
    """

    def __init__(self, loader: Loader, batches: Iterator[Batch]):
        self._loader, self._batches = loader, batches
        self._lock = threading.RLock()  # the rest
        self._thread: int | None = None  # that took the last one
        self._shared = False

    def __iter__(self) -> Batches:
        return self

    def __next__(self) -> Batch:
        check_process(self._loader._pid, "loader")
        with self._lock:
            thread = threading.get_ident()
            if self._thread != thread:
                self._see(thread)
            batch = next(self._batches)
            if self._shared:
                batch._keep()
            return batch

    def close(self) -> None:
        """End the epoch, as leaving the loop does. May be called again."""
        if os.getpid() == self._loader._pid:
            with self._lock:
                self._batches.close()

    def _see(self, thread: int) -> None:
        last = self._loader._held
        self._shared = self._thread is not None
        if self._shared and last is not None:
            last._keep()
        self._thread = thread
