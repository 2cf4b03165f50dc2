# SPDX-License-Identifier: MIT
"""libgpemu.so: where it is, its structs and functions (include/gpemu.h)."""
from __future__ import annotations

import errno
import os
import shutil
import sys
import threading
from ctypes import (CDLL, POINTER, Structure, c_char_p, c_double, c_int,
                    c_size_t, c_uint32, c_uint64, c_void_p)
from functools import lru_cache
from numbers import Integral
from pathlib import Path
from typing import Any, Callable, Dict, Mapping

try:  # installed by pip: setup.py wrote where the tree was built
    from gpemu._build import PATH as _BUILD_PATH  # type: ignore
except ImportError:  # in the source tree, which is built in its folder build/
    _BUILD_PATH = Path(__file__).resolve().parents[2] / "build"
_BUILD = Path(_BUILD_PATH)
# in a wheel, which meson-python made; its data are below the prefix
_WHEEL = sorted(Path(__file__).resolve().parents[1].glob(
    ".gpemu.mesonpy.libs/libgpemu.so.1*"))
# where auditwheel puts the programs, and leaves a script in bin for each
_WHEEL_PROGRAMS = Path(__file__).resolve().parents[1] / "gpemu.scripts"
_WHEEL_PROFILES = Path(__file__).resolve().parent / \
    "../../../../share/gpemu/profiles"
# A wait ends so often to let Python handle signals, such as Ctrl-C.
# arbitrary: shorter than one notices
SLICE_S = 0.1
# For what is interrupted to end. arbitrary: most waits end at once, and one
# that does not, such as the listing of a slow folder, ends in the background
_GRACE_S = 0.5


class Error(Exception):
    """An error of libgpemu or of a program of gpemu, in its own words.

    `errno` is that of the library's function, or None.
    """

    def __init__(self, text: str, errno: int | None = None):
        super().__init__(text)
        self.errno = errno


class NotFound(Error, FileNotFoundError):
    """A file, a folder or a socket that an option names is not there."""


# --- structs -----------------------------------------------------------------


class _Record(Structure):
    def asdict(self) -> Dict[str, Any]:
        """The fields by name."""
        return {name: getattr(self, name) for name, _ in self._fields_
                if not name.startswith("_")}

    def __repr__(self) -> str:
        fields = (f"{name}={value}" for name, value in self.asdict().items())
        return f"{type(self).__name__}({', '.join(fields)})"


def _of_annotations(cls):
    """The C struct with the fields of the class: uint64_t, double."""
    kinds = {"int": c_uint64, "float": c_double, "_Reserved": _Reserved}
    cls._fields_ = [(name, kinds[kind])
                    for name, kind in cls.__annotations__.items()]
    return cls


_Reserved = c_uint64 * 6


@_of_annotations
class Step(_Record):
    """A step of the GPU. Emulated ns, since the loader or the GPU was opened.

    With several GPUs it is the step of the first one.
    """

    copy_start_ns: int  #: the batch's copy to the device
    copy_end_ns: int
    compute_start_ns: int  #: forward and backward
    compute_end_ns: int
    data_wait_ns: int  #: the GPU was idle for want of the batch
    fetch_stall_ns: int  #: of data_wait_ns: for reads
    transfer_stall_ns: int  #: idle while the batch was copied
    barrier_wait_ns: int  #: for the slowest GPU
    allreduce_ns: int  #: what the backward pass does not hide
    step_end_ns: int  #: the next computation may begin
    pin_stall_ns: int  #: of data_wait_ns: for the pin stage
    optimizer_ns: int  #: where it is not part of the backward pass


@_of_annotations
class Epoch(_Record):
    """The account of an epoch; times are emulated ns.

    data_wait_ns is the sum of fetch_stall_ns, prep_stall_ns and pin_stall_ns.
    """

    epoch: int  #: its number, from 0
    steps: int
    samples: int
    failed_samples: int
    data_bytes: int  #: of the samples' files
    elapsed_ns: int
    compute_ns: int
    data_wait_ns: int
    fetch_stall_ns: int
    prep_stall_ns: int
    transfer_stall_ns: int
    checkpoint_stall_ns: int
    utilisation: float  #: of the accelerator, 0..1; < 0: only one step
    pin_stall_ns: int
    _reserved: _Reserved


class CInfo(Structure):
    _fields_ = [("n_samples", c_uint64), ("n_batches", c_uint64),
                ("n_classes", c_uint32), ("batch", c_uint32),
                ("type", c_uint32), ("shape", c_uint32 * 3),
                ("n_kept", c_uint32)]


class CBatch(Structure):
    _fields_ = [("n", c_uint32), ("samples", c_void_p), ("ready_ns", c_uint64),
                ("data", c_void_p), ("stride_bytes", c_size_t)]


# --- the library -------------------------------------------------------------

_FUNCTIONS = {
    "gpemu_begin_epoch": (c_int, c_void_p, c_void_p),
    "gpemu_close": (c_int, c_void_p),
    "gpemu_drop": (None, c_void_p),
    "gpemu_end_epoch": (c_int, c_void_p, POINTER(Epoch)),
    "gpemu_error": (c_char_p, c_void_p),
    "gpemu_gpu_close": (None, c_void_p),
    "gpemu_gpu_drain": (c_int, c_void_p, POINTER(Step)),
    "gpemu_gpu_error": (c_char_p, c_void_p),
    "gpemu_gpu_interrupt": (None, c_void_p),
    "gpemu_gpu_new": (c_int, POINTER(c_void_p)),
    "gpemu_gpu_now_ns": (c_uint64, c_void_p),
    "gpemu_gpu_start": (c_int, c_void_p, c_void_p),
    "gpemu_gpu_submit": (c_int, c_void_p, c_uint64, POINTER(Step)),
    "gpemu_gpu_wait": (c_uint64, c_void_p),
    "gpemu_info": (POINTER(CInfo), c_void_p),
    "gpemu_interrupt": (None, c_void_p),
    "gpemu_keep": (c_int, c_void_p, POINTER(CBatch), POINTER(c_void_p)),
    "gpemu_new": (c_int, POINTER(c_void_p)),
    "gpemu_next_within": (c_int, c_void_p, c_uint64, POINTER(POINTER(CBatch))),
    "gpemu_notes": (c_char_p, c_void_p),
    "gpemu_now_ns": (c_uint64, c_void_p),
    "gpemu_record": (c_int, c_void_p, POINTER(c_void_p)),
    "gpemu_release": (c_int, c_void_p, POINTER(CBatch)),
    "gpemu_start": (c_int, c_void_p, c_void_p, c_void_p),
    "gpemu_submit": (c_int, c_void_p, POINTER(CBatch), POINTER(Step)),
    "gpemu_version": (c_char_p,),
}


def _path() -> str:
    named = os.environ.get("GPEMU_LIBRARY")
    if named:
        return named
    beside = os.path.join(os.environ.get("GPEMU_BIN", ""), "libgpemu.so.1")
    if os.path.isabs(beside) and os.path.exists(beside):
        return beside
    if _WHEEL:
        return str(_WHEEL[0])
    built = _BUILD / "libgpemu.so"
    return str(built) if built.exists() else "libgpemu.so.1"


@lru_cache(maxsize=None)
def library() -> CDLL:
    """The library, from $GPEMU_LIBRARY, beside the programs of $GPEMU_BIN, the
    folder build/ of the source tree that this package is of, or the system."""
    path = _path()
    if _WHEEL and path == str(_WHEEL[0]):
        # it looks beside the program, and that is Python
        os.environ.setdefault("GPEMU_PROFILES", str(_WHEEL_PROFILES))
    try:
        lib = CDLL(path)
        for name, (result, *arguments) in _FUNCTIONS.items():
            function = getattr(lib, name)
            function.restype = result
            function.argtypes = arguments
    except OSError as error:
        raise Error(f"cannot load libgpemu: {error}; build gpemu, or name the "
                    "library in GPEMU_LIBRARY") from None
    except AttributeError as error:
        raise Error(f"{path} is older than this package: {error}") from None
    return lib


def program(name: str) -> str:
    """The path of gpemu-NAME: in $GPEMU_BIN, beside the library, of a wheel
    beside Python, or in the PATH."""
    folders = (os.environ.get("GPEMU_BIN"), os.path.dirname(_path()),
               _WHEEL and _WHEEL_PROGRAMS,
               _WHEEL and os.path.dirname(sys.executable))
    for folder in filter(None, folders):
        path = os.path.join(folder, f"gpemu-{name}")
        if os.access(path, os.X_OK):
            return path
    found = shutil.which(f"gpemu-{name}")
    if not found:
        raise Error(f"gpemu-{name} is not in the PATH: build gpemu, or name "
                    "the folder of its programs in GPEMU_BIN")
    return found


def need(name: str, what: str):
    """Import a module that only `what` needs."""
    try:
        return __import__(name)
    except ImportError as error:
        raise ImportError(
            f"{what} needs {name}, and {sys.executable} has none: install it "
            f"(Debian: python3-{name}, for /usr/bin/python3; others: "
            f"{sys.executable} -m pip install {name})") from error


def raise_error(code: int, text: bytes) -> None:
    kind = NotFound if code == -errno.ENOENT else Error
    raise kind(os.fsdecode(text) or os.strerror(-code), -code)


def word(value: Any) -> str:
    """A value as an option of gpemu takes it."""
    if isinstance(value, bool):
        return "on" if value else "off"
    return os.fsdecode(value) if isinstance(value, (bytes, os.PathLike)) \
        else str(value)


def words(options: Mapping[str, Any]):
    """Options as the library takes them."""
    texts = [os.fsencode(f"{key}={word(value)}")
             for key, value in options.items() if value is not None]
    for text in texts:
        if b"\0" in text:
            raise ValueError(f"an option with a null byte: {text!r}")
    return (c_char_p * (len(texts) + 1))(*texts, None)


class Start(threading.Thread):
    """gpemu_start or gpemu_gpu_start, on a thread of its own: it may wait for a
    GPU, and this thread handles signals meanwhile, such as Ctrl-C.

    Who does not wait for its end leaves the handle to it: then it is closed
    when the call has been interrupted.
    """

    def __init__(self, start: Callable[[], int], interrupt: Callable[[], Any],
                 close: Callable[[], Any]):
        super().__init__(name="gpemu_start", daemon=True)
        self._start, self._interrupt, self._close = start, interrupt, close
        self._lock = threading.Lock()
        self._runs = self._left = False  # lock
        self._ended = threading.Event()

    def run(self) -> None:
        with self._lock:
            self._runs = not self._left
        if not self._runs:
            return
        self.code = self._start()
        with self._lock:
            self._runs = False
            if self._left:
                self._close()
        self._ended.set()

    def wait(self) -> int:
        """Begin it; what it returned."""
        try:
            self.start()
            # a signal that came to another thread is handled in between
            while not self._ended.wait(SLICE_S):
                pass
            return self.code
        except BaseException:
            self._leave()
            raise

    def _leave(self) -> None:
        with self._lock:
            self._left = True
            if not self._runs:
                self._close()
                return
            self._interrupt()
        self._ended.wait(_GRACE_S)


def count(batch: Any) -> int:
    """The samples of a batch: a number, or an array of them."""
    if isinstance(batch, Integral):
        if not 0 < batch < 1 << 63:
            raise ValueError(f"a batch of {batch} samples")
        return int(batch)
    shape = getattr(batch, "shape", None)
    if not shape:
        raise TypeError(
            f"a batch is a number of samples, an array or a tensor of them, "
            f"or a gpemu.Batch, not a {type(batch).__name__}; of several "
            "arrays pass one")
    return int(shape[0])


def check_process(pid: int, what: str) -> None:
    """The library's threads and locks do not survive a fork."""
    if os.getpid() != pid:
        raise RuntimeError(f"this {what} was opened in process {pid} and "
                           f"cannot be used after a fork: open one in process "
                           f"{os.getpid()}")


def refuse_handlers(lock) -> None:
    """Before a close: not by a signal handler in the middle of a call of the
    same thread, which goes on with what would be gone."""
    if lock._is_owned():
        raise RuntimeError("a signal handler cannot close what it interrupts: "
                           "raise an exception in it instead")
