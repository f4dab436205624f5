"""JUnit XML of runs, suites and nightly runs, which every CI system shows.

Each checker is a test case, named by its question. A violation is a failure. If trouble in the
harness prevented a verdict, the case is an error. An unknown verdict is skipped, with its reason. A
checker that does not count (`--fail-on`) is skipped too, with its verdict in the reason, so that
the file agrees with the exit code.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any
from xml.etree import ElementTree
from xml.etree.ElementTree import Element, SubElement

from fencepost.report.exports.batches import Collected, Line
from fencepost.report.words.answer import QUESTIONS, sentence
from fencepost.report.words.questions import Part, questions, the_test

# Characters that XML 1.0 does not allow.
_UNSPEAKABLE = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_PIECES = 5


def judged(
    found: Mapping[str, Any], test: Mapping[str, Any], folder: str, asked: Sequence[str] = ()
) -> bytes:
    """Return the XML of a judged run. `found`: results.json; `test`: test.json."""
    suite = Element("testsuite", name=_suite(str(found.get("test", ""))))
    known = {
        "seed": found.get("seed"),
        "faults": ",".join(map(str, test.get("nemesis") or ())),
        "guard": test.get("guard"),
        "run": folder,
        "report": f"{folder}/report.html",
    }
    _properties(suite, known)
    checkers = found.get("checkers") or {}
    for name, question in zip(QUESTIONS, questions(checkers), strict=True):
        for part in question.parts:
            case = _case(suite, name, part.checker)
            counts = not asked or name in asked or part.checker in asked
            _outcome(case, part, checkers[part.checker], counts)
    for part in the_test(checkers).parts:
        _came_about(_case(suite, "test", part.checker), part)
    SubElement(suite, "system-out").text = _clean(sentence(found))
    return _file(suite, seconds=float((found.get("stats") or {}).get("duration_s", 0.0)))


def failed(name: str, error: BaseException) -> bytes:
    """Return the XML of a run that has no verdict because of trouble in the harness."""
    return _file(_failed(name, error))


def _failed(name: str, error: BaseException) -> Element:
    suite = Element("testsuite", name=_suite(name))
    case = _case(suite, "test", "run")
    words = f"{type(error).__name__}: {error}"
    SubElement(case, "error", message=_clean(words), type=type(error).__name__).text = _clean(words)
    return suite


def campaigns(found: Sequence[Collected], seed: int, error: BaseException | None = None) -> bytes:
    """The file of campaigns: a test case a row. `error` is what ended them early, if anything
    did."""
    made = [_rows(one.name, seed, one.lines) for one in found]
    if error is not None:
        made.append(_failed("campaign", error))
    return _file(*made)


def night(found: Mapping[str, Any]) -> bytes:
    """The file of a night (night.json): a test case an outcome. A changed one is a failure, a
    crashed one an error; one that is unknown or did not fit is skipped, with its reason."""
    parts: dict[str, dict[str, Line]] = {}
    for one in found["entries"]:
        part = str(one["key"]).partition("/")[0]
        parts.setdefault(part, {})[str(one["key"])] = _of_night(part, one)
    return _file(*(_rows(f"night-{part}", found["seed"], rows) for part, rows in parts.items()))


def _of_night(part: str, one: Mapping[str, Any]) -> Line:
    marks = "; ".join(one["marks"])
    text = f"{marks}\n{one['said']}\nrun: {one['run']}"
    match one["state"]:
        case "changed":
            known = "; ".join((one["known"] or {}).get("marks") or [one["expected"]])
            words = f"known: {known}; now: {marks}"
            return Line(words, "", "failure", "changed", part, one["key"], text)
        case "crashed":
            return Line(str(one["said"]), "", "error", "run", part, one["key"], text)
        case "unknown" | "not run":
            words = f"{one['state']}: {one['said']}"
            return Line(words, "", "skipped", group=part, test=one["key"])
    return Line(marks, group=part, test=one["key"], text=text)


def _rows(name: str, seed: int, rows: Mapping[str, Line]) -> Element:
    suite = Element("testsuite", name=_suite(name))
    _properties(suite, {"seed": seed})
    for key, line in rows.items():
        case = _case(suite, _clean(line.group or name), _clean(line.test or key))
        text = _clean(line.text or str(line))
        if line.state == "passed":
            SubElement(case, "system-out").text = text
            continue
        found = SubElement(case, line.state, message=_clean(str(line)))
        if line.state != "skipped":
            found.set("type", line.kind)
            found.text = text
    return suite


def _suite(name: str) -> str:
    return _clean(f"fencepost.{name}")


def _case(suite: Element, group: str, name: str) -> Element:
    return SubElement(suite, "testcase", classname=f"{suite.get('name')}.{group}", name=name)


def _properties(suite: Element, known: Mapping[str, Any]) -> None:
    shown = SubElement(suite, "properties")
    for name, value in known.items():
        SubElement(shown, "property", name=name, value=_clean(str("" if value is None else value)))


def _outcome(case: Element, part: Part, row: Mapping[str, Any], counts: bool) -> None:
    if part.valid is True:
        return
    if part.valid is False and counts:
        sentences = [str(piece.get("what", "")) for piece in row.get("evidence") or ()][:_PIECES]
        text = "\n".join([part.about, part.summary, *sentences])
        failure = SubElement(case, "failure", message=_clean(part.summary), type="violation")
        failure.text = _clean(text)
        return
    word = "unknown" if part.valid == "unknown" else "INVALID, and does not count (--fail-on)"
    SubElement(case, "skipped", message=_clean(f"{word}: {part.summary}"))


def _came_about(case: Element, part: Part) -> None:
    if part.valid is True:
        return
    if part.checker == "run":
        SubElement(case, "error", message=_clean(part.summary), type="run").text = _clean(
            part.summary
        )
        return
    SubElement(case, "skipped", message=_clean(f"unknown: {part.summary}"))


def _file(*suites: Element, seconds: float = 0.0) -> bytes:
    top = Element("testsuites")
    for suite in suites:
        cases = suite.findall("testcase")
        suite.set("tests", str(len(cases)))
        for plural, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
            suite.set(plural, str(sum(case.find(tag) is not None for case in cases)))
        suite.set("time", f"{seconds:.3f}")
        top.append(suite)
    ElementTree.indent(top)
    written: bytes = ElementTree.tostring(top, encoding="utf-8", xml_declaration=True)
    return written + b"\n"


def _clean(text: str) -> str:
    return _UNSPEAKABLE.sub("\ufffd", text)
