# SPDX-License-Identifier: MIT
"""
Live jobs that share a cache and the bandwidth of a remote storage.

    python3 examples/silod.py BIN RECORD POLICY TIME_SCALE SEED

Each job of the trace silod-6 has a dataset of its own behind a gpemu-fs of its
own, and four GPUs, 3.5 MiB of cache and 1 MiB/s of remote bandwidth are for all:
gpemu-sched run gives them to the jobs, and takes them back, as POLICY decides.
BIN is the folder of the programs. RECORD gets the record of gpemu-sched run,
which has the same jobs on the event clock too.
"""
import csv
import os
import signal
import subprocess
import sys
import tempfile

FILE = 50 << 10  # bytes
BATCH = 4
# half of the step is the forward pass
GPU = """\
name: {name}
source: made for examples/silod.py
memory_mib: 100000
usable_memory: 1
sample_bytes: {bytes}
pinned: {{base_ms: 0, per_sample_ms: 0, source: nominal}}
pin_copy: {{base_ms: 0, per_sample_ms: 0, source: nominal}}
models:
  m:
    parameters: 1000
    model_transfer_ms: 0
    last_batch: {batch}
    last_is_limit: false
    tolerance_pct: 0
    rows: [[{batch}, {half_ms}, {half_ms}, 0, 0, 0]]
"""


def trace(path):
    lines = (line for line in open(path) if not line.startswith("#"))
    return sorted(csv.DictReader(lines), key=lambda j: float(j["arrival_s"]))


def make(folder, mib):
    os.makedirs(f"{folder}/c")
    for i in range(round(mib * (1 << 20) / FILE)):
        with open(f"{folder}/c/{i:04}", "wb") as f:
            f.write(bytes([i % 256]) * FILE)


def mount(programs, number, job, scale):
    make(f"data/{number}", float(job["dataset_mib"]))
    os.makedirs(f"m/{number}")
    subprocess.run([f"{programs}/gpemu-fs", "-p", "minio", "-c", "0", "-s",
                    "ideal", "--time-scale", scale, f"data/{number}",
                    f"m/{number}"], check=True)


def unmount(number):
    for _ in range(50):
        done = subprocess.run(["fusermount3", "-u", f"m/{number}"],
                              stderr=subprocess.DEVNULL)
        if done.returncode == 0 or not os.path.ismount(f"m/{number}"):
            return
    subprocess.run(["fusermount3", "-u", "-z", f"m/{number}"])


def run(programs, steps, record, policy, scale, seed):
    for name, seconds in steps.items():
        with open(f"{name}.yaml", "w") as f:
            f.write(GPU.format(name=name, bytes=FILE, batch=BATCH,
                               half_ms=500 * seconds))
    train = [f"{programs}/gpemu-train", "--gpu", "{class}.yaml", "--model", "m",
             "-b", str(BATCH), "--data", "m/{job}", "--index", "off", "--loader",
             "threads", "--workers", "4", "--queue-depth", "8", "--prep",
             "none", "--checkpoint-size", "4K", "--pin", "off", "--keep-awake",
             "off"]
    live = subprocess.Popen(
        [f"{programs}/gpemu-sched", "run", "-t", "silod-6", "--nodes",
         "gpus=4,cache=3584K,remote=1M", "-p", policy, "--round", "5s",
         "--time-scale", scale, "--seed", seed, "--mount", "m/{job}", "-o",
         "run", "--per-job", "--progress", "off", "--json", record, "--",
         *train])
    try:
        if live.wait():
            raise SystemExit(1)
    finally:
        # jobs outlive a scheduler that is killed; SIGINT ends them
        if live.poll() is None:
            live.send_signal(signal.SIGINT)
            live.wait()


def main():
    programs, record, policy, scale, seed = sys.argv[1:]
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    programs, record = os.path.abspath(programs), os.path.abspath(record)
    jobs = trace(f"{programs}/../profiles/job/silod-6.csv")
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            for number, job in enumerate(jobs):
                mount(programs, number, job, scale)
            steps = {job["class"]: float(job["gpu_s"]) for job in jobs}
            run(programs, steps, record, policy, scale, seed)
        finally:
            for number in range(len(jobs)):
                unmount(number)
            os.chdir("/")


if __name__ == "__main__":
    main()
