# SPDX-License-Identifier: MIT
"""Which model of the profile a module is, and what it costs."""
from __future__ import annotations

import re
from math import prod

import torch

from gpemu._exec.card import Cost
from gpemu._library import Error

# Of torchvision's models, which the profiles have with 1000 classes, and of
# GPT-2's tokens. Source: torchvision.models; Radford et al. 2019.
_CLASSES, _TOKENS = 1000, 50257
_PRECISIONS = ("fp32", "tf32", "fp16", "bf16", "fp8")
# Parameters that may be missing: biases of a GPT-2 without them are 0.08 %,
# positions 0.6 %. arbitrary: smaller than what two models differ in
_NEAR = 0.01
# Tensor cores: operations per cycle over those of the fp32 units. Source: data
# sheets: V100 125/15.7, A100 312/19.5 and 156/19.5, H100 989/66.9, 495/66.9
_TENSOR = {7: {"fp16": 8}, 8: {"fp16": 16, "bf16": 16, "tf32": 8},
           9: {"fp16": 14.8, "bf16": 14.8, "tf32": 7.4}}


class Unknown(RuntimeError):
    """No table for this model."""


def _parts(name, default):
    """base, sequence length, pixels, precision, channels last; None: it is
    that of several GPUs."""
    base, seq, px, precision, last = name.split(":")[0], 0, 224, default, False
    for word in name.split(":")[1:]:
        if re.fullmatch(r"(dp|tp|pp)\d+", word):
            return None
        if re.fullmatch(r"seq\d+", word):
            seq = int(word[3:])
        elif re.fullmatch(r"px\d+", word):
            px = int(word[2:])
        elif word in _PRECISIONS:
            precision = word
        elif word == "channels_last":
            last = True
    return base, seq, px, precision, last


def parameters(module):
    """(their number, and with the classes and tokens that profiles have)."""
    found = list(module.parameters())
    n = sum(p.numel() for p in found)
    counts = {n}
    heads = [p for p in found if p.dim() >= 2]
    if heads:
        head = heads[-1]
        bias = any(p.dim() == 1 and len(p) == len(head)
                   for p in found[-1:])
        counts.add(n + (_CLASSES - len(head)) * (prod(head.shape[1:]) + bias))
    if _embeds(found):
        counts.add(n + (_TOKENS - len(heads[0])) * prod(heads[0].shape[1:]))
    return n, counts


def _embeds(found):
    """Is its first matrix a table of tokens? That of a CNN has 4 dimensions."""
    first = next((p for p in found if p.dim() >= 2), None)
    return first is not None and first.dim() == 2


def precision_of(module, autocast, capability):
    if autocast is not None:
        return "bf16" if autocast == torch.bfloat16 else "fp16"
    first = next(module.parameters()).dtype
    if first in (torch.bfloat16, torch.float16):
        return "bf16" if first == torch.bfloat16 else "fp16"
    conv = any(isinstance(m, torch.nn.modules.conv._ConvNd)
               for m in module.modules())
    tf32 = torch.backends.cuda.matmul.allow_tf32 or \
        (conv and torch.backends.cudnn.allow_tf32)
    return "tf32" if tf32 and capability >= 8 else "fp32"


class Models:
    def __init__(self, card, options, note):
        self._card, self._options, self._note = card, options, note
        profile = card.profile
        self._default = profile.get("precision") or "fp32"
        self._board = profile.get("board", {})
        self._names = {name: _parts(name, self._default)
                       for name in profile["models"]}
        self.used = {}  #: name: how it was recognised

    def _near(self, n):
        order = sorted(
            (abs(m.get("parameters", 0) - n), name)
            for name, m in self._card.profile["models"].items())
        return ", ".join(
            f"{name} ({self._card.profile['models'][name]['parameters']:,})"
            for _, name in order[:4] if
            self._card.profile["models"][name].get("parameters"))

    def find(self, module, shape, autocast):
        """The name of its table."""
        forced = self._options.get("model")
        if forced:
            self.used[forced] = "--model"
            return forced
        n, counts = parameters(module)
        tables = self._card.profile["models"]
        same = [name for name, parts in self._names.items() if parts
                and tables[name].get("parameters") in counts]
        how = "parameters"
        if not same and _embeds(module.parameters()):
            same = [name for name, parts in self._names.items() if parts
                    and any(abs(tables[name].get("parameters", 0) - c)
                            < _NEAR * c for c in counts)]
            how = "nearly its parameters"
        if not same:
            raise Unknown(
                f"the profile of {self._card.profile['name']} has no model "
                f"with {n:,} parameters; the nearest are {self._near(n)}. "
                "--model NAME takes the times of one, --estimate counts "
                "operations and bytes")
        name = self._variant(module, shape, autocast, same)
        if name not in self.used and how != "parameters":
            self._note(f"{n:,} parameters are taken as {name}, which has "
                       f"{tables[name]['parameters']:,}")
        self.used[name] = how
        return name

    def _variant(self, module, shape, autocast, names):
        want = self._options.get("precision") or precision_of(
            module, autocast, int(self._board.get("compute_capability", 0)))
        parts = self._names
        images = len(shape) == 4
        size = shape[-1] if images else shape[1] if len(shape) > 1 else 0
        fit = [n for n in names
               if size == (parts[n][2] if images else parts[n][1])]
        if not fit:
            raise Unknown(
                f"{', '.join(names)} has no table for inputs of {list(shape)}"
                ": --model NAME takes its times nevertheless, --estimate "
                "counts operations and bytes")
        here = [n for n in fit if parts[n][3] == want]
        if not here and want == "tf32":
            here = [n for n in fit if parts[n][3] == "fp32"]
            if here:
                self._note(f"{here[0]} was not measured in TF32, which the "
                           "script allows: these are the times of fp32")
        if not here:
            raise Unknown(
                f"{', '.join(fit)}: not measured in {want}, in which the "
                f"script computes; --precision {parts[fit[0]][3]} takes the "
                "times that are there, --estimate counts operations and bytes")
        last = any(p.dim() == 4 and not p.is_contiguous()
                   for p in module.parameters())
        exact = [n for n in here if parts[n][4] == last]
        if not exact:
            self._note(f"{here[0]} was not measured with this layout "
                       f"({'channels_last' if last else 'contiguous'})")
        return min(exact or here, key=len)

    def host(self, name):
        """What the host takes to launch a step, and what the first steps take
        more, ns."""
        model = self._card.profile["models"].get(name, {})
        return model.get("host_ms", 0) * 1e6, \
            [ms * 1e6 for ms in model.get("warmup_ms", [])]

    def cost(self, module, shape, autocast, count):
        """The cost of a step; `count`: its operations, for an estimate."""
        try:
            name = self.find(module, shape, autocast)
        except Unknown:
            if not self._options.get("estimate"):
                raise
            if self._card.server:
                raise Unknown("--estimate: not on the GPU of a server, whose "
                              "profile must have the model") from None
            return self._estimate(module, autocast, count), "ESTIMATED"
        rows = self._card.profile["models"][name]["rows"]
        least = min(row[0] if isinstance(row, list) else row["batch"]
                    for row in rows)
        n = shape[0] if shape else 1
        more = bool(self._options.get("extrapolate")) or n < least
        try:
            return self._card.cost(name, n, more), name
        except Error as error:
            if error.errno == 7:  # E2BIG
                memory = self._card.profile["memory_mib"] / 1024
                raise torch.cuda.OutOfMemoryError(
                    f"CUDA out of memory. GPU 0 has a total capacity of "
                    f"{memory:.2f} GiB. gpemu: {error}") from None
            raise Unknown(str(error)) from None

    def _estimate(self, module, autocast, count):
        board = self._board
        if not board.get("cores") or not board.get("memory_clock_mhz"):
            raise Unknown("--estimate needs cores and clocks in the profile's "
                          "board")
        precision = self._options.get("precision") or precision_of(
            module, autocast, int(board.get("compute_capability", 0)))
        # a multiplication and an addition each cycle; two transfers a clock
        rate = board["cores"] * 2e6 * board["clock_mhz"] * _TENSOR.get(
            int(board.get("compute_capability", 0)), {}).get(precision, 1)
        memory = board["memory_clock_mhz"] * 2e6 * \
            board["memory_bus_bits"] / 8
        half = 0.5 if precision in ("fp16", "bf16") else 1
        forward = sum(max(flops / rate, size * half / memory)
                      for flops, size in count.ops)
        n = sum(p.numel() * p.element_size() for p in module.parameters())
        self.used["ESTIMATED"] = (
            f"{sum(f for f, _ in count.ops):,} operations and "
            f"{sum(b for _, b in count.ops):,} bytes forward, {precision}")
        self._note("ESTIMATED: the times of this model are the sum, over its "
                   "operations, of arithmetic or memory traffic at the board's "
                   "peak rates; a real step is slower")
        # backward: gradients of inputs and of weights; optimiser: reads
        # weight, gradient, state, writes two of them
        return Cost(forward_ns=int(forward * 1e9),
                    backward_ns=int(2 * forward * 1e9),
                    optimizer_ns=int(5 * n / memory * 1e9))
