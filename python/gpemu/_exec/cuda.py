# SPDX-License-Identifier: MIT
"""torch.cuda, torch.accelerator: the device's names, memory, streams."""
from __future__ import annotations

from collections import Counter
from contextlib import nullcontext
from types import SimpleNamespace

import torch

from gpemu._exec import device as dev


def _index(device=None):
    if device is None:
        return dev.state.index
    if isinstance(device, int):
        return device
    return torch.device(device).index or 0


def _set_device(device):
    index = _index(device)
    if index >= 0:
        dev.state.choose(torch.device("cuda", index))


def _capability(device=None):
    # of a profile without one: Maxwell, the oldest that PyTorch 2.4 ran on
    value = float(dev.state.card.profile.get("board", {}).get(
        "compute_capability") or 5)
    return int(value), round(value * 10) % 10


def _properties(device=None):
    major, minor = _capability()
    board = dev.state.card.profile.get("board", {})
    return SimpleNamespace(
        name=_name(), major=major, minor=minor, total_memory=dev.state.total,
        # 64 or 128 units each; arbitrary: only shown
        multi_processor_count=max(1, int(board.get("cores", 0)) // 128),
        is_integrated=0, is_multi_gpu_board=0, warp_size=32,
        max_threads_per_multi_processor=2048, gcnArchName="",
        regs_per_multiprocessor=65536, uuid="emulated")


def _name(device=None):
    return dev.state.card.profile["name"]


def _synchronize(device=None):
    dev.state.synchronize()
    dev.state.card.wait(max(dev.state.default_stream.end_ns,
                            dev.state.stream.end_ns))


def _mem_get_info(device=None):
    return dev.state.total - dev.state.allocated, dev.state.total


def _reset_peak(device=None):
    dev.state.peak = dev.state.allocated


def _memory_stats(device=None):
    return Counter({
        f"{kind}_bytes.all.{when}": value
        for kind in ("allocated", "reserved", "active", "requested")
        for when, value in (("current", dev.state.allocated),
                            ("peak", dev.state.peak))})


class _Device:
    """torch.cuda.device(index)."""

    def __init__(self, device):
        self.idx = _index(device)

    def __enter__(self):
        if self.idx >= 0:
            _set_device(self.idx)

    def __exit__(self, *_):
        return False


def _stream_context(stream):
    return stream if stream is not None else nullcontext()


def _set_stream(stream):
    dev.state.stream = stream


class _NoGraph:
    """A class, since scripts name it as a type."""

    def __new__(cls, *_, **__):
        raise NotImplementedError(
            f"gpemu exec: {dev.state.where()}: CUDA graphs are not emulated")


class _Kind(type):
    """torch.cuda.FloatTensor and its like."""

    def __instancecheck__(cls, value):
        return isinstance(value, torch.Tensor) and value.is_cuda and \
            value.dtype == cls.dtype

    def __call__(cls, *args):
        if len(args) == 1 and not isinstance(args[0], int):
            return torch.tensor(args[0], dtype=cls.dtype, device="cuda")
        return torch.empty(args, dtype=cls.dtype, device="cuda")


_KINDS = {"Float": torch.float32, "Double": torch.float64,
          "Half": torch.float16, "BFloat16": torch.bfloat16,
          "Long": torch.int64, "Int": torch.int32, "Short": torch.int16,
          "Char": torch.int8, "Byte": torch.uint8, "Bool": torch.bool}


def install() -> None:
    cuda = torch.cuda
    for kind, dtype in _KINDS.items():
        name = kind + "Tensor"
        setattr(cuda, name, _Kind(name, (), {
            "dtype": dtype, "gpemu_name": f"torch.cuda.{name}"}))

    def allocated(device=None):
        return dev.state.allocated

    def peak(device=None):
        return dev.state.peak

    def nothing(*_, **__):
        return None

    functions = {
        "is_available": lambda: True, "is_initialized": lambda: True,
        "init": nothing, "_lazy_init": nothing,
        "device_count": lambda: dev.state.gpus,
        "_device_count_nvml": lambda: dev.state.gpus,
        "current_device": lambda: dev.state.index,
        "set_device": _set_device, "device": _Device,
        "get_device_name": _name, "get_device_properties": _properties,
        "get_device_capability": _capability,
        "get_arch_list": lambda: ["sm_%d%d" % _capability()],
        "is_bf16_supported": lambda *_, **__: _capability()[0] >= 8,
        "synchronize": _synchronize, "empty_cache": nothing,
        "ipc_collect": nothing, "mem_get_info": _mem_get_info,
        "memory_allocated": allocated, "memory_reserved": allocated,
        "max_memory_allocated": peak, "max_memory_reserved": peak,
        "reset_peak_memory_stats": _reset_peak,
        "reset_max_memory_allocated": _reset_peak,
        "memory_stats": _memory_stats,
        "memory_summary": lambda *_, **__: str(_memory_stats()),
        "set_per_process_memory_fraction": nothing,
        "is_current_stream_capturing": lambda: False,
        "Stream": dev.Stream, "Event": dev.Event,
        "stream": _stream_context, "set_stream": _set_stream,
        "current_stream": lambda device=None: dev.state.stream,
        "default_stream": lambda device=None: dev.state.default_stream,
        "manual_seed": nothing, "manual_seed_all": nothing, "seed": nothing,
        "seed_all": nothing, "utilization": lambda device=None: 0,
        "get_rng_state": lambda device=None: torch.zeros(
            16, dtype=torch.uint8),
        "get_rng_state_all": lambda: [torch.zeros(16, dtype=torch.uint8)],
        "set_rng_state": nothing, "set_rng_state_all": nothing,
        "CUDAGraph": _NoGraph, "graph": _NoGraph,
        "make_graphed_callables": _NoGraph,
    }
    for name, function in functions.items():
        setattr(cuda, name, function)
        if hasattr(cuda.memory, name):
            setattr(cuda.memory, name, function)
        if hasattr(cuda.random, name):
            setattr(cuda.random, name, function)
    torch.Stream, torch.Event = dev.Stream, dev.Event
    accelerator = getattr(torch, "accelerator", None)
    if accelerator:
        for name, function in {
                "is_available": lambda: True,
                "device_count": lambda: dev.state.gpus,
                "current_accelerator": lambda *_, **__: torch.device("cuda"),
                "current_device_index": lambda: dev.state.index,
                "current_device_idx": lambda: dev.state.index,
                "set_device_index": _set_device,
                "set_device_idx": _set_device,
                "synchronize": _synchronize,
                "current_stream": lambda device=None: dev.state.stream,
                "set_stream": _set_stream}.items():
            if hasattr(accelerator, name):
                setattr(accelerator, name, function)
    cudnn = torch.backends.cudnn
    cudnn.is_available = lambda: True
    default = torch.set_default_device

    def set_default_device(device):
        ours = device is not None and torch.device(device).type == "cuda"
        default("meta" if ours else device)
    torch.set_default_device = set_default_device
