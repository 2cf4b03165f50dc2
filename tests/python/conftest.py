# SPDX-License-Identifier: MIT
"""The package of the source tree, with the library of $GPEMU_BUILD."""
import json
import os
import subprocess
import sys
import time
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
os.environ.pop("GPEMU_GPU_SERVER", None)

# steps take next to no time
FAST = {"gpu": "v100", "model": "resnet18", "time_scale": 0.001}
N_FILES = 26


def pytest_configure(config):
    config.addinivalue_line(
        "markers", "timed: compares times; tests/run runs it alone, at the end")
    config.addinivalue_line("markers", "slow: only tests/run --all runs it")


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
        (kind / f"{i:02}.jpg").write_bytes(content(i))
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


class Server:
    """A gpemu-gpud of V100s at `path`."""

    def __init__(self, folder, *options, time_scale=FAST["time_scale"]):
        self.path = folder / "gpud.sock"
        self._process = subprocess.Popen(
            [BUILD / "gpemu-gpud", "--socket", self.path, "--time-scale",
             str(time_scale), *options])
        while not self.path.exists():
            assert self._process.poll() is None
            time.sleep(0.01)

    def processes(self):
        """Its jobs, as gpemu-smi has them."""
        found = subprocess.run([BUILD / "gpemu-smi", "--socket", self.path,
                                "--json", "-"], capture_output=True)
        return json.loads(found.stdout or "{}").get("processes", [])

    def soon(self, want, key="state", seconds=20):
        """That key of its jobs, before long."""
        end = time.monotonic() + seconds
        while [job[key] for job in self.processes()] != want:
            assert time.monotonic() < end, self.processes()
            time.sleep(0.05)

    def hold(self, mib):
        """A job that has so much memory, and does nothing."""
        return subprocess.Popen(
            [ROOT / "tests/cli/gpud-client", self.path, "hold", "1", str(mib)],
            stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)

    def end(self):
        self._process.terminate()
        self._process.wait()


@pytest.fixture
def server(tmp_path):
    """Jobs there have memory of their own."""
    server = Server(tmp_path, "--share", "mps")
    yield server
    server.end()


@pytest.fixture
def fuse():
    if not os.access("/dev/fuse", os.W_OK):
        pytest.skip("no /dev/fuse")


def mounted(path):
    with open("/proc/mounts") as mounts:
        return any(line.split()[1] == str(path) for line in mounts)
