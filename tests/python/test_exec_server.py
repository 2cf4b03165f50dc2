# SPDX-License-Identifier: MIT
"""gpemu exec on the GPU of a gpemu-gpud, which came with the job."""
import json
import os
import subprocess

import pytest

from conftest import BUILD, ROOT, Server
from test_exec import (SCRIPT, gpemu_exec, profile,  # noqa: F401, fixtures
                       python)

SCALE = 0.2
IMPORT_S = 120  # at most, on a busy machine: PyTorch's


@pytest.fixture
def server(profile, tmp_path):  # noqa: F811
    server = Server(tmp_path, "--gpu", str(profile), "--gpus", "2",
                    time_scale=SCALE)
    yield server
    server.end()


def given(server, gpus=1, path=None):
    """The environment that Kubernetes or Slurm make."""
    return dict(os.environ, GPEMU_GPU_SERVER=f"{path or server.path}:/nowhere",
                GPEMU_GPUS=str(gpus))


def words(python, record, *more):  # noqa: F811
    return ["--time-scale", SCALE, "--record", record, *more, "--", python,
            SCRIPT]


def run_code(python, code, env, *more):  # noqa: F811
    run = gpemu_exec("--time-scale", SCALE, *more, "--", python, "-c",
                     "import torch\n" + code, env=env)
    return run


def test_steps_are_those_of_the_server(python, server, tmp_path):  # noqa: F811
    record = tmp_path / "record.json"
    run = gpemu_exec(*words(python, record), "--workers", 0, env=given(server))
    assert run.returncode == 0, run.stderr
    found = json.loads(record.read_text())
    assert found["server"] == str(server.path) and "toy" in found["models"]
    for epoch in found["epochs"]:
        assert epoch["step_ms"] == pytest.approx([100] * 6, abs=.001)
        parts = sum(epoch[k] for k in (
            "compute_s", "data_wait_s", "transfer_stall_s", "host_s",
            "share_wait_s"))
        assert epoch["seconds"] == pytest.approx(parts, rel=.01)
    server.soon([])


@pytest.mark.timed
def test_two_scripts_share_a_gpu(python, profile, tmp_path):  # noqa: F811
    server = Server(tmp_path, "--gpu", str(profile), time_scale=1)
    records = [tmp_path / f"{i}.json" for i in range(2)]
    try:
        jobs = [subprocess.Popen(
            [BUILD / "gpemu", "exec", "--record", record, "--", python, SCRIPT,
             "--workers", "0", "--epochs", "1", "--steps", "150"],
            env=given(server), stderr=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL) for record in records]
        server.soon(["toy"] * 2, "model", IMPORT_S)
        assert [job.wait() for job in jobs] == [0, 0]
    finally:
        server.end()
    epochs = [json.loads(r.read_text())["epochs"][0] for r in records]
    for e in epochs:
        assert e["share_wait_s"] > 1
        assert e["step_ms"] == pytest.approx([100] * 150, abs=.001)
        parts = sum(e[k] for k in ("compute_s", "data_wait_s",
                                   "transfer_stall_s", "host_s",
                                   "share_wait_s"))
        assert e["seconds"] == pytest.approx(parts, rel=.01)


def test_as_many_gpus_as_came_with_the_job(python, server):  # noqa: F811
    code = "print(torch.cuda.device_count(), torch.cuda.get_device_name())"
    assert run_code(python, code, given(server, 2)).stdout == "2 Toy\n"
    # a name is a private GPU
    run = run_code(python, code, given(server, 2), "--gpu", "k80")
    assert run.stdout.startswith("1 Tesla K80"), run.stderr
    run = run_code(python, code, given(server, "x"))
    assert run.returncode == 1 and "GPEMU_GPUS=x" in run.stderr
    run = run_code(python, code, os.environ, "--gpu-server", server.path,
                   "--gpus", 2, "--node", "dgx-1v")
    assert run.returncode == 1 and "--node: not with" in run.stderr
    run = run_code(python, code, os.environ, "--gpu-server", "/nowhere")
    assert run.returncode == 1 and "no gpemu-gpud listens" in run.stderr


def test_the_memory_is_that_of_the_grant(python, server, tmp_path):  # noqa: F811
    subprocess.run([ROOT / "tests/cli/gpud-client", server.path, "grant", "pod",
                    "0", "500"], check=True, stdout=subprocess.DEVNULL)
    env = given(server, path=f"{server.path}.d/pod/gpud.sock")
    run = run_code(python, "print(torch.cuda.mem_get_info())", env)
    assert run.stdout == f"({500 << 20}, {500 << 20})\n", run.stderr
    for batch, fits in (16, True), (32, False):  # 300 and 600 MiB
        run = gpemu_exec(*words(python, tmp_path / "record"), "--batch-size",
                         batch, "--workers", 0, env=env)
        assert (run.returncode == 0) == fits, run.stderr
    assert "OutOfMemoryError: CUDA out of memory" in run.stderr


def test_what_a_server_cannot_do(python, server, tmp_path):  # noqa: F811
    model = "torch.nn.Linear({}, 1).cuda()(torch.zeros(4, {}).cuda()).sum()\n"
    run = run_code(python, model.format(3, 3), given(server), "--estimate")
    assert run.returncode == 1 and "--estimate: not on the GPU" in run.stderr
    two = ("for n in (2, 3):\n    model = torch.nn.Linear(n, 1).cuda()\n"
           "    model(torch.zeros(16, n).cuda())\n")
    run = run_code(python, two, given(server), "--model", "toy")
    assert run.returncode == 0, run.stderr


def test_a_script_waits_for_memory(python, tmp_path):  # noqa: F811
    server = Server(tmp_path, "--share", "mps", time_scale=SCALE)
    try:
        with server.hold(30230) as other:  # of the V100: no job has room
            server.soon(["idle"])
            job = subprocess.Popen(
                [BUILD / "gpemu", "exec", "--model", "resnet18",
                 *map(str, words(python, tmp_path / "r")), "--workers", "0"],
                env=given(server), stderr=subprocess.PIPE,
                stdout=subprocess.DEVNULL, text=True)
            server.soon(["idle", "queued"], seconds=IMPORT_S)
            other.stdin.close()
            text = job.stderr.read()
            assert job.wait() == 0, text
    finally:
        server.end()


def test_the_server_ends(python, profile, tmp_path):  # noqa: F811
    server = Server(tmp_path, "--gpu", str(profile), time_scale=SCALE)
    job = subprocess.Popen(
        [BUILD / "gpemu", "exec", *map(str, words(python, tmp_path / "r")),
         "--workers", "0", "--steps", "10000"], env=given(server),
        stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
    try:
        server.soon(["toy"], "model", IMPORT_S)
    finally:
        server.end()
    text = job.stderr.read()
    assert job.wait() == 1 and "gpemu-gpud closed the connection" in text
    assert "train.py" in text
