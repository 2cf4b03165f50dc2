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
# Epoch and step after which it ends
ENDS = {"fails": (1, 3), "fails-first": (0, 3), "interrupted": (1, 3),
        "interrupted-first": (0, 3)}


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


class Memory(Files):
    def __getitem__(self, i):
        return torch.full((3, 8, 8), float(i)), i % 10


class Stream(Files, IterableDataset):
    def __len__(self):
        raise TypeError("nobody knows")

    def __iter__(self):
        return map(self.__getitem__, range(len(self.paths)))


def network():
    return nn.Sequential(nn.Flatten(), nn.Linear(3 * 8 * 8, 10))


files = {"stream": Stream, "memory": Memory}.get(name, Files)()


def batches(files=files):
    how = {"batch_size": BATCH, "num_workers": int(name != "inline")}
    if name == "sampler":
        how = {"batch_sampler": BatchSampler(RandomSampler(files), BATCH,
                                             True)}
    elif name in ("spawn", "forkserver"):
        how["multiprocessing_context"] = name
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
            if (epoch, i) == ENDS.get(name):
                if name.startswith("fails"):
                    raise ValueError("on purpose")
                os.kill(os.getpid(), signal.SIGINT)
            if name == "early" and i == 1:
                break
        if name in ("validation", "forkserver"):
            with torch.no_grad():
                for images, labels in batches(Files()):
                    time.sleep(.1 if name == "validation" else 0)
                    model(images)


if __name__ == "__main__":
    torch.set_num_threads(1)
    if name == "twice":  # Ctrl-C while the record is written
        replace = os.replace

        def interrupted(*names):
            os.kill(os.getpid(), signal.SIGINT)
            replace(*names)
        os.replace = interrupted
    if "FILE_BYTES" in os.environ:
        import torch._dynamo  # noqa: F401: PyTorch 2.6 writes a file for it
        resource.setrlimit(resource.RLIMIT_FSIZE,
                           (int(os.environ["FILE_BYTES"]),) * 2)
    train()
