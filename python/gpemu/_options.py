# SPDX-License-Identifier: MIT
"""The keyword arguments that are options of the programs: one table of each.

Type checkers read the tables (PEP 692); `takes` puts them into the signature,
for help() and editors, and refuses other keywords.
"""
from __future__ import annotations

import difflib
import functools
import inspect
import os
from typing import (Any, Callable, Dict, List, Literal, Sequence, TypedDict,
                    TypeVar, Union)

Switch = Union[bool, Literal["on", "off"]]
File = Union[str, bytes, "os.PathLike[str]", "os.PathLike[bytes]"]
Size = Union[int, str]  #: bytes, or with a unit: "1GiB"
Function = TypeVar("Function", bound=Callable[..., Any])


class StepOptions(TypedDict, total=False):
    """What a GPU and a Loader have in common, but `gpu` and `model`."""

    allreduce: Literal["auto", "ring", "tree"]
    batch: int
    extrapolate: Switch
    gpu_memory: Size
    gpu_rate: float
    gpu_server: File
    gpus: int
    jitter: Union[float, str]
    keep_awake: Switch
    node: File
    parallel: Literal["ddp", "dp", "fsdp"]
    pin: Union[bool, str]
    precision: Literal["fp32", "tf32", "amp", "fp16", "bf16", "fp8"]
    seed: int
    sequence_length: int
    server_user: Union[str, int]
    time_scale: float
    transfer: Literal["overlap", "blocking"]


class LoaderOptions(StepOptions, total=False):
    accumulate: int
    analyze: Switch
    analyze_steps: int
    bad_samples: Union[int, str]
    batching: str
    ceiling: Switch
    checkpoint: Literal["sync", "async"]
    checkpoint_dir: File
    checkpoint_every: int
    checkpoint_keep: int
    checkpoint_scale: float
    checkpoint_size: Size
    config: File
    coordinate: str
    cores: int
    direct: Switch
    dispatcher: str
    drop_last: Switch
    dump_order: File
    dump_samples: File
    epochs: int
    format: str
    fsdp_prefetch: int
    fsdp_units: int
    image_size: int
    index: Literal["auto", "off", "rebuild"]
    inference: Switch
    last_step: Literal["there", "here", "pecan", "auto"]
    loader: str
    max_steps: int
    model: str
    model_transfer: Switch
    offload: Union[float, str]
    offload_cache: File
    optimizer: Literal["sgd", "adamw"]
    order: str
    pad_multiple: int
    pin_budget: Size
    prefetch: int
    prep: str
    prep_gpu: File
    prep_output: Literal["fp32", "uint8"]
    prep_profile: File
    prep_time: str
    queue_depth: int
    rank: int
    replay_order: File
    resume: Switch
    resume_step: int
    samples: int
    scan_threads: int
    seed: int
    service_key: File
    sort_extents: Switch
    stages: str
    step_time: str
    steps: File
    superbatch: int
    trace: File
    workers: int
    world_size: int


class MountOptions(TypedDict, total=False):
    cache_bytes: Literal["memory", "source"]
    cache_metadata: Switch
    cache_policy: str
    cache_size: Size
    capacity: Size
    config: File
    fault: str
    follow_links: File
    group: Union[int, str]
    group_buffer: Size
    group_order: str
    hit_path: File
    json: File
    keep_awake: Switch
    layers: str
    log: File
    log_level: str
    memory: Size
    mount_options: str
    nic: File
    node: int
    peer_key: File
    peer_timeout: str
    peers: str
    prefetch: Size
    prefetch_depth: int
    read_only: Switch
    replace: bool
    seed: int
    spin: str
    storage: File
    tier: Union[str, Sequence[str]]
    tier_admit: Literal["every", "first"]
    time_scale: float
    trace: File
    transport: str
    verbose: bool
    writable: File
    writable_scale: float


class RunOptions(TypedDict, total=False):
    again: bool
    au: Union[float, str]
    bin_dir: File
    config: File
    data_dir: File
    fresh: bool
    jobs: int
    network: Literal["auto", "namespaces", "loopback"]
    no_mount: bool
    progress: Literal["auto", "on", "off"]
    repetitions: int
    seed: int
    shard: str
    slurm: int
    slurm_options: str
    time_scale: float
    verbose: bool


# What others call an option: torch.utils.data.DataLoader, mostly.
_WORDS = {
    "batch_sampler": "batching",
    "batch_size": "batch",
    "collate_fn": "batching",
    "dataset": "data",
    "device": "gpu",
    "drop_remainder": "drop_last",
    "num_epochs": "epochs",
    "num_replicas": "world_size",
    "num_workers": "workers",
    "pin_memory": "pin",
    "prefetch_factor": "prefetch",
    "sampler": "order",
    "shuffle": "order",
    "transform": "prep",
}
_NOTES = {
    "order": ' ("shuffle", the default, or "sequential")',
    "batching": " (gpemu-train --list batching)",
    "prep": " (gpemu-train --list prep)",
}


def unknown(name: str, key: str, known: Sequence[str]) -> TypeError:
    """The error for a keyword that `name` does not have."""
    text = f"gpemu.{name}() got an unexpected keyword argument '{key}'"
    other = _WORDS.get(key, "")
    if other in known:
        return TypeError(f"{text}: use {other}={_NOTES.get(other, '')}")
    near = difflib.get_close_matches(key, known, 1)
    return TypeError(f"{text}; did you mean {near[0]}=?" if near else
                     f"{text}; help(gpemu.{name}) lists those it has")


def takes(table: type, name: str) -> Callable[[Function], Function]:
    """A decorator: the `**options` of gpemu.NAME are those of the table. None
    stands for the default of the program."""

    def decorate(function: Function) -> Function:
        own = inspect.signature(function)
        before = [p for p in own.parameters.values()
                  if p.kind is not p.VAR_KEYWORD]
        keys: Dict[str, Any] = table.__annotations__
        options: List[inspect.Parameter] = [
            inspect.Parameter(key, inspect.Parameter.KEYWORD_ONLY,
                              default=None, annotation=_shown(kind))
            for key, kind in keys.items() if key not in own.parameters]
        signature = own.replace(parameters=before + options)

        @functools.wraps(function)
        def checked(*arguments: Any, **keywords: Any) -> Any:
            for key in keywords:
                if key not in signature.parameters:
                    raise unknown(name, key, list(signature.parameters))
            return function(*arguments, **keywords)

        checked.__signature__ = signature  # type: ignore[attr-defined]
        return checked  # type: ignore[return-value]

    return decorate


def _shown(kind: Any) -> Any:
    """An annotation as in the table: of a string, not ForwardRef('...')."""
    return getattr(kind, "__forward_arg__", kind)
