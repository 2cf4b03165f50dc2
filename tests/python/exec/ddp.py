# SPDX-License-Identifier: MIT
"""DistributedDataParallel as torchrun starts it; rank 1 loads slowly."""
import os
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset, DistributedSampler

SLOW_MS = float(os.environ.get("SLOW_MS", 0))  # of a sample of rank 1


class Images(Dataset):
    def __len__(self):
        return 2 * 16 * 6

    def __getitem__(self, i):
        if os.environ["RANK"] == "1":
            time.sleep(SLOW_MS / 1e3)
        return torch.zeros(3, 224, 224), i % 10


dist.init_process_group("nccl")
rank = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(rank)
model = nn.Sequential(nn.Conv2d(3, 8, 7, 4), nn.BatchNorm2d(8), nn.ReLU(),
                      nn.Conv2d(8, 16, 3, 2), nn.ReLU(), nn.AdaptiveAvgPool2d(1),
                      nn.Flatten(), nn.Linear(16, 10)).cuda(rank)
model = DistributedDataParallel(model, device_ids=[rank])
assert isinstance(model, nn.parallel.DistributedDataParallel)
assert all(name.startswith("module.") for name in model.state_dict())
optimizer = torch.optim.SGD(model.parameters(), lr=.1)
data = Images()
sampler = DistributedSampler(data)
loader = DataLoader(data, batch_size=16, sampler=sampler, num_workers=1,
                    pin_memory=True)
for epoch in range(2):
    sampler.set_epoch(epoch)
    for images, labels in loader:
        images = images.cuda(non_blocking=True)
        labels = labels.cuda(non_blocking=True)
        loss = nn.functional.cross_entropy(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    total = torch.ones(1, device="cuda")
    work = dist.all_reduce(total, async_op=True)
    work.wait()
    names = [None] * 2
    dist.all_gather_object(names, f"rank{rank}")
    assert names == ["rank0", "rank1"]
with model.no_sync():
    assert not model.require_backward_grad_sync
dist.barrier()
dist.destroy_process_group()
