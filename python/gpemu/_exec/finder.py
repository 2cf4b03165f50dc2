# SPDX-License-Identifier: MIT
"""Waits for the import of torch, then hooks it: a program that never imports
torch pays nothing."""
from __future__ import annotations

import atexit
import importlib.abc
import importlib.util
import os
import sys

#: the oldest PyTorch
OLDEST = (2, 4)


class _Loader(importlib.abc.Loader):
    def __init__(self, loader, tool):
        self._loader, self._tool = loader, tool

    def __getattr__(self, name):
        return getattr(self._loader, name)

    def create_module(self, spec):
        return self._loader.create_module(spec)

    def exec_module(self, module):
        module.__spec__.loader = module.__loader__ = self._loader
        sys.meta_path[:] = [f for f in sys.meta_path
                            if not isinstance(f, _Finder)]
        self._loader.exec_module(module)
        version = module.__version__
        if tuple(int(n) for n in version.split(".")[:2]) < OLDEST:
            sys.exit(f"gpemu {self._tool}: PyTorch {version} of {sys.executable} is "
                     "too old: install 2.4 or later")
        importlib.import_module(f"gpemu._{self._tool}.hooks").install()


class _Finder(importlib.abc.MetaPathFinder):
    def __init__(self, tool):
        self._tool, self._looking = tool, False

    def find_spec(self, name, path=None, target=None):
        if name != "torch" or self._looking:
            return None
        # transformers and others look whether it is there, and import it later
        self._looking = True
        try:
            spec = importlib.util.find_spec(name)
        finally:
            self._looking = False
        if spec is None:
            raise ModuleNotFoundError(
                f"gpemu {self._tool}: {sys.executable} has no PyTorch: install 2.4 or "
                "later, or name the Python that has it", name=name)
        spec.loader = _Loader(spec.loader, self._tool)
        return spec


def install(tool) -> None:
    """Of gpemu exec or gpemu record."""
    sys.meta_path.insert(0, _Finder(tool))
    if os.environ.get("GPEMU_COMMAND") == str(os.getpid()):
        atexit.register(_end, tool)


def _end(tool):
    if any(isinstance(f, _Finder) for f in sys.meta_path):
        done = "recorded" if tool == "record" else "emulated"
        print(f"gpemu {tool}: the command itself imported no PyTorch: nothing of "
              f"it was {done}", file=sys.stderr)
