# SPDX-License-Identifier: MIT
"""Experiments: gpemu-run, and its result folders as pandas frames."""
from __future__ import annotations

import errno
import io
import json
import os
import signal
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Dict, List, Literal, Mapping

from gpemu._library import Error, NotFound, need, program, word
from gpemu._mount import arguments
from gpemu._options import RunOptions, takes

if TYPE_CHECKING:
    import pandas
    from typing_extensions import Unpack

# options without a value
_FLAGS = {"fresh", "again", "no_mount", "verbose"}
# a cell or a check failed; nothing did, but a check is undecided
_RESULTS = (0, 1, 3)
Table = Literal["metrics", "epochs", "points", "verdicts"]


def _execute(command: List[str], quiet: bool = True, good=(0,)) -> str:
    """Its standard output. After Ctrl-C it unmounts before it ends."""
    process = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE if quiet else None, text=True,
        start_new_session=True)
    try:
        out, messages = process.communicate()
    except BaseException:
        process.send_signal(signal.SIGTERM)
        process.communicate()
        raise
    if process.returncode not in good or not out.strip():
        raise Error((messages or "").strip() or f"{command[0]} ended with "
                    f"status {process.returncode}")
    return out


def _overrides(keys: Mapping[str, Any]) -> List[str]:
    """As YAML, of which JSON is a part."""
    return [f"{key}={value if isinstance(value, str) else json.dumps(value)}"
            for key, value in keys.items()]


@takes(RunOptions, "run")
def run(workload: Any, overrides: Mapping[str, Any] | None = None, *,
        output: Any = None, quiet: bool = True,
        **options: Unpack[RunOptions]) -> pandas.DataFrame:
    """Run an experiment and return its metrics, as results(folder) does.

        runs = gpemu.run("workloads/demo.yaml", {"repetitions": 3})
        runs = gpemu.run({"name": "mine", "dataset": {...}, "base": {...},
                          "axes": {"fs.cache_size": ["20%", "40%"]}})

    Cells that have a record do not run again. A check that fails is a result,
    not an exception: see results(folder, "verdicts").

    workload: its file, or its keys (docs/workload-schema.md).
    overrides: keys of the file to change, such as {"train.epochs": 2}.
    output: the result folder; by default results/NAME.
    quiet: False shows the progress on stderr.
    options: of gpemu-run(1), '_' for '-', as the signature lists them. None:
        the default there.
    """
    need("pandas", "gpemu.run")
    with tempfile.TemporaryDirectory(prefix="gpemu-") as folder:
        if isinstance(workload, Mapping):
            path = os.path.join(folder, "workload.yaml")
            text = json.dumps(workload, indent=1, ensure_ascii=False)
            Path(path).write_text(text + "\n")
        else:
            path = word(workload)
            # without a folder it may be a shipped one
            if os.sep in path and not os.path.exists(path):
                raise NotFound(f"{path}: {os.strerror(errno.ENOENT)}",
                               errno.ENOENT)
        command = [program("run"), "--json", "-"]
        command += arguments({**options, "output": output}, _FLAGS)
        text = _execute([*command, "--", path, *_overrides(overrides or {})],
                        quiet, _RESULTS)
    try:
        name = json.loads(text)["workload"]
    except (ValueError, KeyError, TypeError):
        raise Error("gpemu.run takes one workload, not a list of them; "
                    "gpemu.results reads the folder of each") from None
    return results(output or Path("results", name))


def results(folder: Any, table: Table = "metrics") -> pandas.DataFrame:
    """A result folder of gpemu-run as a tidy frame.

    table:
        "metrics"   a row for each run and metric: metric, unit, value
        "epochs"    a row for each run, job and epoch, a column for each number
        "points"    a row for each point and metric: median and its interval
                    (ci_low, ci_high at ci_level) over the n repetitions, as in
                    the table and the plots of the report; min, max
        "verdicts"  a row for each check

    The axes are columns, with values as in the workload ("20%", 64, "lru");
    so are, of the first two, repetition, seed, host and every key of the
    configuration. A column that has a unit ends in it (epoch_s, memory_bytes,
    samples_per_s); attrs["units"] has the unit of each metric, attrs["axes"]
    the names of the axes.
    """
    need("pandas", "gpemu.results")
    tables = {"metrics": _metrics, "epochs": _epochs, "points": _points,
              "verdicts": _verdicts}
    if table not in tables:
        raise ValueError(f'table "{table}": not one of {", ".join(tables)}')
    summary = _summary(folder)
    frame = tables[table](folder, summary)
    cells = summary["cells"]
    frame.attrs.update(
        folder=str(folder), workload=summary["workload"],
        question=summary["question"],
        axes=list(cells[0]["axes"]) if cells else [],
        units={name: metric["unit"] for cell in cells
               for name, metric in cell["metrics"].items() if metric})
    return frame


def _summary(folder: Any) -> Dict[str, Any]:
    path = Path(folder, "summary.json")
    try:
        return json.loads(path.read_text())
    except FileNotFoundError:
        raise NotFound(f"{path}: there is none; is {folder} a result folder "
                       "of gpemu-run, and has it run to its end?",
                       errno.ENOENT) from None


def _read(text: Any) -> pandas.DataFrame:
    import pandas

    # a policy may be called "none", but no value is missing by a word
    return pandas.read_csv(text, keep_default_na=False, na_values=[""],
                           float_precision="round_trip", low_memory=False)


def _metrics(folder: Any, _: Dict[str, Any]) -> pandas.DataFrame:
    return _read(io.StringIO(_execute(
        [program("run"), "export", word(folder)])))


def _epochs(folder: Any, _: Dict[str, Any]) -> pandas.DataFrame:
    return _read(io.StringIO(_execute(
        [program("run"), "export", "--epochs", word(folder)])))


def _verdicts(folder: Any, _: Dict[str, Any]) -> pandas.DataFrame:
    return _read(Path(folder, "verdicts.csv"))


def _points(_: Any, summary: Dict[str, Any]) -> pandas.DataFrame:
    import pandas

    columns = ("n", "median", "ci_low", "ci_high", "ci_level", "min", "max")
    rows = [{**cell["axes"], "metric": name, "unit": metric["unit"],
             **{column: metric[column] for column in columns}}
            for cell in summary["cells"]
            for name, metric in cell["metrics"].items() if metric]
    # the labels of the axes become what they are in the other tables
    axes = list(summary["cells"][0]["axes"]) if summary["cells"] else []
    text = pandas.DataFrame(rows, columns=[
        *axes, "metric", "unit", *columns]).to_csv(index=False)
    return _read(io.StringIO(text))
