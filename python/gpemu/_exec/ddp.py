# SPDX-License-Identifier: MIT
"""torch.distributed over gloo: the processes of one machine, each with one
emulated GPU. The ranks really wait for each other; gradients and tensors of the
device take the time of the links, and are not sent."""
from __future__ import annotations

import functools
import os
import socket
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import distributed
from torch.utils._pytree import tree_flatten

from gpemu._exec import device as dev

_raw = torch._C.DisableTorchFunction
_Ddp = distributed.DistributedDataParallel
ranks: Ranks = None


class Ranks:
    """All processes of the job. Their clocks have one origin each."""

    def __init__(self, card, scale):
        self._card = card
        self.n, self.rank = dist.get_world_size(), dist.get_rank()
        self._group = dist.new_group(backend="gloo")
        mine = (socket.gethostname(),
                time.monotonic_ns() / scale - card.now(), os.getpid())
        found = [None] * self.n
        dist.all_gather_object(found, mine, group=self._group)
        hosts = {host for host, *_ in found}
        if len(hosts) > 1:
            raise RuntimeError(
                f"gpemu exec: ranks on {len(hosts)} machines "
                f"({', '.join(sorted(hosts))}): one is emulated")
        self._ahead_ns = [int(origin - mine[1]) for _, origin, _ in found]
        dev.state.record.join(self.rank, self.n, found[0][2])

    def reduced(self, begin_ns, end_ns, size):
        """When gradients of `size` bytes are summed over all ranks, whose own
        were computed meanwhile."""
        with _raw():
            mine = torch.tensor([begin_ns, end_ns])
            found = [torch.empty_like(mine) for _ in range(self.n)]
            dist.all_gather(found, mine, group=self._group)
            passes = [tuple(max(0, t + ahead) for t in pair.tolist())
                      for pair, ahead in zip(found, self._ahead_ns)]
        return self._card.reduced(passes, size)


def active():
    return ranks is not None and ranks.n > 1


class Ddp(_Ddp):
    """Its module, as it is; gradients are reduced where backward() ends."""

    def __init__(self, module, *args, **kwargs):
        first = next(module.parameters(), None)
        with _raw():
            ours = first is not None and first.is_meta
        if not ours:
            super().__init__(module, *args, **kwargs)
            return
        torch.nn.Module.__init__(self)
        self.module, self.require_backward_grad_sync = module, True
        self.device = first.device
        self.device_ids = [dev.state.index]
        self.gpemu = True
        if not dist.is_initialized():
            raise ValueError("Default process group has not been initialized, "
                             "please make sure to call init_process_group.")

    def forward(self, *args, **kwargs):
        if "gpemu" not in self.__dict__:
            return super().forward(*args, **kwargs)
        return self.module(*args, **kwargs)

    def train(self, mode=True):
        return torch.nn.Module.train(self, mode)

    def register_comm_hook(self, state, hook):
        dev.state.note("communication hooks of DistributedDataParallel do "
                       "nothing: gradients have the parameters' bytes")


def gradient_bytes(module):
    return sum(p.numel() * p.element_size() for p in module.parameters()
               if p.requires_grad)


class _Done:
    """A Work that has ended."""

    def wait(self, timeout=None):
        return True

    def is_completed(self):
        return True

    def is_success(self):
        return True

    def get_future(self):
        future = torch.futures.Future()
        future.set_result(None)
        return future


def _collective(original):
    """Of tensors of the device: the ranks meet, the links are busy."""
    @functools.wraps(original)
    def call(*args, **kwargs):
        with _raw():
            tensors = [t for t in tree_flatten((args, kwargs))[0]
                       if isinstance(t, torch.Tensor) and t.is_meta]
        if not tensors:
            return original(*args, **kwargs)
        state = dev.state
        if active():
            size = max(t.numel() * t.element_size() for t in tensors)
            now = max(state.card.now(), state.stream.end_ns)
            state.stream.end_ns = ranks.reduced(now, now, size)
        return _Done() if kwargs.get("async_op") else None
    return call


def _init(original):
    @functools.wraps(original)
    def init_process_group(backend=None, *args, **kwargs):
        global ranks
        kwargs.pop("device_id", None)
        if backend != "gloo":
            dev.state.note(f"torch.distributed has the backend gloo instead of "
                           f"{backend or 'the default'}")
        original("gloo", *args, **kwargs)
        ranks = Ranks(dev.state.card, dev.state.options["time_scale"])
    return init_process_group


def _destroy(original):
    @functools.wraps(original)
    def destroy_process_group(group=None):
        global ranks
        if group is None:
            ranks = None
        return original(group)
    return destroy_process_group


def install() -> None:
    distributed.DistributedDataParallel = Ddp
    torch.nn.parallel.DistributedDataParallel = Ddp
    if not dist.is_available():
        return
    dist.is_nccl_available = lambda: True
    new_group = dist.new_group
    for name, change in {
            "init_process_group": _init, "destroy_process_group": _destroy,
            **dict.fromkeys((
                "all_reduce", "broadcast", "reduce", "all_gather", "gather",
                "scatter", "all_gather_into_tensor", "reduce_scatter",
                "reduce_scatter_tensor", "all_to_all", "all_to_all_single",
                "send", "recv"), _collective)}.items():
        original = getattr(dist, name)
        changed = change(original)
        for place in dist, dist.distributed_c10d:
            if getattr(place, name, None) is original:
                setattr(place, name, changed)

    def group(ranks=None, timeout=None, backend=None, **more):
        more.pop("device_id", None)
        return new_group(ranks, timeout=timeout, backend="gloo", **more)
    dist.new_group = group
