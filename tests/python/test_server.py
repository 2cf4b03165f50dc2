# SPDX-License-Identifier: MIT
"""GPUs of a gpemu-gpud: in the environment, as an option, of a loader."""
import json
import os
import signal
import subprocess
import sys
import threading

import pytest

import gpemu
from conftest import FAST, N_FILES, ROOT, Server

JOB = {"model": "resnet18", "time_scale": FAST["time_scale"]}
# of the V100; then one job of resnet18 with 64 samples has room, not two
HELD_MIB = 28000
# no job has room beside so much
FULL_MIB = 30230
N_EPOCHS = 5


@pytest.fixture
def given(server, monkeypatch):
    """The server came with the job, as from Kubernetes or Slurm."""
    for name, value in (("SERVER", f"{server.path}:/nowhere"),
                        ("PROFILE", "v100")):
        monkeypatch.setenv(f"GPEMU_GPU_{name}", value)
    monkeypatch.setenv("GPEMU_GPUS", "1")
    return server


def iterations(server):
    return [job["iterations"] for job in server.processes()]


def test_the_server_that_came_with_the_job(given):
    with gpemu.GPU(**JOB) as gpu:
        given.soon([os.getpid()], "pid")
        assert gpu.last_step is None
        for _ in range(3):
            gpu.step(64)
        assert gpu.wait() == gpu.last_step.step_end_ns <= gpu.now_ns
        assert iterations(given) == [3]
    given.soon([])


def test_the_times_of_a_step_come_with_the_next(server):
    with gpemu.GPU(**FAST) as own, \
            gpemu.GPU(**JOB, gpu_server=server.path) as gpu:
        first, second, third = gpu.step(64), gpu.step(32), gpu.step(32)
        assert first.copy_end_ns > first.copy_start_ns
        assert first.step_end_ns == first.compute_end_ns == 0
        for step, n in (second, 64), (third, 32):
            took = own.step(n)
            assert step.compute_end_ns - step.compute_start_ns == pytest.approx(
                took.compute_end_ns - took.compute_start_ns, abs=1000)
        assert gpu.last_step is third
        end = gpu.wait()
        assert gpu.last_step.step_end_ns == end > third.step_end_ns
        assert gpu.step(32).step_end_ns == 0


def test_blocking_each_step_has_its_own(server):
    with gpemu.GPU(**JOB, gpu_server=server.path, transfer="blocking") as gpu:
        for _ in range(2):
            step = gpu.step(64)
            assert step.step_end_ns == gpu.wait() > 0


def test_a_name_alone_is_a_private_gpu(given, files):
    pytest.importorskip("numpy", reason="numpy is not installed")
    with gpemu.GPU("v100", **JOB) as gpu, \
            gpemu.Loader(files, "v100", prep="none", index="off", **JOB):
        gpu.step(64)
        assert given.processes() == []


def test_a_name_beside_a_server_must_be_its_gpu(server):
    with gpemu.GPU("v100", **JOB, gpu_server=server.path) as gpu:
        gpu.step(64)
        assert [job["pid"] for job in server.processes()] == [os.getpid()]
    with pytest.raises(gpemu.Error, match="--gpu k80: .*gpud.sock has GPUs of "
                       "another kind, Tesla V100"):
        gpemu.GPU("k80", **JOB, gpu_server=server.path)
    with pytest.raises(gpemu.Error, match="--node: not with --gpu-server"):
        gpemu.GPU(node="dgx-1v", **JOB, gpu_server=server.path)
    with pytest.raises(gpemu.Error, match="no gpemu-gpud listens there"):
        gpemu.GPU(**JOB, gpu_server="/nowhere")
    with pytest.raises(gpemu.Error, match="use the same"):
        gpemu.GPU(**{**JOB, "time_scale": 1}, gpu_server=server.path)


def test_as_many_gpus_as_came_with_the_job(tmp_path, monkeypatch):
    server = Server(tmp_path, "--gpus", "4")
    monkeypatch.setenv("GPEMU_GPU_SERVER", str(server.path))
    monkeypatch.setenv("GPEMU_GPUS", "3")
    try:
        with gpemu.GPU(**JOB) as gpu:
            server.soon([[0, 1, 2]], "gpus")
            # the last one has no part of it
            for samples in 4, 192, 5:
                gpu.step(samples)
            gpu.wait()
            assert gpu.last_step.allreduce_ns > 0
    finally:
        server.end()


def test_memory_is_reserved_for_a_batch(server):
    with gpemu.GPU(**JOB, batch=128, gpu_server=server.path) as gpu:
        with pytest.raises(gpemu.Error, match="memory for 128") as caught:
            gpu.step(129)
        assert caught.value.errno == 7  # E2BIG
        gpu.step(128)


def test_a_job_waits_for_memory(given):
    with given.hold(FULL_MIB):
        given.soon(["idle"])
        opened = []
        thread = threading.Thread(
            target=lambda: opened.append(gpemu.GPU(**JOB)))
        thread.start()
        given.soon(["idle", "queued"])
        assert not opened
    thread.join()
    opened[0].step(64)
    opened[0].wait()
    assert iterations(given) == [1]
    opened[0].close()


def test_ctrl_c_ends_that_wait(given):
    with given.hold(FULL_MIB):
        given.soon(["idle"])
        timer = threading.Timer(0.3, signal.pthread_kill,
                                (threading.main_thread().ident, signal.SIGINT))
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            gpemu.GPU(**JOB)
        timer.join()
        given.soon(["idle"])


def test_a_server_that_goes_away_is_an_error(server):
    gpu = gpemu.GPU(**JOB, gpu_server=server.path)
    gpu.step(64)
    server.end()
    with pytest.raises(gpemu.Error, match="closed the connection"):
        gpu.step(64)
        gpu.wait()
    gpu.close()


def test_close_leaves_also_while_a_child_has_the_connection(given):
    gpu = gpemu.GPU(**JOB)
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(write)
        os.read(read, 1)
        os._exit(0)
    try:
        gpu.close()
        given.soon([])
    finally:
        os.close(write)
        os.close(read)
        os.waitpid(child, 0)


# --- of a loader -------------------------------------------------------------


def loader_of(files, *gpu, **options):
    pytest.importorskip("numpy", reason="numpy is not installed")
    return gpemu.Loader(files, *gpu, **{"prep": "none", "batch": 4,
                                        "index": "off", "pin": "off",
                                        **options})


def trained(loader, server):
    """An epoch of it is the server's work."""
    for batch in loader:
        batch.step()
    assert [job["pid"] for job in server.processes()] == [os.getpid()]
    assert iterations(server) == [len(loader)]
    sharing = loader.record()["sharing"]
    assert sharing["server"] == str(server.path) and "V100" in sharing["gpu"]
    return True


def test_a_loader_by_itself(given, files):
    with loader_of(files, **JOB) as loader:
        assert trained(loader, given)
    given.soon([])


def test_a_loader_with_a_server(server, files):
    with loader_of(files, **JOB, gpu_server=server.path) as loader:
        assert trained(loader, server)


def test_a_loader_takes_the_place_of_its_gpu(given, files):
    with given.hold(HELD_MIB) as holder:
        given.soon(["idle"])
        gpu = gpemu.GPU(**JOB)
        # there is no room for a second one
        with loader_of(files, gpu, batch=64) as loader:
            given.soon([holder.pid, os.getpid()], "pid")
            for images, labels in loader:
                gpu.step(labels)
        given.soon(["idle"])


def test_a_loader_that_fails_leaves_the_gpu(given, files):
    gpu = gpemu.GPU(**JOB)
    with pytest.raises(gpemu.Error, match="bach"):
        loader_of(files, gpu, batching="bach")
    gpu.step(64)
    gpu.wait()
    assert iterations(given) == [1]
    gpu.close()
    given.soon([])


def test_the_loop_of_pytorch(tmp_path, files):
    """examples/pytorch.py is a process of the server."""
    pytest.importorskip("torch", reason="torch is not installed")
    server = Server(tmp_path, time_scale=1)
    record = tmp_path / "record.json"
    try:
        with subprocess.Popen(
                [sys.executable, "-B", ROOT / "examples/pytorch.py", files,
                 record, "batch=4", "workers=0", f"epochs={N_EPOCHS}"],
                env={**os.environ, "GPEMU_GPU_SERVER": str(server.path)}) as run:
            server.soon([run.pid], "pid")
        assert run.returncode == 0
        server.soon([])
    finally:
        server.end()
    done = json.loads(record.read_text())
    assert done["totals"]["samples"] == N_EPOCHS * N_FILES
    with gpemu.GPU(**JOB) as gpu:
        step = gpu.step(4)
        compute = step.compute_end_ns - step.compute_start_ns
    for epoch in done["epochs"]:
        # the last of seven steps is shorter
        assert 6 < epoch["compute_s"] * 1e9 / compute <= 7.001
        assert epoch["au"] > 0.5
