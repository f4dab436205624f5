"""Triggered faults (`--aim`): each waits for a moment of a hold, and is then injected.

A trigger injects some faults (`before`), waits for a moment, injects another (`strike`), and heals
all. It is drawn from the seed (trigger_draws.py). The holder is not known then, so a trigger
names it `holder`, as a schedule names the leading server `primary`; aim.py resolves it.

- *split*, for locks that ask a majority of independent servers: the clients are cut into two
  groups, each of which reaches a bare majority, with as few common servers as possible. Any
  holder then depends on these; a fault that may make them forget is injected there.
- *hold*: during a hold, at its holder or the servers.
- *edge*: when a twentieth of a lease is left, at its holder: mostly a pause until another client
  holds the lock, so that its release comes during that hold.
- *point*: the first client that reaches a failpoint of its lock's code is stopped there until long
  after its lease, or killed.
- *request*: the first client that reaches a failpoint before a request is stopped there until the
  network or a server fails, so that the fault meets this request or its answer.
- *free*: at any time, as without `--aim`.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

import msgspec

from fencepost.nemesis.failpoints import REPLY
from fencepost.nemesis.families import FAMILIES, check, validate
from fencepost.nemesis.targets import HOLDER, Layout, renamed

KINDS = ("split", "hold", "edge", "point", "request", "free")


class Injection(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One fault of a trigger."""

    family: str
    targets: list[str]
    arguments: dict[str, Any]

    def at(self, holder: str | None) -> Injection:
        """Replace `holder` by a client."""
        names = {} if holder is None else {HOLDER: holder}
        targets, arguments = renamed(self.targets, self.arguments, names)
        return Injection(self.family, targets, arguments)


class Trigger(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A triggered fault. `share`: the part of its lease that a hold must have behind it. `lasts_s`:
    maximal duration of the injection; with `until_grant` it ends when another client is granted the
    lock. `rest_s`: time until the next trigger.

    Recorded when it was carried out: `holder`, the affected client, and `at_s`, when the injection
    began; None if its moment did not come.
    """

    kind: str
    before: list[Injection]
    strike: list[Injection]
    share: float
    lasts_s: float
    until_grant: bool
    rest_s: float
    holder: str | None = None
    at_s: float | None = None

    def to_json(self) -> dict[str, Any]:
        found: dict[str, Any] = msgspec.to_builtins(self)
        return found


def must_fit(entries: Sequence[str], at: Layout) -> None:
    """Raise ValueError if there is nothing to trigger, or an entry has no moment."""
    asked = check(entries, at)
    if not asked:
        raise ValueError("--aim needs --nemesis: name the faults to aim")
    for one in asked:
        if len(FAMILIES[one.family].draw(Random(0), at, one)) > 1:
            raise ValueError(
                f"nemesis {one.text}: a rolling fault has no moment: leave --aim out, or name "
                f"{one.family}"
            )


def must_make_sense(found: Sequence[Trigger], at: Layout) -> None:
    """Raise ValueError if this layout cannot have a fault of these triggers."""
    for number, trigger in enumerate(found, 1):
        for injection in (*trigger.before, *(one.at(at.clients[0]) for one in trigger.strike)):
            try:
                validate(injection.family, injection.targets, injection.arguments, at)
            except (TypeError, ValueError) as error:
                raise ValueError(f"trigger {number}: {error}") from error


def meets_a_grant(trigger: Trigger) -> bool:
    """Return whether the trigger stops a client at the reply to an acquire."""
    return trigger.kind == "point" and any(
        one.arguments.get("point") == REPLY for one in trigger.strike
    )
