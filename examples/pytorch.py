# SPDX-License-Identifier: MIT
"""
PyTorch's DataLoader in front of an emulated GPU.

    python3 examples/pytorch.py FOLDER RECORD [key=value...]

Reads the files of FOLDER (for example a mount of gpemu-fs) in a new random order
each epoch, without those whose names begin with a dot, and steps on a gpemu.GPU,
which takes the time of its profile. RECORD gets a JSON object like that of
gpemu-train.

Keys: workers, epochs, seed, mark (1: mark each epoch in the mount); all other
keys are options of gpemu.GPU (gpu, gpu_server, model, batch, time_scale). Without
gpu the GPU is the one that Kubernetes or Slurm handed out, else a V100.
In the source tree PYTHONPATH has to name the folder python/.
"""
import json
import pathlib
import sys
import time

import gpemu
import torch.utils.data


def hidden(path, folder):
    """Such as .gpemu-data.json: no sample, for gpemu-train either."""
    return any(name.startswith(".") for name in path.relative_to(folder).parts)


class Files(torch.utils.data.Dataset):
    def __init__(self, folder):
        self.paths = sorted(str(p) for p in pathlib.Path(folder).rglob("*")
                            if p.is_file() and not hidden(p, folder))

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, i):
        with open(self.paths[i], "rb") as f:
            return f.read()


def epoch_of(gpu, loader, number):
    begin, wall, samples, size = gpu.now_ns, time.monotonic(), 0, 0
    steps = {}
    for batch in loader:
        step = gpu.step(len(batch))
        steps[step.step_end_ns] = step
        samples += len(batch)
        size += sum(map(len, batch))
    seconds = (gpu.wait() - begin) / 1e9
    # the GPU of a server reports a step after the next one was submitted
    if gpu.last_step:
        steps[gpu.last_step.step_end_ns] = gpu.last_step
    steps.pop(0, None)
    end = sorted(steps)
    compute = [steps[t].compute_end_ns - steps[t].compute_start_ns
               + steps[t].optimizer_ns for t in end]
    wait = sum(s.data_wait_ns for s in steps.values())
    # as MLPerf Storage and gpemu-train: without the first step
    au = (sum(compute[1:]) / (end[-1] - end[0])) if len(end) > 1 else None
    return {"epoch": number, "seconds": seconds, "samples": samples,
            "wall_seconds": time.monotonic() - wall, "bytes": size,
            "steps": len(loader), "compute_s": sum(compute) / 1e9,
            "data_wait_s": wait / 1e9, "au": au,
            "samples_per_s": samples / seconds}


def main(folder, record, *words):
    options = {"model": "resnet18", "batch": "32"}
    options.update(word.split("=", 1) for word in words)
    workers, epochs, seed, mark = (
        int(options.pop(key, default)) for key, default in
        (("workers", 2), ("epochs", 2), ("seed", 0), ("mark", 0)))
    torch.manual_seed(seed)
    loader = torch.utils.data.DataLoader(
        Files(folder), batch_size=int(options["batch"]), shuffle=True,
        num_workers=workers, collate_fn=list)
    gpu = gpemu.GPU(**options)
    done = []
    for number in range(epochs):
        if mark:
            pathlib.Path(folder, ".gpemu/control").write_text("epoch\n")
        done.append(epoch_of(gpu, loader, number))
    with open(record, "w") as f:
        json.dump({"epochs": done, "totals": {
            "seconds": sum(e["seconds"] for e in done),
            "samples": sum(e["samples"] for e in done)}}, f)


if len(sys.argv) < 3:
    sys.exit(__doc__)
main(*sys.argv[1:])
