# SPDX-License-Identifier: MIT
"""Waits for the import of torch, then hooks it: a program that never imports
torch pays nothing."""
from __future__ import annotations

import importlib.abc
import importlib.util
import sys

#: the oldest PyTorch
OLDEST = (2, 4)


class _Loader(importlib.abc.Loader):
    def __init__(self, loader):
        self._loader = loader

    def __getattr__(self, name):
        return getattr(self._loader, name)

    def create_module(self, spec):
        return self._loader.create_module(spec)

    def exec_module(self, module):
        module.__spec__.loader = module.__loader__ = self._loader
        self._loader.exec_module(module)
        version = module.__version__
        if tuple(int(n) for n in version.split(".")[:2]) < OLDEST:
            sys.exit(f"gpemu exec: PyTorch {version} of {sys.executable} is "
                     "too old: install 2.4 or later")
        from gpemu._exec import hooks
        hooks.install()


class _Finder(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name != "torch":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is None:
            raise ModuleNotFoundError(
                f"gpemu exec: {sys.executable} has no PyTorch: install 2.4 or "
                "later, or name the Python that has it", name=name)
        spec.loader = _Loader(spec.loader)
        return spec


def install() -> None:
    sys.meta_path.insert(0, _Finder())
