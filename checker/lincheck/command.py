"""`fencepost lincheck`: check files from the command line.

Prints one JSON object per line to standard output, and errors to standard error. Exit codes as in
Jepsen: 0 valid, 1 invalid, 2 unknown, 254 bad arguments or input, 255 crashed, 130 interrupted;
with several files, the worst.
"""

from __future__ import annotations

import argparse
import json
import sys
import traceback
from pathlib import Path
from typing import Any, Final, NoReturn

from fencepost.checker.lincheck.budget import Budget
from fencepost.checker.lincheck.evidence import Evidence, described
from fencepost.checker.lincheck.formats.files import READERS, read
from fencepost.checker.lincheck.formats.jsonl import DECODER
from fencepost.checker.lincheck.history import BadHistory
from fencepost.checker.lincheck.model import BadValue, Model, Name
from fencepost.checker.lincheck.models import NAMES, named
from fencepost.checker.lincheck.models.lock import FAILED_RELEASE
from fencepost.checker.lincheck.page import page
from fencepost.checker.lincheck.verdict import Verdict, check_numbered
from fencepost.output import lost

VALID, INVALID, UNKNOWN, INTERRUPTED, BAD, CRASHED = 0, 1, 2, 130, 254, 255
EVIDENCE_S: Final = 2.0  # the most time that evidence may add to a verdict of false
PAGE_S: Final = 20.0  # and to one for which a page was requested


class _Usage(Exception):
    pass


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:  # argparse would exit with 2, which means unknown
        raise _Usage(message)


def main(argv: list[str]) -> int:
    """Check the files named in `argv` (without the program's name); return the exit code."""
    parser = _parser()
    try:
        arguments = parser.parse_args(argv)
        model = named(
            arguments.model, _json(arguments.init), arguments.failed_release, arguments.keyed
        )
        if arguments.html and len(arguments.files) > 1:
            raise _Usage("--html takes only one file at a time")
    except SystemExit:  # --help
        return VALID
    except (_Usage, BadValue) as error:
        print(f"{parser.format_usage()}{parser.prog}: {error}", file=sys.stderr)
        return BAD
    try:
        return _unless_lost(max(_file(file, model, arguments) for file in arguments.files))
    except KeyboardInterrupt:
        print(f"{parser.prog}: interrupted; files without output were not checked", file=sys.stderr)
        return INTERRUPTED


def _unless_lost(code: int) -> int:
    """Return the exit code. Guarded output raises nothing on a full disk; losing an answer is an
    error all the same."""
    why = lost("stdout")
    if not why:
        return code
    print(f"standard output: cannot be written: {why}", file=sys.stderr)
    return max(code, BAD)


_EPILOG = """\
exit codes: 0 valid, 1 invalid, 2 unknown, 254 bad arguments or input, 255 crashed; of several
files, the worst

examples:
  fencepost lincheck history.jsonl --model register
  fencepost lincheck a.edn b.edn --model cas-register --html page.html
"""


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="fencepost lincheck",
        description="Decide whether histories are linearizable with respect to a model.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("files", nargs="+", metavar="FILE", help="a history")
    add("--model", required=True, metavar="M", help=", ".join(NAMES))
    add("--format", choices=READERS, help="file format; detected from the content by default")
    add("--init", metavar="JSON", help="initial state of the model; each model has a default")
    add(
        "--failed-release",
        choices=FAILED_RELEASE,
        default="nothing",
        help="effect of a failed release: nothing, or the hold ended",
    )
    add(
        "--keyed",
        action="store_true",
        help="values are [key, value], and each key is an object (jepsen.independent)",
    )
    add(
        "--time-limit",
        type=_positive,
        metavar="S",
        help="time limit in seconds per file; beyond it the verdict is unknown",
    )
    add(
        "--memory-limit",
        type=_positive,
        metavar="MB",
        help="memory limit in MB of growth; beyond it the verdict is unknown",
    )
    add("--html", metavar="OUT", help="write the evidence as an HTML page that opens offline")
    return parser


def _positive(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number above 0")
    return number


def _json(text: str | None) -> Any:
    try:
        if text is not None and text.startswith(":"):
            return Name(text[1:], text)  # a keyword of EDN
        return None if text is None else DECODER.decode(text)
    except (ValueError, RecursionError) as error:
        raise _Usage(f"--init is not JSON: {error}") from None


def _file(file: str, model: Model, arguments: argparse.Namespace) -> int:
    def warn(message: str) -> None:
        print(f"{file}: {message}", file=sys.stderr)

    try:
        budget = Budget.starting_now(arguments.time_limit, arguments.memory_limit)
        verdict = check_numbered(read(file, arguments.format, warn), model, budget)
        evidence = _evidence(
            verdict, budget, PAGE_S if arguments.html else EVIDENCE_S, bool(arguments.html)
        )
        if arguments.html and evidence is not None:
            _write(arguments.html, page(file, verdict, evidence))
        print(json.dumps(report(file, verdict, evidence)), flush=True)
    except BadHistory as error:
        print(error.at(file=file), file=sys.stderr)
        return BAD
    except OSError as error:
        print(
            f"{error.filename or 'standard output'}: cannot be written: {error.strerror}",
            file=sys.stderr,
        )
        return BAD
    except Exception:  # a defect of lincheck: it must not look like a verdict
        print(f"{file}: lincheck crashed", file=sys.stderr)
        traceback.print_exc()
        return CRASHED
    if verdict.valid == "unknown":
        return UNKNOWN
    return VALID if verdict.valid else INVALID


def _write(target: str, text: str) -> None:
    try:
        Path(target).write_text(text, encoding="utf-8")
    except OSError as error:
        raise OSError(error.errno, error.strerror, target) from None


def _evidence(verdict: Verdict, budget: Budget, most_s: float, wanted: bool) -> Evidence | None:
    """Return evidence within the remaining time limit; for true and unknown only on request."""
    if verdict.valid is not False and not wanted:
        return None
    left = budget.left()
    seconds = most_s if left is None else min(most_s, left)
    return verdict.evidence(max(seconds, 0.0), budget.memory_limit)


def report(file: str, verdict: Verdict, evidence: Evidence | None) -> dict[str, Any]:
    """Return the verdict as the command prints it."""
    found: dict[str, Any] = {
        "file": file,
        "valid": verdict.valid,
        "operations": verdict.operations,
        "seconds": round(verdict.seconds, 6),
    }
    if verdict.reason is not None:
        found["reason"] = verdict.reason
    if verdict.valid is False and evidence is not None:
        if verdict.key is not None:
            found["object"] = str(verdict.key)
        failed = evidence.failed or verdict.failed
        if failed is not None:
            found["failed"] = {
                "line": failed.line,
                "process": failed.process,
                "op": described(failed.action),
            }
        if evidence.why is not None:
            found["why"] = evidence.why
        if evidence.small is not None:
            found["sub_history_lines"] = [op.line for op in evidence.small.operations]
        if evidence.reason is not None:
            found["incomplete"] = evidence.reason
    return found
