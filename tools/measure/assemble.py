# SPDX-License-Identifier: MIT
"""Assembles measurements into a profile in the format of profiles/gpu."""
import datetime
import math
import statistics

import torch

import zoo


def digits(value, n=5):
    return float(f"{value:.{n}g}")


def law(points):
    """base + slope * batch through (batch, ms), each point weighing by its
    relative error; neither part below 0."""
    if len(points) == 1:
        return 0.0, points[0][1] / points[0][0]
    w = [1 / max(t, 1e-9) ** 2 for _, t in points]
    total = sum(w)
    mean_b = sum(wi * b for wi, (b, _) in zip(w, points)) / total
    mean_t = sum(wi * t for wi, (_, t) in zip(w, points)) / total
    over = sum(wi * (b - mean_b) * (t - mean_t) for wi, (b, t) in zip(w, points))
    under = sum(wi * (b - mean_b) ** 2 for wi, (b, _) in zip(w, points))
    slope = over / under
    base = mean_t - slope * mean_b
    if slope < 0:
        return mean_t, 0.0
    if base < 0:
        through = sum(wi * b * t for wi, (b, t) in zip(w, points))
        return 0.0, through / sum(wi * b * b for wi, (b, _) in zip(w, points))
    return base, slope


def tolerance(rows):
    """The largest error, in percent, when the two neighbours of a row predict
    its step time: a bound for the error between rows."""
    if len(rows) < 2:
        return 0.0
    if len(rows) < 3:
        return 100.0  # too few rows to tell
    worst = 0.0
    for a, m, b in zip(rows, rows[1:], rows[2:]):
        share = (m[0] - a[0]) / (b[0] - a[0])
        step = [r[1] + r[2] for r in (a, m, b)]
        line = step[0] + (step[2] - step[0]) * share
        worst = max(worst, abs(line / step[1] - 1))
    return min(100.0, math.ceil(worst * 1e3) / 10)


def model_rows(journal, variant):
    name = str(variant)
    rows = []
    for (model, batch), p in sorted(journal.points.items()):
        if model != name:
            continue
        copy = journal.copies[variant.sample, batch]
        rows.append(
            [batch]
            + [
                digits(v)
                for v in (
                    p["forward_ms"],
                    p["backward_ms"],
                    copy["pageable_ms"],
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
        "left out; tolerance_pct is the largest error when a row's two "
        "neighbours predict its step time (100: too few rows to tell). fp32 "
        "means that TF32 is off. Memory is what PyTorch allocated; of a CPU, "
        "what the process grew by. usable_memory is the median of the last "
        "peak over memory_mib of the models that ran out of memory, or what "
        "the context left free."
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


def law_of(journal, sample, key, what):
    points = sorted(
        (batch, c[key]) for (s, batch), c in journal.copies.items() if s == sample
    )
    base, slope = law(points)
    return {
        "base_ms": digits(base),
        "per_sample_ms": digits(slope),
        "source": f"{what}: a line through {len(points)} measured batch sizes",
    }


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
        models[name] = {
            "parameters": facts["parameters"],
            "model_transfer_ms": digits(facts["model_transfer_ms"]),
            "last_batch": last,
            "last_is_limit": limit,
            "tolerance_pct": tolerance(rows),
            "rows": rows,
        }
        if variant.sample_bytes != first.sample_bytes:
            models[name]["sample_bytes"] = variant.sample_bytes
    if not models:
        return None
    name, source, notes = texts(backend, journal, options)
    return {
        "name": name,
        "source": source,
        "notes": notes,
        "memory_mib": round(backend.total_mib),
        "usable_memory": usable(backend, journal, limited),
        "sample_bytes": first.sample_bytes,
        "pinned": law_of(
            journal, first.sample, "pinned_ms", "pinned host memory to device"
        ),
        "pin_copy": law_of(
            journal, first.sample, "pin_copy_ms", "pageable to pinned memory"
        ),
        "models": models,
    }
