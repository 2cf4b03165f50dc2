# SPDX-License-Identifier: MIT
"""FullyShardedDataParallel and fully_shard(). Parameters stay whole: they have no
data. A step takes longer by what emu/gpu/gpus.h says of gathers and gradients."""
from __future__ import annotations

import contextlib
import importlib

import torch
from torch import nn

from gpemu._exec import ddp, device as dev

_raw = torch._C.DisableTorchFunction
_MOST_UNITS = 1024  # as emu/gpu/gpus.h
_AHEAD = 1  # units that are gathered: the default of both


def _fail(what):
    raise NotImplementedError(
        f"gpemu exec: {dev.state.where()}: {what} of FSDP is not emulated")


class Shards:
    """Of a module and what is below it: what is sent."""

    def __init__(self, precision=None, gradients=None):
        self.precision, self.gradients = precision, gradients
        self.synchronise = True

    def reduced(self, module, cost, begin_ns, end_ns):
        """When all is where it belongs."""
        weights = gradients = units = 0
        with _raw():
            for m in module.modules():
                units += isinstance(m, Sharded)
            for p in module.parameters():
                size = (self.precision or p.dtype).itemsize
                weights += p.numel() * size
                if p.requires_grad:
                    gradients += p.numel() * (
                        self.gradients.itemsize if self.gradients else size)
        # the slowest rank
        until = ddp.ranks.reduced(begin_ns, end_ns, 0)
        return until + dev.state.card.sharded_ns(
            ddp.ranks.n, min(units, _MOST_UNITS), _AHEAD, weights, gradients,
            cost.forward_ns, cost.backward_ns)


class Sharded:
    """A module that is sharded: its class is one of this and its own."""

    def __deepcopy__(self, memo):
        _fail("a deep copy of a module")

    def set_requires_gradient_sync(self, requires, recurse=True):
        self.gpemu_shards.synchronise = requires

    @contextlib.contextmanager
    def no_sync(self):
        before = self.gpemu_shards.synchronise
        self.gpemu_shards.synchronise = False
        try:
            yield
        finally:
            self.gpemu_shards.synchronise = before

    def _nothing(self, *_, **__):
        return None

    unshard = reshard = set_reshard_after_forward = _nothing
    set_is_last_backward = set_reshard_after_backward = _nothing
    set_modules_to_forward_prefetch = _nothing
    set_modules_to_backward_prefetch = _nothing


class Fsdp(Sharded):
    """FullyShardedDataParallel(module) is the module."""

    def __new__(cls, module, process_group=None, sharding_strategy=None,
                cpu_offload=None, auto_wrap_policy=None,
                backward_prefetch=None, mixed_precision=None, *_, **__):
        if sharding_strategy is not None and \
                sharding_strategy.name != "FULL_SHARD":
            _fail(sharding_strategy.name)
        if getattr(cpu_offload, "offload_params", cpu_offload):
            _fail("cpu_offload")
        shards = Shards(getattr(mixed_precision, "param_dtype", None),
                        getattr(mixed_precision, "reduce_dtype", None))
        _wrap(module, auto_wrap_policy, shards)
        return _shard(module, Fsdp, shards)

    def __init__(self, *_, **__):
        """It is the module's already."""

    @property
    def module(self):
        return self

    def clip_grad_norm_(self, max_norm, norm_type=2.0):
        return nn.utils.clip_grad_norm_(self.parameters(), max_norm)

    @staticmethod
    def state_dict_type(*_, **__):
        return contextlib.nullcontext()

    summon_full_params = state_dict_type

    @staticmethod
    def set_state_dict_type(*_, **__):
        return None

    @staticmethod
    def optim_state_dict(model, optim, *_, **__):
        return optim.state_dict()

    full_optim_state_dict = optim_state_dict

    @staticmethod
    def optim_state_dict_to_load(model, optim, optim_state_dict, *_, **__):
        return optim_state_dict


def _wrap(module, policy, shards):
    """The units below it."""
    if policy is None:
        return
    if hasattr(policy, "_run_policy"):
        for m in policy._run_policy(module, set(), {}):
            if m is not module:
                _shard(m, Fsdp, shards)
        return
    from torch.distributed.fsdp.wrap import _recursive_wrap
    _recursive_wrap(module, auto_wrap_policy=policy,
                    wrapper_cls=lambda m, **_: _shard(m, Fsdp, shards),
                    ignored_modules=set(), ignored_params=set(),
                    only_wrap_children=True)


def _shard(module, kind, shards):
    if not torch.distributed.is_initialized():
        raise ValueError("Default process group has not been initialized, "
                         "please make sure to call init_process_group.")
    own = type(module)
    if not isinstance(module, kind):
        module.__class__ = type(own.__name__, (kind, own), {})
    module.gpemu_shards = shards
    return module.to("cuda")


def fully_shard(module, *, mesh=None, reshard_after_forward=None,
                mp_policy=None, offload_policy=None, **_):
    if reshard_after_forward is False:
        _fail("reshard_after_forward=False")
    if getattr(offload_policy, "pin_memory", None) is not None:
        _fail("CPUOffloadPolicy")
    if mesh is not None and mesh.ndim != 1:
        _fail(f"a mesh of {mesh.ndim} dimensions")
    shards = Shards(getattr(mp_policy, "param_dtype", None),
                    getattr(mp_policy, "reduce_dtype", None))
    for m in module if isinstance(module, (list, tuple)) else [module]:
        _shard(m, Sharded, shards)
    return module


def install():
    """Of each PyTorch, in each place that has it."""
    for name, changes in {
            "torch.distributed.fsdp": {
                "FullyShardedDataParallel": Fsdp, "fully_shard": fully_shard,
                "FSDPModule": Sharded},
            "torch.distributed.fsdp.fully_sharded_data_parallel": {
                "FullyShardedDataParallel": Fsdp},
            "torch.distributed._composable.fsdp": {
                "fully_shard": fully_shard, "FSDPModule": Sharded}}.items():
        try:
            place = importlib.import_module(name)
        except ImportError:
            continue
        for key, value in changes.items():
            if hasattr(place, key):
                setattr(place, key, value)
