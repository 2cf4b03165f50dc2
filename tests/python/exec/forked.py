# SPDX-License-Identifier: MIT
"""Two ranks of torch.multiprocessing: forked.py fork|spawn."""
import os
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def main(rank):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=os.environ["PORT"])
    dist.init_process_group("nccl", rank=rank, world_size=2)
    torch.cuda.set_device(rank)
    model = DistributedDataParallel(nn.Linear(4, 2).cuda(), device_ids=[rank])
    optimizer = torch.optim.SGD(model.parameters(), lr=.1)
    for _ in range(3):
        model(torch.zeros(16, 4).cuda()).sum().backward()
        optimizer.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    torch.multiprocessing.start_processes(main, nprocs=2, start_method=sys.argv[1])
