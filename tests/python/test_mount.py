# SPDX-License-Identifier: MIT
"""gpemu.mount: there from the first line of a `with` to its end."""
import os
import pickle
import signal
import subprocess
import sys
import tempfile
import threading

import pytest

import gpemu
from conftest import FAST, N_FILES, content, mounted

pytestmark = pytest.mark.usefixtures("fuse")


def test_a_dataset_behind_a_cache(files):
    with gpemu.mount(files, cache_policy="minio", cache_size="100%") as data:
        assert mounted(data.path) and os.fspath(data) == str(data)
        for _ in range(2):
            data.control("epoch")
            for i in range(N_FILES):
                path = data.path / ("a" if i < N_FILES // 2 else "b")
                assert (path / f"{i:02}.jpg").read_bytes() == content(i)
        assert data.stats["hits"] == N_FILES - 1  # empty reads are free
        data.control("reset")
        assert data.stats["hits"] == 0
        with pytest.raises(gpemu.Error, match="^blow up: .*"):
            data.control("blow up")
        # what a worker process of a loader gets
        assert pickle.loads(pickle.dumps(data)) == data.path
    assert not mounted(data.path) and not data.path.exists()
    assert data.stats["hits"] == 0  # the last ones
    data.close()


def test_a_folder_of_your_own(files, tmp_path):
    with gpemu.mount(files, tmp_path, tier=["dram:lru:10%", "nvme:lru:50%"],
                     time_scale=0.001, keep_awake=False) as data:
        assert data.path == tmp_path and mounted(tmp_path)
        assert len(data.stats["tiers"]) == 2
    assert not mounted(tmp_path) and tmp_path.exists()


def test_a_loader_on_it(files):
    pytest.importorskip("numpy", reason="numpy is not installed")
    with gpemu.mount(files, cache_size="100%") as data, \
            gpemu.Loader(data, **FAST, prep="none", batch=4, epochs=2,
                         index="off") as loader:
        for _ in range(2):
            for batch in loader:
                batch.step()
        hits = [e["hits"] for e in loader.record()["epochs"]]
        assert hits == [0, N_FILES - 1]  # empty reads are free


@pytest.mark.parametrize("how", [KeyError, KeyboardInterrupt])
def test_an_exception_unmounts(files, how):
    with pytest.raises(how):
        with gpemu.mount(files) as data:
            raise how
    assert not mounted(data.path) and not data.path.exists()


def test_ctrl_c_in_the_loop_unmounts_open_files(files):
    timer = threading.Timer(0.2, signal.pthread_kill,
                            (threading.main_thread().ident, signal.SIGINT))
    with pytest.raises(KeyboardInterrupt):
        with gpemu.mount(files) as data:
            with open(data.path / "b" / "20.jpg", "rb") as file:
                timer.start()
                while True:
                    os.pread(file.fileno(), 1, 0)
    timer.join()
    assert not mounted(data.path)


def test_errors_are_those_of_gpemu_fs(files, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with pytest.raises(gpemu.Error, match="/nonexistent"):
        gpemu.mount("/nonexistent")
    with pytest.raises(FileNotFoundError):
        gpemu.mount("/nonexistent")
    with pytest.raises(gpemu.Error, match="abacus"):
        gpemu.mount(files, storage="abacus")
    with pytest.raises(ValueError, match="null byte"):
        gpemu.mount(files, storage="hdd\0")
    assert not os.listdir(tmp_path)  # no mountpoint is left


@pytest.mark.skipif(os.geteuid() != 0, reason="needs another user")
def test_another_user_does_not_say_that_it_is_ready(files, tmp_path,
                                                    monkeypatch):
    program = tmp_path / "gpemu-fs"
    program.write_text(f"""#!{sys.executable}
import os, socket, sys
os.setuid(65534)
to = "\\0" + os.environ["NOTIFY_SOCKET"][1:]
with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as s:
    s.sendto(b"READY=1", to)
sys.exit("nothing is mounted")
""")
    program.chmod(0o755)
    monkeypatch.setattr("gpemu._mount.program", lambda name: str(program))
    with pytest.raises(gpemu.Error, match="nothing is mounted"):
        gpemu.mount(files)


def test_the_end_of_the_program_unmounts(files):
    program = "import gpemu, sys; m = gpemu.mount(sys.argv[1]); print(m)"
    out = subprocess.run([sys.executable, "-B", "-c", program, files],
                         check=True, capture_output=True, text=True).stdout
    assert not mounted(out.strip()) and not os.path.exists(out.strip())


def test_a_death_of_gpemu_fs_is_noticed(files):
    with pytest.warns(RuntimeWarning, match="gpemu-fs ended with -9"):
        with gpemu.mount(files) as data:
            data._process.kill()
    assert not mounted(data.path) and not data.path.exists()
