# SPDX-License-Identifier: MIT
"""Files and pickles with tensors of the device: zeros, as many bytes, of the location
cuda, as PyTorch writes them. Loaded, they are the device's."""
from __future__ import annotations

import weakref

import torch

from gpemu._exec import device as dev

_raw = torch._C.DisableTorchFunction
_T = torch.Tensor
_BEFORE_CUDA = 1  # priority of a package; that of CUDA is 20
_addresses = set()  # of storages that are being written


def _reduce_ex(original):
    def reduce_ex(tensor, protocol):
        with _raw():
            if not tensor.is_meta or type(tensor) not in (
                    _T, torch.nn.Parameter):
                return original(tensor, protocol)
            if type(tensor) is torch.nn.Parameter:
                return (torch._utils._rebuild_parameter,
                        (tensor.data, tensor.requires_grad, {}))
            state = dev.state
            state.copy(tensor.numel() * tensor.element_size(), True, False,
                       False)
            host = torch.zeros(tensor.shape, dtype=tensor.dtype)
            storage = host.untyped_storage()
            address = storage.data_ptr()
            if address:
                _addresses.add(address)
                weakref.finalize(storage, _addresses.discard, address)
            host.requires_grad_(tensor.requires_grad)
            return original(host, protocol)
    return reduce_ex


def _location(storage):
    if storage.device.type == "cpu" and storage.data_ptr() in _addresses:
        return f"cuda:{dev.state.index}"
    return None


def _load(storage, location):
    if not str(location).startswith("cuda"):
        return None
    dev.state.choose(torch.device(location))
    dev.state.check_alloc(storage.nbytes())
    dev.state.copy(storage.nbytes(), False, False, False)
    return torch.UntypedStorage(storage.nbytes(), device="meta")


def install():
    torch.serialization.register_package(_BEFORE_CUDA, _location, _load)
    _T.__reduce_ex__ = _reduce_ex(_T.__reduce_ex__)
    torch.nn.Parameter.__reduce_ex__ = _reduce_ex(
        torch.nn.Parameter.__reduce_ex__)
