# SPDX-License-Identifier: MIT
"""gpemu exec: scripts of PyTorch on an emulated GPU."""
import json
import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import BUILD, ROOT

SCRIPT = Path(__file__).parent / "exec" / "train.py"


@pytest.fixture(scope="module")
def python():
    """One that has PyTorch 2.4: $GPEMU_TORCH_PYTHON or this one."""
    found = os.environ.get("GPEMU_TORCH_PYTHON", sys.executable)
    code = "import torch; print(*torch.__version__.split('.')[:2])"
    run = subprocess.run([found, "-c", code], capture_output=True, text=True)
    if run.returncode or tuple(map(int, run.stdout.split())) < (2, 4):
        pytest.skip(f"{found} lacks PyTorch 2.4 or later")
    return found


def gpemu_exec(*words, **options):
    return subprocess.run([BUILD / "gpemu", "exec", *map(str, words)],
                          text=True, capture_output=True, timeout=240,
                          **options)


# Forward and backward of 100 ms, optimiser 10 ms, for the script's 10 classes;
# recognised with 1000 classes. No memory of a step but for batch 32.
def parameters(width, classes=1000):
    w = width
    return (3 * 49 + 1) * w + 2 * w + (9 * w + 1) * 2 * w + \
        (2 * w + 1) * classes


@pytest.fixture
def profile(tmp_path):
    path = tmp_path / "toy.yaml"
    path.write_text(f"""\
name: Toy
source: this test
precision: fp32
memory_mib: 1024
usable_memory: 0.9
sample_bytes: 602112
pinned: {{base_ms: 0.1, per_sample_ms: 0.05, source: this test}}
pin_copy: {{base_ms: 0.1, per_sample_ms: 0.05, source: this test}}
models:
  toy:
    parameters: {parameters(8)}
    last_batch: 32
    last_is_limit: true
    tolerance_pct: 2
    rows:
    - [16, 30, 70, 2, 300, 100, 10]
    - [32, 60, 130, 4, 600, 100, 10]
""")
    return path


def train(python, profile, tmp_path, *words, options=(), scale=0.2):
    record = tmp_path / "record.json"
    run = gpemu_exec("--gpu", profile, "--record", record, "--time-scale",
                     scale, *options, "--", python, SCRIPT, *words)
    assert run.returncode == 0, run.stderr
    return run, json.loads(record.read_text())


def test_the_command_names_what_is_wrong(profile, tmp_path):
    run = gpemu_exec("--gpu", "h1000", "--", "true")
    assert run.returncode == 1 and "nvidia-h100" in run.stderr
    run = gpemu_exec("--gpu", profile, "--model", "tay", "--", "true")
    assert run.returncode == 1 and "known: toy" in run.stderr
    run = gpemu_exec("--record", "/proc/no/record", "--", "true")
    assert run.returncode == 1 and "/proc/no/record: No such" in run.stderr
    assert gpemu_exec("--gpu", "v100").returncode == 2
    if os.getuid() == 0:
        for option in "--record", "--trace":
            link = tmp_path / f"link{option}"
            link.symlink_to(tmp_path / "victim")
            os.lchown(link, 65534, 65534)
            run = gpemu_exec(option, link, "--", "true")
            assert run.returncode == 1 and "another user's link" in run.stderr
        assert not (tmp_path / "victim").exists()
    run = gpemu_exec("--trace", "/no/where", "--", "true")
    assert run.returncode == 1 and "/no/where: No such file" in run.stderr
    assert gpemu_exec("--", "gpemu-no-such-command").returncode == 127


def test_a_program_without_torch_is_as_it_was():
    run = gpemu_exec("--", sys.executable, "-c", "print('as it was')")
    assert (run.returncode, run.stdout) == (0, "as it was\n")


def test_what_libraries_look_at(python, profile):
    code = """
import importlib.util
assert importlib.util.find_spec("torch")  # long before the import
import torch
assert torch.cuda.is_available()
torch.cuda.CUDAGraph | None
a = torch.ones(4, device="cuda")
b = torch.ones(4, device="cuda")
assert a.data_ptr() != b.data_ptr() and a[1:].data_ptr() == a.data_ptr() + 4
assert a.view(2, 2).untyped_storage().data_ptr() == \\
    a.untyped_storage().data_ptr() != b.untyped_storage().data_ptr()
"""
    run = gpemu_exec("--gpu", profile, "--", python, "-c", code)
    assert run.returncode == 0, run.stderr


@pytest.mark.timed
def test_waiting_for_validation_is_not_the_epochs(python, tmp_path):
    code = """
import time, torch
from torch.utils.data import DataLoader
class Slow(list):
    def __getitem__(self, i):
        time.sleep(.1)
        return super().__getitem__(i)
some = [torch.ones(4)] * 5
model = torch.nn.Linear(4, 2).cuda()
optimizer = torch.optim.SGD(model.parameters())
for x in DataLoader(some):
    model(x.cuda()).sum().backward()
    optimizer.step()
with torch.no_grad():
    for x in DataLoader(Slow(some)):
        model(x.cuda())
"""
    record = tmp_path / "record.json"
    run = gpemu_exec("--gpu", "v100", "--estimate", "--record", record, "--",
                     python, "-c", code)
    assert run.returncode == 0, run.stderr
    assert json.loads(record.read_text())["epochs"][0]["loader_wait_s"] < .4


@pytest.mark.timed
def test_a_script_takes_the_times_of_its_model(python, profile, tmp_path):
    run, record = train(python, profile, tmp_path)
    assert "correct 0.0" in run.stdout and "of the device are zeros" in \
        run.stderr
    assert list(record["models"]) == ["toy"] and not record["estimated"]
    assert [e["steps"] for e in record["epochs"]] == [6, 6]
    for epoch in record["epochs"]:
        assert epoch["step_ms"] == [100] * 6
        # the closed form: steps of the GPU, and what it waited
        parts = sum(epoch[k] for k in ("compute_s", "data_wait_s",
                                       "transfer_stall_s", "host_s"))
        assert epoch["seconds"] == pytest.approx(parts, rel=0.01)
    assert record["copied_bytes"]["in_pinned"] == \
        12 * 16 * (602112 + 8)
    assert record["pinned"]["most_bytes"] > 0 or record["pinned"]["refused"]
    assert "used 314572800 bytes" in run.stderr


@pytest.mark.timed
def test_the_host_is_slower_than_the_gpu(python, profile, tmp_path):
    profile.write_text(profile.read_text().replace(
        "last_batch", "host_ms: 150\n    warmup_ms: [500, 40]\n    last_batch"))
    _, record = train(python, profile, tmp_path, scale=1)
    first, second = record["epochs"]
    # steps of 100 ms that take 150 to launch; the last ends with its launch
    assert .3 <= second["host_s"] < .5  # and what gpemu exec takes itself
    assert second["seconds"] >= 6 * .15
    # the model's first run on tensors without data takes CPU time, too
    assert .75 <= first["host_s"] < 1.5  # the warm-up hides a launch
    assert first["step_ms"] == second["step_ms"] == [100] * 6


def test_the_timeline(python, profile, tmp_path):
    file = tmp_path / "trace.json"
    train(python, profile, tmp_path, options=["--trace", file])
    events = [e for e in json.loads(file.read_text()) if e.get("ph") == "X"]
    of = {name: [e for e in events if e["name"] == name]
          for name in ("forward", "backward", "optimizer", "copy")}
    assert [len(of[n]) for n in ("forward", "backward", "optimizer")] == [12] * 3
    assert len(of["copy"]) >= 24
    for name, us in ("forward", 30e3), ("backward", 60e3), ("optimizer", 10e3):
        assert {round(e["dur"]) for e in of[name]} == {us}
    ends = [e["ts"] + e["dur"] for e in events if e["tid"] == of["forward"][0]["tid"]]
    assert ends == sorted(ends)


def test_no_space_for_the_timeline(python, profile, tmp_path):
    run, record = train(python, profile, tmp_path, "--steps", 1, "--workers", 0,
                        options=["--trace", "/dev/full"])
    assert run.stderr.count("/dev/full: No space left on device") == 1
    assert record["totals"]["steps"] == 2


def test_a_larger_batch_does_not_fit(python, profile, tmp_path):
    run = gpemu_exec("--gpu", profile, "--", python, SCRIPT, "--batch-size",
                     33)
    assert run.returncode == 1
    assert "OutOfMemoryError: CUDA out of memory" in run.stderr
    assert "1.00 GiB" in run.stderr


def test_an_unknown_model(python, profile, tmp_path):
    words = "--", python, SCRIPT, "--width", 24, "--steps", 2
    run = gpemu_exec("--gpu", profile, *words)
    assert run.returncode == 1
    assert "the nearest are toy (" in run.stderr
    assert "train.py" in run.stderr
    run, record = train(python, "v100", tmp_path, "--width", 24,
                        options=["--estimate"])
    assert record["estimated"] and "ESTIMATED" in run.stderr
    _, record = train(python, profile, tmp_path, "--width", 24,
                      options=["--model", "toy"])
    assert record["epochs"][0]["step_ms"] == [100] * 6


def test_mixed_precision_is_another_table(python, profile, tmp_path):
    run = gpemu_exec("--gpu", profile, "--", python, SCRIPT, "--amp")
    assert run.returncode == 1 and "not measured in fp16" in run.stderr
    run = gpemu_exec("--gpu", profile, "--", python, SCRIPT, "--amp-inside")
    assert run.returncode == 1 and "not measured in fp16" in run.stderr
    train(python, profile, tmp_path, "--amp", options=["--precision", "fp32"])


@pytest.mark.parametrize("name", ["Adam", "AdamW"])
def test_optimisers_and_checkpoints(python, profile, tmp_path, name):
    file = tmp_path / "checkpoint"
    train(python, profile, tmp_path, "--optimizer", name, "--checkpoint",
          file, "--workers", 0)
    # weights, and two moments of each parameter
    assert file.stat().st_size > 3 * 4 * parameters(8, 10)


def test_odd_scripts(python, profile):
    """What works with CUDA works, and what is an error there is one."""
    run = gpemu_exec("--gpu", profile, "--model", "toy", "--extrapolate",
                     "--precision", "fp32", "--", python,
                     SCRIPT.parent / "odd.py")
    assert run.returncode == 0, run.stdout + run.stderr
    for note in ("CUDA graphs are not emulated", "TorchScript is not emulated",
                 "the closure of LBFGS runs once", "no optimiser of torch.optim",
                 "has backward hooks, which are not called"):
        assert note in run.stdout + run.stderr


def ranks(python, profile, tmp_path, slow_ms):
    """The record and the timeline of both, of training with
    DistributedDataParallel."""
    record, trace = (tmp_path / f"{n}-{slow_ms}.json" for n in ("ddp", "trace"))
    run = gpemu_exec("--gpu", profile, "--gpus", 2, "--record", record, "--trace",
                     trace, "--",
                     python, "-m", "torch.distributed.run", "--standalone",
                     "--nproc-per-node", 2, SCRIPT.parent / "ddp.py",
                     env=dict(os.environ, SLOW_MS=str(slow_ms)))
    assert run.returncode == 0, run.stderr
    assert "gloo instead of nccl" in run.stderr
    assert run.stderr.count("2 ranks, toy") == 1  # one table
    assert not list(tmp_path.glob("*.rank*"))
    return json.loads(record.read_text()), json.loads(trace.read_text())


def same_timeline(events):
    """Both ranks in a row of its own, on one clock."""
    rows = {e["args"]["name"]: e["pid"] for e in events
            if e["name"] == "process_name"}
    assert sorted(rows) == ["rank 0", "rank 1"]
    mine = {pid: [e for e in events if e["pid"] == pid] for pid in rows.values()}
    assert len(mine) == 2
    tracks = [{e["tid"] for e in some} for some in mine.values()]
    assert not tracks[0] & tracks[1]
    # the gradients of a step are everywhere at the same time
    ends = [[(e["ts"] + e["dur"]) / 1e3 for e in some
             if e["name"] == "all-reduce, exposed"] for some in mine.values()]
    assert len(ends[0]) == len(ends[1]) == 12
    assert ends[0] == pytest.approx(ends[1], abs=5)
    assert all(e["ts"] >= 0 for e in events if e["ph"] == "X")


@pytest.mark.timed
def test_the_ranks_wait_for_the_slowest(python, profile, tmp_path):
    # the gradients of this model are a few kB: less than 1 ms of the link
    record, _ = ranks(python, profile, tmp_path, 0)
    for epochs in record["epochs"], *(r["epochs"] for r in record["ranks"]):
        assert [e["steps"] for e in epochs] == [6, 6]
        assert epochs[1]["step_ms"] == pytest.approx([100] * 6)
    assert [e["samples"] for e in record["epochs"]] == [2 * 6 * 16] * 2
    assert record["totals"]["samples"] == 4 * 6 * 16
    record, events = ranks(python, profile, tmp_path, 12)
    # rank 1 loads 16 samples of 12 ms for each step of 100 ms
    first, second = (r["epochs"] for r in record["ranks"])
    assert second[1]["data_wait_s"] > .3
    assert first[1]["allreduce_s"] > .3 > second[1]["allreduce_s"]
    assert first[1]["seconds"] == pytest.approx(second[1]["seconds"], rel=.1)
    assert record["epochs"][1]["seconds"] == max(first[1]["seconds"],
                                                 second[1]["seconds"])
    assert record["epochs"][1]["data_wait_s"] == pytest.approx(
        (first[1]["data_wait_s"] + second[1]["data_wait_s"]) / 2)
    same_timeline(events)


def test_ranks_of_a_gpu_that_is_not_there(python, profile):
    run = gpemu_exec("--gpu", profile, "--", python, "-m",
                     "torch.distributed.run", "--standalone", "--nproc-per-node",
                     2, SCRIPT.parent / "ddp.py")
    assert run.returncode == 1 and "invalid device ordinal: cuda:1" in run.stderr
    run = gpemu_exec("--gpu", profile, "--node", "no-such-node", "--", "true")
    assert run.returncode == 1 and "dgx-1v" in run.stderr


def sharded(python, profile, tmp_path, how):
    record = tmp_path / f"{how}.json"
    run = gpemu_exec("--gpu", profile, "--gpus", 2, "--record", record,
                     "--time-scale", 0.2, "--",
                     python, "-m", "torch.distributed.run", "--standalone",
                     "--nproc-per-node", 2, SCRIPT.parent / "fsdp.py", how,
                     env=dict(os.environ, CHECKPOINT=str(tmp_path / "saved")))
    return run, record


@pytest.mark.parametrize("how", ["fsdp1", "fully_shard"])
def test_parameters_are_sharded(python, profile, tmp_path, how):
    run, record = sharded(python, profile, tmp_path, how)
    assert run.returncode == 0, run.stderr
    for rank in json.loads(record.read_text())["ranks"]:
        (epoch,) = rank["epochs"]
        assert epoch["step_ms"] == [100] * 4
        assert epoch["allreduce_s"] > 0
    assert (tmp_path / "saved").stat().st_size > 4 * parameters(8, 10)


def test_what_of_fsdp_is_an_error(python, profile, tmp_path):
    run, _ = sharded(python, profile, tmp_path, "offload")
    assert run.returncode == 1
    assert re.search("/fsdp.py:[0-9]+: cpu_offload of FSDP is not emulated",
                     run.stderr)


@pytest.mark.parametrize("how", ["fork", "spawn"])
def test_ranks_of_multiprocessing(python, profile, tmp_path, how):
    record = tmp_path / "record"
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    run = gpemu_exec("--gpu", profile, "--gpus", 2, "--model", "toy",
                     "--precision", "fp32", "--time-scale", .2, "--record", record,
                     "--", python, SCRIPT.parent / "forked.py", how,
                     env=dict(os.environ, PORT=str(port)))
    assert run.returncode == 0, run.stderr
    found = json.loads(record.read_text())
    assert [r["rank"] for r in found["ranks"]] == [0, 1]
    for epochs in found["epochs"], *(r["epochs"] for r in found["ranks"]):
        assert [e["step_ms"] for e in epochs] == [[100] * 3]


def test_scripts_of_one_command(python, profile, tmp_path):
    """Each in a row of the timeline; the record is the last one's."""
    record, trace = tmp_path / "record", tmp_path / "trace"
    trace.write_text("of another job")
    run = gpemu_exec("--gpu", profile, "--time-scale", .2, "--record", record,
                     "--trace", trace, "--", "sh", "-c",
                     f"{python} {SCRIPT} --steps 3 && {python} {SCRIPT} --steps 2")
    assert run.returncode == 0, run.stderr
    events = json.loads(trace.read_text())
    begins = [[e["ts"] for e in events if e["pid"] == pid and e["ph"] == "X"]
              for pid in dict.fromkeys(e["pid"] for e in events)]
    assert len(begins) == 2 and max(begins[0]) < min(begins[1])
    found = json.loads(record.read_text())
    assert found["totals"]["steps"] == 4 and "ranks" not in found


@pytest.mark.parametrize("how", ["fails", "interrupted"])
def test_what_a_script_leaves_that_fails(python, profile, tmp_path, how):
    code = """
import os, signal, sys, torch
model = torch.nn.Linear(4, 2).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=.1)
for i in range(9):
    model(torch.zeros(16, 4).cuda()).sum().backward()
    optimizer.step()
    if i == 4:
        if sys.argv[1] == "fails":
            raise ValueError("on purpose")
        os.kill(os.getpid(), signal.SIGINT)
"""
    record, trace = tmp_path / "record", tmp_path / "trace"
    run = gpemu_exec("--gpu", profile, "--model", "toy", "--precision", "fp32",
                     "--time-scale", .1, "--record", record, "--trace", trace,
                     "--", python, "-c", code, how)
    assert run.returncode != 0
    assert ("ValueError" if how == "fails" else "KeyboardInterrupt") in run.stderr
    assert json.loads(record.read_text())["totals"]["steps"] == 5
    assert len([e for e in json.loads(trace.read_text())
                if e["name"] == "optimizer"]) == 5


def test_a_job_writes_to_no_file_of_others(tmp_path, monkeypatch):
    """The descriptor of the command's file may be another file's by now."""
    from gpemu._exec import job

    monkeypatch.setenv("GPEMU_EXEC_RANKS", "")
    job.begin()
    descriptor = int(os.environ["GPEMU_EXEC_RANKS"].rsplit("/", 1)[1])
    assert descriptor >= 200  # not the first that a shell opens
    job.joined().close()
    os.close(descriptor)
    mine = tmp_path / "mine"
    mine.write_text("mine")
    monkeypatch.setenv("GPEMU_EXEC_RANKS", str(mine))
    with pytest.raises(FileNotFoundError):
        job.joined()
    assert mine.read_text() == "mine"
