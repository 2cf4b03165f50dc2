# SPDX-License-Identifier: MIT
"""FSDP as torchrun starts it: fsdp.py fsdp1|fully_shard|offload."""
import functools
import os
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import CPUOffload
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP
from torch.distributed.fsdp.wrap import size_based_auto_wrap_policy

try:
    from torch.distributed.fsdp import fully_shard
except ImportError:  # PyTorch 2.5 and before
    from torch.distributed._composable.fsdp import fully_shard

how = sys.argv[1]
dist.init_process_group("nccl")
rank = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(rank)
w = 8
model = nn.Sequential(
    nn.Sequential(nn.Conv2d(3, w, 7, 4), nn.BatchNorm2d(w), nn.ReLU()),
    nn.Sequential(nn.Conv2d(w, 2 * w, 3, 2), nn.ReLU(), nn.AdaptiveAvgPool2d(1)),
    nn.Flatten(), nn.Linear(2 * w, 10))
names = list(model.state_dict())
if how == "fully_shard":
    for layer in model[:2]:
        fully_shard(layer)
    fully_shard(model)
else:
    policy = functools.partial(size_based_auto_wrap_policy, min_num_params=100)
    model = FSDP(model, auto_wrap_policy=policy, device_id=rank,
                 cpu_offload=CPUOffload(how == "offload"))
    assert isinstance(model, FSDP)
assert list(model.state_dict()) == names
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for step in range(4):
    images = torch.zeros(16, 3, 224, 224).cuda()
    labels = torch.zeros(16, dtype=torch.long, device="cuda")
    loss = nn.functional.cross_entropy(model(images), labels)
    loss.backward()
    if how == "fsdp1":
        model.clip_grad_norm_(1.0)
    optimizer.step()
    optimizer.zero_grad()
    loss.item()
if rank == 0:
    torch.save(model.state_dict(), os.environ["CHECKPOINT"])
dist.barrier()
dist.destroy_process_group()
