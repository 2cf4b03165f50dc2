# SPDX-License-Identifier: MIT
"""A stand-in for PyTorch with one CUDA device, for tests of gpemu-profile measure.

It has the calls that tools/measure makes, as strict as those of PyTorch 2 with
the CUDA backend: what wants a device with an index refuses one without, a copy
with non_blocking from pageable memory waits, memory runs out. It computes
nothing. Its clock is virtual and replaces time.perf_counter, so a measurement
takes no time and has exact results:

	a step of n samples	forward 1 + n ms, backward 2 n ms + n^2 / 100 ms,
				optimiser 0.5 ms, peak 100 + 10 n MiB; each of
				the three is launched in 0.05 ms of the host
	the first two steps	of a model take 30 and 10 ms more
	copies, per GB		pinned 20 ms; pageable 100 ms, beyond 24 MiB
				200 ms; to pinned memory 400 ms by the number of
				threads; each 10 us more
	the first touch		of memory costs 5 ms

Facts of the refusals: torch/cuda/_utils.py (_get_device_index) of PyTorch 2.
"""
import time
import types

__version__ = "2.standin"
MIB = 2**20
MEMORY = 1000 * MIB
_now = [0.0]
_gpu = [0.0]  # it is busy until then
_threads = [16]
time.perf_counter = lambda: _now[0]

uint8, int64, float32, bfloat16 = "uint8", "int64", "float32", "bfloat16"
channels_last = "channels_last"
_sizes = {uint8: 1, int64: 8, float32: 4}


class OutOfMemoryError(RuntimeError):
    pass


class device:
    def __init__(self, name):
        kind, _, index = str(name).partition(":")
        if kind not in ("cpu", "cuda"):
            raise RuntimeError(f"Expected one of cpu, cuda device type: {name}")
        self.type, self.index = kind, int(index) if index else None

    def __repr__(self):
        return self.type + (f":{self.index}" if self.index is not None else "")


def _tick(seconds):
    _now[0] += seconds


def _launch(seconds, host):
    _gpu[0] = max(_gpu[0], _now[0]) + seconds
    _tick(host)


def _index(where, optional=False):
    """As _get_device_index."""
    if isinstance(where, str):
        where = device(where)
    if isinstance(where, device):
        if where.type != "cuda":
            raise ValueError(f"Expected a cuda device, but got: {where}")
        where = where.index
        if where is None and not optional:
            raise ValueError(
                "Expected a torch.device with a specified index or an "
                "integer, but got:cuda"
            )
    if where is None:
        where = 0
    if where != 0:
        raise RuntimeError("CUDA error: invalid device ordinal")
    return where


class Tensor:
    def __init__(self, n, dtype=float32, where="cpu", pinned=False, hold=0):
        self.nbytes, self.dtype, self.pinned = n, dtype, pinned
        self.device = device(where)
        self.touched = False

    def _touch(self):
        if not self.touched:
            _tick(5e-3)
        self.touched = True

    def clone(self):
        return Tensor(self.nbytes, self.dtype, self.device)

    def pin_memory(self):
        if self.device.type != "cpu":
            raise RuntimeError("cannot pin 'torch.cuda.FloatTensor'")
        self._touch()
        _tick(10e-6 + self.nbytes * 400e-12 / _threads[0])
        return Tensor(self.nbytes, self.dtype, "cpu", True)

    def to(self, where=None, non_blocking=False, memory_format=None):
        if where is None:
            return self
        if device(where).type == "cuda":
            _index(where, optional=True)
            self._touch()
            rate = 20e-12 if self.pinned else 100e-12
            if not self.pinned and self.nbytes > 24 * MIB:
                rate = 200e-12
            _launch(10e-6 + self.nbytes * rate, 0)
            if not self.pinned or not non_blocking:
                cuda.synchronize()
        return Tensor(self.nbytes, self.dtype, where)

    def numel(self):
        return self.nbytes // _sizes[self.dtype]


def _shape(sizes):
    n = 1
    for size in sizes:
        n *= size
    return n


def randn(*sizes):
    return Tensor(_shape(sizes) * 4)


def randint(*args):
    return Tensor(_shape(args[-1]) * 8, int64)


def zeros(n, dtype=float32, device="cpu"):
    if str(device) != "cpu":
        _index(device, optional=True)
    return Tensor(n * _sizes[dtype], dtype, device)


def is_tensor(value):
    return isinstance(value, Tensor)


def manual_seed(seed):
    pass


def set_num_threads(n):
    _threads[0] = n


def get_num_threads():
    return _threads[0]


class autocast:
    def __init__(self, kind, dtype=None):
        assert kind == "cuda" and dtype == bfloat16

    def __enter__(self):
        return self

    def __exit__(self, *what):
        return False


class Model:
    """Of 1,000,000 parameters."""

    def __init__(self):
        self.weights = Tensor(4_000_000)
        self.weights.grad = None
        self.first = [30e-3, 10e-3]

    def train(self):
        return self

    def to(self, where=None, memory_format=None):
        self.weights = self.weights.to(where)
        self.weights.grad = None
        return self

    def state_dict(self):
        return {"weights": self.weights}

    def parameters(self):
        return iter([self.weights])

    def buffers(self):
        return iter([])

    def __call__(self, inputs):
        assert inputs.device.type == "cuda", "Expected all tensors on one device"
        n = inputs.nbytes // (3 * 224 * 224 * 4)
        peak = (100 + 10 * n) * MIB
        cuda._peak = max(cuda._peak, peak)
        if peak > MEMORY:
            raise OutOfMemoryError("CUDA out of memory. Tried to allocate")
        _launch((1 + n) / 1e3 + (self.first.pop(0) if self.first else 0), 50e-6)
        return n


class _Loss:
    def __init__(self, n):
        self.n = n

    def backward(self):
        _launch((2 * self.n + self.n**2 / 100) / 1e3, 50e-6)


class SGD:
    def __init__(self, parameters, **options):
        self.state = {}

    def zero_grad(self, set_to_none=True):
        pass

    def step(self):
        _launch(0.5e-3, 50e-6)


class Event:
    def __init__(self, enable_timing=False):
        self.timing, self.at = enable_timing, None

    def record(self):
        self.at = max(_gpu[0], _now[0])

    def elapsed_time(self, other):
        if not self.timing:
            raise ValueError("Both events must be created with argument "
                             "'enable_timing=True'.")
        return (other.at - self.at) * 1e3


class _Cuda(types.SimpleNamespace):
    _peak = 0

    def is_available(self):
        return True

    def current_device(self):
        return 0

    def set_device(self, where):
        _index(where)

    def synchronize(self, where=None):
        _index(where, optional=True)
        _now[0] = max(_now[0], _gpu[0])

    def get_device_properties(self, where=None):
        _index(where, optional=True)
        return types.SimpleNamespace(
            name="Stand-in GPU", major=9, minor=0, uuid="0", total_memory=MEMORY
        )

    def mem_get_info(self, where=None):
        _index(where, optional=True)
        return MEMORY * 98 // 100, MEMORY

    def is_bf16_supported(self):
        return True

    def empty_cache(self):
        pass

    def reset_peak_memory_stats(self, where=None):
        _index(where, optional=True)
        self._peak = 0

    def max_memory_allocated(self, where=None):
        _index(where, optional=True)
        return self._peak

    def memory_allocated(self, where=None):
        _index(where, optional=True)
        return 20 * MIB


cuda = _Cuda(Event=Event)
version = types.SimpleNamespace(cuda="0.0", hip=None)
backends = types.SimpleNamespace(
    cuda=types.SimpleNamespace(matmul=types.SimpleNamespace(allow_tf32=False)),
    cudnn=types.SimpleNamespace(
        allow_tf32=False, is_available=lambda: False, version=lambda: None
    ),
)
nn = types.SimpleNamespace(
    functional=types.SimpleNamespace(cross_entropy=lambda output, labels: _Loss(output))
)
optim = types.SimpleNamespace(SGD=SGD)
