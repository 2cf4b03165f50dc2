# SPDX-License-Identifier: MIT
"""A training on the CPU, real and emulated: the CPU is the device."""
import json
import os
import statistics
import subprocess
import sys

import pytest

from conftest import BUILD, ROOT

pytest.importorskip("torch")
pytest.importorskip("torchvision")

BUSY = 0.15  # of a CPU, as in tests/bench/truth


@pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="model and loader: two CPUs")
@pytest.mark.skipif(
    "GPEMU_SANITIZED" in os.environ, reason="a sanitizer changes the times"
)
def test_epochs_on_the_cpu_take_as_long_emulated(tmp_path):
    record = tmp_path / "record.json"
    run = subprocess.run(
        [sys.executable, ROOT / "tests" / "bench" / "truth", "--device", "cpu",
         "--cases", "gpu-bound", "--seconds", "0.3", "-o", record],
        env=dict(os.environ, GPEMU_BUILD=str(BUILD), GPEMU_PYTHON=sys.executable),
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )
    assert run.returncode == 0, run.stdout
    (case,) = json.loads(record.read_text())["cases"]
    assert case["case"] == "gpu-bound" and case["unit"] == "s"
    assert len(case["real"]) == len(case["emulated"]) == 2
    if case["others_busy"] > BUSY:
        pytest.skip(f"undecided: others used {case['others_busy']:.0%} of a CPU")
    real, emulated = (statistics.mean(case[k]) for k in ("real", "emulated"))
    assert abs(emulated / real - 1) < 0.05, case
