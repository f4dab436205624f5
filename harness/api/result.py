"""A run as Python has it in hand: what came out, in words and in figures."""

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

    `assert result.valid` is safe: what is unknown is not valid. `verdict` tells the two apart.
    """

    folder: Path
    results: dict[str, Any]

    @property
    def valid(self) -> bool:
        """Whether every question was answered, and well."""
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
        """What came out, in words."""
        return sentence(self.results)

    @property
    def evidence(self) -> list[str]:
        """What proves the violations, a sentence each, the first ones of each checker."""
        return [
            f"{name}: {piece['what']}"
            for name, found in self.verdicts.items()
            if found.valid is False
            for piece in found.evidence[:_PIECES]
        ]

    @property
    def _unknown(self) -> list[str]:
        """Why what is not known is not, a sentence each."""
        return [
            f"{name} is unknown: {found.summary}"
            for name, found in self.verdicts.items()
            if found.valid == "unknown"
        ]

    @property
    def seed(self) -> int | None:
        """What all random choices of the run came from."""
        seed: int | None = self.results.get("seed")
        return seed

    @property
    def report(self) -> Path:
        """The page of the run, one file."""
        return self.folder / "report.html"

    def answer(self, *fail_on: str) -> Valid:
        """The verdict on some questions ("service", "clients", "data") or checkers; without any, on
        all.

        Raises:
            BadArguments: one of them is no question and no checker, or was not judged in this test.
        """
        asked = read(fail_on)
        must_be_judged(asked, results.read_test(self.folder).get("not_checked") or {})
        return counted(self.results, asked)

    def assert_valid(self, *fail_on: str) -> None:
        """Raise AssertionError unless the answer to these questions is true.

        Its text has what came out, the evidence, the seed and the report's path.
        """
        answer = self.answer(*fail_on)
        if answer is not True:
            raise AssertionError(self.explain(*fail_on))

    def explain(self, *fail_on: str) -> str:
        """What came out, the evidence, the seed and the report's path, a line each."""
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
        """Its ops, holds, faults and tokens as data frames (docs/dataframes.md).

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
                f"{self.folder} cannot be given as data frames, because pandas is not installed: "
                "pip install 'fencepost[frames]'",
                name="pandas",
            ) from None
        return frames.all_of(self.folder)

    def __repr__(self) -> str:
        return f"<{self.sentence} seed {self.seed}, report: {self.report}>"


def load(run: Path | str) -> Result:
    """A stored run: by its folder, or by TEST or TEST/TIME in the results folder.

    Raises:
        BadArguments: there is none, or it was never judged.
    """
    folder = find(str(run))
    if not (folder / "results.json").is_file():
        raise BadArguments(
            f"{folder} has no results.json, because the run was killed: `fencepost analyze "
            f"{folder}` judges it"
        )
    return Result(folder, results.read(folder))


def _verdict(row: dict[str, Any]) -> Verdict:
    known = ("valid", "summary", "evidence")
    details = {name: value for name, value in row.items() if name not in known}
    summary, evidence = str(row.get("summary", "")), list(row.get("evidence") or ())
    return Verdict(verdict(row.get("valid")), summary, evidence, details)
