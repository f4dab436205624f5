"""One HTML file from a template: its styles, scripts and data inside, everything escaped."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import DictLoader, Environment, StrictUndefined
from markupsafe import Markup

from fencepost.atomic_write import replace
from fencepost.checker.facts.holds import seconds

# Read once, with this module: a page belongs to the code that fills it in, also where the files
# change under a run that takes its time.
_FILES = {
    path.name: path.read_text(encoding="utf-8")
    for path in (Path(__file__).parent / "templates").iterdir()
    if path.is_file()
}
_WORDS = {True: "holds", False: "broken", "unknown": "unknown", None: "not checked"}


def write(path: Path, template: str, values: Mapping[str, Any]) -> Path:
    """Replace `path` by the filled-in template, whole or not at all; returns it."""
    replace(path, [_environment().get_template(template).render(values).encode()])
    return path


def prepare(template: str) -> None:
    """Compile a template now, which takes a while, and not with the first page that it is for."""
    _environment().get_template(template)


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=DictLoader(_FILES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "word": lambda valid: _WORDS[valid],
        "seconds": lambda time_ns: "not seen" if time_ns is None else seconds(time_ns),
        "script_data": script_data,
        "plain": plain,
    }
    environment.globals["source"] = lambda name: Markup(source(name))
    return environment


def source(name: str) -> str:
    """A file of the templates as it is: a style sheet, say."""
    return _FILES[name]


def script_data(value: Any) -> Markup:
    """JSON for a script element, which ends at the first "</" whatever the quotes say."""
    text = json.dumps(value, separators=(",", ":"), allow_nan=False, default=str)
    return Markup(text.replace("<", "\\u003c"))


def plain(value: Any) -> str:
    """One value for people: yes and no, numbers as they are, a list joined by commas."""
    if value is None or value == [] or value == {}:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list) and not any(isinstance(item, dict | list) for item in value):
        return ", ".join(map(plain, value))
    if isinstance(value, dict | list):
        return json.dumps(value, ensure_ascii=False, default=str)
    return str(value)
