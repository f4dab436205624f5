"""Reports a run and its verdict to a person, quietly (only the end), or to a program.

`fencepost test` has one voice, and may also write files such as JUnit's. A voice gets the progress
and the verdict of the run. The command line (app.py) prints errors; the JUnit file and the lines
for programs have them too.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import asdict, dataclass
from typing import Any

from fencepost.harness.command import screen
from fencepost.harness.command.exits import BAD_ARGUMENTS, CRASHED, EXIT, INTERRUPTED
from fencepost.harness.command.files import Files
from fencepost.harness.errors import BadArguments
from fencepost.harness.execute.progress import Progress, Status
from fencepost.harness.judge.judge import Outcome
from fencepost.harness.results import results
from fencepost.harness.spec.spec import Spec
from fencepost.report.exports import junit
from fencepost.report.exports.badge import svg
from fencepost.report.words.answer import counted, sentence
from fencepost.report.words.summary import markdown
from fencepost.runfiles import SCHEMA


@dataclass(frozen=True)
class Voice:
    """Reports the course of a run, its verdict and its error; by default only the verdict.

    `begin` gets the number of given faults, None without such. `error`: the run ended without a
    verdict.
    """

    verdict: Callable[[Outcome, Sequence[str]], None]
    begin: Callable[[Spec, int | None], None] = lambda spec, faults: None
    say: Callable[[str], None] = lambda text: None
    progress: Callable[[Spec], AbstractContextManager[Progress]] = lambda spec: nullcontext(
        _nothing
    )
    error: Callable[[BaseException], None] = lambda error: None


def _nothing(status: Status) -> None:
    pass


def _on_screen(spec: Spec, faults: int | None) -> None:
    given = "" if faults is None else f", {faults} faults as scheduled"
    screen.say(f"Testing {spec.lock}, seed {spec.seed}{given}")


def _begin_line(spec: Spec, faults: int | None) -> None:
    row = {"test": spec.name, "lock": spec.lock, "seed": spec.seed, "time_s": spec.time_s}
    line("started", schema=SCHEMA, **row)


@contextmanager
def _progress_lines(spec: Spec) -> Iterator[Progress]:
    def report(status: Status) -> None:
        row = asdict(status)
        line("progress", faults_on=row.pop("on"), **row)

    yield report


def _verdict_line(outcome: Outcome, asked: Sequence[str]) -> None:
    answer = counted(outcome.results, asked)
    line(
        "result",
        answer=answer,
        fail_on=list(asked),
        exit_code=EXIT[answer],
        sentence=sentence(outcome.results),
        folder=str(outcome.folder),
        report=str(outcome.folder / "report.html"),
        results=outcome.results,
    )


def error_line(error: BaseException) -> None:
    code = CRASHED
    if isinstance(error, BadArguments):
        code = BAD_ARGUMENTS
    elif isinstance(error, KeyboardInterrupt):
        code = INTERRUPTED
    line("error", error=str(error) or type(error).__name__, exit_code=code)


SCREEN = Voice(
    screen.verdict, _on_screen, screen.say, lambda spec: screen.progress(spec.name, spec.time_s)
)
QUIET = Voice(screen.summary)
LINES = Voice(
    _verdict_line, _begin_line, lambda text: line("said", text=text), _progress_lines, error_line
)
"""One JSON object per line (report/results.schema.json)."""


class Reporter:
    """Reports to a voice and writes the files; `asked` are the names of `--fail-on`."""

    def __init__(self, voice: Voice, files: Files, asked: Sequence[str]) -> None:
        self._voice = voice
        self.say, self.progress = voice.say, voice.progress
        self._files = files
        self._asked = asked
        self._test = "test"
        self._judged = False

    def begin(self, spec: Spec, faults: int | None) -> None:
        self._test = spec.name
        self._voice.begin(spec, faults)

    def verdict(self, outcome: Outcome, ended: BaseException | None = None) -> int:
        """Report the verdict; return the exit code. `ended`: the error that ended the run."""
        self._judged = True
        self._voice.verdict(outcome, self._asked)
        folder, found = outcome.folder, outcome.results
        answer = counted(found, self._asked)
        self._files.write_after(
            ended,
            junit=lambda: junit.judged(found, results.read_test(folder), str(folder), self._asked),
            summary=lambda: markdown(found, str(folder)).encode(),
            badge=lambda: svg(str(found["test"]), answer).encode(),
        )
        return EXIT[answer]

    def error(self, error: BaseException) -> None:
        if self._judged:
            return
        self._voice.error(error)
        self._files.write_after(
            error,
            junit=lambda: junit.failed(self._test, error),
            badge=lambda: svg(self._test, "unknown").encode(),
        )


@contextmanager
def reporting(quiet: bool, as_json: bool, files: Files, asked: Sequence[str]) -> Iterator[Reporter]:
    """Yield the reporter of a run; report an error of the block too.

    Raises:
        BadArguments: both voices are requested, or a file cannot be written.
    """
    if quiet and as_json:
        raise BadArguments("--quiet and --json cannot be combined: choose one output")
    files.must_be_writable()
    reporter = Reporter(LINES if as_json else QUIET if quiet else SCREEN, files, asked)
    try:
        yield reporter
    except BaseException as error:
        reporter.error(error)
        raise


def line(event: str, **fields: Any) -> None:
    print(json.dumps({"event": event, **fields}), flush=True)
