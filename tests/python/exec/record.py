# SPDX-License-Identifier: MIT
"""An ordinary script for the CPU: files of a folder, a sample sleeps for what a
slow disk would take. With --standin events of a GPU, which runs 5 ms behind."""
import argparse
import os
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

parser = argparse.ArgumentParser()
parser.add_argument("folder")
parser.add_argument("--workers", type=int, default=1)
parser.add_argument("--wait-ms", type=float, default=10)
parser.add_argument("--epochs", type=int, default=3)
parser.add_argument("--standin", action="store_true")
args = parser.parse_args()
torch.set_num_threads(1)


class Files(Dataset):
    def __init__(self):
        self.names = sorted(os.listdir(args.folder))

    def __len__(self):
        return len(self.names)

    def __getitem__(self, i):
        with open(os.path.join(args.folder, self.names[i]), "rb") as f:
            first = f.read()[0]
        time.sleep(args.wait_ms / 1e3)
        return torch.full((3, 32, 32), float(first)), i % 10


class Event:
    BEHIND_NS = 5_000_000

    def __init__(self, enable_timing):
        assert enable_timing

    def record(self):
        self.ns = time.perf_counter_ns() + self.BEHIND_NS

    def query(self):
        return time.perf_counter_ns() >= self.ns

    def synchronize(self):
        time.sleep(max(0, self.ns - time.perf_counter_ns()) / 1e9)

    def elapsed_time(self, end):
        assert end.query() and self.query(), "not yet"
        return (end.ns - self.ns) / 1e6


if args.standin:
    from gpemu._record import marks
    marks.of = lambda tensor: marks.Cuda()
    torch.cuda.Event = Event
    torch.cuda.reset_peak_memory_stats = lambda: None
    torch.cuda.max_memory_allocated = lambda: 300 << 20
    torch.cuda.memory_allocated = lambda: 100 << 20
    torch.cuda.mem_get_info = lambda: (0, 1 << 30)
    torch.cuda.get_device_name = lambda: "Stand-in"

loader = DataLoader(Files(), batch_size=8, shuffle=True, num_workers=args.workers,
                    drop_last=True, persistent_workers=args.workers > 0)
model = nn.Sequential(nn.Conv2d(3, 16, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1),
                      nn.Flatten(), nn.Linear(16, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=.1, momentum=.9)
for epoch in range(args.epochs):
    begin = time.perf_counter()
    for images, labels in loader:
        loss = nn.functional.cross_entropy(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print("epoch", time.perf_counter() - begin, flush=True)
    with torch.no_grad():  # no step, no epoch
        for images, labels in DataLoader(Files(), batch_size=64):
            model(images)
            break
