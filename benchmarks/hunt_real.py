"""Measures hunts and random faults on real servers, for `make bench-hunt`.

A counterexample from a simulation is replayed, and must have the same outcome. Locks that are
broken on purpose meet the faults that `fencepost test` draws, and sound ones too, which no checker
may accuse. All of it runs on one cluster, which stays up.
"""

from __future__ import annotations

import shlex
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import ceil
from pathlib import Path
from typing import Any

from hunt_rows import KNOWN, LIBRARIES, Print, Row

from fencepost.harness.api.session import Session

# Of ten.
OFTEN, AIMED = 0.9, 0.8
TIME = "60s"
FAULTS = "pause,partition,kill,clock"
USERS = Path(__file__).parent.parent / "tests" / "hunt" / "locks.py"


@dataclass(frozen=True)
class Random:
    """A lock under random faults. `checker`: the one that must say no; "" for a sound lock, whose
    service no checker may accuse."""

    key: str
    name: str
    lock: str
    checker: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)
    options: Mapping[str, str] = field(default_factory=dict)
    often: float = OFTEN

    @property
    def arguments(self) -> dict[str, Any]:
        return {"faults": FAULTS, "time": TIME, **self.settings}

    @property
    def command(self) -> str:
        words = ["fencepost", "test", self.lock]
        words += [w for name, value in self.options.items() for w in ("-o", f"{name}={value}")]
        for name, value in self.arguments.items():
            option = f"--{'nemesis' if name == 'faults' else name}"
            words += [option] if value is True else [option, str(value)]
        return shlex.join(words)


def _user(name: str, checker: str) -> Random:
    lock = f"{USERS.relative_to(USERS.parents[2])}:{name}"
    return Random(f"user-{name.lower()}", f"a user's lock, {name}", lock, checker,
                  {"servers": "redis:1"})  # fmt: skip


AIM = (
    Random("aim-redlock", "aimed faults: Redlock", "redlock", "lease_exclusion",
           {"faults": "clock,partition", "aim": True, "until": "lease_exclusion"}, often=AIMED),
)  # fmt: skip
BROKEN = (
    Random("always-yes", "grants to everybody", "broken-always-yes", "lease_exclusion"),
    Random("no-owner-check", "C14 no owner check", "broken-no-owner-check", "ownership"),
    Random("check-then-delete", "C14 check, then delete", "broken-check-then-delete", "ownership"),
    Random("no-ttl", "C15 no TTL", "broken-no-ttl", "liveness"),
    Random("endless-watchdog", "a watchdog without end", "broken-endless-watchdog", "liveness"),
    Random("herd", "everybody is woken", "broken-herd", "liveness"),
    _user("Deletes", "ownership"),
    _user("Raw", "ownership"),
)
_SOUND = (
    ("etcd", {}, {}),
    ("zookeeper", {}, {}),
    ("postgres", {}, {}),
    # No state of one Redis survives its crash, and its leases run on its wall clock.
    ("redis", {"faults": "pause,partition", "guard": "fenced"}, {"token": "incr"}),
)
SOUND_REAL = tuple(
    Random(f"real-{lock}{'-aim' * aim}", f"sound, {'aimed' if aim else 'random'} faults: {lock}",
           lock, "", settings | ({"aim": True} if aim else {}), options)
    for lock, settings, options in _SOUND
    for aim in (False, True)
)  # fmt: skip
CONFIRM = tuple(
    replace(row, key=f"confirm-{row.key}", confirm=True) for row in (*KNOWN, *LIBRARIES)
)


@dataclass(frozen=True)
class Real:
    """Measures on a cluster, from this many seeds each, starting at `first`."""

    session: Session
    seeds: int
    first: int
    print: Print

    def confirm(self, row: Row) -> bool:
        """Replay each counterexample on real servers, where the outcome must be the same."""
        confirmed, first, took, failed = 0, 0, 0.0, []
        for seed in self._numbers():
            begun = time.monotonic()
            found = self.session.hunt(
                row.lock,
                options=row.options,
                faults=row.faults,
                goal=row.goal,
                guard=row.guard,
                budget=row.limit_s,
                seed=seed,
                confirm=True,
                **row.settings,
            )
            took = max(took, time.monotonic() - begun)
            if found.confirmed:
                assert found.confirmation is not None
                confirmed += 1
                first += len(found.confirmation.differences) == 1
            else:
                why = found.confirmation.sentence if found.confirmation else "nothing was found"
                failed.append(f"seed {seed}: {why}")
        seen = f"{confirmed} of {self.seeds}, {first} at the first try; longest {took:.0f} s"
        return self._counted(row, "confirmed on real servers", confirmed, OFTEN, seen, failed)

    def random(self, row: Random) -> bool:
        """Check that the intended checker says no, or that none accuses the service."""
        good, failed = 0, []
        for seed in self._numbers():
            result = self.session.run(row.lock, options=row.options, seed=seed, **row.arguments)
            if row.checker:
                right = result.verdicts[row.checker].valid is False
                why = f"{row.checker}: {result.verdicts[row.checker].summary}"
            else:
                right = result.answer("service") is not False
                why = result.sentence
            good += right
            if not right:
                failed.append(f"seed {seed}: {why} ({result.folder})")
        often = row.often if row.checker else 1.0
        what = f"{row.checker} false" if row.checker else "no service violation"
        return self._counted(row, what, good, often, f"{good} of {self.seeds}", failed)

    def _numbers(self) -> range:
        return range(self.first, self.first + self.seeds)

    def _counted(
        self, row: Any, what: str, good: int, often: float, seen: str, failed: list[str]
    ) -> bool:
        least = ceil(round(often * self.seeds, 6))  # of one seed, that one
        wanted = f"{what}, {least} of {self.seeds}"
        return self.print(row, wanted, "\n               ".join([seen, *failed]), good >= least)
