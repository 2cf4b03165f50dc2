# SPDX-License-Identifier: MIT
"""The package itself, its examples and its page."""
import ctypes.util
import difflib
import json
import os
import re
import shutil
import subprocess
import sys

import pytest

import gpemu
from conftest import BUILD, ROOT

EXAMPLES = ROOT / "examples/python"


def python(program, *arguments, **environment):
    return subprocess.run(
        [sys.executable, "-B", "-c", program, *map(str, arguments)],
        capture_output=True, text=True, env={**os.environ, **environment})


def test_nothing_but_the_standard_library_is_needed():
    done = python("""
import sys
for name in "numpy", "torch", "pandas", "matplotlib":
    sys.modules[name] = None
import gpemu
with gpemu.GPU("v100", "resnet18", time_scale=0.001) as gpu:
    gpu.step(64)
for call in (lambda: gpemu.Loader("."), lambda: gpemu.results("."),
             lambda: gpemu.plot(".", "x", "y"), lambda: gpemu.run("x.yaml")):
    try:
        call()
    except ImportError as error:
        print(error)
""")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("\n") == 4
    assert "gpemu.results needs pandas" in done.stdout


def test_the_library_is_named_if_it_is_not_there():
    done = python("import gpemu; gpemu.GPU()",
                  GPEMU_LIBRARY="/nonexistent/libgpemu.so")
    assert done.returncode == 1
    assert re.search("gpemu.*Error: cannot load libgpemu: .*GPEMU_LIBRARY",
                     done.stderr)


def test_another_build_is_found_by_its_library(tmp_path):
    """GPEMU_LIBRARY is enough: the programs are beside it."""
    environment = dict(os.environ, GPEMU_LIBRARY=str(BUILD / "libgpemu.so"))
    del environment["GPEMU_BIN"]
    out = subprocess.run(
        [sys.executable, "-B", "-c",
         "from gpemu._library import program; print(program('fs'))"],
        env=environment, check=True, capture_output=True, text=True).stdout
    assert out.strip() == str(BUILD / "gpemu-fs")


def test_pip_fails_at_once_without_a_build(tmp_path):
    """What pip runs: setup.py, of a copy of the tree."""
    pytest.importorskip("setuptools")
    if ctypes.util.find_library("gpemu"):
        pytest.skip("libgpemu is installed in the system")
    folder = tmp_path / "python"
    shutil.copytree(ROOT / "python", folder,
                    ignore=shutil.ignore_patterns("build", "*.egg-info"))
    environment = dict(os.environ)
    environment.pop("GPEMU_LIBRARY", None)

    def build():
        return subprocess.run(
            [sys.executable, "-B", "setup.py", "-q", "build_py"], cwd=folder,
            env=environment, capture_output=True, text=True)

    done = build()
    assert done.returncode == 1
    assert "libgpemu is not built" in done.stderr
    assert "meson setup build" in done.stderr
    (tmp_path / "build").mkdir()
    (tmp_path / "build/libgpemu.so").touch()
    done = build()
    assert done.returncode == 0, done.stderr
    assert str(tmp_path / "build") in (
        folder / "build/lib/gpemu/_build.py").read_text()


def test_everything_public_is_documented():
    for name in gpemu.__all__:
        thing = getattr(gpemu, name)
        assert thing.__doc__, name
        for part, value in vars(thing).items():
            if callable(value) and not part.startswith("_") \
                    and isinstance(thing, type):
                assert value.__doc__, f"{name}.{part}"


def test_five_lines_make_the_loop_of_pytorch_emulated():
    before = (EXAMPLES / "torch_before.py").read_text().splitlines()
    after = (EXAMPLES / "torch_after.py").read_text().splitlines()
    diff = [line for line in difflib.unified_diff(before, after, lineterm="")
            if not line.startswith(("---", "+++"))]
    assert sum(line.startswith("+") for line in diff) <= 5
    # as the page shows it
    page = (ROOT / "docs/python.md").read_text()
    shown = re.search(r"^```diff\n(.*?)^```$", page, re.M | re.S)[1]
    for sign in "+-":
        assert [line for line in shown.splitlines() if line[:1] == sign] == \
            [line for line in diff if line[:1] == sign]


@pytest.mark.parametrize("name", ["torch_after.py", "lightning_like.py"])
def test_examples_run(tmp_path, name):
    files = tmp_path / "photos"
    module = "torch" if name.startswith("torch") else "numpy"
    pytest.importorskip(module, reason=f"{module} is not installed")
    subprocess.run([BUILD / "gpemu-data", "make", "--dataset", "imagenet",
                    "--files", "26", "--classes", "2", files], check=True,
                   stdout=subprocess.DEVNULL)
    done = subprocess.run(
        [sys.executable, "-B", EXAMPLES / name, files],
        capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert re.search(r"epoch 1: .*26 images", done.stdout), done.stdout


def test_the_loop_of_pytorch_reads_what_the_loader_does(tmp_path):
    """Files of others, such as the description of a dataset, begin with a
    dot."""
    pytest.importorskip("torch", reason="torch is not installed")
    data, record = tmp_path / ".data", tmp_path / "record.json"
    for name in "a/1", "a/2", "b/3", ".gpemu-data.json", "a/.hidden", ".b/4":
        (data / name).parent.mkdir(parents=True, exist_ok=True)
        (data / name).write_text(name)
    subprocess.run(
        [sys.executable, "-B", ROOT / "examples/pytorch.py", data, record,
         "batch=2", "workers=0", "epochs=1", "time_scale=0.001"], check=True)
    assert json.loads(record.read_text())["totals"]["samples"] == 3
    with gpemu.Loader(data, prep="none", index="off") as loader:
        assert loader.n_samples == 3


def test_the_loop_of_pytorch_counts_the_optimiser_as_computation(tmp_path):
    """As gpemu-train does: a GPU that never waits has an AU of 1."""
    pytest.importorskip("torch", reason="torch is not installed")
    record = tmp_path / "record.json"
    for i in range(40):
        (tmp_path / f"{i}.bin").write_text("x")
    subprocess.run(
        [sys.executable, "-B", ROOT / "examples/pytorch.py", tmp_path, record,
         "batch=8", "workers=0", "epochs=1", "gpu=h100", "time_scale=0.5",
         "model=gpt2:seq1024:bf16"], check=True)
    epoch = json.loads(record.read_text())["epochs"][0]
    assert abs(epoch["compute_s"] / 5 - 66.22e-3) < 1e-3
    assert epoch["au"] > 0.96


@pytest.mark.usefixtures("fuse")
def test_the_page(tmp_path, monkeypatch):
    """Its blocks run one after the other, as in a notebook."""
    for module in "numpy", "torch", "pandas", "matplotlib":
        pytest.importorskip(module, reason=f"{module} is not installed")
    page = (ROOT / "docs/python.md").read_text()
    blocks = re.findall(r"^```python\n(.*?)^```$", page, re.M | re.S)
    assert len(blocks) >= 4
    monkeypatch.chdir(tmp_path)
    names = {}
    for block in blocks:
        # other load on this machine decides nothing
        block = block.replace('"repetitions": 2', '"repetitions": 2, "noise": "100%"')
        exec(compile(block, "docs/python.md", "exec"), names)
    assert (tmp_path / "figure.png").stat().st_size > 0
