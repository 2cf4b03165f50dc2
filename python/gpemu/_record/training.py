# SPDX-License-Identifier: MIT
"""What the hooks saw of a training, as a job."""
from __future__ import annotations

import os
import platform
import sys
from collections import Counter, defaultdict
from statistics import median

import torch
from torch.utils.data import IterableDataset

from gpemu._record import job, worker


def _samples(batches):
    """What the workers wrote, of the loader that was trained from."""
    out = job.Samples()
    for b in batches:
        out.files.update(b["files"])
        out.made += len(b["samples"])
        if b.get("warm_up"):
            continue
        wall, cpu, delay = (sum(s[i] for s in b["samples"]) for i in range(3))
        n = len(b["samples"])
        out.n += n
        # what the batch took besides: collation, with the queue's memory
        more = max(0, b["batch"][0] - wall) / n
        out.cpu_ns += b["batch"][1]
        out.delay_ns += b["batch"][2]
        for sample in b["samples"]:
            busy = sample[1] + sample[2]
            out.prepare_ns.append(busy + more)
            out.blocked_ns.append(max(0, sample[0] - busy))
        for name, ns in b["transforms"].items():
            out.transforms[name] += ns
    out.sizes = worker.sizes(out.files)
    return out


def _device(recorder):
    cuda = recorder.device.launches
    memory = torch.cuda.mem_get_info()[1] if cuda else \
        os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return job.Device(
        name=torch.cuda.get_device_name() if cuda else "CPU",
        model=type(recorder.model).__name__, precision=recorder.precision,
        memory_bytes=memory,
        parameters=sum(p.numel() for p in recorder.model.parameters()),
        peak_bytes=recorder.device.memory()[0],
        persistent_bytes=recorder.persistent_bytes, asynchronous=cuda)


class Training(job.Job):
    gpu_notes = ("The model and the batch sizes that ran: means, without the "
                 "first tenth. A copy was timed with one size, so\n  other "
                 "sizes follow its rate. host_ms: to launch a step; on a CPU "
                 "the step, and what the\n  script does between two.")
    prep_notes = ("CPU time of a sample in its worker, with what it waited for "
                  "a CPU and its part\n  of the batch's collation")
    storage_notes = "What a sample was blocked for, without CPU time"

    def __init__(self, recorder, options):
        self.r = recorder
        number = Counter(e["loader"] for e in recorder.epochs
                         ).most_common(1)[0][0]
        self.loader = next((l for n, l in recorder.loaders.values()
                            if n == number), None)
        epochs = [e for e in recorder.epochs if e["loader"] == number]
        cut = self._cut(epochs)
        super().__init__(
            options, _device(recorder),
            epochs, _samples(worker.read(options["samples"], number)))
        if cut:
            self.note(cut)

    def _cut(self, epochs):
        """The last epoch, if the script ended in it, is left out. A note."""
        last, error = epochs[-1], getattr(sys, "last_type", None)
        steps = len(last["steps"])
        less = len(epochs) > 1 and steps < len(epochs[-2]["steps"])
        if self.loader is None or "loaded_ns" in last or not less and (
                not error or last["batches"] == _length(self.loader)):
            return None  # it leaves each epoch early, or loads no more than that
        text = "the script ended " + (f"with {error.__name__} " if error else "") \
            + f"after {steps} steps of epoch {len(epochs) - 1}"
        if len(epochs) > 1:
            del epochs[-1]
            return text + ", which is left out"
        self.failed = not issubclass(error, KeyboardInterrupt)
        return text + (f": no {job.WORKLOAD}" if self.failed
                       else ", which are repeated")

    def loading(self):
        l = self.loader
        if l is None:
            return {"workers": 0}
        # None: the dataset has batches
        batches = l if l.batch_sampler is None else l.batch_sampler
        order = type(getattr(batches, "sampler", batches)).__name__
        if isinstance(l.dataset, IterableDataset):
            order = "SequentialSampler"  # its own, each time
        return {"dataset": type(l.dataset).__name__,
                "samples": _length(l.dataset),
                "batch": self.batch, "workers": l.num_workers,
                "prefetch": l.prefetch_factor or 2, "order": order,
                "pin_memory": bool(l.pin_memory),
                "drop_last": getattr(batches, "drop_last", False),
                "persistent_workers": l.persistent_workers}

    def order(self):
        name = self.loading().get("order")
        known = {"RandomSampler": "shuffle", "SequentialSampler": "sequential",
                 "DistributedSampler": "shuffle"}
        if name not in known:
            self.note(f"the order of {name} is taken as shuffle")
        return known.get(name, "shuffle")

    def host_ms(self):
        """On a CPU with the step, and what the script does between two."""
        cycles = [s["cycle_ns"] for s in self.steps
                  if s["cycle_ns"] and s["samples"] == self.batch]
        return super().host_ms() if self.device.asynchronous else \
            job.mean(cycles) / 1e6

    def workers_s(self):
        """What the first batch takes longer than a later one, and their end."""
        usual = self.batch * (job.mean(self.samples.prepare_ns) +
                              job.mean(self.samples.blocked_ns))
        return median(
            max(0, e.get("first_ns", 0) - e["begin_ns"] - usual) +
            e.get("stop_ns", 0) for e in self.epochs[1:] or self.epochs) / 1e9

    def command(self):
        """Of the script, whose arguments may be names."""
        return [os.path.basename(sys.argv[0])] if self.o["hash_names"] \
            else sys.argv

    def about(self):
        return (f"PyTorch {torch.__version__}, {os.cpu_count()} CPUs: "
                f"{' '.join(self.command())[:200]}")

    def more(self):
        return {"command": self.command(), "torch": str(torch.__version__),
                "host": f"{platform.machine()}, {os.cpu_count()} CPUs"}

    def copies(self):
        by = defaultdict(list)
        for size, pinned, begin, end in self.r.copies:
            by[pinned, size].append(self.r.device.between_ns(begin, end))
        return {k: median(v) for k, v in by.items()}

    def sample_bytes(self):
        sizes = [size for size, *_ in self.r.copies]
        if sizes:
            return max(1, round(max(sizes) / self.batch))
        return super().sample_bytes()


def _length(dataset):
    try:
        return len(dataset)
    except (TypeError, NotImplementedError):  # of a stream
        return None


def write(recorder, options):
    if recorder.epochs:
        job.write(Training(recorder, options))
        worker.tell(options["samples"])
    elif recorder.samples and not worker.told(options["samples"]):
        # of the processes that trained nothing the first one
        print("gpemu record: no training step was seen: a forward pass, "
              "backward() and the step of an optimiser, in the process of the "
              "command or in rank 0 of torchrun", file=sys.stderr)
