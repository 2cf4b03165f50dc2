# SPDX-License-Identifier: MIT
"""`pip install`: the package is no use without libgpemu, which meson builds."""
import ctypes.util
import os
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

BUILD = Path(__file__).resolve().parents[1] / "build"
REASON = f"""\
libgpemu is not built: there is neither {BUILD / "libgpemu.so"} nor a libgpemu
of the system, and GPEMU_LIBRARY names none. This package only calls it. Build
gpemu first, in the folder above this one: meson setup build && ninja -C build"""


class Build(build_py):
    """Tell an installed package where the tree's build is."""

    def run(self):
        built = (BUILD / "libgpemu.so").exists()
        if not (built or os.environ.get("GPEMU_LIBRARY")
                or ctypes.util.find_library("gpemu")):
            raise SystemExit(REASON)
        super().run()
        if built and not getattr(self, "editable_mode", False):
            Path(self.build_lib, "gpemu/_build.py").write_text(
                f"# written by setup.py\nPATH = {str(BUILD)!r}\n")


setup(cmdclass={"build_py": Build})
