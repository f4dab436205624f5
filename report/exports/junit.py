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

from fencepost.report.pages.suite import shares
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


def scenarios(
    suites: Mapping[str, Sequence[Mapping[str, Any]]],
    seed: int,
    error: BaseException | None = None,
) -> bytes:
    """Return the XML of suites, each with its rows as in suite.json: a test case per run.

    A run whose outcome is not as published is a failure; a run that crashed is an error. `error` is
    why the suites ended early, if they did.
    """
    made = []
    for name, rows in suites.items():
        suite = Element("testsuite", name=_suite(f"suite-{name}"))
        _properties(suite, {"seed": seed})
        for row in rows:
            case = _case(suite, str(row["scenario"]), f"guard {row['guard']}")
            _as_published(case, row)
        made.append(suite)
    if error is not None:
        made.append(_failed("suite", error))
    return _file(*made)


def night(found: Mapping[str, Any]) -> bytes:
    """Return the XML of a nightly run (night.json): a test case per outcome.

    A changed outcome is a failure, a crashed one an error. An unknown one, and one that did not fit
    the budget, is skipped with its reason.
    """
    parts: dict[str, list[Mapping[str, Any]]] = {}
    for one in found["entries"]:
        parts.setdefault(str(one["key"]).partition("/")[0], []).append(one)
    made = []
    for name, rows in parts.items():
        suite = Element("testsuite", name=_suite(f"night-{name}"))
        _properties(suite, {"seed": found["seed"]})
        for one in rows:
            case = _case(suite, name, _clean(str(one["key"])))
            marks = "; ".join(one["marks"])
            text = _clean(f"{marks}\n{one['said']}\nrun: {one['run']}")
            match one["state"]:
                case "changed":
                    known = "; ".join((one["known"] or {}).get("marks") or [one["expected"]])
                    message = _clean(f"known: {known}; now: {marks}")
                    SubElement(case, "failure", message=message, type="changed").text = text
                case "crashed":
                    message = _clean(str(one["said"]))
                    SubElement(case, "error", message=message, type="run").text = text
                case "unknown" | "not run":
                    message = _clean(f"{one['state']}: {one['said']}")
                    SubElement(case, "skipped", message=message)
                case _:
                    SubElement(case, "system-out").text = text
        made.append(suite)
    return _file(*made)


def _as_published(case: Element, row: Mapping[str, Any]) -> None:
    """Describe the outcome of a suite's run. A run without an expectation is a finding, and
    passes."""
    verdicts = ", ".join(f"{name}: {valid}" for name, valid in row["observed"].items())
    if "rate" in row:
        verdicts = "\n".join(shares(row["rate"]))
    text = _clean(f"{row['what']}\n{row['why']}\n{verdicts}\nrun: {row['run']}")
    if row["as_expected"]:
        SubElement(case, "system-out").text = text
        return
    tag = "error" if str(row["why"]).startswith("run: ") else "failure"
    kind = "run" if tag == "error" else "not as published"
    SubElement(case, tag, message=_clean(str(row["why"])), type=kind).text = text


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
