# SPDX-License-Identifier: MIT
"""A training on the CPU, real and emulated: the CPU is the device.

Only a case in which the model is the bottleneck: a real model and a loader on
two CPUs slow each other, an emulated one leaves the loader its CPU. Measured: a
step of 12.7 ms took 25.3 ms beside a process that decodes.
"""
import json
import os
import statistics
import subprocess
import sys

import pytest

from conftest import BUILD, ROOT

sys.path.insert(0, str(ROOT / "tests" / "bench"))
import truth_storage  # noqa: E402

BUSY = 0.15  # of a CPU, as in tests/bench/truth
# A machine whose real epochs differ by more says nothing of the emulated ones:
# on a virtual one the host takes CPUs away, and nothing here sees it. Two thirds
# of the limit of 5 % below
STEADY = 0.03


@pytest.mark.timed
@pytest.mark.slow
@pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="model and loader: two CPUs")
@pytest.mark.skipif(
    "GPEMU_SANITIZED" in os.environ, reason="a sanitizer changes the times"
)
def test_epochs_on_the_cpu_take_as_long_emulated(tmp_path):
    pytest.importorskip("torch")
    pytest.importorskip("torchvision")
    cases = []
    # as tests/bench/simulate: the nearest of some tries
    for attempt in range(4):
        cases.append(gpu_bound(tmp_path / str(attempt)))
        if not why_undecided(cases[-1]) and abs(error(cases[-1])) < 0.05:
            return
    # a try is judged whose profile the next one measures again: the machine's speed
    # may change between a profile and its epochs
    undecided, missed = [], []
    for case, after in zip(cases, cases[1:]):
        why = why_undecided(case)
        if abs(after["step_ms"] / case["step_ms"] - 1) > STEADY:
            why = f"a step took {case['step_ms']:.3g} and {after['step_ms']:.3g} ms"
        if why:
            undecided.append(why)
        else:
            missed.append(error(case))
    # a defect is off in each try, and to the same side
    if len(missed) > 1 and (min(missed) > 0 or max(missed) < 0):
        pytest.fail(f"off by {missed}")
    pytest.skip("undecided: " + "; ".join(undecided + [f"off by {missed}"]))


def error(case):
    return statistics.mean(case["emulated"]) / statistics.mean(case["real"]) - 1


def why_undecided(case):
    if case["others_busy"] > BUSY:
        return f"others used {case['others_busy']:.0%} of a CPU"
    if max(case["real"]) > (1 + STEADY) * min(case["real"]):
        return "the real epochs took {:.3g} and {:.3g} s".format(*case["real"])


def gpu_bound(work):
    record = work / "record.json"
    work.mkdir()
    run = subprocess.run(
        [sys.executable, ROOT / "tests" / "bench" / "truth", "--device", "cpu",
         "--cases", "gpu-bound", "--seconds", "0.3", "--work", work, "-o", record],
        env=dict(os.environ, GPEMU_BUILD=str(BUILD), GPEMU_PYTHON=sys.executable),
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )
    assert run.returncode == 0, run.stdout
    (case,) = json.loads(record.read_text())["cases"]
    assert case["case"] == "gpu-bound" and case["unit"] == "s"
    assert len(case["real"]) == len(case["emulated"]) == 2
    (model,) = json.loads((work / "fp32.json").read_text())["models"].values()
    (step_ms,) = (row[1] + row[2] for row in model["rows"] if row[0] == 16)
    return case | {"step_ms": step_ms}


def reads(per_s, p50, p99):
    return {"per_s": per_s, "mb_per_s": 1, "p50_us": p50, "p99_us": p99,
            "others_busy": 0}


def test_the_page_has_the_failures_of_storage():
    points = [
        {"point": "4 KiB, depth 1", "before": reads(1000, 50, 100),
         "after": reads(1000, 60, 300), "emulated": reads(900, 55, 120)},
        {"point": "epoch, sync", "before": {"seconds": 2, "others_busy": 0},
         "after": {"seconds": 2, "others_busy": 0.5},
         "emulated": {"seconds": 1.92, "others_busy": 0}},
    ]
    record = {"kind": "storage", "device": "d", "points": points}
    # too few reads a second is too slow; p99 is between the device's own two
    errors = {goal: round(e, 1) for goal, *_, e in truth_storage.errors(points[0])}
    assert errors == {"rate": 11.1, "p50": 0.0, "p99": -40.0}
    _, _, read, epoch = truth_storage.table(record)
    assert "**+11.1 %**" in read and "-40.0 % (in its range)" in read
    assert epoch.startswith("| epoch, sync (disturbed) | 2 s, 2 s | 1.92 s | -4.0 %")
    assert read.count("|") == epoch.count("|") == 11
    assert truth_storage.summary(record).startswith(
        "2 of 4 numbers are within the goals, 1 more between the device's own two; "
        "of the device's second measurement against its first, 2 are."
    )
    assert truth_storage.series([record]) == [("d", [(1000, 900)])]
