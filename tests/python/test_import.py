# SPDX-License-Identifier: MIT
"""gpemu record import: traces of strace and DFTracer, as jobs. Needs no PyTorch.

assets/dftracer.pfw was written by DFTracer 4.3 (pydftracer 2.0.6): a trainer and its
two workers with the annotations of dftracer.python.ai, two epochs of six files, one
file after the other. assets/dlio.pfw.gz is of DLIO 2.0.0 with pydftracer 1.0.2: two
epochs of eight files, two workers, steps of 50 ms. In both lseek and the like are left
out and folders are renamed."""
import contextlib
import gzip
import io
import itertools
import json
import os
import random
import re
import shlex
import subprocess
import sys
from pathlib import Path
from statistics import median

import pytest

from conftest import BUILD
from gpemu._import import dftracer, launch, reads, strace

READER = Path(__file__).parent / "trace" / "reader.py"
PFW = Path(__file__).parent / "assets" / "dftracer.pfw"
FILES, WORKERS, BATCH = 60, 2, 4
STEPS = ["--batch", BATCH, "--step-ms", 2]


def gpemu(*words):
    return subprocess.run([BUILD / "gpemu", *map(str, words)], text=True,
                          capture_output=True, timeout=240)


def record_import(*words):
    """gpemu record import in this process: exit status, standard error."""
    status, said = 0, io.StringIO()
    with contextlib.redirect_stdout(io.StringIO()), \
            contextlib.redirect_stderr(said):
        try:
            launch.main([*map(str, words)])
        except SystemExit as end:
            status = end.code or 0
    if isinstance(status, str):
        return 1, said.getvalue() + status
    return status, said.getvalue()


def imported(job, *words):
    status, said = record_import("-o", job, *words)
    assert status == 0, said
    for name in "gpu", "storage", "prep":
        if (job / f"{name}.yaml").exists():
            check = gpemu("profile", "check", job / f"{name}.yaml")
            assert check.returncode == 0, check.stdout + check.stderr
    check = gpemu("run", "check", job / "workload.yaml")
    assert check.returncode == 0, check.stdout + check.stderr
    return json.loads((job / "record.json").read_text())


def error(tmp_path, kind, text, *words):
    path = tmp_path / "trace"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    status, said = record_import(f"--{kind}", path, "-o", tmp_path / "job",
                                 *words)
    assert status == 1, said
    return said.replace(str(tmp_path) + "/", "")


# --- strace ---

@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("files")
    for i in range(FILES):
        below = path / f"class{i % 3}"
        below.mkdir(exist_ok=True)
        (below / f"{i:03} <é>.bin").write_bytes(bytes([i]) * (10_000 + 500 * i))
    return path


def traced(folder, out, *words):
    """Seconds of the epochs of a real reader under strace."""
    command = strace.COMMAND.replace("FILE", shlex.quote(str(out))).replace(
        " COMMAND", "")
    try:
        run = subprocess.run(
            [*shlex.split(command), sys.executable, READER, folder, *map(str, words)],
            text=True, capture_output=True, timeout=240)
    except FileNotFoundError:
        pytest.skip("strace is not installed")
    if "PTRACE" in run.stderr or "ptrace" in run.stderr:
        pytest.skip(f"strace may not trace: {run.stderr.splitlines()[0]}")
    assert run.returncode == 0, run.stderr
    return [float(line) for line in run.stdout.splitlines()]


@pytest.mark.timed
def test_a_reader_is_imported(folder, tmp_path):
    real = traced(folder, tmp_path / "t", "--shuffle", "--batch", BATCH,
                  "--workers", WORKERS)
    found = imported(tmp_path / "A job", "--strace", tmp_path / "t", *STEPS)
    assert [e["samples"] for e in found["epochs"]] == [FILES] * 3
    assert found["samples"]["files"] == FILES
    assert found["samples"]["bytes"] == sum(10_000 + 500 * i
                                            for i in range(FILES))
    assert found["loader"]["workers"] == WORKERS
    assert found["loader"]["order"] == "shuffle"
    assert found["reads"]["calls_per_opening"] == 2  # the second finds the end
    assert found["reads"]["folders"] == 3 and found["reads"]["whole_files"] == 1
    assert found["samples"]["prepare_ms"] >= 5
    assert sum(e["seconds"] for e in found["epochs"]) == \
        pytest.approx(sum(real), rel=.1)
    text = (tmp_path / "A job" / "workload.yaml").read_text()
    assert f"{{dir: \"{folder}\"}}" in text and "name: a-job" in text


@pytest.mark.timed
def test_an_order_and_what_readers_wait_for(folder, tmp_path):
    # the trainer is the slower one: its step is 40 ms, a batch of a worker 4 ms
    traced(folder, tmp_path / "t", "--batch", BATCH, "--step-ms", 40,
           "--prepare-ms", 1, "--epochs", 2)
    found = imported(tmp_path / "job", "--strace", tmp_path / "t", "--batch",
                     BATCH, "--step-ms", 40, "--hash-names")
    assert found["loader"]["order"] == "sequential"
    assert median(e["busy"] for e in found["epochs"]) > .8
    assert 1 <= found["samples"]["prepare_ms"] < 5
    text = (tmp_path / "job" / "workload.yaml").read_text()
    assert f"synth: records, files: {FILES}, size: 24750, size_sd: 8659, " \
        "classes: 3}" in text
    assert not [p for p in (tmp_path / "job").iterdir()
                if str(folder) in p.read_text()]


@pytest.mark.timed
@pytest.mark.skipif("GPEMU_SANITIZED" in os.environ,
                    reason="a sanitizer changes the times")
def test_the_epoch_is_repeated(folder, tmp_path, fuse):
    missed = []
    for attempt in range(3):  # the machine is others', too
        out, job = tmp_path / f"out{attempt}", tmp_path / f"job{attempt}"
        real = median(traced(folder, tmp_path / "t", "--shuffle", "--batch",
                             BATCH, "--prepare-ms", 10)[1:])
        imported(job, "--strace", tmp_path / "t", *STEPS)
        run = gpemu("run", job / "workload.yaml", "--out", out, "noise=100%",
                    "axes.job=[{label: recorded}]")
        record, = (out / "records").glob("*.json")
        again = median(e["seconds"] for e in
                       json.loads(record.read_text())["epochs"][1:])
        missed.append(again / real - 1)
        if abs(missed[-1]) < .05:
            return
    pytest.fail(f"off by {missed}: {run.stdout}")


HEAD = "7 1700000000.%06d "


def lines(*calls, pid=7, apart_us=100):
    """Of strace: one each 100 us."""
    return "".join(f"{pid} 1700000000.{i * apart_us:06} {c}\n"
                   for i, c in enumerate(calls))


def one(i, kind="jpg", n_bytes=1000):
    p = f"3</d/{i}.{kind}>"
    return (f'openat(AT_FDCWD</>, "/d/{i}.{kind}", O_RDONLY) = {p} <0.000010>',
            f'read({p}, ""..., 4096) = {n_bytes} <0.000020>',
            f'close({p}) = 0 <0.000005>')


def test_lines_of_strace(tmp_path):
    text = (lines(
        *one(0), *one(1),
        "+++ exited with 0 +++", "--- SIGCHLD {si_signo=SIGCHLD} ---",
        "brk(NULL) = 0x55", 'read(9<pipe:[5]>, "", 8) = 8 <0.000030>',
        "poll([{fd=3}], 1, 5) = 0 (Timeout) <0.000040>",
        'openat(AT_FDCWD</>, "/d/no.jpg", O_RDONLY) = -1 ENOENT (No such file '
        'or directory) <0.000010>',
        'read(5</d/x.jpg>, 0x7f, 8) = ? ERESTARTSYS (To be restarted) <0.1>',
        'read(5</d/x.jpg>, 0x7f, 8) = -1 EIO (Input/output error) <0.000001>',
        'read(5</d/x.jpg>,  <unfinished ...>', "<... read resumed>) = ?")
        .replace("<0.1>", "<0.100000>") +
        "strace: Process 9 attached\n\n" +
        # another thread in between; escapes; a descriptor of an unlinked file
        '7 1700000000.010000 openat(AT_FDCWD</>, "x", O_RDONLY <unfinished ...>\n'
        '8 1700000000.010010 close(3</d/1.jpg>) = 0 <0.000005>\n'
        r'7 1700000000.010020 <... openat resumed>) = 3</d/\303\251 \76.jpg>'
        '(deleted) <0.000020>\n'
        r'7 1700000000.010030 read(3</d/\303\251 \76.jpg>,  <unfinished ...>'
        '\n7 1700000000.010090 <... read resumed>""..., 99) = 50 <0.000060>\n'
        "[pid     7] 1700000000.010100 close(3</d/\\303\\251 \\76.jpg>) = 0 "
        "<0.000001>\n7 1700000000.010")
    path = tmp_path / "t"
    path.write_text(text)
    found = imported(tmp_path / "j", "--strace", path, "--data", "/d", *STEPS)
    assert found["samples"]["files"] == 3 and found["samples"]["bytes"] == 2050
    # of the first: 35 us; of the third: 20, 60, 1
    assert found["samples"]["blocked_ms"] == pytest.approx(.035)
    # of the first 300 us in all; of the second 9700, of which it waits 70
    assert found["samples"]["prepare_ms"] == \
        pytest.approx((.300 - .035 + 9.7 - .035 - .070) / 2)
    assert ":25:1: expected a time, as of strace -ttt: the last line is cut off" \
        in found["notes"][0]


def test_epochs_of_strace(tmp_path):
    path = tmp_path / "t"
    epoch = [c for i in range(8) for c in one(i)]
    label = one(0, "json", 10)
    # a look at a file, two epochs, a third that is cut off
    path.write_text(lines(*label, *one(1), *epoch, *epoch, *epoch[:9]))
    found = imported(tmp_path / "j", "--strace", path, *STEPS)
    assert [e["samples"] for e in found["epochs"]] == [8, 8]
    assert found["loader"]["order"] == "sequential"
    assert any("*.jpg" in note for note in found["notes"])
    assert any("1 epochs of fewer" in note for note in found["notes"])
    assert any("1 readings of files" in note for note in found["notes"])
    assert any("that readers wait" in note for note in found["notes"])
    # the first four files, and two steps of 2 ms
    assert found["epochs"][0]["seconds"] == pytest.approx(.0012 + .004)
    # a file that is opened twice in a row is one sample; a shuffle of both epochs
    order = [5, 2, 7, 0, 3, 6, 1, 4]
    twice = [c for i in order for c in one(i) * 2]
    path.write_text(lines(*twice, *twice))
    found = imported(tmp_path / "j", "--strace", path, *STEPS)
    assert [e["samples"] for e in found["epochs"]] == [8, 8]
    assert found["loader"]["order"] == "frozen"


def test_a_profile_has_the_steps(tmp_path):
    path, job = tmp_path / "t.12", tmp_path / "j"
    path.write_text(lines(*[c for i in range(8) for c in one(i)], pid="")
                    .replace("\n ", "\n")[1:])
    found = imported(job, "--strace", path, "--batch", 4, "--gpu", "v100",
                     "--model", "resnet50")
    assert 20 < found["epochs"][0]["step_ms"][0] < 200
    assert not (job / "gpu.yaml").exists()
    assert 'gpu: "v100", model: "resnet50"' in \
        (job / "workload.yaml").read_text()


@pytest.mark.parametrize("line, message", [
    ("12:00:01 read(", ":4:1: expected a time"),
    ("7 99999999999.000000 read(", ":4:1: out of range"),
    (HEAD % 1 + "what", ":4:21: expected a system call"),
    (HEAD % 1 + 'read(3</d/1>, "", 1) = 1', ":4:45: expected <seconds>"),
    (HEAD % 1 + 'read(3, "", 1) = 1 <0.000001>', ":4:26: expected <path>"),
    (HEAD % 1 + 'openat(4, "x", 0) = 3 <0.000001>', ":4:42: expected <path>"),
    (HEAD % 1 + "read(3</d/1>, x) = 9999999999999999999999 <0.000001>",
     ":4:40: out of range"),
    (HEAD % 1 + "read(3</d/1>, x) = 1 <99999999999.000001>",
     ":4:42: out of range"),
    (HEAD % 1 + "read(3</d/1>, x) is 1 <0.000001>", ":4:26: expected ) ="),
    ("LONG", ":4:1: a line of more than"),
], ids=itertools.count())
def test_lines_that_are_wrong(tmp_path, line, message):
    line = line.replace("LONG", "x" * (1 << 20))
    assert f"trace{message}" in error(
        tmp_path, "strace", lines(*one(0)) + line + "\n", *STEPS)


# --- DFTracer ---

def test_a_trace_of_dftracer(tmp_path):
    found = imported(tmp_path / "j", "--dftracer", PFW)
    assert found["trace"] == "DFTracer" and found["readers"] == 2
    assert [(e["samples"], e["steps"]) for e in found["epochs"]] == \
        [(6, 3), (6, 3)]
    assert found["loader"] == {"samples": 6, "batch": 2, "workers": 2,
                               "prefetch": 2, "order": "sequential"}
    assert found["samples"]["bytes"] == sum(range(1000, 7000, 1000))
    assert 4 < median(found["epochs"][1]["step_ms"]) < 5  # a sleep of 4 ms
    assert found["epochs"][1]["busy"] > .5
    assert "synth: records, files: 6, size: 3500" in \
        (tmp_path / "j/workload.yaml").read_text()
    # a file of each process, compressed; one of them was cut off
    parts = [[], [], []]
    pids = []
    for line in PFW.read_text().splitlines(True):
        pid = json.loads(line)["pid"]
        pids += [pid] if pid not in pids else []
        parts[pids.index(pid)].append(line)
    for i, part in enumerate(parts):
        data = gzip.compress("".join(["[\n", *part, "]\n"]).encode())
        (tmp_path / f"{i}.pfw.gz").write_bytes(data[:-9] if i == 1 else data)
    again = imported(tmp_path / "k", "--dftracer",
                     *(tmp_path / f"{i}.pfw.gz" for i in range(3)))
    assert again["samples"] == found["samples"]
    assert "1.pfw.gz: cut off after line" in again["notes"][0]


def test_a_trace_of_dlio_itself(tmp_path):
    found = imported(tmp_path / "j", "--dftracer", PFW.with_name("dlio.pfw.gz"))
    assert [(e["samples"], e["steps"]) for e in found["epochs"]] == [(8, 4)] * 2
    assert found["loader"] == {"samples": 8, "batch": 2, "workers": 2,
                               "prefetch": 2, "order": "shuffle"}
    # DLIO said: 4 steps in 0.22 s, an accelerator utilisation of 91.4 %
    assert found["epochs"][1]["seconds"] == pytest.approx(.22, rel=.02)
    assert found["epochs"][1]["busy"] == pytest.approx(.914, rel=.02)
    assert found["samples"]["files"] == 8 and found["notes"]


def event(name, cat, ts, dur, pid=1, **args):
    return json.dumps({"id": 1, "name": name, "cat": cat, "pid": pid,
                       "tid": pid, "ts": ts, "dur": dur, "ph": "X",
                       "args": args}) + "\n"


def dlio(files=8, epochs=2, step=2, trainer=1, besides=0):
    """In the format of dlio.pfw.gz, made by hand: steps in the process that reads, a
    validation."""
    out, now = "[\n", 1_700_000_000_000_000
    for epoch in range(epochs):
        begin = now
        for i in range(files):
            path = f"/data/train/img_{i}.npz"
            out += event("open64", "POSIX", now, 20, fname=path, ret=5)
            out += event("read", "POSIX", now + 20, 30, fname=path, ret=4096)
            out += event("read", "POSIX", now + 60, 40, fname=path, ret=904)
            out += event("close", "POSIX", now + 100, 10, fname=path, ret=0)
            out += event("NPZReader.read_index", "reader", now, 200,
                         image_idx=i)
            now += 200
            if i % step == step - 1:
                now += besides
                out += event("TorchFramework.compute", "ai_framework", now,
                             3000, trainer, step=i)
                now += 3000
        out += event("DLIOBenchmark._train", "dlio_benchmark", begin,
                     now - begin, trainer, epoch=epoch)
        # a validation, which is no part of the epoch
        out += event("open64", "POSIX", now, 20, fname="/data/valid/1.npz")
        out += event("read", "POSIX", now, 20, fname="/data/valid/1.npz", ret=9)
        now += 5000
    return out + "]\n"


def test_other_traces_of_dlio(tmp_path):
    path = tmp_path / "t.pfw"
    path.write_text(dlio())
    found = imported(tmp_path / "j", "--dftracer", path, "--workers", 3)
    assert [(e["samples"], e["steps"]) for e in found["epochs"]] == [(8, 4)] * 2
    assert [e["seconds"] for e in found["epochs"]] == \
        pytest.approx([.0136] * 2)
    assert found["epochs"][0]["compute_s"] == pytest.approx(.012)
    assert found["samples"]["blocked_ms"] == pytest.approx(.1)
    assert found["samples"]["prepare_ms"] == pytest.approx(.1)
    assert found["samples"]["bytes"] == 8 * 5000
    assert found["loader"]["workers"] == 3
    assert "host_ms: 3\n" in (tmp_path / "j/gpu.yaml").read_text()
    # what the trainer takes though its batch is ready is no wait for data
    path.write_text(dlio(besides=500))
    more = imported(tmp_path / "j", "--dftracer", path)
    assert more["epochs"][0]["data_wait_s"] == \
        pytest.approx(found["epochs"][0]["data_wait_s"])
    assert "host_ms: 3.5\n" in (tmp_path / "j/gpu.yaml").read_text()
    # another unit; the steps are given
    unit = {"name": "CM", "cat": "dftracer", "ph": "M", "pid": 1, "tid": 1,
            "args": {"name": "time_metric", "value": "NS"}}
    text = dlio()
    for key in "ts", "dur":
        text = re.sub(f'"{key}": (\\d+)', f'"{key}": \\g<1>000', text)
    path.write_text(json.dumps(unit) + "\n" + text)
    assert imported(tmp_path / "k", "--dftracer", path, "--workers", 3)[
        "epochs"] == found["epochs"]
    found = imported(tmp_path / "k", "--dftracer", path, "--batch", 4,
                     "--step-ms", 50)
    assert found["epochs"][0]["step_ms"] == [50, 50]
    # one process reads and trains
    assert found["loader"]["workers"] == 0
    assert any("the loader has no workers" in n for n in found["notes"])


@pytest.mark.parametrize("line, message", [
    ("{", ":2:2: "), ("[1]", ":2:1: expected an object"),
    ("DEEP", ":2:1: a number or a nesting"),
    ('{"ph": "X"}', ":2:1: name: expected text"),
    ('{"ph": "X", "name": "a", "cat": 5}', ":2:26: cat: expected text"),
    (event("read", "POSIX", -1, 1), "ts: expected a number of 0 to"),
    (event("read", "POSIX", 1, "x"), "dur: expected a number"),
    (event("read", "POSIX", 1, float("nan")), "dur: expected a number"),
    (event("read", "POSIX", 1, True), "dur: expected a number"),
    (event("read", "POSIX", 10**30, 1), "ts: expected a number"),
    (event("read", "POSIX", 10**400, 1), "ts: expected a number"),
    (event("read", "POSIX", 1, 1, fname="/d/\0", ret=1), "not the name"),
    (event("read", "POSIX", 1, 1, fname="/d/\ud800", ret=1), "not the name"),
    (event("read", "POSIX", 1, 1, fname="/d/1", ret="x"), "ret: expected"),
    ('{"ph": "M", "name": "CM", "args": {"name": "time_metric", "value": 1}}',
     ":2:59: time_metric: expected NS, US, MS, SEC"),
], ids=itertools.count())
def test_events_that_are_wrong(tmp_path, line, message):
    line = line.replace("DEEP", "[" * 100_000)
    found = error(tmp_path, "dftracer", "[\n" + line.rstrip("\n") + ",\n")
    assert "trace:2:" in found and message in found


def test_what_is_wrong(tmp_path):
    assert "no file of a dataset was read" in error(
        tmp_path, "strace", lines(*one(0)), "--data", "/e", *STEPS)
    assert "no step was seen: --batch" in error(
        tmp_path, "dftracer", re.sub(".*ai_framework.*\n", "", dlio()))
    assert "2 processes train (1, 2)" in error(
        tmp_path, "dftracer", dlio() + dlio(trainer=2))
    assert "DFTRACER_INC_METADATA=1" in error(
        tmp_path, "dftracer", re.sub('"args".*}}', '"args": {}}', dlio()))
    assert "v1000" in error(tmp_path, "strace", lines(*one(0)), "--batch", 4,
                            "--gpu", "v1000", "--model", "resnet50")
    assert "Not a gzipped file" not in error(
        tmp_path, "strace", b"\x1f\x8b\x08" + bytes(20), *STEPS)
    trace = tmp_path / "t"
    for words in (["--strace", trace], ["--strace", trace, "--batch", 0],
                  ["--strace", trace, "--batch", 4, "--step-ms", "nan"],
                  ["--dftracer", trace, "--step-ms", 4], ["--batch", 4],
                  ["--dftracer", trace, "--batch", 4], ["--strace", trace],
                  ["--strace", trace, "--dftracer", trace, *STEPS],
                  ["--dftracer", trace, "--gpu", "v100"]):
        assert record_import("-o", tmp_path / "j", *words)[0] == 2, words
    run = gpemu("record", "import", "-o", tmp_path / "j", "--strace", trace,
                *STEPS)
    assert run.returncode == 1 and f"{trace}: No such file" in run.stderr
    run = gpemu("record", "import", "-o", "/proc/no", "--dftracer", PFW)
    assert run.returncode == 1 and "/proc/no" in run.stderr


def test_strange_traces(tmp_path):
    """Each is an error, or a job that runs."""
    path, job = tmp_path / "t", tmp_path / "j"
    text = lines(*[c for i in range(8) for c in one(i)])
    # what is no escape of strace; samples larger than images of gpemu-train
    for old, new in (("</d/", r"</d/\8\9"), (" = 1000 ", " = 299999999 "),
                     (" = 1000 ", " = 2000000000000 ")):
        assert old in text
        path.write_text(text.replace(old, new))
        imported(job, "--strace", path, *STEPS)
    # of a pipe
    run = subprocess.run(
        [BUILD / "gpemu", "record", "import", "-o", job, "--strace",
         "/dev/stdin", *map(str, STEPS)], input=text, text=True, timeout=240)
    assert run.returncode == 0
    # a folder that JSON escapes otherwise than YAML
    folder = tmp_path / "\U0001f600 \"\\: #"
    folder.mkdir()
    for i in range(8):
        (folder / f"{i}.jpg").write_bytes(b"x")
    escaped = str(folder).replace("\\", r"\\")
    path.write_text(text.replace("</d/", f"<{escaped}/"))
    imported(job, "--strace", path, *STEPS)
    assert json.dumps(str(folder), ensure_ascii=False) in \
        (job / "workload.yaml").read_text()
    # relative names beside absolute ones
    path.write_text(dlio().replace('"/data/train/img_1', '"img_1'))
    imported(job, "--dftracer", path)
    # samples that no file was read for
    assert "while a sample was made" in error(
        tmp_path, "dftracer", re.sub(
            '(read_index", "cat": "reader", "pid": 1, "tid": )1', r"\g<1>2",
            dlio()))


def test_a_long_trace_is_left_at_a_bound(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(reads, "MOST", 5)
    monkeypatch.setattr(dftracer, "MOST", 5)
    monkeypatch.setattr(strace, "_MOST_CALLS", 5)

    def said(kind, text):
        (tmp_path / "t").write_text(text)
        with pytest.raises(SystemExit) as end:
            launch.main(["-o", str(tmp_path / "j"), f"--{kind}",
                         str(tmp_path / "t"), *map(str, STEPS)])
        return f"{end.value.code} {capsys.readouterr().err}"
    calls = [c for i in range(8) for c in one(i)]
    opened = [c for c in calls if not c.startswith("close")]
    waits = "".join(f"{i} 1700000000.000000 futex(1) = 0 <0.000001>\n"
                    for i in range(9))
    names = "".join(json.dumps({"name": "FH", "ph": "M", "args": {
        "name": f"/d/{i}", "value": i}}) + "\n" for i in range(9))
    for kind, text in (("strace", lines(*calls)), ("strace", lines(*opened)),
                       ("strace", lines(*one(0)) + waits),
                       ("dftracer", dlio()), ("dftracer", names + dlio())):
        assert "more than 5 files or steps" in said(kind, text)
    calls = "".join(f"{i} 1700000000.000000 read(3</d/1>,  <unfinished ...>\n"
                    for i in range(9))
    assert "t:6:1: more than 5 unfinished calls" in said("strace", calls)


# --- any bytes ---

def mutated(text, rng):
    """Bytes, words and lines that are changed, left out or repeated."""
    text = bytearray(text)
    for _ in range(rng.choice([1, 1, 2, 8, 40])):
        at = rng.randrange(len(text))
        to = min(len(text), at + rng.choice([1, 1, 4, 30, 400]))
        text[at:to] = rng.choice([
            b"", bytes([rng.randrange(256)]), text[at:to] * 2, b"\n", b"-1",
            b"99999999999999999999", b"1e400", b"<", b">", b'"', b"\0",
            b"\\ud800", b"null", b"[]", b"{", b"}", b"NaN",
            text[rng.randrange(len(text)):][:rng.randrange(200)]])
        text = text or bytearray(b"x")
    return bytes(text)


@pytest.mark.parametrize("kind", ["strace", "dftracer"])
def test_any_bytes(kind, tmp_path, capsys):
    """An error has a place, or the job is written."""
    epoch = [c for i in range(6) for c in one(i)]
    some = [lines(*epoch, *epoch).encode()] if kind == "strace" else \
        [PFW.read_bytes(), dlio(4).encode()]
    ended = set()
    for seed in range(400):
        path = tmp_path / "t"
        path.write_bytes(mutated(some[seed % len(some)],
                                 random.Random(seed)))
        with pytest.raises(SystemExit) as end:
            launch.main(["-o", str(tmp_path / "j"), f"--{kind}", str(path),
                         *(map(str, STEPS))])
        said = end.value.code
        capsys.readouterr()
        if said is not False:
            assert re.search(rf"{path}:\d+:\d+: |{path}: |traces: ",
                             str(said)), (seed, said)
        ended.add(said is False)
    assert ended == {True, False}
