"""Renders a template to one HTML file, with styles, scripts and data inside, everything escaped."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

from jinja2 import DictLoader, Environment, StrictUndefined, UndefinedError
from markupsafe import Markup, escape
from msgspec import ValidationError

from fencepost.atomic_write import replace
from fencepost.checker.facts.holds import seconds
from fencepost.report.stored import ReportError


def templates(folder: Path) -> dict[str, str]:
    """Return the text of each template of a folder by its name."""
    return {one.name: one.read_text(encoding="utf-8") for one in folder.iterdir() if one.is_file()}


# Read at import, so that a page matches the code that fills it in, even if the files change during
# a run.
_FILES = templates(Path(__file__).parent / "templates")
_WORDS = {True: "holds", False: "broken", "unknown": "unknown", None: "not checked"}


def write(path: Path, template: str, values: Mapping[str, Any]) -> Path:
    """Replace `path` atomically by the rendered template; return it."""
    replace(path, [_environment().get_template(template).render(values).encode(errors="replace")])
    return path


@contextmanager
def usable(place: object, what: str) -> Iterator[None]:
    """Raise ReportError if the block lacks a row or a field of `what`, which was read from `place`.

    Fields have the right types (campaign_types.py), so any other error is a defect of fencepost.
    """
    try:
        yield
    except (LookupError, UndefinedError, ValidationError) as error:
        raise ReportError(
            f"{place}: the {what} cannot be shown ({type(error).__name__}: {error}): its files are "
            "damaged, or another version wrote them. If neither is true, please report a defect of "
            "fencepost"
        ) from error


def prepare(template: str) -> None:
    """Compile a template ahead of time, because that takes a while."""
    _environment().get_template(template)


@cache
def _environment() -> Environment:
    made = environment(_FILES)
    made.filters |= {
        "word": lambda valid: _WORDS[valid],
        "seconds": lambda time_ns: "not seen" if time_ns is None else seconds(time_ns),
        "script_data": script_data,
        "plain": plain,
        "with_code": with_code,
    }
    made.globals["source"] = lambda name: Markup(source(name))
    return made


def environment(files: Mapping[str, str]) -> Environment:
    """Return an environment with these templates, which escapes everything and knows no filter."""
    return Environment(
        loader=DictLoader(files),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def source(name: str) -> str:
    """Return a file of the templates unchanged, for example a style sheet."""
    return _FILES[name]


def script_data(value: Any) -> Markup:
    """Return JSON for a script element, which would end at the first "</" even inside quotes."""
    text = json.dumps(value, separators=(",", ":"), allow_nan=False, default=str)
    return Markup(text.replace("<", "\\u003c"))


def with_code(text: Any) -> Markup:
    """Return plain text with its parts between backticks as code."""
    parts = str(text).split("`")
    if len(parts) % 2 == 0:
        return escape(text)
    code = Markup("<code>{}</code>").format
    return Markup("").join(code(part) if n % 2 else part for n, part in enumerate(parts))


def report_of(run: Any) -> str | None:
    """Return the path of a run's report relative to its campaign's, or None if it leads elsewhere.

    An absolute path or a URL in a campaign's file would break as soon as the store is moved, or
    lead out of it.
    """
    if not run or ":" in str(run) or os.path.isabs(str(run)):
        return None
    return quote(f"{str(run).rstrip('/')}/report.html")


def plain(value: Any) -> str:
    """Format one value for people: yes and no, numbers as they are, a list joined by commas."""
    if value is None or value == [] or value == {}:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list) and not any(isinstance(item, dict | list) for item in value):
        return ", ".join(map(plain, value))
    if isinstance(value, dict | list):
        return json.dumps(value, ensure_ascii=False, default=str)
    return str(value)
