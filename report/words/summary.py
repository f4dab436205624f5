"""A run in Markdown for a CI summary page: the verdict, each checker's, the evidence."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fencepost.checker.verdict import Valid
from fencepost.report.words.answer import sentence
from fencepost.report.words.questions import questions, the_test

_WORD: dict[Valid, str] = {True: "valid", False: "**INVALID**", "unknown": "unknown"}
_PIECES = 3


def markdown(found: Mapping[str, Any], folder: str) -> str:
    """Return the section of a run. `found`: results.json."""
    checkers = found.get("checkers") or {}
    lines = [f"### {_cell(str(found.get('test', '')))}", "", _cell(sentence(found)), ""]
    lines += ["| question | checker | verdict | |", "| --- | --- | --- | --- |"]
    evidence: list[str] = []
    for question in (*questions(checkers), the_test(checkers)):
        title = question.title
        for part in question.parts:
            lines.append(
                f"| {title} | {part.checker} | {_WORD[part.valid]} | {_cell(part.summary)} |"
            )
            title = ""
            if part.valid is False:
                pieces = (checkers[part.checker].get("evidence") or ())[:_PIECES]
                evidence += [f"- {part.checker}: {_cell(str(p.get('what', '')))}" for p in pieces]
    last = f"Seed {found.get('seed')}, results in `{folder}`."
    sentences = [*dict.fromkeys(evidence), *[""] * bool(evidence)]
    return "\n".join([*lines, "", *sentences, last, "", ""])


def _cell(text: str) -> str:
    """Escape a table cell: a bar or newline would begin the next cell or row, and text must not act
    as markup."""
    plain = text.replace("&", "&amp;").replace("<", "&lt;").replace("|", "\\|")
    plain = plain.replace("[", "&#91;").replace("@", "&#64;").replace("://", "&#58;//")
    return " ".join(plain.split())
