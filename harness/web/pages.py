"""Renders the templates of the pages."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from jinja2 import Environment

from fencepost.checker.verdict import count
from fencepost.harness.results import run_index
from fencepost.harness.web.shelf import verdict_of
from fencepost.report.pages import page
from fencepost.report.words.questions import verdict

_FILES = page.templates(Path(__file__).parent / "templates")
STYLE = page.source("page.css") + _FILES["web.css"]
SCRIPT = _FILES["web.js"]


def render(template: str, values: Mapping[str, Any]) -> str:
    made = _environment().get_template(template).render(values)
    return made.encode(errors="replace").decode()  # names of files may be bytes of no character


def query(values: Any) -> str:
    """Encode a mapping, or pairs, as the query of a URL; leave empty values out."""
    pairs = values.items() if isinstance(values, Mapping) else values
    return urlencode([(name, value) for name, value in pairs if value], errors="replace")


@cache
def _environment() -> Environment:
    made = page.environment(_FILES)
    made.filters |= {
        "query": query,
        "place": lambda name: quote(name, errors="replace"),
        "sized": run_index.sized,
        "words": run_index.words,
        "valid": verdict,
        "verdict": verdict_of,
        "time": lambda text: text.replace("T", " ").removesuffix("Z"),
        "took": took,
        "count": count,
        "twice": lambda value: (value, value),
    }
    return made


def took(time_s: float | None) -> str:
    """Format a duration: 4.2 s, 12 min 30 s, 7 h 5 min."""
    if time_s is None:
        return ""
    if time_s < 60:
        return f"{time_s:.1f} s"
    minutes, rest_s = divmod(round(time_s), 60)
    if minutes < 60:
        return f"{minutes} min {rest_s} s"
    return f"{minutes // 60} h {minutes % 60} min"
