# SPDX-License-Identifier: MIT
"""The data loader."""
from __future__ import annotations

import atexit
import ctypes
import errno
import json
import os
import threading
import warnings
import weakref
from contextlib import suppress
from ctypes import POINTER, byref, c_uint64, c_void_p
from functools import partial
from pathlib import Path
from typing import (TYPE_CHECKING, Any, Dict, Iterator, List, Literal,
                    Mapping)

from gpemu._batch import Batch, Batches, Memory, is_of_another
from gpemu._gpu import GPU
from gpemu._library import (SLICE_S, CBatch, CInfo, Epoch, Error, Start, Step,
                            check_process, count, library, need, raise_error,
                            refuse_handlers, word, words)
from gpemu._options import LoaderOptions, takes

if TYPE_CHECKING:
    from typing_extensions import Unpack

_SLICE_NS = int(SLICE_S * 1e9)
# GPEMU_BYTES, GPEMU_UINT8, GPEMU_FP32, GPEMU_INT64
_DTYPES = ("u1", "u1", "f4", "i8")
_BYTES = 0
# struct gpemu_sample
_SAMPLE = [("data", "u8"), ("size_bytes", "u8"), ("path", "u8"),
           ("index", "u8"), ("label", "u4"), ("error", "i4"),
           ("reserved", "u8", (3,))]

# The most epochs that gpemu-train takes: what a loop does that names no number.
_EPOCHS_MOST = 1_000_000

_open: "weakref.WeakSet[Loader]" = weakref.WeakSet()


@atexit.register
def _close_all() -> None:
    for loader in list(_open):
        loader.close()


def _close(handle, pid: int) -> int:
    return library().gpemu_close(handle) if os.getpid() == pid else 0


def _is_mounted(data: Any) -> bool:
    """In a mount of gpemu-fs, to which the loader announces its epochs?"""
    if data is None:
        return False
    path = Path(word(data).partition("\0")[0]).absolute()
    return any(os.path.exists(folder / ".gpemu/control")
               for folder in (path, *path.parents))


def _counts_epochs(options: Mapping[str, Any]) -> bool:
    """Must the run know its number of epochs, or do the options give it?"""
    return (str(options.get("loader")).startswith("service")
            or _is_mounted(options.get("data"))
            or any(options.get(key) is not None for key in
                   ("epochs", "config", "coordinate", "max_steps", "resume")))


class Loader:
    """The loader of gpemu-train(1) and its emulated GPU.

        gpu = gpemu.GPU(model="resnet50")
        with gpemu.Loader("/data/train", gpu, batch=64, epochs=3) as loader:
            for epoch in range(3):
                for images, labels in loader:
                    gpu.step(images)
            print(loader.epochs)

    Each `for` is the next epoch. There are as many as the option `epochs`
    says, after which a `for` raises an Error; without it there is no last one.
    (With config, coordinate, max_steps, resume, loader="service", or on a
    mount, to which the loader announces its epochs, the number is that of
    gpemu-train, by default 1.) A batch that is not stepped is released and makes no
    step. `batch.step()` and `loader.step()` do the same as `gpu.step(images)`.

    data: the dataset, a folder or a file; None with loader="null".
    gpu: a GPU, or the name of its profile. None: that of a server (gpu_server,
        or the one that came with the job, see gpemu.GPU), of the node, or a
        V100.
    to: "numpy" or "torch", the arrays of a batch.
    options: of gpemu-train(1), '_' for '-', as the signature lists them; True
        and False for on and off. None: the default there.

    Arrays show the loader's memory without a copy, and hold it until the last
    one (or view of it) is gone. The loader goes on with the memory of one batch
    less: while two earlier batches are in use, taking the next one raises
    BufferError. Where there is no memory for a second batch (pin_budget,
    coordinate, loader="service"), or samples of a batch lie apart
    (batching="ready" without pinned memory), arrays are copies.

    A wait for a batch, or for a GPU that others use (gpu_server), can be
    interrupted by signals. Threads take turns; those that share an epoch, that
    is one iter(loader), each get batches of their own, and copies of them. A
    step is on the batch that was taken last, so they hold a lock of their own
    from next() to the step. A forked process cannot use the loader, but arrays
    that it inherits. What took effect differently than
    requested is a warning.
    """

    @takes(LoaderOptions, "Loader")
    def __init__(self, data: Any = None,
                 gpu: GPU | str | os.PathLike[str] | None = None, *,
                 to: Literal["numpy", "torch"] = "numpy",
                 **keywords: Unpack[LoaderOptions]):
        numpy = need("numpy", "gpemu.Loader")
        if to not in ("numpy", "torch"):
            raise ValueError(f'to="{to}": neither "numpy" nor "torch"')
        options: Dict[str, Any] = {**keywords, "data": data}
        if isinstance(gpu, GPU):
            twice = sorted(options.keys() & gpu.options.keys())
            if twice:
                raise TypeError(f"{', '.join(twice)}: an option of the GPU")
            options.update(gpu.options)
        else:
            options["gpu"] = gpu
        if not _counts_epochs(options):
            options["epochs"] = _EPOCHS_MOST
        self._options = options
        self._numpy = numpy
        self._tensor = need("torch", 'to="torch"').from_numpy \
            if to == "torch" else None
        self._lib = library()
        self._lock = threading.RLock()
        self._pid = os.getpid()
        texts = words(options)
        self._handle = c_void_p()
        if self._lib.gpemu_new(self._handle) < 0:
            raise MemoryError
        if isinstance(gpu, GPU):
            gpu._lend()
        # until it returns the handle is its own: it may run longer than this
        code = Start(
            partial(self._lib.gpemu_start, self._handle, texts, None),
            partial(self._lib.gpemu_interrupt, self._handle),
            partial(_close, self._handle, self._pid)).wait()
        self._finalizer = weakref.finalize(self, _close, self._handle,
                                           self._pid)
        self._finalizer.atexit = False  # _close_all does more
        if code < 0:
            text = self._lib.gpemu_error(self._handle)
            self._finalizer()
            raise_error(code, text)
        _open.add(self)
        self._info = CInfo.from_buffer_copy(
            self._lib.gpemu_info(self._handle).contents)
        self._batch = POINTER(CBatch)()
        self._next_arguments = (self._handle, c_uint64(_SLICE_NS),
                                byref(self._batch))
        self._now = CBatch()  # what _batch points to, while a batch is held
        # (numpy handles arrays of structs slowly: copies are bytes, and a
        # column is an array with their stride)
        sample = numpy.dtype(_SAMPLE)
        self._sample_bytes = sample.itemsize
        self._read = partial(numpy.frombuffer, dtype=sample)
        self._columns = {
            name: partial(self._column, numpy.ndarray, *sample.fields[name],
                          (sample.itemsize,))
            for name in ("index", "label", "error")}
        self._type, self._lends = self._info.type, self._info.n_kept > 0
        # a sample of the run, without a value
        self._one = numpy.zeros(tuple(filter(None, self._info.shape)),
                                _DTYPES[self._type])
        self._held: Batch | None = None
        #: the account of each epoch so far
        self.epochs: List[Epoch] = []
        if isinstance(gpu, GPU):
            gpu._join(self)
        notes = os.fsdecode(self._lib.gpemu_notes(self._handle))
        for note in notes.splitlines():
            warnings.warn(note, RuntimeWarning, stacklevel=2)

    @property
    def n_samples(self) -> int:
        """Samples of the dataset; with loader="null" of an epoch."""
        return self._info.n_samples

    @property
    def n_classes(self) -> int:
        """Classes of the dataset; 1 if it has none."""
        return self._info.n_classes

    @property
    def batch_size(self) -> int:
        """Samples of a batch; the last one of an epoch may have less."""
        return self._info.batch

    @property
    def now_ns(self) -> int:
        """Emulated ns since the loader was opened."""
        return self._call(self._lib.gpemu_now_ns)

    def __len__(self) -> int:
        """Batches of a whole epoch."""
        return self._info.n_batches

    def __iter__(self) -> Batches:
        """The next epoch, to its end or until the loop is left. Threads can
        share what this returns."""
        return Batches(self, self._epoch())

    def _epoch(self) -> Iterator[Batch]:
        if self._call(self._lib.gpemu_begin_epoch, None) == 0:
            n = len(self.epochs)
            raise Error(f"the run is complete: its {n} epoch"
                        f"{'' if n == 1 else 's'} ended, as the loader's "
                        "options say; open it with the number that the loop "
                        "needs, as in Loader(..., epochs=3)")
        known = []  # why the epoch ends: its end reports that once more
        try:
            while True:
                batch = self._next()
                if batch is None:
                    break
                yield batch
        except Error:
            known = [Error]
            raise
        finally:
            with suppress(*known):
                self._end()

    def step(self, batch: Any = None) -> Step:
        """Train on the batch that was taken last: hand it to the GPU, and wait
        until the GPU has room for the next one.

        batch: that one, its array, or its number of samples. What is given is
        checked: a batch, or an array in the memory of one, must be that of the
        batch taken last; of other arrays, such as copies and what was made of
        them, only the number of samples. Several GPUs under parallel="ddp" take
        batches in turn; until the last one has its batch, step_end_ns is 0.
        """
        with self._locked():
            held = self._held
            if batch is not held or held is None:
                self._check(batch)
            self._let_go()
            step = Step()
            code = self._lib.gpemu_submit(self._handle, self._batch, step)
            if code < 0:
                raise_error(code, self._lib.gpemu_error(self._handle))
        return step

    def record(self) -> Dict[str, Any]:
        """The record of the run so far, as gpemu-train --json writes it. Not
        within an epoch. The first one takes half a second."""
        text = c_void_p()
        self._call(self._lib.gpemu_record, text)
        try:
            return json.loads(ctypes.string_at(text.value))
        finally:
            _free(text)

    def close(self) -> None:
        """Interrupt the epoch, stop the threads, write the logs. Arrays stay
        valid. May be called again."""
        if os.getpid() != self._pid:
            return
        refuse_handlers(self._lock)
        with self._lock:
            if not self._finalizer.alive:
                return
            if self._held:
                self._let_go()
            # called by hand: at the end of the program finalizers do nothing
            self._finalizer.detach()
            code = _close(self._handle, self._pid)
        if code < 0:
            raise_error(code, b"")

    def __enter__(self) -> Loader:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def __repr__(self) -> str:
        most = self._options.get("epochs")
        of = f" of {most}" if most and most != _EPOCHS_MOST else ""
        closed = "" if self._finalizer.alive else ", closed"
        return (f"<gpemu.Loader {self._options['data']!s}: {self.n_samples} "
                f"samples, {len(self)} batches of {self.batch_size}, "
                f"{len(self.epochs)}{of} epochs done{closed}>")

    def __reduce__(self):
        raise TypeError("a gpemu.Loader cannot be passed to another process")

    # --- for batches -----------------------------------------------------

    def _locked(self):
        if os.getpid() != self._pid:
            check_process(self._pid, "loader")
        return self._lock

    def _check_open(self) -> None:
        if not self._finalizer.alive:
            raise ValueError("the loader is closed")

    def _call(self, function, *arguments):
        """A function of the library, on this run."""
        with self._locked():
            self._check_open()
            code = function(self._handle, *arguments)
            if code < 0:
                raise_error(code, self._lib.gpemu_error(self._handle))
            return code

    def _next(self) -> Batch | None:
        if self._held:
            self._release(self._held)
        while True:
            with self._locked():
                self._check_open()
                code = self._lib.gpemu_next_within(*self._next_arguments)
                if code > 0:
                    return self._hold()
                if code < 0 and code != -errno.EAGAIN:
                    self._refuse(code)
            # outside of the lock: there is none yet
            if code == 0:
                return None

    def _hold(self) -> Batch:
        """The batch that the library has given."""
        self._now = now = self._batch.contents
        n = now.n
        self._held = held = Batch(self, n, now.ready_ns, self._samples(n))
        return held

    def _refuse(self, code: int) -> None:
        if code == -errno.EBUSY:
            raise BufferError(
                "arrays of two earlier batches are in use: drop them, or "
                "keep copies (array.copy(), tensor.clone())")
        raise_error(code, self._lib.gpemu_error(self._handle))

    def _check(self, batch: Any) -> None:
        """Is it an array of the batch that is held, or nothing?"""
        if isinstance(batch, Batch) and batch._held() is not self:
            raise ValueError("a batch of another loader")
        if self._held is None:
            raise RuntimeError("no batch to step on: each one makes at most "
                               "one step")
        if batch is not None and count(batch) != self._held.n:
            raise ValueError(f"a batch of {count(batch)} samples; the one "
                             f"that was taken last has {self._held.n}")
        memory = self._held._memory
        if is_of_another(batch, memory and memory()):
            raise ValueError("an array of another batch than the one that was "
                             "taken last")

    def _release(self, batch: Batch) -> None:
        with self._locked():
            if batch is self._held:  # no other thread was faster
                self._let_go()
                self._call(self._lib.gpemu_release, self._batch)

    def _let_go(self) -> None:
        """Before the library takes the batch back. An interrupt on the way
        leaves it held."""
        batch = self._held
        if not batch._own:
            batch._data = None
        memory = batch._memory() if batch._memory else None
        if memory is not None:
            memory.keep(self._lib, self._handle, self._batch, self._pid)
        batch._loader = self._held = None

    def _end(self) -> None:
        if os.getpid() != self._pid:
            return
        with self._lock:
            if not self._finalizer.alive:
                return
            if self._held:
                self._let_go()
            epoch = Epoch()
            try:
                self._call(self._lib.gpemu_end_epoch, epoch)
            finally:
                self.epochs.append(epoch)

    # --- arrays ----------------------------------------------------------

    @staticmethod
    def _column(array, dtype, offset: int, strides: tuple, n: int, records):
        return array((n,), dtype, records, offset, strides)

    def _samples(self, n: int):
        """A copy of the batch's array of struct gpemu_sample, for _read."""
        at = self._now.samples
        return ctypes.string_at(at, n * self._sample_bytes) if at else None

    def _arrays(self, records):
        """The samples, and a reference to the memory that they are in."""
        if records is None:
            return None, None
        if self._type == _BYTES:
            memory, arrays = self._pieces(self._read(records))
        elif self._now.data is None:
            return self._convert(self._collate(self._read(records))), None
        elif self._now.stride_bytes == 0:
            return self._zeros(), None
        else:
            memory, arrays = self._whole()
        reference = weakref.ref(memory)
        if not self._lends:
            arrays = [a.copy() for a in arrays] \
                if isinstance(arrays, list) else arrays.copy()
            reference = None
        return self._convert(arrays), reference

    def _whole(self):
        """Samples of one size, evenly spaced."""
        now, one = self._now, self._one
        memory = Memory.at(self, now.data, now.n * now.stride_bytes)
        return memory, self._numpy.ndarray(
            (now.n,) + one.shape, one.dtype, memory, 0,
            (now.stride_bytes,) + one.strides)

    def _collate(self, records):
        """A copy of samples of one size, each somewhere."""
        one = self._one
        array = self._numpy.empty((len(records),) + one.shape, one.dtype)
        for to, at in zip(array, records["data"].tolist()):
            ctypes.memmove(to.ctypes.data, at, one.nbytes)
        return array

    def _pieces(self, records):
        """Files of any size, each somewhere in the batch's memory."""
        begin, size = records["data"], records["size_bytes"]
        there = size > 0
        low = int(begin[there].min()) if there.any() else 0
        high = int((begin + size)[there].max()) if there.any() else 0
        memory = Memory.at(self, low, high - low)
        whole = self._numpy.ndarray((high - low,), "u1", memory)
        at = self._numpy.where(there, begin - low, 0).tolist()
        return memory, [whole[a:a + n] for a, n in zip(at, size.tolist())]

    def _zeros(self):
        """What emulated transforms make: one sample for all."""
        shape = (self._now.n,) + self._one.shape
        if not self._tensor:
            return self._numpy.broadcast_to(self._one, shape)
        # a tensor can be written to, so it is of this batch alone
        return self._tensor(self._numpy.zeros_like(self._one)).expand(shape)

    def _convert(self, arrays):
        if not self._tensor:
            return arrays
        if isinstance(arrays, list):
            return [self._tensor(a) for a in arrays]
        return self._tensor(arrays)


_free = ctypes.CDLL(None).free
_free.argtypes = [c_void_p]
_free.restype = None
