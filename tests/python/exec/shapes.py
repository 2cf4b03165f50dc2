# SPDX-License-Identifier: MIT
"""Jobs of other shapes than record.py, one a name: shapes.py NAME FOLDER."""
import os
import resource
import signal
import sys
import time

import torch
from torch import nn
from torch.utils.data import (BatchSampler, DataLoader, Dataset,
                              IterableDataset, RandomSampler)

name, folder = sys.argv[1:]
BATCH = 8


class Files(Dataset):
    def __init__(self):
        self.paths = [os.path.join(folder, n)
                      for n in sorted(os.listdir(folder))]

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, i):
        with open(self.paths[i], "rb") as f:
            first = f.read()[0]
        return torch.full((3, 8, 8), float(first)), i % 10


class Stream(Files, IterableDataset):
    def __len__(self):
        raise TypeError("nobody knows")

    def __iter__(self):
        return map(self.__getitem__, range(len(self.paths)))


def network():
    return nn.Sequential(nn.Flatten(), nn.Linear(3 * 8 * 8, 10))


files = Stream() if name == "stream" else Files()


def batches():
    how = {"batch_size": BATCH, "num_workers": int(name != "inline")}
    if name == "sampler":
        how = {"batch_sampler": BatchSampler(RandomSampler(files), BATCH,
                                             True)}
    elif name == "spawn":
        how["multiprocessing_context"] = "spawn"
    return DataLoader(files, **how)


def train():
    model, other, loss = network(), network(), nn.functional.cross_entropy
    optimizer = torch.optim.SGD(model.parameters(), lr=.01)
    second = torch.optim.SGD(other.parameters(), lr=.01)
    for epoch in range(2):
        for i, (images, labels) in enumerate(batches()):
            def closure():
                out = loss(model(images), labels)
                out.backward()
                return out
            if name == "closure":
                optimizer.step(closure)
                continue
            closure()
            if name == "two":  # the first sees what the second makes, too
                loss(model(images) + other(images), labels).backward()
            if name != "accumulate" or i % 3 == 2:
                optimizer.step()
            if name == "two":
                loss(other(images), labels).backward()
                second.step()
            if name == "between":
                time.sleep(.03)
            if name == "killed" and i == 5:
                os.kill(os.getpid(), signal.SIGKILL)
            if name == "early" and i == 1:
                break
        if name == "validation":
            with torch.no_grad():
                for images, labels in batches():
                    time.sleep(.1)
                    model(images)


if __name__ == "__main__":
    torch.set_num_threads(1)
    if "FILE_BYTES" in os.environ:
        import torch._dynamo  # noqa: F401: PyTorch 2.6 writes a file for it
        resource.setrlimit(resource.RLIMIT_FSIZE,
                           (int(os.environ["FILE_BYTES"]),) * 2)
    train()
