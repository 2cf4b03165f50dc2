# SPDX-License-Identifier: MIT
"""PyTorch with the emulated device. Its tensors are meta tensors, which have no
data; a TorchFunctionMode shows them as CUDA's."""
from __future__ import annotations

import atexit
import functools
import json
import os
import threading

import torch
import torch.utils.data
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_map

from gpemu._exec import cuda, ddp, device as dev, fsdp, saved
from gpemu._exec.models import Models
from gpemu._exec.modules import Modules

_raw = torch._C.DisableTorchFunction
_T = torch.Tensor
_data_ptr = torch.UntypedStorage.data_ptr
modules: Modules = None


def _cuda_of(device):
    """torch.device if it is the emulated one's, else None."""
    if device is None or isinstance(device, bool):
        return None
    if not isinstance(device, torch.device):
        device = torch.device(device if isinstance(device, str)
                              else f"cuda:{int(device)}")
    if device.type != "cuda":
        return None
    dev.state.choose(device)
    return device


def _pinned(tensor):
    return tensor.untyped_storage().data_ptr() in dev.state.pinned.blocks


def _bytes(tensor):
    return tensor.numel() * tensor.element_size()


# --- from and to the device ---


def _in(tensor, non_blocking=False, **more):
    size = _bytes(tensor)
    dev.state.check_alloc(size)
    dev.state.copy(size, False, _pinned(tensor), non_blocking)
    return tensor.to("meta", **more)


def _out(tensor, dtype=None, non_blocking=False):
    state = dev.state
    state.note(f"values of the device are zeros, since nothing is computed; "
               f"first at {state.where()}", "zeros")
    state.copy(_bytes(tensor), True, non_blocking, non_blocking)
    if not non_blocking:
        state.synchronize()
    out = torch.zeros(tensor.shape, dtype=dtype or tensor.dtype)
    return out.requires_grad_() if tensor.requires_grad else out


def _to(func, args, kwargs):
    tensor, rest = args[0], args[1:]
    kwargs = dict(kwargs)
    copy = kwargs.pop("copy", False)
    other = kwargs.pop("other", None)
    if rest and isinstance(rest[0], _T):
        other, rest = rest[0], rest[1:]
    if other is not None:
        kwargs["dtype"] = other.dtype
        target = torch.device("cuda") if other.is_meta else other.device
        rest = (target, *rest)
    target, dtype, non_blocking, layout = torch._C._nn._parse_to(
        *rest, **kwargs)
    more = {} if layout is None else {"memory_format": layout}
    if target is not None and target.type == "cuda":
        dev.state.choose(target)
        if not tensor.is_meta:
            tensor = _in(tensor, non_blocking)
        if dtype is None and not more and not copy:
            return tensor
        return tensor.to(dtype=dtype or tensor.dtype, copy=copy, **more)
    if target is not None and tensor.is_meta and target.type == "cpu":
        return _out(tensor, dtype, non_blocking)
    return func(*args, **(kwargs if other is None else {}),
                **({"copy": True} if copy else {}))


def _to_cuda(func, args, kwargs):
    tensor, *rest = args
    device = rest[0] if rest else kwargs.get("device")
    _cuda_of("cuda" if device is None else device)
    non_blocking = rest[1] if len(rest) > 1 else \
        kwargs.get("non_blocking", False)
    return tensor if tensor.is_meta else _in(tensor, non_blocking)


def _value(func, args, kwargs):
    """item(), tolist(), bool(), numpy(), format(): what reads a value."""
    if not args[0].is_meta:
        return func(*args, **kwargs)
    host = _out(args[0].detach()) if func in _DETACHED else _out(args[0])
    return func(host, *args[1:], **kwargs)


def _to_numpy(func, args, kwargs):
    if args[0].is_meta:
        raise TypeError(
            f"can't convert cuda:{dev.state.index} device type tensor to numpy. "
            "Use Tensor.cpu() to copy the tensor to host memory first.")
    return func(*args, **kwargs)


def _copy(func, args, kwargs):
    to, source = args[0], args[1]
    non_blocking = args[2] if len(args) > 2 else \
        kwargs.get("non_blocking", False)
    if to.is_meta and not source.is_meta:
        dev.state.copy(_bytes(source), False, _pinned(source), non_blocking)
        return to
    if source.is_meta and not to.is_meta:
        return func(to, _out(source).expand_as(to))
    return func(*args, **kwargs)


def _repr(func, args, kwargs):
    if not args[0].is_meta:
        return func(*args, **kwargs)
    text = func(_out(args[0].detach()))
    return f"{text[:-1]}, device='cuda:{dev.state.index}')"


def _device(func, args, kwargs):
    if args[0].is_meta:
        return torch.device("cuda", dev.state.index)
    return func(*args)


def _type(func, args, kwargs):
    kind = args[1] if len(args) > 1 else kwargs.get("dtype")
    name = getattr(kind, "gpemu_name", kind)
    if isinstance(name, str) and name.startswith("torch.cuda."):
        dtype = getattr(torch.cuda, name[len("torch.cuda."):]).dtype
        return _to(_T.to, (args[0], "cuda", dtype), {})
    if len(args) == 1 and not kwargs and args[0].is_meta:
        return torch.zeros(0, dtype=args[0].dtype).type().replace(
            "torch.", "torch.cuda.")
    return func(*args, **kwargs)


def _address(func, args, kwargs):
    tensor = args[0]
    if not tensor.is_meta:
        return func(*args)
    return _storage_address(tensor.untyped_storage()) + \
        tensor.storage_offset() * tensor.element_size()


def _storage_address(storage):
    """Not 0 for all of the device: scripts look which tensors share memory."""
    return storage._cdata if storage.device.type == "meta" else \
        _data_ptr(storage)


def _on_device(value):
    return lambda func, args, kwargs: \
        value if args[0].is_meta else func(*args, **kwargs)


_DETACHED = {_T.tolist, _T.__format__, _T.item}
_HANDLERS = {
    _T.to: _to, _T.cuda: _to_cuda,
    _T.cpu: lambda func, args, kwargs:
        _out(args[0]) if args[0].is_meta else func(*args, **kwargs),
    _T.copy_: _copy, _T.type: _type,
    _T.__repr__: _repr,
    _T.device.__get__: _device,
    _T.is_cuda.__get__: _on_device(True),
    _T.is_meta.__get__: _on_device(False),
    _T.data_ptr: _address,
    _T.get_device: lambda func, args, kwargs:
        dev.state.index if args[0].is_meta else func(*args),
    **{f: _value for f in (
        _T.item, _T.tolist, _T.__bool__, _T.__int__, _T.__float__,
        _T.__index__, _T.__complex__, _T.__format__, _T.__contains__)},
    _T.numpy: _to_numpy, _T.__array__: _to_numpy,
}
# Operations that take no tensor of the host beside those of the device, but for
# numbers. Others may: an index, a copy
_ALIKE = frozenset("""add sub mul div true_divide matmul mm bmm addmm linear conv1d
    conv2d conv3d embedding batch_norm layer_norm cat stack where maximum minimum
    eq ne lt le gt ge cross_entropy nll_loss mse_loss l1_loss smooth_l1_loss
    binary_cross_entropy binary_cross_entropy_with_logits kl_div
    scaled_dot_product_attention lerp_ add_ sub_ mul_ div_ __add__ __sub__ __mul__
    __truediv__ __radd__ __rsub__ __rmul__ __matmul__ __iadd__ __isub__ __imul__
    """.split())


def _check_alike(func, args, kwargs):
    found = [t for a in (*args, *kwargs.values())
             for t in (a if isinstance(a, (list, tuple)) else (a,))
             if isinstance(t, _T)]
    with _raw():
        ours = any(t.is_meta for t in found)
        if ours and any(not t.is_meta and t.dim() for t in found):
            raise RuntimeError(
                "Expected all tensors to be on the same device, but found at "
                f"least two devices, cuda:{dev.state.index} and cpu! (gpemu "
                f"exec: {dev.state.where()}: {func.__name__})")


def _host(value):
    if isinstance(value, _T) and value.is_meta:
        return torch.zeros(value.shape, dtype=value.dtype)
    return value


def _back(value):
    return value.to("meta") if isinstance(value, _T) else value


class Mode(TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        handler = _HANDLERS.get(func)
        if handler:
            return handler(func, args, kwargs)
        if kwargs:  # few have any, and some scripts call thousands a step
            if kwargs.get("device") is not None and \
                    _cuda_of(kwargs["device"]):
                return self._create(func, args, kwargs)
            if kwargs.pop("pin_memory", False):
                return func(*args, **kwargs).pin_memory()
            if isinstance(kwargs.get("generator"), Generator):
                kwargs = {k: v for k, v in kwargs.items() if k != "generator"}
        if getattr(func, "__name__", None) in _ALIKE:
            _check_alike(func, args, kwargs)
        try:
            return func(*args, **kwargs)
        except (NotImplementedError, RuntimeError) as error:
            if "eta tensor" not in str(error) and \
                    "meta" not in str(error).lower():
                raise
            return self._depends(func, args, kwargs)

    @staticmethod
    def _create(func, args, kwargs):
        kwargs = dict(kwargs, device="meta")
        kwargs.pop("generator", None)
        if kwargs.pop("pin_memory", False):
            raise RuntimeError("only dense CPU tensors can be pinned")
        out = func(*args, **kwargs)
        if isinstance(out, _T):
            dev.state.check_alloc(out.numel() * out.element_size())
        return out

    @staticmethod
    def _depends(func, args, kwargs):
        """The shape depends on values: those of zeros."""
        state = dev.state
        state.synchronize()
        name = getattr(func, "__name__", str(func))
        state.note(f"{state.where()}: {name} depends on values: it gets zeros",
                   f"depends {name}")
        args, kwargs = tree_map(_host, (args, kwargs))
        return tree_map(_back, func(*args, **kwargs))


# --- what is replaced ---


class _GeneratorKind(type(torch.Generator)):
    def __instancecheck__(cls, value):
        return isinstance(value, torch._C.Generator)


class Generator(torch.Generator, metaclass=_GeneratorKind):
    """Of the device: nothing is drawn from it."""

    def __new__(cls, device=None):
        if not _cuda_of(device):
            return torch._C.Generator(device or "cpu")
        return super().__new__(cls, "cpu")

    def __init__(self, device=None):
        pass

    @property
    def device(self):
        return torch.device("cuda", dev.state.index)


def _pin_memory(tensor, device=None):
    if _pinned(tensor):
        return tensor
    with _raw():
        size = tensor.numel() * tensor.element_size()
        memory = dev.state.pinned.buffer(size) if size else None
        if size and memory is None:
            dev.state.note("the limit of locked memory (ulimit -l) is "
                           "reached: further pinned tensors are pageable")
            return tensor
        if not size:
            return tensor.clone()
        out = torch.frombuffer(memory, dtype=tensor.dtype,
                               count=tensor.numel())
        return out.view(tensor.shape).copy_(tensor)


def _is_pinned(tensor, device=None):
    with _raw():
        return not tensor.is_meta and _pinned(tensor)


def _backward(original):
    @functools.wraps(original)
    def backward(tensor, *args, **kwargs):
        with _raw():
            ours = tensor.is_meta
        if not ours:
            return original(tensor, *args, **kwargs)
        if not tensor.requires_grad:
            raise RuntimeError("element 0 of tensors does not require grad "
                               "and does not have a grad_fn")
        return modules.backward()
    return backward


def _grad(original):
    @functools.wraps(original)
    def grad(outputs, inputs, *args, **kwargs):
        first = outputs if isinstance(outputs, _T) else outputs[0]
        with _raw():
            if not first.is_meta:
                return original(outputs, inputs, *args, **kwargs)
            modules.backward(False)
            found = [inputs] if isinstance(inputs, _T) else list(inputs)
            graph = kwargs.get("create_graph", False)
            return tuple(torch.empty_like(t).requires_grad_(graph)
                         for t in found)
    return grad


def _backward_all(original):
    @functools.wraps(original)
    def backward(tensors, *args, **kwargs):
        first = tensors if isinstance(tensors, _T) else tensors[0]
        with _raw():
            ours = first.is_meta
        return modules.backward() if ours else \
            original(tensors, *args, **kwargs)
    return backward


def _apply(original):
    """Parameters stay the same objects when they move, as with CUDA."""
    @functools.wraps(original)
    def apply(module, fn, *args, **kwargs):
        if isinstance(module, torch.jit.ScriptModule):
            raise NotImplementedError(f"gpemu exec: {dev.state.where()}: "
                                      "TorchScript is not emulated")
        future = torch.__future__
        before = future.get_swap_module_params_on_conversion()
        future.set_swap_module_params_on_conversion(True)
        try:
            return original(module, fn, *args, **kwargs)
        finally:
            future.set_swap_module_params_on_conversion(before)
    return apply


def _optimizer(original):
    def profile_hook_step(func):
        @functools.wraps(func)
        def step(self, *args, **kwargs):
            return modules.step(self, func, args, kwargs)
        return original(step)
    return staticmethod(profile_hook_step)


def _zero_grad(original):
    @functools.wraps(original)
    def zero_grad(self, set_to_none=True):
        with _raw():
            groups = getattr(self, "param_groups", None)
            found = self.parameters() if groups is None else \
                (p for g in groups for p in g["params"])
            for p in found:
                if p.grad is None:
                    continue
                if set_to_none:
                    p.grad = None
                elif not p.is_meta:
                    return original(self, set_to_none)
    return zero_grad


def _quick(original, result):
    """Of gradients on the device nothing is computed."""
    @functools.wraps(original)
    def function(parameters, *args, **kwargs):
        found = [parameters] if isinstance(parameters, _T) else \
            list(parameters)
        with _raw():
            ours = bool(found) and found[0].is_meta
            if ours:
                return result()
        return original(found, *args, **kwargs)
    return function


def _scaler():
    """GradScaler: a step reads on the host whether gradients are finite."""
    scaler = torch.amp.GradScaler
    step = scaler.step

    def is_ours(self):
        return self._enabled and self._device == "cuda"

    def scaled(self, outputs):
        return outputs

    def new_step(self, optimizer, *args, **kwargs):
        if not is_ours(self):
            return step(self, optimizer, *args, **kwargs)
        dev.state.synchronize()
        return optimizer.step(*args, **kwargs)

    scaler.scale, scaler.step = scaled, new_step
    scaler.unscale_ = lambda self, optimizer: None
    scaler.update = lambda self, new_scale=None: None
    scaler.get_scale = lambda self: self._init_scale if self._enabled else 1.0
    scaler.state_dict = lambda self: {} if not self._enabled else {
        "scale": self._init_scale, "growth_factor": self._growth_factor,
        "backoff_factor": self._backoff_factor,
        "growth_interval": self._growth_interval, "_growth_tracker": 0}
    scaler.load_state_dict = lambda self, state: None


def _compile(model=None, *args, **kwargs):
    dev.state.note("torch.compile does nothing: the times are the profile's")
    return (lambda m: m) if model is None else model


def _loader():
    """What the script waits for its loader; where an epoch begins."""
    loader = torch.utils.data.DataLoader
    base = torch.utils.data.dataloader._BaseDataLoaderIter
    begin, following = loader.__iter__, base.__next__

    def __iter__(self):
        trains = torch.is_grad_enabled()
        if trains and os.getpid() == dev.pid:
            dev.state.record.begin_epoch(dev.state.card.now())
        out = begin(self)
        out.gpemu_trains = trains
        return out

    def __next__(self):
        if os.getpid() != dev.pid:
            return following(self)
        start = dev.state.card.now()
        # collation and transforms in this process are the host's own
        with _raw():
            try:
                return following(self)
            finally:
                dev.state.record.waited(start, dev.state.card.now(),
                                        getattr(self, "gpemu_trains", True))

    loader.__iter__, base.__next__ = __iter__, __next__
    worker = torch.utils.data._utils.worker
    loop = worker._worker_loop

    @functools.wraps(loop)
    def _worker_loop(*args, **kwargs):
        with _raw():
            return loop(*args, **kwargs)
    worker._worker_loop = _worker_loop


def _threads():
    """Modes are a thread's own."""
    run = threading.Thread.run

    def with_mode(self):
        if self.name.startswith("Thread-") and "_pin_memory" in self.name:
            return run(self)
        with Mode():
            return run(self)
    threading.Thread.run = with_mode


def _end():
    if os.getpid() == dev.pid:
        dev.state.record.end(modules._models.used)
        if dev.state.card.server:
            dev.state.card.leave()


def install() -> None:
    """After the import of torch."""
    global modules
    # The optimisers import it sooner or later; its tables want the originals.
    import torch._dynamo  # noqa: F401
    state = dev.open_device(json.loads(os.environ["GPEMU_EXEC"]))
    rank = os.environ.get("LOCAL_RANK")
    modules = Modules(state, Models(state.card, state.options, state.note))
    cuda.install()
    torch.UntypedStorage.data_ptr = _storage_address
    ddp.install()
    if "WORLD_SIZE" in os.environ and torch.distributed.is_available():
        fsdp.install()
    _T.pin_memory, _T.is_pinned = _pin_memory, _is_pinned
    _T.record_stream = lambda self, stream: None
    torch.Generator = Generator
    _T.backward = _backward(_T.backward)
    torch.autograd.backward = _backward_all(torch.autograd.backward)
    torch.autograd.grad = _grad(torch.autograd.grad)
    module = torch.nn.Module
    module.__call__ = lambda self, *a, **k: modules.call(self, *a, **k)
    module._apply = _apply(module._apply)
    module.compile = lambda self, *a, **k: _compile()
    module.zero_grad = _zero_grad(module.zero_grad)
    optimizer = torch.optim.Optimizer
    optimizer.profile_hook_step = _optimizer(optimizer.profile_hook_step)
    optimizer.zero_grad = _zero_grad(optimizer.zero_grad)
    utils = torch.nn.utils
    for place in utils, utils.clip_grad:
        place.clip_grad_norm_ = _quick(
            place.clip_grad_norm_, lambda: torch.empty((), device="meta"))
        place.clip_grad_value_ = _quick(place.clip_grad_value_, lambda: None)
    _scaler()
    saved.install()
    torch.compile = _compile
    _loader()
    _threads()
    if rank is not None and int(rank) < state.gpus:
        state.index = int(rank)
    Mode().__enter__()
    state.at_end = _end
    atexit.register(_end)
