# SPDX-License-Identifier: MIT
"""The package of the source tree, with the library of $GPEMU_BUILD."""
import os
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("GPEMU_BUILD", ROOT / "build")).resolve()

sys.path.insert(0, str(ROOT / "python"))
sys.dont_write_bytecode = True
os.environ["PYTHONPATH"] = str(ROOT / "python")  # of child processes
os.environ["GPEMU_LIBRARY"] = str(BUILD / "libgpemu.so")
os.environ["GPEMU_BIN"] = str(BUILD)
os.environ["MPLBACKEND"] = "Agg"

# steps take next to no time
FAST = {"gpu": "v100", "model": "resnet18", "time_scale": 0.001}
N_FILES = 26


def content(i):
    """Of sample i: no two have the same size, one is empty."""
    i = int(i)
    return bytes([i + 1]) * (777 * i)


@pytest.fixture(scope="session")
def files(tmp_path_factory):
    """Two classes of files of known bytes."""
    folder = tmp_path_factory.mktemp("files")
    for i in range(N_FILES):
        kind = folder / ("a" if i < N_FILES // 2 else "b")
        kind.mkdir(exist_ok=True)
        (kind / f"{i:02}").write_bytes(content(i))
    return folder


LENGTH = 30  # of a sequence of tokens


def sequence(i):
    """Inputs and labels of sample i of `tokens`."""
    first = int(i) * LENGTH
    return [list(range(first, first + LENGTH)),
            list(range(first + 1, first + LENGTH + 1))]


@pytest.fixture(scope="session")
def tokens(tmp_path_factory):
    """A file of 26 sequences; each token is its place in the file."""
    folder = tmp_path_factory.mktemp("tokens")
    with open(folder / "train.bin", "wb") as file:
        for token in range(N_FILES * LENGTH + 1):
            file.write(token.to_bytes(2, "little"))
    return folder


@pytest.fixture
def fuse():
    if not os.access("/dev/fuse", os.W_OK):
        pytest.skip("no /dev/fuse")


def mounted(path):
    with open("/proc/mounts") as mounts:
        return any(line.split()[1] == str(path) for line in mounts)
