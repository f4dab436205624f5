"""The bundle of a claim: its words, its source, and the verdicts that confirm it.

Entries of suites name claims by id; workloads/scenarios/claims.py lists ours.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

Kind = Literal["property", "algorithm", "claim", "defect", "run"]
"""Of every lock; of an algorithm; published; a known defect; of a run that claims nothing."""


@dataclass(frozen=True)
class Claim:
    """A sentence that entries of suites test. `source` says in short who claims it (docs/claims.md
    has the sources), `expected` what the checkers say where it is true.

    Raises ValueError where a field makes no sense.
    """

    id: str
    words: str
    source: str = ""
    expected: str = ""
    kind: Kind = "claim"

    def __post_init__(self) -> None:
        if not (self.id and self.words):
            raise ValueError(f"claim {self.id!r}: give it an id and words")
        if self.kind not in get_args(Kind):
            valid = ", ".join(get_args(Kind))
            raise ValueError(f"claim {self.id}: kind {self.kind!r} is none of {valid}")
        if self.kind != "run" and not self.source:
            raise ValueError(f"claim {self.id}: name its source")

    @property
    def name(self) -> str:
        return self.id


def listed(ids: Sequence[str]) -> str:
    """The ids of an entry's claims in a phrase: "C4, C5 and A4"."""
    return " and ".join(filter(None, (", ".join(ids[:-1]), *ids[-1:])))


def must_be_ids(entry: str, claims: object) -> None:
    """Raise ValueError unless an entry of a suite names its claims as a tuple of ids."""
    if not isinstance(claims, tuple) or not all(isinstance(one, str) and one for one in claims):
        raise ValueError(f"entry {entry}: claims {claims!r} is not a tuple of ids of claims")


CONTROL, EXPLORATION = "control", "exploration"
"""What entries without a claim name."""
