# SPDX-License-Identifier: MIT
"""A figure of a result folder."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gpemu._library import need
from gpemu._run import results

if TYPE_CHECKING:
    import matplotlib.axes


def plot(points: Any, x: str, y: str, series: str | None = None, *,
         ax: matplotlib.axes.Axes | None = None,
         **style: Any) -> matplotlib.axes.Axes:
    """Draw a metric over an axis: medians, with the interval that the table
    of gpemu-run has.

        gpemu.plot("results/cache-policies", "fs.cache_size", "hit_ratio",
                   series="fs.cache_policy")

    points: a result folder, or results(folder, "points") or a part of it.
    x: an axis of the experiment; numbers and percentages are to scale.
    y: a metric.
    series: an axis, with a line for each value.
    ax: where to draw; by default a new figure.
    style: for Axes.errorbar.
    """
    pandas = need("pandas", "gpemu.plot")
    need("matplotlib", "gpemu.plot")
    import matplotlib.pyplot

    if not isinstance(points, pandas.DataFrame):
        points = results(points, "points")
    own = _select(points, x, y, series)
    places = pandas.to_numeric(own[x].astype(str).str.rstrip("%"),
                               errors="coerce")
    own = own.assign(place=own[x].astype(str) if places.isna().any()
                     else places)
    if ax is None:
        ax = matplotlib.pyplot.subplots()[1]
    lines = own.groupby(series, sort=False) if series else [(None, own)]
    for name, line in lines:
        if not places.isna().any():
            line = line.sort_values("place")
        ax.errorbar(line["place"], line["median"],
                    yerr=[line["median"] - line["ci_low"],
                          line["ci_high"] - line["median"]],
                    **{"marker": "o", "capsize": 3, "label": name, **style})
    unit = own["unit"].iloc[0]
    ax.set_xlabel(f"{x} (%)" if own[x].astype(str).str.endswith("%").all()
                  else x)
    ax.set_ylabel(f"{y} ({unit})" if isinstance(unit, str) and unit else y)
    if series:
        ax.legend(title=series)
    return ax


def _select(points: Any, x: str, y: str, series: str | None) -> Any:
    """The points of the metric: at most one at each place of a line."""
    axes = list(points.columns[:points.columns.get_loc("metric")])
    for name in filter(None, (x, series)):
        if name not in points:
            raise ValueError(f"no axis {name}; there are: {', '.join(axes)}")
    own = points[points["metric"] == y]
    if own.empty:
        known = ", ".join(sorted(set(points["metric"])))
        raise ValueError(f"no metric {y}; there are: {known}")
    by = [x] + ([series] if series else [])
    if own.duplicated(by).any():
        others = [a for a in axes if a not in by and own[a].nunique() > 1]
        raise ValueError(f"{', '.join(others)} varies, too: select one value, "
                         f'as in points[points["{others[0]}"] == ...], or '
                         "draw it as series")
    return own
