# SPDX-License-Identifier: MIT
"""gpemu exec: scripts of PyTorch on an emulated GPU."""
import json
import os
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


def test_the_command_names_what_is_wrong(profile):
    run = gpemu_exec("--gpu", "h1000", "--", "true")
    assert run.returncode == 1 and "nvidia-h100" in run.stderr
    run = gpemu_exec("--gpu", profile, "--model", "tay", "--", "true")
    assert run.returncode == 1 and "known: toy" in run.stderr
    assert gpemu_exec("--gpu", "v100").returncode == 2
    assert gpemu_exec("--", "gpemu-no-such-command").returncode == 127


def test_a_program_without_torch_is_as_it_was():
    run = gpemu_exec("--", sys.executable, "-c", "print('as it was')")
    assert (run.returncode, run.stdout) == (0, "as it was\n")


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
    train(python, profile, tmp_path, "--amp", options=["--precision", "fp32"])


@pytest.mark.parametrize("name", ["Adam", "AdamW"])
def test_optimisers_and_checkpoints(python, profile, tmp_path, name):
    file = tmp_path / "checkpoint"
    train(python, profile, tmp_path, "--optimizer", name, "--checkpoint",
          file, "--workers", 0)
    # weights, and two moments of each parameter
    assert file.stat().st_size > 3 * 4 * parameters(8, 10)
