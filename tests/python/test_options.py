# SPDX-License-Identifier: MIT
"""The keyword arguments: tables of the options of the programs."""
import ctypes.util
import inspect
import re
import shutil
import subprocess
import sys

import pytest

import gpemu
from conftest import BUILD, ROOT
from gpemu import _options

# what is an argument of its own, or prints and ends
OWN = {"help", "usage", "version", "list", "dump_config"}
WITHOUT = {
    "train": OWN | {"data", "gpu", "json", "verbose", "progress", "mpi",
                    "nodes", "simulate", "fs", "fs_config", "caches",
                    "shared_storage", "approximate", "mtbf", "restart",
                    "control", "turns"},
    "fs": OWN | {"foreground", "selftest"},
    "run": OWN | {"output", "json", "dry_run", "epochs", "find_max_gpus",
                  "metric"},
}


@pytest.mark.parametrize("program, table", [
    ("train", _options.LoaderOptions), ("fs", _options.MountOptions),
    ("run", _options.RunOptions)])
def test_a_table_has_the_options_of_its_program(program, table):
    text = subprocess.run([BUILD / f"gpemu-{program}", "--help"], check=True,
                          capture_output=True, text=True).stdout
    options = re.findall(r"^  (?:-.,|   ) --([a-z-]+)", text, re.M)
    assert {name.replace("-", "_") for name in options} - WITHOUT[program] == \
        set(table.__annotations__)


def test_the_library_takes_each_of_them():
    """What it does not know is an unknown option, whatever the value."""
    for call, table in ((gpemu.GPU, _options.StepOptions),
                        (gpemu.Loader, _options.LoaderOptions)):
        for key in table.__annotations__:
            with pytest.raises(gpemu.Error) as caught:
                call(None, **{"model": "?", key: "?"})
            assert "unknown option" not in str(caught.value)


@pytest.mark.parametrize("call, keyword, word", [
    (gpemu.Loader, "batch_size", "batch="),
    (gpemu.Loader, "num_workers", "workers="),
    (gpemu.Loader, "shuffle", 'order= .*"sequential"'),
    (gpemu.Loader, "pin_memory", "pin="),
    (gpemu.Loader, "epoch", "epochs="),
    (gpemu.Loader, "qqq", r"help\(gpemu.Loader\)"),
    (gpemu.GPU, "batch_size", "batch="),
    (gpemu.GPU, "epochs", r"help|did you mean"),
    (gpemu.mount, "cach_size", "cache_size="),
    (gpemu.run, "repetition", "repetitions="),
])
def test_an_unknown_keyword_is_refused_with_the_right_one(call, keyword, word):
    with pytest.raises(TypeError, match=f"keyword argument '{keyword}'.*"
                       f"{word}"):
        call("/nonexistent", **{keyword: 1})


def test_the_signature_shows_them():
    for call in gpemu.Loader, gpemu.GPU:
        assert inspect.signature(call).parameters["batch"].annotation == "int"
    assert "cache_size" in inspect.signature(gpemu.mount).parameters


def test_pip_says_that_the_library_is_missing(tmp_path):
    pytest.importorskip("setuptools", reason="setuptools is not installed")
    shutil.copytree(ROOT / "python", tmp_path / "python",
                    ignore=shutil.ignore_patterns("build", "_build.py"))
    done = subprocess.run(
        [sys.executable, "setup.py", "build"], cwd=tmp_path / "python",
        capture_output=True, text=True, env={"PATH": ""})
    if not ctypes.util.find_library("gpemu"):
        assert done.returncode == 1
        assert "meson setup build && ninja -C build" in done.stderr
    (tmp_path / "build").mkdir()
    (tmp_path / "build/libgpemu.so").write_text("")
    subprocess.run([sys.executable, "setup.py", "build"], check=True,
                   cwd=tmp_path / "python", stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL)
    written = tmp_path / "python/build/lib/gpemu/_build.py"
    assert str(tmp_path / "build") in written.read_text()
