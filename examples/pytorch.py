# SPDX-License-Identifier: MIT
"""
PyTorch's DataLoader in front of an emulated GPU.

    python3 examples/pytorch.py FOLDER RECORD [key=value...]

Reads the files of FOLDER (for example a mount of gpemu-fs) in a new random order
each epoch, and submits the batches to the GPU of libgpemu, which takes the time
of its profile. RECORD gets a JSON object like that of gpemu-train.

Keys: workers, epochs, seed, mark (1: mark each epoch in the mount); all other
keys go to gpemu_gpu_open (gpu, model, batch, time_scale). GPEMU_LIB names the
library; the default is libgpemu.so.1 in the search path.
"""
import ctypes
import json
import os
import pathlib
import sys
import time

import torch.utils.data


class Gpu:
    """The emulated GPU: include/gpemu.h, "the GPUs alone"."""

    class Step(ctypes.Structure):
        _fields_ = [(name, ctypes.c_uint64) for name in (
            "copy_start_ns copy_end_ns compute_start_ns compute_end_ns "
            "data_wait_ns fetch_stall_ns transfer_stall_ns barrier_wait_ns "
            "allreduce_ns step_end_ns pin_stall_ns reserved").split()]

    def __init__(self, options):
        self.lib = ctypes.CDLL(os.environ.get("GPEMU_LIB", "libgpemu.so.1"))
        self.lib.gpemu_gpu_error.restype = ctypes.c_char_p
        for name in "gpemu_gpu_now_ns", "gpemu_gpu_wait":
            getattr(self.lib, name).restype = ctypes.c_uint64
        words = [f"{key}={value}".encode() for key, value in options.items()]
        array = (ctypes.c_char_p * (len(words) + 1))(*words, None)
        self.gpu, text = ctypes.c_void_p(), ctypes.create_string_buffer(256)
        if self.lib.gpemu_gpu_open(array, ctypes.byref(self.gpu), text, 256) < 0:
            sys.exit("pytorch.py: " + text.value.decode())

    def submit(self, n):
        step = self.Step()
        if self.lib.gpemu_gpu_submit(self.gpu, ctypes.c_uint64(n),
                                     ctypes.byref(step)) < 0:
            sys.exit("pytorch.py: " +
                     self.lib.gpemu_gpu_error(self.gpu).decode())
        return step

    def wait(self):
        return self.lib.gpemu_gpu_wait(self.gpu)

    def now(self):
        return self.lib.gpemu_gpu_now_ns(self.gpu)


class Files(torch.utils.data.Dataset):
    def __init__(self, folder):
        self.paths = sorted(str(p) for p in pathlib.Path(folder).rglob("*")
                            if p.is_file())

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, i):
        with open(self.paths[i], "rb") as f:
            return f.read()


def epoch_of(gpu, loader, number):
    begin, wall, compute, wait, samples = gpu.now(), time.monotonic(), 0, 0, 0
    size = 0
    for batch in loader:
        step = gpu.submit(len(batch))
        compute += step.compute_end_ns - step.compute_start_ns
        wait += step.data_wait_ns
        samples += len(batch)
        size += sum(map(len, batch))
    seconds = (gpu.wait() - begin) / 1e9
    return {"epoch": number, "seconds": seconds, "samples": samples,
            "wall_seconds": time.monotonic() - wall, "bytes": size,
            "steps": len(loader), "compute_s": compute / 1e9,
            "data_wait_s": wait / 1e9, "au": compute / 1e9 / seconds,
            "samples_per_s": samples / seconds}


def main(folder, record, *words):
    options = {"gpu": "v100", "model": "resnet18", "batch": "32"}
    options.update(word.split("=", 1) for word in words)
    workers, epochs, seed, mark = (
        int(options.pop(key, default)) for key, default in
        (("workers", 2), ("epochs", 2), ("seed", 0), ("mark", 0)))
    torch.manual_seed(seed)
    loader = torch.utils.data.DataLoader(
        Files(folder), batch_size=int(options["batch"]), shuffle=True,
        num_workers=workers, collate_fn=list)
    gpu = Gpu(options)
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
