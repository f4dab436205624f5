"""The result of a run in Python: verdicts in words and figures."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fencepost.checker.verdict import Valid, Verdict
from fencepost.harness.errors import BadArguments
from fencepost.harness.results import results
from fencepost.harness.results.finder import find
from fencepost.harness.spec.fail_on import must_be_judged, read
from fencepost.report.words.answer import counted, sentence
from fencepost.report.words.questions import verdict

if TYPE_CHECKING:
    from fencepost.report.exports.frames import Frames

_PIECES = 2
_WORD: dict[Valid, str] = {True: "valid", False: "INVALID", "unknown": "unknown"}


@dataclass(frozen=True, repr=False)
class Result:
    """A judged run: its folder, and its results as results.json has them.

    `assert result.valid` is safe: "unknown" is not valid. `verdict` distinguishes the two.
    """

    folder: Path
    results: dict[str, Any]

    @property
    def valid(self) -> bool:
        """Whether every question was answered with true."""
        return self.verdict is True

    @property
    def verdict(self) -> Valid:
        """True, False or "unknown"."""
        return verdict(self.results.get("valid"))

    @cached_property
    def verdicts(self) -> dict[str, Verdict]:
        """Each checker's verdict by its name."""
        return {name: _verdict(row) for name, row in self.results["checkers"].items()}

    @property
    def sentence(self) -> str:
        """The verdict in words."""
        return sentence(self.results)

    @property
    def evidence(self) -> list[str]:
        """The evidence of violations, a sentence each, for each checker the first ones."""
        return [
            f"{name}: {piece['what']}"
            for name, found in self.verdicts.items()
            if found.valid is False
            for piece in found.evidence[:_PIECES]
        ]

    @property
    def _unknown(self) -> list[str]:
        """Why verdicts are unknown, a sentence each."""
        return [
            f"{name} is unknown: {found.summary}"
            for name, found in self.verdicts.items()
            if found.valid == "unknown"
        ]

    @property
    def seed(self) -> int | None:
        """The random seed of the run."""
        seed: int | None = self.results.get("seed")
        return seed

    @property
    def report(self) -> Path:
        """The page of the run, one file."""
        return self.folder / "report.html"

    def answer(self, *fail_on: str) -> Valid:
        """Return the verdict on these questions ("service", "clients", "data") or checkers; without
        any, on all.

        Raises:
            BadArguments: one of them is no question and no checker, or was not judged in this test.
        """
        asked = read(fail_on)
        must_be_judged(asked, results.read_test(self.folder).get("not_checked") or {})
        return counted(self.results, asked)

    def assert_valid(self, *fail_on: str) -> None:
        """Raise AssertionError unless the verdict on these questions is true.

        Its text has the verdict, the evidence, the seed and the report's path.
        """
        answer = self.answer(*fail_on)
        if answer is not True:
            raise AssertionError(self.explain(*fail_on))

    def explain(self, *fail_on: str) -> str:
        """Describe the verdict, the evidence, the seed and the report's path, a line each."""
        asked = f" on {', '.join(fail_on)}" if fail_on else ""
        lines = [
            f"{self.results.get('test')} is {_WORD[self.answer(*fail_on)]}{asked}.",
            self.sentence,
            *(f"  {words}" for words in (*self.evidence, *self._unknown)),
            f"seed {self.seed}, report: {self.report}",
            f"the same faults again: fencepost test --replay {self.folder}",
        ]
        return "\n".join(lines)

    def to_pandas(self) -> Frames:
        """Return its ops, holds, faults and tokens as data frames (docs/dataframes.md).

        Raises:
            ModuleNotFoundError: pandas is not installed; the text says how to get it.
            HistoryError: its history cannot be read.
        """
        try:
            from fencepost.report.exports import frames
        except ModuleNotFoundError as error:
            if error.name != "pandas":
                raise
            raise ModuleNotFoundError(
                f"cannot read {self.folder} as data frames, because pandas is not installed: pip "
                "install 'fencepost[frames]'",
                name="pandas",
            ) from None
        return frames.all_of(self.folder)

    def __repr__(self) -> str:
        return f"<{self.sentence} seed {self.seed}, report: {self.report}>"


def load(run: Path | str) -> Result:
    """Load a stored run by its folder, or by TEST or TEST/TIME in the results folder.

    Raises:
        BadArguments: there is none, or it was never judged.
    """
    folder = find(str(run))
    if not (folder / "results.json").is_file():
        raise BadArguments(
            f"{folder} has no results.json, because the run was killed: run `fencepost analyze "
            f"{folder}`"
        )
    return Result(folder, results.read(folder))


def _verdict(row: dict[str, Any]) -> Verdict:
    known = ("valid", "summary", "evidence")
    details = {name: value for name, value in row.items() if name not in known}
    summary, evidence = str(row.get("summary", "")), list(row.get("evidence") or ())
    return Verdict(verdict(row.get("valid")), summary, evidence, details)
