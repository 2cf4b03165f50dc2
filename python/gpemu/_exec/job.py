# SPDX-License-Identifier: MIT
"""The record of all ranks of a job. Each leaves its own, at its end, in a file
without a name, which the command opened; the last one has them all."""
from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import resource
from itertools import zip_longest
from statistics import fmean, median

_FILE = "GPEMU_EXEC_RANKS"
# Of an epoch, as in the record of gpemu-train: times are means over all GPUs,
# elapsed times those of the slowest rank
_MEANS = ("startup_s", "compute_s", "data_wait_s", "transfer_stall_s", "host_s",
          "allreduce_s", "share_wait_s", "loader_wait_s", "au")
# Of a rank, in the record of the job
_OWN = ("rank", "epochs", "totals", "copied_bytes", "pinned", "notes")


def begin():
    """In the process that becomes the command."""
    low = os.memfd_create("gpemu-exec", os.MFD_CLOEXEC)
    # where no script has a file of its own, as far as the limit allows
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    file = fcntl.fcntl(low, fcntl.F_DUPFD, min(200, most // 2) if most > 0 else 200)
    os.close(low)
    os.environ[_FILE] = f"/proc/{os.getpid()}/fd/{file}"


def joined():
    """The file. Open from now on: the command may end before its ranks."""
    file = open(os.environ.get(_FILE, ""), "r+b")
    if os.readlink(f"/proc/self/fd/{file.fileno()}").startswith("/memfd:gpemu-exec"):
        return file
    file.close()
    raise FileNotFoundError(errno.ENOENT, "its descriptor is another file's")


@contextlib.contextmanager
def ended(file, job, mine):
    """The records of the ranks of `job` that have ended, with that of this one,
    by rank. Others wait meanwhile."""
    fcntl.flock(file, fcntl.LOCK_EX)
    jobs = json.loads(file.read() or "{}")  # that the command has had
    others = (r for r in jobs.get(job, ()) if r["rank"] != mine["rank"])
    found = jobs[job] = sorted([*others, mine], key=lambda r: r["rank"])
    file.seek(0)
    file.truncate()
    file.write(json.dumps(jobs).encode())
    file.flush()
    yield found
    file.close()


def _epoch(number, of):
    """Of those that all ranks had."""
    steps = [fmean(ms) for ms in zip(*(e["step_ms"] for e in of))]
    seconds = max(e["seconds"] for e in of)
    samples = sum(e["samples"] for e in of)
    found = {"epoch": number, "seconds": seconds, "samples": samples,
             "steps": max(e["steps"] for e in of)}
    for key in _MEANS:
        values = [e[key] for e in of if e[key] is not None]
        found[key] = fmean(values) if values else None
    return {**found, "samples_per_s": samples / seconds if seconds else None,
            "step_ms": steps, "step_ms_median": median(steps)}


def totals(epochs, forward_only):
    return {**{k: sum(e[k] for e in epochs)
               for k in ("seconds", "samples", "steps")},
            "forward_only": forward_only}


def merged(found, n):
    """One record; n: ranks that the job has."""
    if n == 1:
        return found[0]
    epochs = [_epoch(i, [e for e in same if e])
              for i, same in enumerate(zip_longest(*(r["epochs"]
                                                     for r in found)))]
    first = {k: v for k, v in found[0].items() if k != "rank"}
    return {
        **first, "world_size": n,
        "estimated": any(r["estimated"] for r in found),
        "models": {k: v for r in found for k, v in r["models"].items()},
        "epochs": epochs,
        "totals": totals(epochs, sum(r["totals"]["forward_only"]
                                     for r in found)),
        "copied_bytes": {k: sum(r["copied_bytes"][k] for r in found)
                         for k in found[0]["copied_bytes"]},
        "pinned": {"most_bytes": sum(r["pinned"]["most_bytes"] for r in found),
                   "refused": any(r["pinned"]["refused"] for r in found)},
        "notes": list(dict.fromkeys(t for r in found for t in r["notes"])),
        "ranks": [{k: r[k] for k in _OWN} for r in found]}
