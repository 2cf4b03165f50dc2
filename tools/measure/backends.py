# SPDX-License-Identifier: MIT
"""Differences between devices: clocks, memory, copies, facts.

Times are seconds, memory is MiB.
"""
import ctypes
import gc
import os
import re
import resource
import subprocess
import time

import torch

MIB = 2**20


class Missing(Exception):
    """The device does not exist; with a message."""


def status_mib(key):
    """A kB line of /proc/self/status, by name."""
    with open("/proc/self/status") as f:
        return int(re.search(rf"^{key}:\s+(\d+)", f.read(), re.M)[1]) / 1024


class Backend:
    """A torch device, timed by the host clock around synchronised work."""

    kind = None
    copy_note = None  # remark on its transfers
    limit_mib = None  # of memory, if requested
    dies = False  # can running out of memory kill the process?
    ahead = 1  # steps submitted before waiting for the device
    launches = False  # does it compute while the host goes on?

    def __init__(self, name):
        self.device = torch.device(name)

    def sync(self):
        pass

    def mark(self):
        self.sync()
        return time.perf_counter()

    def between(self, a, b):
        return b - a

    def pinned(self, tensor):
        """The tensor in pinned host memory, or pageable if there is none."""
        return tensor.clone()

    def upload(self, tensors, non_blocking=False):
        return [t.to(self.device, non_blocking=non_blocking) for t in tensors]

    def upload_model(self, model):
        """Seconds; the model is on the device afterwards."""
        model.to("cpu")
        self.sync()
        start = time.perf_counter()
        model.to(self.device)
        self.sync()
        return time.perf_counter() - start

    def refuses(self, precision):
        """Why a precision is not available, or None."""
        return None if precision == "fp32" else f"{self.kind} has no {precision}"

    def release(self):
        gc.collect()

    def is_oom(self, error):
        return "out of memory" in str(error)

    def clocks(self):
        return None

    def board(self):
        """Facts of the card for monitoring, or None."""
        return None


class Cpu(Backend):
    """The host itself.

    Its memory is the anonymous memory of this process. A limit makes an
    allocation fail rather than the machine run out of it.
    """

    kind = "cpu"
    dies = True
    copy_note = (
        "the device is the host: a transfer is a copy within its memory, and "
        "no memory is pinned"
    )
    OOM = re.compile(
        "allocate memory|not enough memory|bad_alloc|"
        "could not (create a memory|execute a primitive|create a primitive)"
    )

    def __init__(self, name, limit_mib):
        super().__init__(name)
        self.libc = ctypes.CDLL(None)
        # threads and their stacks, before the limit
        torch.randn(256, 256).mm(torch.randn(256, 256))
        self.limit_mib = limit_mib
        self.total_mib = limit_mib or 0.8 * self.host_mib()
        limit = int((status_mib("VmData") + self.total_mib) * MIB)
        resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
        self.release()
        self.empty_mib = status_mib("VmRSS")
        self.usable = 1.0

    @staticmethod
    def host_mib():
        sizes = [os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")]
        try:
            with open("/sys/fs/cgroup/memory.max") as f:
                sizes += [int(f.read())]
        except (OSError, ValueError):
            pass  # no control group, or no limit there
        return min(sizes) / MIB

    def refuses(self, precision):
        return "cpu has no tf32" if precision == "tf32" else None

    def upload(self, tensors, non_blocking=False):
        return [t.clone() for t in tensors]

    def upload_model(self, model):
        start = time.perf_counter()
        for tensor in model.state_dict().values():
            tensor.clone()
        return time.perf_counter() - start

    def release(self):
        gc.collect()
        self.libc.malloc_trim(0)

    def is_oom(self, error):
        return isinstance(error, MemoryError) or bool(self.OOM.search(str(error)))

    def watch_memory(self):
        with open("/proc/self/clear_refs", "w") as f:
            f.write("5")  # reset the high-water mark

    def memory(self, tensors):
        """(peak, persistent) since watch_memory; what `tensors` hold stays."""
        held = {}
        for t in tensors:
            storage = getattr(t, "untyped_storage", t.storage)()
            held[storage.data_ptr()] = storage.nbytes()
        persistent = sum(held.values()) / MIB
        return max(status_mib("VmHWM") - self.empty_mib, persistent), persistent

    def facts(self):
        with open("/proc/cpuinfo") as f:
            model = re.search(r"^model name\s*:\s*(.*)$", f.read(), re.M)
        return {
            "name": " ".join(model[1].split()) if model else "CPU",
            "text": f"{os.cpu_count()} CPUs, {torch.get_num_threads()} threads",
        }


class Cuda(Backend):
    """A GPU of NVIDIA (or of AMD, in a build of PyTorch for ROCm)."""

    kind = "cuda"
    ahead = 5
    launches = True

    def __init__(self, name, limit_mib):
        if not torch.cuda.is_available():
            raise Missing("no CUDA device, or a PyTorch built without CUDA")
        super().__init__(name)
        try:
            torch.cuda.set_device(self.device)
            torch.zeros(1, device=self.device)
        except (RuntimeError, ValueError) as error:
            raise Missing(f"{name}: {error}") from None
        self.props = torch.cuda.get_device_properties(self.device)
        free, total = torch.cuda.mem_get_info(self.device)
        self.total_mib = total / MIB
        self.usable = free / total  # the context already exists
        self.limit_mib = limit_mib
        if limit_mib:
            self.total_mib = min(self.total_mib, limit_mib)
            self.usable = 1.0
            torch.cuda.set_per_process_memory_fraction(
                self.total_mib * MIB / total, self.device
            )

    def sync(self):
        torch.cuda.synchronize(self.device)

    def mark(self):
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def between(self, a, b):
        return a.elapsed_time(b) / 1e3

    def pinned(self, tensor):
        return tensor.pin_memory()

    def refuses(self, precision):
        if precision == "tf32" and (torch.version.hip or self.props.major < 8):
            return "this device has no tf32"
        if precision == "bf16" and not torch.cuda.is_bf16_supported():
            return "this device has no bf16"
        return None

    def release(self):
        gc.collect()
        torch.cuda.empty_cache()

    def watch_memory(self):
        self.sync()
        torch.cuda.reset_peak_memory_stats(self.device)

    def memory(self, tensors):
        self.sync()
        return (
            torch.cuda.max_memory_allocated(self.device) / MIB,
            torch.cuda.memory_allocated(self.device) / MIB,
        )

    def smi(self, query):
        """Values from nvidia-smi for this device, or None."""
        which = getattr(self.props, "uuid", None)
        which = f"GPU-{which}" if which else str(self.device.index or 0)
        try:
            out = subprocess.run(
                ["nvidia-smi", "-i", which, "--format=csv,noheader"]
                + [f"--query-gpu={query}"],
                capture_output=True,
                text=True,
                check=True,
                timeout=30,
            ).stdout
        except (OSError, subprocess.SubprocessError):
            return None
        return [cell.strip() for cell in out.strip().split(",")]

    def clocks(self):
        now = self.smi("clocks.sm,clocks.mem")
        return now and {"sm": now[0], "memory": now[1]}

    def board(self):
        keys = {
            "power_limit_w": "power.default_limit",
            "clock_mhz": "clocks.max.sm",
            "memory_clock_mhz": "clocks.max.mem",
            "pcie_generation": "pcie.link.gen.max",
            "pcie_width": "pcie.link.width.max",
        }
        smi = self.smi(",".join(keys.values())) or []
        numbers = [re.match(r"[0-9.]+", cell) for cell in smi]
        facts = {k: float(n[0]) for k, n in zip(keys, numbers) if n}
        if not facts:
            return None
        capability = f"{self.props.major}.{self.props.minor}"
        facts["compute_capability"] = float(capability)
        facts["source"] = "nvidia-smi and PyTorch on the measured card"
        return facts

    def facts(self):
        text = [f"CUDA {torch.version.cuda or torch.version.hip}"]
        if torch.backends.cudnn.is_available():
            text.append(f"cuDNN {torch.backends.cudnn.version()}")
        smi = self.smi("driver_version,clocks.max.sm,clocks.max.mem,power.limit")
        if smi:
            text.append(
                "driver {}, clocks of at most {} (SM) and {} (memory), power "
                "limit {}".format(*smi)
            )
        return {"name": self.props.name, "text": ", ".join(text)}


class Mps(Backend):
    """The GPU of an Apple machine."""

    kind = "mps"
    launches = True
    copy_note = "the host's memory is the device's, and none is pinned"

    def __init__(self, name, limit_mib):
        if not getattr(torch.backends, "mps", None) or (
            not torch.backends.mps.is_available()
        ):
            raise Missing("no MPS device, or a PyTorch built without it")
        super().__init__(name)
        size = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        self.total_mib = size / MIB
        self.usable = 0.75  # share of host memory recommended by Metal
        self.limit_mib = limit_mib
        if limit_mib:
            self.total_mib = min(self.total_mib, limit_mib)
            torch.mps.set_per_process_memory_fraction(
                self.total_mib * MIB / torch.mps.recommended_max_memory()
            )

    def sync(self):
        torch.mps.synchronize()

    def release(self):
        gc.collect()
        torch.mps.empty_cache()

    def watch_memory(self):
        self.release()

    def memory(self, tensors):
        self.sync()
        held = torch.mps.current_allocated_memory() / MIB
        return max(torch.mps.driver_allocated_memory() / MIB, held), held

    def facts(self):
        return {"name": "Apple MPS", "text": "Metal"}


KINDS = {"cpu": Cpu, "cuda": Cuda, "mps": Mps}


def resolve(name):
    """The device of a name; "auto": the first available kind."""
    mps = getattr(torch.backends, "mps", None)
    if name == "auto":
        name = "cpu"
        if torch.cuda.is_available():
            name = "cuda"
        elif mps and mps.is_available():
            name = "mps"
    if name == "cuda" and torch.cuda.is_available():
        # set_device and others want an index
        return f"cuda:{torch.cuda.current_device()}"
    if not re.fullmatch(r"cpu|mps|cuda(:\d+)?", name):
        raise ValueError(
            f"unknown device '{name}' (known: auto cpu mps cuda cuda:N)"
        )
    return name


def open_backend(name, limit_mib):
    name = resolve(name)
    return KINDS[name.split(":")[0]](name, limit_mib)
