# SPDX-License-Identifier: MIT
"""Assembles measurements into a profile in the format of profiles/gpu."""
import datetime
import math
import statistics

import torch

import zoo


def digits(value, n=5):
    return float(f"{value:.{n}g}")


HELD_OUT = 5  # steps of a model at most, between its rows


def midpoints(rows):
    """The middles of up to HELD_OUT gaps between rows, spread over them."""
    gaps = [(a + b) // 2 for a, b in zip(rows, rows[1:]) if b - a > 1]
    n = min(HELD_OUT, len(gaps))
    return [gaps[(2 * i + 1) * len(gaps) // (2 * n)] for i in range(n)]


def between(points, x):
    """The value at x on the lines through (x, y), ascending; beyond the last
    at its rate."""
    for (x0, y0), (x1, y1) in zip(points, points[1:]):
        if x <= x1:
            return y0 + (y1 - y0) * max(0, x - x0) / (x1 - x0)
    return points[-1][1] * x / points[-1][0]


def held_errors(journal, variant, rows):
    """The errors, in percent, of what the rows predict for the steps that were
    held out. As validate: a step and its copy from pinned memory."""
    steps = [(r[0], r[1] + r[2]) for r in rows]
    copy = [(n, c["pinned_ms"]) for n, c in sorted(journal.copies.items())]
    errors = []
    for (model, batch), held in journal.held.items():
        if model == str(variant) and len(rows) > 1:
            ms = between(steps, batch) + between(
                copy, batch * variant.sample_bytes
            )
            errors.append(100 * abs(ms / held["step_ms"] - 1))
    return errors


def tolerance(journal, variant, rows):
    """The largest of these errors, rounded up, and how many there are; 100:
    nothing is known."""
    errors = held_errors(journal, variant, rows)
    if not errors:
        return 0.0 if len(rows) < 2 else 100.0, 0
    return min(100.0, math.ceil(max(errors) * 10) / 10), len(errors)


def model_rows(journal, variant):
    name = str(variant)
    rows = []
    for (model, batch), p in sorted(journal.points.items()):
        if model != name:
            continue
        rows.append(
            [batch]
            + [
                digits(v)
                for v in (
                    p["forward_ms"],
                    p["backward_ms"],
                    0,  # copies have a table of their own
                    p["peak_mib"],
                    p["persistent_mib"],
                    p["optimizer_ms"],
                    p["spread_pct"],
                )
            ]
        )
    return rows


def clocks_text(clocks):
    if not clocks:
        return ""
    sm = sorted({c["sm"] for c in clocks})
    memory = sorted({c["memory"] for c in clocks})
    return (
        f", clocks after the models' steps {' '.join(sm)} (SM), "
        f"{' '.join(memory)} (memory)"
    )


def texts(backend, journal, options):
    facts = backend.facts()
    versions = [f"PyTorch {torch.__version__}"]
    for package in ("torchvision", "transformers", "timm"):
        if zoo.has(package):
            module = __import__(package)
            versions.append(f"{package} {module.__version__}")
    limit = backend.limit_mib
    source = (
        f"measured by gpemu-profile measure ({options['version']}) on "
        f"{datetime.date.today()}; {facts['name']}, {facts['text']}"
        f"{clocks_text(journal.clocks)}; {', '.join(versions)}"
        + (f"; held to {limit:.0f} MiB" if limit else "")
        + f"; command: {options['command']}"
    )
    notes = (
        "Medians over single training steps, after a warm-up, of "
        f"{zoo.CLASSES} classes and random data, that follow each other as in "
        "a training loop; backward is loss, backward pass and optimiser step "
        "(SGD with momentum; AdamW for text). The rows are as measured, none "
        "left out; tolerance_pct is the largest error seen at "
        "tolerance_points batch sizes between them, each held out and "
        "measured as a training loop with copies from pinned memory (100: "
        "none was). fp32 means that TF32 is off. Memory is what PyTorch "
        "allocated; of a CPU, what the process grew by. usable_memory is the "
        "median of the last peak over memory_mib of the models that ran out "
        "of memory, or what the context left free."
    )
    if backend.copy_note:
        notes += f" Transfers: {backend.copy_note}."
    return facts["name"], " ".join(source.split()), notes


def usable(backend, journal, limited):
    shares = [
        journal.points[key]["peak_mib"] / backend.total_mib for key in limited
    ]
    share = statistics.median(shares) if shares else backend.usable
    return digits(min(1.0, max(0.01, share)), 4)


def copies(journal):
    keys = ("pageable_ms", "pinned_ms", "pin_copy_ms")
    return {
        "rows": [
            [n] + [digits(c[k]) for k in keys]
            for n, c in sorted(journal.copies.items())
        ],
        "source": "measured: one thread, memory that was used before, sizes "
        "upwards and downwards",
    }


def host(journal, name, rows):
    """The host's own time of a step: the median over the batch sizes, on
    which it hardly depends; and the first steps of the job."""
    points = [journal.points[name, row[0]] for row in rows]
    times = [p["host_ms"] for p in points if p.get("host_ms")]
    found = {"host_ms": digits(statistics.median(times))} if times else {}
    for p in points:
        usual = p["forward_ms"] + p["backward_ms"]
        more = [max(0, t - usual) for t in p.get("first_ms", [])]
        # what the spread explains is no warm-up
        while more and more[-1] < 0.02 * usual:
            more.pop()
        if more:
            found["warmup_ms"] = [digits(t) for t in more]
    return found


def profile(backend, journal, variants, options):
    """The profile as JSON, or None when nothing was measured."""
    models, limited, first = {}, [], None
    for variant in variants:
        name = str(variant)
        rows = model_rows(journal, variant)
        if not rows:
            continue
        first = first or variant
        last = rows[-1][0]
        limit = journal.trials.get((name, last + 1)) is False
        if limit:
            limited.append((name, last))
        facts = journal.models[name]
        off, n_held = tolerance(journal, variant, rows)
        models[name] = {
            "parameters": facts["parameters"],
            "model_transfer_ms": digits(facts["model_transfer_ms"]),
            **host(journal, name, rows),
            "last_batch": last,
            "last_is_limit": limit,
            "tolerance_pct": off,
            "tolerance_points": n_held,
            "rows": rows,
        }
        if variant.sample_bytes != first.sample_bytes:
            models[name]["sample_bytes"] = variant.sample_bytes
    if not models or not journal.copies:
        return None
    name, source, notes = texts(backend, journal, options)
    board = backend.board()
    return {
        "name": name,
        "source": source,
        "notes": notes,
        "memory_mib": round(backend.total_mib),
        "usable_memory": usable(backend, journal, limited),
        "precision": "fp32",
        "sample_bytes": first.sample_bytes,
        **({"board": board} if board else {}),
        "copies": copies(journal),
        "models": models,
    }
