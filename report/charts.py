"""The charts, as SVG that stands in the page: tokens over time, latency over time.

pygal lays them out; its own styles, script and hidden tooltip texts are left out, so that the
page's style sheet colours them, light and dark, and nothing is loaded or run.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any
from xml.etree.ElementTree import Element, tostring

import pandas as pd
import pygal
from markupsafe import Markup

from fencepost.checker.faults import Fault
from fencepost.report.measures import QUANTILES, quantiles, thinned

SIZE = (1080, 300)
TOKENS = {"granted": 4.0, "accepted": 1.8, "refused": 3.2, "unknown": 2.6}
"""What is drawn of tokens, and how large: a grant behind the writes that came of it."""
OUTCOMES = ("ok", "fail", "info")


def tokens_chart(frame: pd.DataFrame, on: list[Fault], end_s: float) -> Markup:
    """Tokens as they were granted, and as they came with writes. Frame: measures.tokens()."""
    lowest, highest = float(frame["token"].min()), float(frame["token"].max())
    pad = max((highest - lowest) * 0.05, 1.0)
    chart = _chart(end_s, lowest - pad, highest + pad)
    chart.value_formatter = lambda value: f"{value:.0f}" if abs(value) < 1e7 else f"{value:.3g}"
    _bands(chart, on, end_s, lowest - pad, highest + pad)
    points = thinned(frame, "token")
    for what, size in TOKENS.items():
        _dots(chart, what, points[points["what"] == what], "token", size)
    return drawing(chart, ["faults", *TOKENS])


def latency_chart(frame: pd.DataFrame, on: list[Fault], end_s: float) -> Markup:
    """Latency of acquires on a logarithmic axis, with quantiles. Frame: measures.acquires()."""
    # pygal's own logarithmic axis would bend time as well, so the values are bent here.
    logs = frame.assign(log=frame["latency_ms"].clip(lower=1e-3).map(math.log10))
    lowest = math.floor(float(logs["log"].min()))
    highest = max(math.ceil(float(logs["log"].max())), lowest + 1)
    chart = _chart(end_s, lowest, highest)
    chart.value_formatter = lambda value: _milliseconds(10**value)
    chart.y_labels = list(range(lowest, highest + 1))
    _bands(chart, on, end_s, lowest, highest)
    points = thinned(logs, "log")
    for what in OUTCOMES:
        _dots(chart, what, points[points["what"] == what], "log", 1.8 if len(points) > 200 else 3.2)
    lines = quantiles(frame, end_s)
    names = [f"p{quantile * 100:.0f}" for quantile in QUANTILES]
    for name, quantile in zip(names, QUANTILES, strict=True):
        values = lines[quantile] if quantile in lines else pd.Series(dtype=float)
        line = [
            (at, math.log10(max(ms, 1e-3)))
            for at, ms in zip(values.index.astype(float), values, strict=True)
        ]
        chart.add(name, line, show_dots=False)
    return drawing(chart, ["faults", *OUTCOMES, *names])


def _milliseconds(value: float) -> str:
    return f"{value / 1000:g} s" if value >= 1000 else f"{value:g} ms"


def _chart(end_s: float, lowest: float, highest: float) -> pygal.XY:
    return pygal.XY(
        js=[],
        css=[],
        width=SIZE[0],
        height=SIZE[1],
        margin=8,
        spacing=6,
        show_legend=False,
        no_prefix=True,
        xrange=(0, max(end_s, 1e-3)),
        range=(lowest, highest),
        zero=lowest,
        x_value_formatter=lambda value: f"{value:g} s",
        x_label_rotation=0,
    )


def _bands(
    chart: pygal.XY, on: Iterable[Fault], end_s: float, lowest: float, highest: float
) -> None:
    """When any fault was on: one filled line that goes up and down along the axis."""
    spans: list[list[float]] = []
    for fault in on:
        start, end = fault.start / 1e9, end_s if fault.end is None else fault.end / 1e9
        if spans and start <= spans[-1][1]:
            spans[-1][1] = max(spans[-1][1], end)
        else:
            spans.append([start, end])
    outline = [
        point
        for start, end in spans
        for point in ((start, lowest), (start, highest), (end, highest), (end, lowest))
    ]
    chart.add("faults", outline, fill=True, show_dots=False)


def _dots(chart: pygal.XY, name: str, frame: pd.DataFrame, y: str, size: float) -> None:
    points = [
        (float(at), float(value)) for at, value in zip(frame["time_s"], frame[y], strict=True)
    ]
    chart.add(name, points, stroke=False, dots_size=size)


def drawing(chart: Any, series: list[str]) -> Markup:
    """A chart as SVG without styles or scripts, the group of each series classed by its name."""
    root: Element = chart.render_tree()
    for parent in list(root.iter()):
        for child in list(parent):
            if _unwanted(child):
                parent.remove(child)
    for element in root.iter():
        classes = (element.get("class") or "").split()
        if "series" in classes:
            number = next(int(name[6:]) for name in classes if name.startswith("serie-"))
            element.set("class", f"series {series[number]}")
        for name in ("cx", "cy"):
            if name in element.attrib:
                element.set(name, f"{float(element.attrib[name]):.1f}")
    root.attrib.pop("id", None)
    root.set("class", "chart")
    root.set("role", "img")
    return Markup(tostring(root, encoding="unicode"))


def _unwanted(element: Element) -> bool:
    if not isinstance(element.tag, str):
        return True  # a comment
    if "tooltip-overlay" in (element.get("class") or ""):
        return True
    return element.tag.rpartition("}")[2] in ("defs", "desc", "title", "script", "style")
