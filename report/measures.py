"""What the charts show, as data frames: tokens over time, and how long acquires took.

Times are seconds since the test's start, latencies milliseconds.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import pandas as pd

from fencepost.checker.history import History
from fencepost.checker.holds import holds
from fencepost.report.timeline import outcomes

QUANTILES = (0.5, 0.95, 0.99)
WINDOWS = 30
"""Spans of the run, at most, for each of which quantiles are computed."""
FEWEST = 20
"""Acquires a span should have: a quantile of fewer says nothing."""

# A grid finer than the eye: points in one cell of it fall on the same spot of the chart.
_CELLS = (240, 80)


def tokens(history: History, test: Mapping[str, Any]) -> pd.DataFrame:
    """Columns time_s, token, what: "granted", or a write "accepted", "refused" or "unknown"."""
    rows = [
        (hold.start / 1e9, hold.token, "granted")
        for hold in holds(history, test)
        if hold.token is not None
    ]
    for call, state in outcomes(history):
        token = call.begin.value.get("token")
        if token is not None:
            rows.append(((call.end or call.begin).time / 1e9, token, state))
    return pd.DataFrame(rows, columns=["time_s", "token", "what"])


def acquires(history: History) -> pd.DataFrame:
    """Columns time_s (of the answer), latency_ms, what: "ok", "fail" or "info".

    Acquires that were never answered have no latency, and no row.
    """
    rows = [
        (call.end.time / 1e9, (call.end.time - call.begin.time) / 1e6, call.type)
        for call in history.calls()
        if call.begin.f == "acquire" and call.end
    ]
    return pd.DataFrame(rows, columns=["time_s", "latency_ms", "what"])


def quantiles(frame: pd.DataFrame, end_s: float) -> pd.DataFrame:
    """The latency of granted acquires by window: index time_s (its middle), a column a quantile.

    Windows in which nothing was granted have no row; a run with few grants has no windows.
    """
    granted = frame[frame["what"] == "ok"]
    count = min(WINDOWS, len(granted) // FEWEST)
    if count < 2:
        return pd.DataFrame()
    width = max(end_s, 1e-9) / count
    window = (granted["time_s"] // width).clip(upper=count - 1)
    by_window = granted.groupby(window)["latency_ms"].quantile(pd.Series(QUANTILES)).unstack()
    by_window.index = (by_window.index + 0.5) * width
    return by_window.rename_axis("time_s")


def summary(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """By outcome: how many acquires, and the quantiles and maximum of their latency in ms."""
    rows = []
    for what, latency in frame.groupby("what", sort=False)["latency_ms"]:
        values = [float(latency.quantile(quantile)) for quantile in QUANTILES]
        rows.append(
            {"what": str(what), "count": len(latency), "ms": [*values, float(latency.max())]}
        )
    order = ["ok", "fail", "info"]
    return sorted(rows, key=lambda row: order.index(row["what"]))


def thinned(frame: pd.DataFrame, y: str) -> pd.DataFrame:
    """One point of each kind for each cell of a fine grid, so that a long run stays light."""
    if frame.empty:
        return frame
    cells = pd.DataFrame({"what": frame["what"]})
    for column, count in zip(("time_s", y), _CELLS, strict=True):
        values = frame[column].astype(float)
        span = float(values.max() - values.min())
        step = span / count if span > 0 and math.isfinite(span) else 1.0
        cells[column] = ((values - values.min()) / step).round()
    return frame[~cells.duplicated()]
