# SPDX-License-Identifier: MIT
"""Python runs this first: under `gpemu exec` or `record`, hook PyTorch when it is imported.

Then the sitecustomize that the path had before, if any."""
import importlib
import os
import sys

_own = os.path.dirname(os.path.abspath(__file__))


def _next():
    """Of the system or of the user's environment."""
    mine = sys.modules.pop("sitecustomize", None)
    path = sys.path[:]
    sys.path[:] = [p for p in path if os.path.abspath(p or ".") != _own]
    try:
        importlib.import_module("sitecustomize")
    except ImportError:
        sys.modules["sitecustomize"] = mine
    finally:
        sys.path[:] = path


_next()
for _tool in "exec", "record":
    if f"GPEMU_{_tool.upper()}" in os.environ:
        from gpemu._exec import finder
        finder.install(_tool)
        break
