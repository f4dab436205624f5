"""The defects by name, and the one that a run has."""

from __future__ import annotations

from random import Random

from tests.simulated.kinds import granting, library, numbering, storing, voting
from tests.simulated.kinds.kind import Kind
from tests.simulated.plan import WAYS

KINDS: dict[str, Kind] = {
    kind.name: kind
    for kind in (
        Kind("none", "sound", (), ways=WAYS),
        *granting.KINDS,
        *library.KINDS,
        *numbering.KINDS,
        *voting.KINDS,
        *storing.KINDS,
    )
}


class Defect:
    """The defect of one run; `struck` counts its occurrences."""

    def __init__(self, name: str, random: Random) -> None:
        self.name = name
        self.kind = KINDS[name]
        self.struck = 0
        self._random = random

    def strikes(self, name: str) -> bool:
        """Return whether this is the run's defect, and it occurs now."""
        if name != self.name or self._random.random() >= self.kind.share:
            return False
        self.struck += 1
        return True
