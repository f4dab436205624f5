"""A run in progress: its parts, and how it reports."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from fencepost.harness.clients.recorder import Recorder
from fencepost.harness.execute.site import RunSite
from fencepost.harness.judge.live_check import LiveVerdict
from fencepost.harness.spec.spec import Spec
from fencepost.nemesis.director import Director


@dataclass(frozen=True)
class Running:
    """`say` reports to the person who waits. `note` stores an error of the run itself, which makes
    its verdict unknown. `follow` gets the live check of the run, None without one. `lacks`:
    the nodes that cannot have a fault, by FAMILY/VARIANT."""

    spec: Spec
    site: RunSite
    director: Director
    recorder: Recorder
    say: Callable[[str], None]
    note: Callable[[str], None]
    follow: Callable[[LiveVerdict | None], None]
    lacks: Mapping[str, Sequence[str]]
