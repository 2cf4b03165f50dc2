# SPDX-License-Identifier: MIT
"""The folder of a job that was seen: profiles of its GPU, transforms and reads, and a
workload that repeats it. Who saw it is a subclass of Job."""
from __future__ import annotations

import contextlib
import datetime
import json
import math
import os
import re
import secrets
import signal
import sys
from collections import Counter, defaultdict
from dataclasses import dataclass
from statistics import median, pstdev

import gpemu

# Steps of 5 %, and the tail, which the mean depends on
_QUANTILES = [i / 20 for i in range(20)] + [.96, .97, .98, .99, .995, .999, 1]
_FLOAT = 4  # bytes
_CHANNELS = 3
_MOST_BYTES = 10**12  # of a sample; as a profile has it
_MOST_SIDE = 4096  # pixels, as of gpemu-train
PARTS = "forward", "backward", "optimizer"
WORKLOAD = "workload.yaml"


def _quantiles(values):
    """[(0..1, value)] of some, ascending."""
    values = sorted(values)
    last = len(values) - 1
    return [(q, values[round(q * last)]) for q in _QUANTILES]


def _distribution(ns):
    """Of a profile: of times."""
    return "{kind: empirical, quantiles: [" + ", ".join(
        f"[{q:g}, {round(v)}ns]" for q, v in _quantiles(ns)) + "]}"


@dataclass
class Device:
    """That trained."""

    name: str
    model: str
    precision: str
    memory_bytes: int
    parameters: int = 0
    peak_bytes: int = 0
    persistent_bytes: int = 0
    asynchronous: bool = False  # it computes while the host goes on


class Samples:
    """What those took that were timed."""

    def __init__(self):
        self.n = self.made = 0
        self.prepare_ns, self.blocked_ns = [], []
        self.transforms = defaultdict(int)
        self.delay_ns = self.cpu_ns = 0
        self.files = Counter()  # path: times that it was opened
        self.sizes = {}  # path: bytes


class Job:
    """`epochs`: their begin_ns, end_ns, wait_ns, and steps: samples, and ns of each of
    their parts and of the host."""

    tool = "gpemu record"
    gpu_notes = prep_notes = storage_notes = ""  # a line each
    failed = False  #: before it had a whole epoch: there is none to repeat

    def __init__(self, options, device, epochs, samples):
        self.o, self.device = options, device
        self.epochs, self.samples = epochs, samples
        self.notes = []
        # as steady_s(), which the workload compares with
        self.steps = [s for e in epochs[1:] or epochs for s in e["steps"]]
        # the last batch of an epoch may be smaller
        self.batch = Counter(s["samples"] for s in self.steps
                             ).most_common(1)[0][0]

    def note(self, text):
        self.notes.append(text)
        print(f"{self.tool}: {text}", file=sys.stderr)

    # --- what each subclass has ---

    def loading(self):
        """The loader's options: at least `workers`."""
        raise NotImplementedError

    def order(self):
        """A word of gpemu-train."""
        raise NotImplementedError

    def about(self):
        """What was seen, and by what."""
        raise NotImplementedError

    def more(self):
        """Of the record."""
        return {}

    def copies(self):
        """ns by (pinned, bytes); the medians."""
        return {}

    def sample_bytes(self):
        """Of a batch on its way to the device."""
        return _FLOAT * _CHANNELS * 224**2  # nothing is copied

    def host_ms(self):
        """Of the host, to launch a step."""
        return min(s["host_ns"] for s in self.steps[3:] or self.steps) / 1e6 \
            if self.device.asynchronous else 0

    def workers_s(self):
        """Of an epoch: to start and end the workers, which are threads in
        gpemu-train."""
        return 0

    def base_gpu(self):
        """In the workload."""
        return "gpu: ./gpu.yaml, model: recorded"

    # --- what was seen ---

    def seconds(self):
        """Of each epoch."""
        return [(e["end_ns"] - e["begin_ns"]) / 1e9 for e in self.epochs]

    def steady_s(self):
        """The median epoch without the first, as gpemu-run has it."""
        found = self.seconds()
        return median(found[1:] or found)

    def epoch(self, e):
        steps = e["steps"]
        seconds = (e["end_ns"] - e["begin_ns"]) / 1e9
        compute = sum(s[p] for s in steps for p in PARTS) / 1e9
        return {"seconds": seconds, "steps": len(steps),
                "samples": sum(s["samples"] for s in steps),
                "data_wait_s": e["wait_ns"] / 1e9, "compute_s": compute,
                "busy": compute / seconds if seconds else None,
                "step_ms": [round(sum(s[p] for p in PARTS) / 1e6, 4)
                            for s in steps]}

    def record(self):
        s = self.samples
        # one more each time a number changes its meaning
        return {
            "tool": "gpemu-record", "format": 1, "version": gpemu.__version__,
            **self.more(),
            "device": self.device.name, "model": self.device.model,
            "precision": self.device.precision,
            "loader": self.loading(), "workers_s": self.workers_s(),
            "epochs": [self.epoch(e) for e in self.epochs],
            "samples": {
                "timed": s.n, "files_opened": sum(s.files.values()),
                "files": len(s.sizes), "bytes": sum(s.sizes.values()),
                "prepare_ms": mean(s.prepare_ns) / 1e6,
                "blocked_ms": mean(s.blocked_ns) / 1e6,
                "cpu_s": s.cpu_ns / 1e9, "waited_for_cpu_s": s.delay_ns / 1e9,
                "transforms_ms": {k: v / 1e6 / max(1, s.n)
                                  for k, v in s.transforms.items()}},
            "notes": self.notes}

    # --- the profiles ---

    def source(self):
        return (f"recorded by {self.tool} ({gpemu.__version__}) on "
                f"{datetime.date.today()}, {self.about()}")

    def rows(self):
        """[batch, forward, backward with optimiser, 0, peak, persistent,
        optimiser, spread] of the batch sizes that ran."""
        by = defaultdict(list)
        for s in self.steps:
            by[s["samples"]].append(s)
        rows = []
        for batch, steps in sorted(by.items()):
            steps = steps[len(steps) // 10:]  # the first are warm-up
            f, b, o = (mean([s[p] for s in steps]) / 1e6 for p in PARTS)
            whole = [sum(s[p] for p in PARTS) for s in steps]
            spread = 100 * (max(whole) - min(whole)) / 2 / (median(whole) or 1)
            rows.append([batch, f, b + o, 0, self.device.peak_bytes / 2**20,
                         self.device.persistent_bytes / 2**20, o,
                         min(spread, 100)])
        return rows

    def laws(self):
        """One copy was measured, so the law goes through it and 0."""
        found = self.copies()
        out = {}
        for name, key in ("pinned", True), ("pageable", False):
            mine = {size: ns for (pinned, size), ns in found.items()
                    if pinned == key}
            size = max(mine, default=0)
            out[name] = mine[size] / size * self.sample_bytes() / 1e6 \
                if size else 0
        return out

    def gpu(self):
        d, laws = self.device, self.laws()
        size = min(self.sample_bytes(), _MOST_BYTES)
        precision = f"precision: {d.precision}\n" if d.precision else ""
        rows = "\n".join("    - [" + ", ".join(f"{v:.6g}" for v in row) + "]"
                         for row in self.rows())
        return f"""\
# SPDX-License-Identifier: MIT
name: {json.dumps(d.name)}
source: {json.dumps(self.source())}
notes: >-
  {self.gpu_notes}
{precision}memory_mib: {d.memory_bytes / 2**20:.0f}
usable_memory: 1
sample_bytes: {size}
pinned: {{base_ms: 0, per_sample_ms: {laws["pinned"]:.6g}, source: recorded}}
pin_copy: {{base_ms: 0, per_sample_ms: 0, source: not recorded}}
# batch, forward_ms, backward_ms, transfer_ms (pageable), peak_mib, persistent_mib,
# optimizer_ms (of backward_ms), spread_pct (of the step)
models:
  recorded:
    parameters: {d.parameters}
    model_transfer_ms: 0
    host_ms: {self.host_ms():.4g}
    last_batch: {max(s["samples"] for s in self.steps)}
    last_is_limit: false
    tolerance_pct: 0
    rows:
{rows}
"""

    def prep(self):
        return f"""\
# SPDX-License-Identifier: MIT
name: recorded
source: {json.dumps(self.source())}
verified: true
notes: >-
  {self.prep_notes}; {self.samples.n} samples.
sample: {_distribution(self.samples.prepare_ns)}
"""

    def storage(self):
        return f"""\
# SPDX-License-Identifier: MIT
name: recorded
source: {json.dumps(self.source())}
notes: >-
  {self.storage_notes}, with the recorded number of
  workers, as the time to open it. Another number of workers may wait otherwise:
  name a device instead.
channels: {{source: not recorded, verified: false}}
link: {{source: not recorded, verified: false}}
iops: {{source: not recorded, verified: false}}
lookup: {{source: not recorded, verified: false}}
readdir: {{source: not recorded, verified: false}}
read: {{source: not recorded, verified: false}}
open:
  source: recorded
  verified: true
  latency: {_distribution(self.samples.blocked_ns)}
"""

    # --- the workload ---

    def dataset(self):
        """A folder of files, or one of as many synthetic files."""
        sizes = self.samples.sizes
        n = self.samples_of_epoch()
        absolute = all(map(os.path.isabs, sizes))
        folder = os.path.commonpath(sizes) if absolute and len(sizes) > 1 \
            else None
        if folder and not self.o["hash_names"] and len(sizes) == n and \
                _as_many_below(folder, sizes):
            return f"{{dir: {json.dumps(folder, ensure_ascii=False)}}}"
        read = sum(sizes[p] * k for p, k in self.samples.files.items()
                   if p in sizes)
        size = max(1, round(read / self.samples.made))
        if size > _MOST_BYTES:
            self.note(f"a sample of {size} bytes is repeated as one of "
                      f"{_MOST_BYTES}")
            size = _MOST_BYTES
        more = ""
        if len(sizes) == n:
            for key, value, least in (
                    ("size_sd", round(pstdev(sizes.values())), 1),
                    ("classes", len(set(map(os.path.dirname, sizes))), 2)):
                more += f", {key}: {value}" if value >= least else ""
        if not sizes:
            self.note("no file was seen to be opened for a sample: the "
                      "workload reads synthetic ones of 1 byte")
        else:
            self.note(f"{len(sizes)} files for {n} samples: the workload reads "
                      f"synthetic files, of {size} bytes a sample")
        return f"{{synth: records, files: {n}, size: {size}{more}}}"

    def samples_of_epoch(self):
        """Of the dataset; fewer, if the script left each epoch early, or others
        had their part."""
        n = self.loading().get("samples")
        most = max(sum(s["samples"] for s in e["steps"]) for e in self.epochs)
        if n and most < n // self.batch * self.batch:
            self.note(f"an epoch trained {most} of {n} samples")
        elif n:
            return n
        return most

    def workload(self):
        l = self.loading()
        workers = l["workers"]
        if not workers:
            self.note("the loader has no workers: the script loads between its "
                      "steps, gpemu-train while they run. The repeated epoch "
                      "is too fast")
        workers = max(1, workers)
        pin = self.device.asynchronous and l.get("pin_memory")
        side = max(1, min(_MOST_SIDE, round(math.sqrt(
            self.sample_bytes() / _FLOAT / _CHANNELS))))
        epochs = max(2, len(self.epochs))
        steps = max(len(e["steps"]) for e in self.epochs)
        return f"""\
# SPDX-License-Identifier: MIT
# {self.source()}
name: {self.o["name"]}
question: What would the recorded job take with another loader or device?
dataset: {self.dataset()}
base:
  fs: {{storage: ./storage.yaml, cache_policy: none}}
  train:
    {{{self.base_gpu()}, batch: {self.batch}, epochs: {epochs},
     max_steps: {epochs * steps}, loader: sync, workers: {workers},
     prefetch: {l.get("prefetch", 2)}, order: {self.order()}, prep: emulated,
     prep_profile: ./prep.yaml, image_size: {side}, transfer: blocking,
     pin: {"on" if pin else "off"}{", drop_last: true" if l.get("drop_last") else ""}}}
axes:
  job:
    - {{label: recorded}}
    - {{label: {2 * workers} workers, train.workers: {2 * workers}}}
    - {{label: async, train.loader: async, train.workers: 2, train.cores: {workers}}}
    - {{label: NVMe, fs.storage: nvme}}
    - {{label: disk, fs.storage: hdd}}
metrics:
  # with what the workers took to start and end, which gpemu-train does not repeat
  epoch: {{of: "seconds + {self.workers_s():.6g}", label: epoch time, unit: s}}
  error: {{of: "100 * (epoch / {self.steady_s():.6g} - 1)", label: against the record, unit: "%"}}
columns: [epoch, error, au]
plot:
  - {{name: epoch, x: job, y: epoch, kind: bars, y_label: epoch time (s)}}
# its parts were measured in the same run: that they add up is what is judged
kind: self
expect:
  - name: the recorded epoch
    that: epoch == {self.steady_s():.6g} +- 5%
    where: {{job: recorded}}
"""


def name_of(folder):
    """A name of a workload."""
    return re.sub(r"[^a-z0-9_-]", "-", os.path.basename(folder).lower()) \
        or "job"


def mean(values):
    return sum(values) / len(values) if values else 0


def _as_many_below(folder, files):
    """Are all files of these kinds in the folder among them? And can YAML name
    it?"""
    if not folder.isprintable():
        return False
    kinds, n = {os.path.splitext(f)[1] for f in files}, 0
    for _, _, names in os.walk(folder):
        n += sum(os.path.splitext(name)[1] in kinds for name in names)
        if n > len(files):
            break
    return n == len(files)


def _replace(folder, name, text):
    """As common/replace.h: follows no link, which another user may have put
    there."""
    beside = os.path.join(folder, f".{name}.{secrets.token_hex(8)}.tmp")
    with open(beside, "x", encoding="utf-8") as f:
        try:
            f.write(text)
            f.flush()
            os.replace(beside, os.path.join(folder, name))
        except OSError:
            os.unlink(beside)
            raise


@contextlib.contextmanager
def _uninterrupted():
    """Ctrl-C waits no longer than some files take."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before or signal.SIG_DFL)


def _write(folder, files):
    """The workload, which names the others, is there when all of them are."""
    name = WORKLOAD
    try:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(os.path.join(folder, name))
        for name, text in files.items():
            _replace(folder, name, text)
    except OSError as error:
        error.filename = os.path.join(folder, name)
        raise


def write(job):
    """Into the folder of its options. False: an error was printed."""
    folder = job.o["output"]
    repeats = job.samples.n and not job.failed
    if not job.samples.n:
        job.note("no sample was seen to be made: only the device is recorded")
    files = {"gpu.yaml": job.gpu()} if "gpu.yaml" in job.base_gpu() else {}
    if repeats:
        files |= {"prep.yaml": job.prep(), "storage.yaml": job.storage()}
        workload = job.workload()  # which has notes
    files["record.json"] = json.dumps(job.record(), indent=1) + "\n"
    if repeats:
        files[WORKLOAD] = workload
    try:
        with _uninterrupted():
            _write(folder, files)
    except OSError as error:
        print(f"{job.tool}: {error.filename}: {error.strerror}; no {WORKLOAD}",
              file=sys.stderr)
        return False
    print(f"{job.tool}: {len(job.epochs)} epochs of {job.steady_s():.4g} s, "
          f"batch {job.batch}; in {folder}: {' '.join(files)}",
          file=sys.stderr)
    return True
