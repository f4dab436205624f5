"""The bundle of a simulated family: how the hunt injects the faults of a nemesis family.

Its faults are actions, each of which can be injected before a step. An action without a target does
nothing; one about a message waits for the next message. Durations follow from the lease: most of
it, or more than all of it.

Each has a file of its own, named after the family. registry.py lists those of fencepost; an
installed package adds one with an entry point:

    [project.entry-points."fencepost.simulated_faults"]
    my-fault = "my_package.my_fault:SIMULATED"
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from fencepost.hunt.sim.protocols import Run
from fencepost.hunt.sim.setting import Setting
from fencepost.hunt.sim.world import Event, Node
from fencepost.nemesis.fault_spec import Asked
from fencepost.nemesis.targets import Drawn

Inject = Callable[[Run, Event | None], bool | None]
"""Injects the fault. If it returns False, it could not, and is called again at the next event."""


@dataclass(frozen=True)
class Action:
    """A fault with its targets and its duration.

    `kind`: its family, or FAMILY/VARIANT. Actions of the same `way` differ only in their node and
    duration. `client`: the client that it concerns, if any.
    """

    kind: str
    way: str
    inject: Inject
    client: int | None = None


@lru_cache  # each run injects the same few durations
def seconds(ns: int) -> str:
    return f"{ns / 1e9:.3g} s" if ns >= 1_000_000_000 else f"{ns / 1e6:.3g} ms"


def nodes_of(run: Run, names: Sequence[str]) -> list[Node]:
    """Return the nodes of a run with these names."""
    known: dict[str, Node] = {one.name: one for one in (*run.servers, *run.clients, run.storage)}
    return [known[name] for name in names if name in known]


@dataclass(frozen=True)
class Simulated:
    """A simulated family.

    `name`: the family's. `actions`: returns its part of a setting's table, the simplest first.

    Which hunts use it:
    - `kinds`: the kinds of its actions, FAMILY/VARIANT each, unless the family itself is the only
      one.
    - `unusual`: kinds that a hunt uses only if they are named in full, or if the family has no
      other.
    - `refuses`: why a setting cannot have it; "" if it can.
    - `usual`: whether a hunt that names no faults uses it.
    - `slows`: it can make a client work past its lease.
    - `restarts`: its nodes are away until they restart, which a hunt does not end early.
    - `betrays_store`: it takes away the clock or the memory that a lock on one store relies on.

    Long runs take the words of `--nemesis` (hunt/history), and draw as the nemesis does:
    - `drawn`: makes the injection of a drawn fault and its duration (ns). Without it, long runs use
      the actions as they are.
    - `lacks`: why the simulated world has no such drawn fault; "" if it has it.

    How real servers and clients can reproduce it (hunt/bridge):
    - `messages`: it concerns single messages, not nodes or links; `late`: these come late, and are
      not lost.
    - `kills`: a client that it concerns does not return.
    - `unsynced_lost`: its servers lose unsynced data.
    - `in_a_call`: it meets a place in a client's call that no step of a scenario names.
    - `unreplicated_lost`: the last writes of its first target never reach its second one.
    """

    name: str
    actions: Callable[[Setting], Iterable[Action]]
    kinds: tuple[str, ...] = ()
    unusual: tuple[str, ...] = ()
    refuses: Callable[[Setting], str] = lambda setting: ""
    usual: Callable[[Setting], bool] = lambda setting: True
    drawn: Callable[[Drawn, int], Inject] | None = None
    lacks: Callable[[Asked, Setting], str] = lambda asked, setting: ""
    restarts: bool = False
    slows: bool = False
    betrays_store: bool = False
    messages: bool = False
    late: bool = False
    kills: bool = False
    unsynced_lost: bool = False
    unreplicated_lost: bool = False
    in_a_call: bool = False

    @property
    def all_kinds(self) -> tuple[str, ...]:
        return self.kinds or (self.name,)

    @property
    def usual_kinds(self) -> tuple[str, ...]:
        """The kinds that the family's name alone selects."""
        return tuple(kind for kind in self.all_kinds if kind not in self.unusual) or self.all_kinds
