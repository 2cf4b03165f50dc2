# SPDX-License-Identifier: MIT
"""gpemu record: a script on its device, repeated by the workload it gives."""
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from statistics import median

import pytest

from conftest import BUILD
from test_exec import python  # noqa: F401, a fixture

SCRIPT = Path(__file__).parent / "exec" / "record.py"
SHAPES = SCRIPT.with_name("shapes.py")
FILES = 72


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("files")
    for i in range(FILES):
        (path / f"{i:04}.bin").write_bytes(bytes([i]) * 20000)
    return path


def gpemu(*words, **options):
    run = subprocess.run([BUILD / "gpemu", *map(str, words)], text=True,
                         capture_output=True, timeout=240, **options)
    return run


def epochs(run):
    """Seconds, by the script itself, without the first."""
    assert run.returncode == 0, run.stderr
    return [float(line.split()[1]) for line in run.stdout.splitlines()][1:]


def record(python, folder, job, *words):
    run = gpemu("record", "-o", job, "--", python, SCRIPT, folder, *words)
    return median(epochs(run)), json.loads((job / "record.json").read_text())


def repeat(job, tmp_path, *words):
    """{label: seconds} by gpemu run."""
    out = tmp_path / "out"
    run = gpemu("run", job / "workload.yaml", "--out", out, "noise=100%", *words)
    assert (out / "records").exists(), run.stdout + run.stderr
    found = {}
    for path in (out / "records").glob("*.json"):
        cell = json.loads(path.read_text())
        found[cell["cell"]["axes"]["job"]] = median(
            e["seconds"] for e in cell["epochs"][1:])
    return found


# As in test_truth.py: a machine whose real epochs differ by more says nothing
STEADY = .03
WORKERS = {"recorded": 1, "two": 2, "four": 4}
LIMITS = {"recorded": .05, "two": .10, "four": .10}


def attempt(python, folder, path):  # noqa: F811
    """Errors of the repeated and the predicted epochs; the real epochs with one
    worker, before and after."""
    job = path / "job"
    real = {"recorded": record(python, folder, job)[0]}
    found = repeat(job, path, "axes.job=[" + ", ".join(
        f"{{label: {name}, train.workers: {n}}}"
        for name, n in WORKERS.items()) + "]")
    for name, n in WORKERS.items():
        run = subprocess.run([python, SCRIPT, folder, "--workers", str(n)],
                             text=True, capture_output=True)
        again = median(epochs(run))
        if name == "recorded":
            both = real[name], again
        real.setdefault(name, again)
    return {n: found[n] / real[n] - 1 for n in WORKERS}, both


@pytest.mark.timed
@pytest.mark.skipif("GPEMU_SANITIZED" in os.environ,
                    reason="a sanitizer changes the times")
def test_the_epoch_is_repeated_and_more_workers_are_predicted(
        python, folder, tmp_path):  # noqa: F811
    if not os.path.exists("/dev/fuse"):
        pytest.skip("no /dev/fuse")
    undecided, missed = [], []
    for i in range(4):  # the machine is others', too
        errors, (before, after) = attempt(python, folder, tmp_path / f"{i}")
        if all(abs(e) < LIMITS[n] for n, e in errors.items()):
            return
        if abs(after / before - 1) > STEADY:
            undecided.append(f"real epochs took {before:.3g} and {after:.3g} s")
        else:
            missed.append(errors)
    # a defect is off in each try, and to the same side
    for n in WORKERS:
        off = [e[n] for e in missed if abs(e[n]) > LIMITS[n]]
        if 1 < len(off) == len(missed) and (min(off) > 0 or max(off) < 0):
            pytest.fail(f"off by {missed}")
    pytest.skip("undecided: " + "; ".join(undecided + [f"off by {missed}"]))


@pytest.mark.timed
def test_what_is_between_the_steps(python, folder, tmp_path):  # noqa: F811
    """Logs, schedulers: host time, which the repeated epoch has, too."""
    job = tmp_path / "job"
    run = gpemu("record", "-o", job, "--", python, SHAPES, "between", folder)
    assert run.returncode == 0, run.stderr
    gpu = (job / "gpu.yaml").read_text()
    host_ms = float(gpu.split("host_ms: ")[-1].split()[0])
    assert 30 < host_ms < 60
    found = json.loads((job / "record.json").read_text())
    seconds = found["epochs"][1]["seconds"]
    # a worker is started in each epoch
    assert 0 < found["workers_s"] < seconds
    assert 9 * host_ms / 1e3 + found["workers_s"] == pytest.approx(seconds, rel=.1)
    assert f'"seconds + {found["workers_s"]:.6g}"' in \
        (job / "workload.yaml").read_text()


def test_a_script_that_is_killed_leaves_nothing(python, folder,
                                                tmp_path):  # noqa: F811
    for name in "killed", "inline":
        temporary = tmp_path / name
        temporary.mkdir()
        run = gpemu("record", "-o", tmp_path / "job", "--", python, SHAPES, name,
                    folder, env={**os.environ, "TMPDIR": str(temporary)})
        assert run.returncode == (-9 if name == "killed" else 0), run.stderr
        assert not [p for p in temporary.iterdir() if "gpemu" in p.name]


@pytest.mark.timed
def test_what_is_written(python, folder, tmp_path):  # noqa: F811
    job = tmp_path / "A job"
    real, found = record(python, folder, job)
    assert found["loader"] | {"dataset": "Files", "workers": 1, "batch": 8,
                              "order": "RandomSampler"} == found["loader"]
    # three epochs; those without gradients are none
    assert [e["steps"] for e in found["epochs"]] == [FILES // 8] * 3
    assert found["samples"]["files"] == FILES
    assert found["samples"]["bytes"] == FILES * 20000
    assert found["samples"]["blocked_ms"] == pytest.approx(10, rel=.25)
    assert median(e["seconds"] for e in found["epochs"][1:]) == \
        pytest.approx(real, rel=.05)
    text = (job / "workload.yaml").read_text()
    assert f"{{dir: \"{folder}\"}}" in text and "name: a-job" in text
    for kind, name in ("gpu", "gpu"), ("storage", "storage"), ("prep", "prep"):
        run = gpemu("profile", "check", job / f"{name}.yaml")
        assert run.returncode == 0, run.stdout + run.stderr
    run = gpemu("run", "check", job / "workload.yaml")
    assert run.returncode == 0, run.stdout + run.stderr
    assert not list(job.glob("samples-*"))


def test_names_are_left_out(python, folder, tmp_path):  # noqa: F811
    job = tmp_path / "job"
    run = gpemu("record", "--hash-names", "-o", job, "--", python, SCRIPT, folder,
                "--epochs", 1)
    assert run.returncode == 0, run.stderr
    assert f"synth: records, files: {FILES}, size: 20000" in \
        (job / "workload.yaml").read_text()
    assert not [p for p in job.iterdir() if str(folder) in p.read_text()]


def test_a_gpu_that_is_behind(python, folder, tmp_path):  # noqa: F811
    job = tmp_path / "job"
    _, found = record(python, folder, job, "--standin", "--wait-ms", 0)
    assert found["device"] == "Stand-in"
    assert [e["steps"] for e in found["epochs"]] == [FILES // 8] * 3
    text = (job / "gpu.yaml").read_text()
    assert "host_ms: 0\n" not in text and ", 300, 100, " in text


@pytest.mark.parametrize("name, steps, batch, order", [
    ("accumulate", 3, 24, "sequential"),
    ("closure", 9, 8, "sequential"),
    ("early", 2, 8, "sequential"),
    ("forkserver", 9, 8, "sequential"),
    ("memory", 9, 8, "sequential"),
    ("sampler", 9, 8, "shuffle"),
    ("spawn", 9, 8, "sequential"),
    ("stream", 9, 8, "sequential"),
    ("twice", 9, 8, "sequential"),
    ("two", 9, 8, "sequential"),
    pytest.param("validation", 9, 8, "sequential", marks=pytest.mark.timed)])
def test_shapes_of_jobs(python, folder, tmp_path, name, steps, batch,
                        order):  # noqa: F811
    job = tmp_path / "job"
    run = gpemu("record", "-o", job, "--", python, SHAPES, name, folder)
    assert run.returncode == 0 and "Error" not in run.stderr, run.stderr
    found = json.loads((job / "record.json").read_text())
    assert found["loader"]["batch"] == batch
    for epoch in found["epochs"]:
        assert (epoch["steps"], epoch["samples"]) == (steps, steps * batch)
        assert 0 < epoch["busy"] <= 1
    assert len(found["epochs"]) == 2 and found["samples"]["timed"] > 0
    text = (job / "workload.yaml").read_text()
    assert f"order: {order}, " in text
    if name == "validation":  # which takes 0.9 s
        assert found["epochs"][1]["seconds"] < .9
    # the epoch that is repeated is as long as the recorded one
    assert (f"files: {steps * batch}, " in text) == (name in ("early", "memory"))
    if name == "memory":
        assert found["samples"]["files"] == 0
    if name == "forkserver":  # those of the validation are another loader's
        assert found["samples"]["files_opened"] == 2 * FILES
    assert ("drop_last: true" in text) == (name == "sampler")
    run = gpemu("run", "check", job / "workload.yaml")
    assert run.returncode == 0, run.stdout + run.stderr


@pytest.mark.parametrize("name, error, said, epochs, repeats", [
    ("fails", "ValueError", "of epoch 1, which is left out", [9], FILES),
    ("fails-first", "ValueError", "of epoch 0: no workload.yaml", [4], None),
    ("interrupted", "KeyboardInterrupt", "of epoch 1, which is left out", [9],
     FILES),
    ("interrupted-first", "KeyboardInterrupt", "of epoch 0, which are repeated",
     [4], 4 * 8)])
def test_a_script_ends_early(python, folder, tmp_path, name, error, said,  # noqa: F811
                             epochs, repeats):
    job = tmp_path / "job"
    job.mkdir()
    (job / "workload.yaml").write_text("of another job")
    run = gpemu("record", "--hash-names", "-o", job, "--", python, SHAPES, name,
                folder)
    assert run.returncode != 0 and f"{error}" in run.stderr
    assert f"ended with {error} after 4 steps {said}" in run.stderr
    found = json.loads((job / "record.json").read_text())
    assert [e["steps"] for e in found["epochs"]] == epochs
    assert found["notes"][0] in run.stderr
    if repeats is None:
        assert not (job / "workload.yaml").exists()
        return
    assert f"files: {repeats}, " in (job / "workload.yaml").read_text()
    run = gpemu("run", "check", job / "workload.yaml")
    assert run.returncode == 0, run.stdout + run.stderr


def test_ranks_of_torchrun(python, folder, tmp_path):  # noqa: F811
    """Rank 0's is the record; the launcher, which trains nothing, is silent."""
    job = tmp_path / "job"
    run = gpemu("record", "-o", job, "--", python, "-m", "torch.distributed.run",
                "--standalone", "--nproc-per-node", 2, SHAPES, "early", folder)
    assert run.returncode == 0, run.stderr
    assert "no training step" not in run.stderr
    found = json.loads((job / "record.json").read_text())
    assert [e["steps"] for e in found["epochs"]] == [2, 2]


def test_no_space_for_the_record(python, folder, tmp_path):  # noqa: F811
    job = tmp_path / "job"
    job.mkdir()
    (job / "workload.yaml").write_text("of another job")
    run = gpemu(
        "record", "-o", job, "--", python, SHAPES, "inline", folder,
        env={**os.environ, "FILE_BYTES": "99"})
    assert run.returncode == 0, run.stderr
    assert "further samples of this process are not" in run.stderr
    assert "Traceback" not in run.stderr and f"{job}/gpu.yaml: " in run.stderr
    assert not list(job.iterdir())


def test_links_in_the_folder_lead_nowhere(python, folder, tmp_path):  # noqa: F811
    job, victim, temporary = (tmp_path / n for n in ("job", "victim", "tmp"))
    victim.write_text("precious")
    job.mkdir()
    temporary.mkdir()
    names = ["gpu", "prep", "storage", "workload"]
    for name in [f"{n}.yaml" for n in names] + ["record.json"]:
        (job / name).symlink_to(victim)
    run = gpemu("record", "-o", job, "--", "sh", "-c",
                f'ln -s {victim} {job}/samples-$$; exec "$@"', "sh", python,
                SCRIPT, folder, "--epochs", 1, "--workers", 0,
                env={**os.environ, "TMPDIR": str(temporary)})
    assert run.returncode == 0, run.stderr
    assert victim.read_text() == "precious"
    assert "kind: self" in (job / "workload.yaml").read_text()
    assert not list(temporary.glob("gpemu-*")) and not list(job.glob("*.tmp"))


def test_a_command_without_pytorch_says_so(tmp_path):
    for tool in ["record", "-o", tmp_path / "x"], ["exec"]:
        run = gpemu(*tool, "--", sys.executable, "-c", "print(1)")
        assert (run.returncode, run.stdout) == (0, "1\n")
        assert f"gpemu {tool[0]}: the command itself imported no PyTorch" in run.stderr
        run = gpemu(*tool, "--", "sh", "-c", f"{sys.executable} -c 'print(1)'; :")
        assert "imported no" not in run.stderr  # it may be a launcher's helper


def test_what_is_wrong(python, tmp_path):  # noqa: F811
    assert gpemu("record", "--", "true").returncode == 2
    assert gpemu("record", "-o", tmp_path / "x").returncode == 2
    run = gpemu("record", "-o", "/proc/no", "--", "true")
    assert run.returncode == 1 and "/proc/no" in run.stderr
    read_only = tmp_path / "read-only"
    read_only.mkdir(mode=0o555)
    folder = "/sys/kernel" if os.getuid() == 0 else read_only
    run = gpemu("record", "-o", folder, "--", "true")
    assert run.returncode == 1
    assert re.fullmatch(f"gpemu record: {folder}: .*(denied|Read-only|permitted).*\n",
                        run.stderr)
    run = gpemu("record", "-o", tmp_path / "x", "--", python, "-c", "import torch")
    assert run.returncode == 0 and "no training step was seen" in run.stderr
