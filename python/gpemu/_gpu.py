# SPDX-License-Identifier: MIT
"""The emulated GPU."""
from __future__ import annotations

import os
import threading
import weakref
from typing import TYPE_CHECKING, Any

from gpemu._library import (Step, check_process, count, library, open_gpu,
                            raise_error, refuse_handlers)

if TYPE_CHECKING:
    from gpemu._loader import Loader


def _close(handle, pid: int) -> None:
    if os.getpid() == pid:
        library().gpemu_gpu_close(handle)


class GPU:
    """An emulated GPU, or those of a node, for a training loop.

        gpu = gpemu.GPU("v100", model="resnet50")
        for images, labels in loader:
            gpu.step(images)

    The times of its steps are those that its profile has for the model and
    the size of the batch. `loader` may be any loader. A gpemu.Loader that was
    made with this GPU also knows when each batch was ready, and so why the
    GPU waited.

    gpu: a profile, by name (`gpemu profile list`) or as a YAML file.
    model: one of those in the profile.
    options: of gpemu-train(1): batch (the largest one), transfer, pin,
        extrapolate, gpus, node, parallel, allreduce, time_scale, keep_awake.

    Threads take turns. A forked process cannot use it.
    """

    def __init__(self, gpu: Any = "v100", model: str = "resnet50",
                 **options: Any):
        self.options = dict(options, gpu=gpu, model=model)
        self._loader: Loader | None = None
        self._lib = library()
        self._lock = threading.RLock()
        self._pid = os.getpid()
        self._handle = open_gpu(self.options)
        self._finalizer = weakref.finalize(self, _close, self._handle,
                                           self._pid)

    def step(self, batch: Any = None) -> Step:
        """Train on a batch: returns when the GPU has room for the next one.

        batch: its number of samples, or an array or tensor of them, which
        several GPUs share evenly. With a loader of its own the GPU takes the
        batch that the loader gave last, so it can be left out.
        """
        if self._loader is not None:
            return self._loader.step(batch)
        step = Step()
        with self._locked():
            code = self._lib.gpemu_gpu_submit(self._open(), count(batch), step)
            if code < 0:
                raise_error(code, self._lib.gpemu_gpu_error(self._handle))
        return step

    def wait(self) -> int:
        """Wait until all steps are computed; the emulated time then, in ns.

        The end of an epoch does so for the GPU of a gpemu.Loader.
        """
        if self._loader is not None:
            return self._loader.now_ns
        with self._locked():
            return self._lib.gpemu_gpu_wait(self._open())

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

    def __enter__(self) -> GPU:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def __reduce__(self):
        raise TypeError("a gpemu.GPU cannot be passed to another process")

    def _locked(self):
        check_process(self._pid, "GPU")
        return self._lock

    def _open(self):
        if not self._finalizer.alive:
            raise ValueError("the GPU is closed")
        return self._handle

    def _join(self, loader: Loader) -> None:
        """From now on the loader's run has this GPU."""
        self.close()
        self._loader = loader
