"""A run in Markdown for a CI summary page: the verdict, each checker's, the evidence."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fencepost.checker.verdict import Valid
from fencepost.report.words.answer import sentence
from fencepost.report.words.inert import inert
from fencepost.report.words.questions import questions, the_test

_WORD: dict[Valid, str] = {True: "valid", False: "**INVALID**", "unknown": "unknown"}
_PIECES = 3


def markdown(found: Mapping[str, Any], folder: str) -> str:
    """Return the section of a run. `found`: results.json."""
    checkers = found.get("checkers") or {}
    lines = [f"### {inert(str(found.get('test', '')))}", "", inert(sentence(found)), ""]
    lines += ["| question | checker | verdict | |", "| --- | --- | --- | --- |"]
    evidence: list[str] = []
    for question in (*questions(checkers), the_test(checkers)):
        title = question.title
        for part in question.parts:
            lines.append(
                f"| {title} | {part.checker} | {_WORD[part.valid]} | {inert(part.summary)} |"
            )
            title = ""
            if part.valid is False:
                pieces = (checkers[part.checker].get("evidence") or ())[:_PIECES]
                evidence += [f"- {part.checker}: {inert(str(p.get('what', '')))}" for p in pieces]
    last = f"Seed {found.get('seed')}, results in `{folder}`."
    sentences = [*dict.fromkeys(evidence), *[""] * bool(evidence)]
    return "\n".join([*lines, "", *sentences, last, "", ""])
