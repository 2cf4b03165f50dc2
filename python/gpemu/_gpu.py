# SPDX-License-Identifier: MIT
"""The emulated GPU."""
from __future__ import annotations

import os
import threading
import weakref
from ctypes import c_void_p
from functools import partial
from typing import TYPE_CHECKING, Any

from gpemu._library import (Start, Step, check_process, count, library,
                            raise_error, refuse_handlers, words)
from gpemu._options import StepOptions, takes

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from gpemu._loader import Loader


def _close(handle, pid: int) -> None:
    if os.getpid() == pid:
        library().gpemu_gpu_close(handle)


class GPU:
    """An emulated GPU, or those of a node or a server, for a training loop.

        gpu = gpemu.GPU(model="resnet50")
        for images, labels in loader:
            gpu.step(images)

    The times of its steps are those that its profile has for the model and
    the size of the batch. `loader` may be any loader. A gpemu.Loader that was
    made with this GPU also knows when each batch was ready, and so why the
    GPU waited.

    gpu: a profile, by name (`gpemu profile list`) or as a YAML file. None:
        the server's, the node's, or a V100.
    model: one of those in the profile.
    options: of gpemu-train(1), as the signature lists them; batch is the
        largest one. None: the default there.

    gpu_server is the socket of a gpemu-gpud(1), whose GPUs other jobs may use,
    too. By default it is the server that came with the job, as Kubernetes or
    Slurm say in GPEMU_GPU_SERVER: unless `gpu` or `node` is given, which alone
    is a private GPU. With gpu_server, `gpu` must be what the server has. It
    reserves memory for `batch` samples, 64 by default, and may let the job wait
    for it. Ctrl-C ends that wait.

    Threads take turns. A forked process cannot use it.
    """

    @takes(StepOptions, "GPU")
    def __init__(self, gpu: Any = None, model: str = "resnet50",
                 **options: Unpack[StepOptions]):
        self.options = {"gpu": gpu, "model": model, **options}
        #: the last step whose times are known; None at first, and of the GPU
        #: of a gpemu.Loader
        self.last_step: Step | None = None
        self._loader: Loader | None = None
        self._lib = library()
        self._lock = threading.RLock()
        self._pid = os.getpid()
        self._lent = False
        self._start()

    def step(self, batch: Any = None) -> Step:
        """Train on a batch: returns when the GPU has room for the next one.

        batch: its number of samples, or an array or tensor of them, which
        several GPUs share evenly. With a loader of its own the GPU takes the
        batch that the loader gave last, so it can be left out.

        A server reports a step when it is computed: unless with
        transfer="blocking", this returns the step before; of the first one, and
        after `wait`, only the copy, and step_end_ns is 0.
        """
        if self._loader is not None:
            return self._loader.step(batch)
        step, n = Step(), count(batch)
        with self._locked():
            self._call(self._lib.gpemu_gpu_submit, n, step)
            if step.step_end_ns:
                self.last_step = step
        return step

    def wait(self) -> int:
        """Wait until all steps are computed; the emulated time then, in ns.
        The last one is in `last_step`.

        The end of an epoch does so for the GPU of a gpemu.Loader.
        """
        if self._loader is not None:
            return self._loader.now_ns
        step = Step()
        with self._locked():
            self._call(self._lib.gpemu_gpu_drain, step)
            if step.step_end_ns:
                self.last_step = step
            return self._lib.gpemu_gpu_wait(self._handle)

    @property
    def now_ns(self) -> int:
        """Emulated ns since the GPU, or its loader, was opened."""
        if self._loader is not None:
            return self._loader.now_ns
        with self._locked():
            return self._lib.gpemu_gpu_now_ns(self._open())

    def close(self) -> None:
        """Release the GPU. May be called again."""
        if os.getpid() != self._pid:
            return
        refuse_handlers(self._lock)
        with self._lock:
            self._finalizer()
            self._loader = None
            self._lent = False

    def __enter__(self) -> GPU:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def __repr__(self) -> str:
        given = [f"{key}={value!r}" for key, value in self.options.items()
                 if value is not None]
        state = ", of a loader" if self._loader is not None or self._lent \
            else "" if self._finalizer.alive else ", closed"
        return f"<gpemu.GPU {', '.join(given)}{state}>"

    def __reduce__(self):
        raise TypeError("a gpemu.GPU cannot be passed to another process")

    def _locked(self):
        check_process(self._pid, "GPU")
        return self._lock

    def _start(self) -> None:
        lib, pid, handle = self._lib, self._pid, c_void_p()
        options = words(self.options)
        if lib.gpemu_gpu_new(handle) < 0:
            raise MemoryError
        # until it returns the handle is its own: it may run longer than this
        code = Start(partial(lib.gpemu_gpu_start, handle, options),
                     partial(lib.gpemu_gpu_interrupt, handle),
                     partial(_close, handle, pid)).wait()
        self._handle = handle
        self._finalizer = weakref.finalize(self, _close, handle, pid)
        if code < 0:
            text = lib.gpemu_gpu_error(handle)
            self._finalizer()
            raise_error(code, text)

    def _open(self):
        if not self._finalizer.alive:
            if not self._lent:
                raise ValueError("the GPU is closed")
            self._start()  # the loader was not opened
            self._lent = False
        return self._handle

    def _call(self, function, *arguments) -> None:
        """A function of the library, on this GPU."""
        code = function(self._open(), *arguments)
        if code < 0:
            raise_error(code, self._lib.gpemu_gpu_error(self._handle))

    def _lend(self) -> None:
        """A loader opens a GPU with the same options: a server need not have
        memory for both."""
        if self._loader is None:
            self.close()
            self._lent = True

    def _join(self, loader: Loader) -> None:
        """From now on the loader's run has this GPU."""
        self.close()
        self.last_step = None
        self._loader = loader
