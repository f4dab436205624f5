"""Reports a run and its verdict to a person, quietly (only the end), or to a program.

`fencepost test` has one voice, and may also write files such as JUnit's. A voice gets the progress
and the verdict of the run. The command line (app.py) prints errors; the JUnit file and the lines
for programs have them too.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol

from fencepost.harness.command import screen
from fencepost.harness.command.exits import BAD_ARGUMENTS, CRASHED, EXIT, INTERRUPTED
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


class Voice(Protocol):
    def begin(self, spec: Spec, faults: int | None) -> None:
        """Report the start of a test; `faults`: the number of given faults, None without such."""

    def say(self, text: str) -> None:
        """Report a step of the set-up."""

    def progress(self, spec: Spec) -> AbstractContextManager[Progress]:
        """Report the progress of the run within the block."""

    def verdict(self, outcome: Outcome, asked: Sequence[str]) -> None: ...

    def error(self, error: BaseException) -> None:
        """Report that the run ended without a verdict."""


class Screen:
    """Reports to a person, in a terminal or a log."""

    def begin(self, spec: Spec, faults: int | None) -> None:
        given = "" if faults is None else f", {faults} faults as scheduled"
        screen.say(f"Testing {spec.lock}, seed {spec.seed}{given}")

    def say(self, text: str) -> None:
        screen.say(text)

    def progress(self, spec: Spec) -> AbstractContextManager[Progress]:
        return screen.progress(spec.name, spec.time_s)

    def verdict(self, outcome: Outcome, asked: Sequence[str]) -> None:
        screen.verdict(outcome, asked)

    def error(self, error: BaseException) -> None:
        pass


class Quiet:
    """Reports only the result to a person."""

    def begin(self, spec: Spec, faults: int | None) -> None:
        pass

    def say(self, text: str) -> None:
        pass

    @contextmanager
    def progress(self, spec: Spec) -> Iterator[Progress]:
        yield lambda status: None

    def verdict(self, outcome: Outcome, asked: Sequence[str]) -> None:
        screen.summary(outcome, asked)

    def error(self, error: BaseException) -> None:
        pass


class Lines:
    """Reports to a program: one JSON object per line (report/results.schema.json)."""

    def begin(self, spec: Spec, faults: int | None) -> None:
        line(
            "started",
            schema=SCHEMA,
            test=spec.name,
            lock=spec.lock,
            seed=spec.seed,
            time_s=spec.time_s,
        )

    def say(self, text: str) -> None:
        line("said", text=text)

    @contextmanager
    def progress(self, spec: Spec) -> Iterator[Progress]:
        def report(status: Status) -> None:
            row = asdict(status)
            line("progress", faults_on=row.pop("on"), **row)

        yield report

    def verdict(self, outcome: Outcome, asked: Sequence[str]) -> None:
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

    def error(self, error: BaseException) -> None:
        code = CRASHED
        if isinstance(error, BadArguments):
            code = BAD_ARGUMENTS
        elif isinstance(error, KeyboardInterrupt):
            code = INTERRUPTED
        line("error", error=str(error) or type(error).__name__, exit_code=code)


@dataclass(frozen=True)
class Files:
    """The optional files about a run outside its folder; None: not written."""

    junit: Path | None = None
    summary: Path | None = None
    badge: Path | None = None

    def must_be_writable(self) -> None:
        """Raise BadArguments if one cannot be written. Call before the run, which may be long."""
        for option, file in vars(self).items():
            if file is None:
                continue
            try:
                file.parent.mkdir(parents=True, exist_ok=True)
                file.open("ab").close()
            except OSError as error:
                raise BadArguments(
                    f"--{option}: {file} cannot be written: {error.strerror}"
                ) from error

    def write(self, outcome: Outcome, asked: Sequence[str]) -> None:
        """Write the verdict."""
        folder, found = str(outcome.folder), outcome.results
        if self.junit is not None:
            test = results.read_test(outcome.folder)
            self.junit.write_bytes(junit.judged(found, test, folder, asked))
        if self.summary is not None:
            with self.summary.open("a", encoding="utf-8") as file:
                file.write(markdown(found, folder))
        if self.badge is not None:
            self.badge.write_text(svg(str(found["test"]), counted(found, asked)), "utf-8")

    def failed(self, test: str, error: BaseException) -> None:
        """Write that the run ended without a verdict."""
        if self.junit is not None:
            self.junit.write_bytes(junit.failed(test, error))
        if self.badge is not None:
            self.badge.write_text(svg(test, "unknown"), "utf-8")


class Reporter:
    """Reports to a voice and writes the files; `asked` are the names of `--fail-on`."""

    def __init__(self, voice: Voice, files: Files, asked: Sequence[str]) -> None:
        self._voice = voice
        self._files = files
        self._asked = asked
        self._test = "test"
        self._judged = False

    def begin(self, spec: Spec, faults: int | None) -> None:
        self._test = spec.name
        self._voice.begin(spec, faults)

    def say(self, text: str) -> None:
        self._voice.say(text)

    def progress(self, spec: Spec) -> AbstractContextManager[Progress]:
        return self._voice.progress(spec)

    def verdict(self, outcome: Outcome) -> int:
        """Report the verdict; return the exit code."""
        self._judged = True
        self._voice.verdict(outcome, self._asked)
        self._files.write(outcome, self._asked)
        return EXIT[counted(outcome.results, self._asked)]

    def error(self, error: BaseException) -> None:
        if self._judged:
            return
        self._voice.error(error)
        self._files.failed(self._test, error)


@contextmanager
def reporting(quiet: bool, as_json: bool, files: Files, asked: Sequence[str]) -> Iterator[Reporter]:
    """Yield the reporter of a run; report an error of the block too.

    Raises:
        BadArguments: both voices are requested, or a file cannot be written.
    """
    if quiet and as_json:
        raise BadArguments("--quiet and --json cannot be combined: choose one output")
    files.must_be_writable()
    reporter = Reporter(Lines() if as_json else Quiet() if quiet else Screen(), files, asked)
    try:
        yield reporter
    except BaseException as error:
        reporter.error(error)
        raise


def line(event: str, **fields: Any) -> None:
    print(json.dumps({"event": event, **fields}), flush=True)
