# SPDX-License-Identifier: MIT
"""Forward, backward, optimiser. A module runs on meta tensors once for each
shape of its inputs; after that its outputs are made from memory."""
from __future__ import annotations

from weakref import WeakKeyDictionary

import torch
from torch.nn.modules.loss import _Loss
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_map, tree_unflatten
from torch.utils.flop_counter import flop_registry

from gpemu._exec import ddp, fsdp

_raw = torch._C.DisableTorchFunction


class Count(TorchDispatchMode):
    """The operations of a forward pass: [(flops, bytes)]."""

    def __init__(self):
        super().__init__()
        self.ops, self.autocast = [], None

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        # some wrap the module's forward() in it
        self.autocast = self.autocast or _autocast()
        out = func(*args, **(kwargs or {}))
        if func.is_view or func.namespace == "prim":
            return out
        counter = flop_registry.get(func._overloadpacket)
        flops = counter(*args, **(kwargs or {}), out_val=out) if counter else 0
        size = sum(t.numel() * t.element_size() for t in
                   tree_flatten((args, kwargs, out))[0]
                   if isinstance(t, torch.Tensor))
        self.ops.append((flops, size))
        return out


# Kernels of an optimiser, which takes many parameters at once. arbitrary: few
_OPTIMIZER = 10


class _Known:
    """What a forward pass with these inputs gives and costs."""

    def __init__(self, out, cost=None, name=None, launches=0, samples=0,
                 host_ns=0, warmup_ns=()):
        leaves, self.spec = tree_flatten(out)
        self.cost, self.name = cost, name
        self.launches, self.samples = launches, samples
        # the host's time of a step is its kernels', each alike
        self.launch_ns = host_ns / (3 * launches + _OPTIMIZER)
        self.warmup_ns = warmup_ns
        self.leaves = []
        for leaf in leaves:
            if isinstance(leaf, torch.Tensor) and leaf.is_meta:
                kept = torch.empty_strided(leaf.shape, leaf.stride(),
                                           dtype=leaf.dtype, device="meta")
                kept.requires_grad_(leaf.requires_grad)
                self.leaves.append((True, kept))
            else:
                self.leaves.append((False, leaf))

    def output(self):
        # a clone: not a leaf, where it has a gradient
        return tree_unflatten([kept.clone() if ours else kept
                               for ours, kept in self.leaves], self.spec)


def _key(value):
    if isinstance(value, torch.Tensor):
        return (value.shape, value.dtype, value.is_meta, value.requires_grad)
    if isinstance(value, (list, tuple)):
        return tuple(map(_key, value))
    if isinstance(value, dict):
        return tuple((k, _key(v)) for k, v in value.items())
    try:
        hash(value)
        return value
    except TypeError:
        return type(value)


def _autocast():
    if not torch.is_autocast_enabled("cuda"):
        return None
    return torch.get_autocast_dtype("cuda")


class Modules:
    def __init__(self, device, models):
        self._device, self._models = device, models
        self._known = WeakKeyDictionary()  # module: {key: _Known}
        self._filled = WeakKeyDictionary()  # module: [(parameter, gradient)]
        self._depth = 0
        self._forwards, self._backwards = [], []
        self._leaves = []  # inputs that want a gradient
        self._hooked = []  # parameters with hooks on theirs
        self._steps = WeakKeyDictionary()  # module: steps begun
        self._ran = WeakKeyDictionary()  # optimiser: it has its state
        self._original = torch.nn.Module.__call__

    # --- forward ---

    def call(self, module, *args, **kwargs):
        if self._depth:
            return self._original(module, *args, **kwargs)
        with _raw():
            first = next(module.parameters(), None)
            ours = first is not None and first.is_meta
            loss = not ours and isinstance(module, _Loss) and \
                isinstance(args[0] if args else None, torch.Tensor) and \
                args[0].is_meta
        if loss:
            return self._loss(module, args, kwargs)
        if not ours:
            return self._original(module, *args, **kwargs)
        reduce = False
        while isinstance(module, (torch.nn.DataParallel, ddp.Ddp)):
            reduce = reduce or getattr(module, "require_backward_grad_sync",
                                       False)
            module = module.module
            args, kwargs = tree_map(self._to_device, (args, kwargs))
        if isinstance(module, fsdp.Sharded):
            shards = module.gpemu_shards
            reduce = shards.synchronise and shards
        begin = self._device.card.now()
        with _raw():
            key = (module.training, torch.is_grad_enabled(), _autocast(),
                   _key(args), _key(kwargs))
            known = self._known.setdefault(module, {}).get(key)
            self._leaves += [t for t in (*args, *kwargs.values())
                             if isinstance(t, torch.Tensor)
                             and t.requires_grad and t.is_leaf]
            if known:
                return self._submit(module, known, begin, reduce)
        return self._run(module, key, args, kwargs, begin, reduce)

    def _loss(self, module, args, kwargs):
        """Takes no time of its own: the profiles have it in backward."""
        with _raw():
            key = (torch.is_grad_enabled(), _key(args), _key(kwargs))
            kept = self._known.setdefault(module, {})
            if key in kept:
                return kept[key].output()
        out = self._original(module, *args, **kwargs)
        with _raw():
            kept[key] = _Known(out)
        return out

    def _to_device(self, value):
        if isinstance(value, torch.Tensor) and value.device.type == "cpu":
            return value.to("cuda")
        return value

    def _run(self, module, key, args, kwargs, begin, reduce):
        """Not seen before."""
        tensors = [t for t in tree_flatten((args, kwargs))[0]
                   if isinstance(t, torch.Tensor)]
        with _raw():
            if any(not t.is_meta and t.dim() for t in tensors):
                raise RuntimeError(
                    "Expected all tensors to be on the same device, but found "
                    "at least two devices, cpu and cuda:"
                    f"{self._device.index}! (gpemu exec: "
                    f"{self._device.where()})")
        count = Count()
        self._depth += 1
        try:
            with count:
                out = self._original(module, *args, **kwargs)
        finally:
            self._depth -= 1
        with _raw():
            shape = tensors[0].shape if tensors else ()
            cost, name = self._models.cost(
                module, shape, _autocast() or count.autocast or
                getattr(reduce, "precision", None), count)
            if cost.extrapolated:
                self._device.note(
                    f"a batch of {shape[0]} is outside of the table of {name}:"
                    " its times are extrapolated")
            known = _Known(out, cost, name, len(count.ops),
                           shape[0] if len(shape) else 1,
                           *self._models.host(name))
            hooked = any(m._forward_hooks or m._forward_pre_hooks
                         for m in module.modules())
            if any(m._backward_hooks or m._backward_pre_hooks
                   for m in module.modules()) or \
                    any(p._backward_hooks for p in module.parameters()):
                self._device.note(f"{type(module).__name__} has backward "
                                  "hooks, which are not called")
            if hooked:
                self._device.note(f"{type(module).__name__} has forward hooks:"
                                  " it runs in each step, on no data")
            else:
                self._known[module][key] = known
            return self._submit(module, known, begin, reduce)

    def _submit(self, module, known, begin, reduce):
        """The outputs of a forward pass; `reduce`: gradients over all ranks."""
        device, out = self._device, known.output()
        device.used_by_step(known.cost)
        trains, warmup = torch.is_grad_enabled(), 0
        if trains:
            n = self._steps.get(module, 0)
            self._steps[module] = n + 1
            warmup = known.warmup_ns[n] if n < len(known.warmup_ns) else 0
        self._work("forward", known, known.cost.forward_ns, known.launches,
                   begin, warmup)
        if trains:
            self._forwards.append((module, known, reduce))
        else:
            device.record.forget()
        return out

    def _work(self, what, known, ns, launches, begin, warmup_ns=0):
        """A part of a step, which the host launches from `begin` on."""
        done = self._device.compute(
            ns, launches, (what, known.name, known.samples),
            begin + int(launches * known.launch_ns), warmup_ns)
        self._device.record.worked(done, what)
        return done

    # --- backward ---

    def _gradients(self, module):
        found = self._filled.get(module)
        if found is None:
            found = self._filled[module] = [
                (p, torch.empty_like(p).detach()) for p in module.parameters()]
        return found

    def backward(self, fills=True):
        """All that came forward. `fills`: gradients of parameters and inputs."""
        with _raw():
            begin = self._device.card.now()
            for module, known, reduce in self._forwards:
                if fills:
                    self._fill(module)
                done = self._work("backward", known, known.cost.backward_ns,
                                  2 * known.launches, begin)
                if reduce and ddp.active():
                    self._reduce(module, known, reduce,
                                 *self._device.times(done))
                begin = self._device.card.now()
            self._backwards += self._forwards
            self._forwards = []
            for leaf in self._leaves if fills else ():
                leaf.grad = torch.empty_like(leaf).detach()
            self._leaves.clear()
            hooked, self._hooked = self._hooked, []
        for parameter in hooked:
            for hook in parameter._post_accumulate_grad_hooks.values():
                hook(parameter)

    def _fill(self, module):
        for parameter, gradient in self._gradients(module):
            if not parameter.requires_grad:
                continue
            if parameter.grad is None:
                parameter.grad = gradient
            if parameter._post_accumulate_grad_hooks:
                self._hooked.append(parameter)

    def _reduce(self, module, known, how, begin, end):
        until = how.reduced(module, known.cost, begin, end) \
            if isinstance(how, fsdp.Shards) else \
            ddp.ranks.reduced(begin, end, ddp.gradient_bytes(module))
        self._device.record.reduced(end, until)
        self._device.stream.end_ns = until

    # --- optimiser ---

    def step(self, optimizer, func, args, kwargs):
        """Of torch.optim: the state is made by a first step on meta."""
        with _raw():
            ours = any(p.is_meta for group in optimizer.param_groups
                       for p in group["params"][:1])
        if not ours:
            return func(optimizer, *args, **kwargs)
        begin = self._device.card.now()
        out, closure = None, args[0] if args else kwargs.get("closure")
        if closure:
            with torch.enable_grad():
                out = closure()
            begin = self._device.card.now()
        if optimizer not in self._ran:
            self._make_state(optimizer, func)
            self._ran[optimizer] = True
        done, self._backwards = self._backwards, []
        if done:
            known = max((k for _, k, _ in done),
                        key=lambda k: k.cost.optimizer_ns)
            self._work("optimizer", known, known.cost.optimizer_ns,
                       _OPTIMIZER, begin)
            self._device.record.step(sum(k.samples for _, k, _ in done))
        return out

    def _make_state(self, optimizer, func):
        names = ("foreach", "fused", "capturable", "differentiable")
        kept = [{n: g.pop(n) for n in names if n in g}
                for g in optimizer.param_groups]
        for group, old in zip(optimizer.param_groups, kept):
            group.update({n: False for n in old})
        try:
            if isinstance(optimizer, torch.optim.LBFGS):
                self._device.note("the closure of LBFGS runs once in a step")
            else:
                func(optimizer)
        finally:
            for group, old in zip(optimizer.param_groups, kept):
                group.update(old)
