"""The bundle of a simulated family: how the hunt injects the faults of a family of the nemesis.

Each stands in its own file, named as the family. registry.py lists ours; an installed package adds
one with an entry point:

    [project.entry-points."fencepost.simulated_faults"]
    my-fault = "my_package.my_fault:SIMULATED"
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from fencepost.hunt.faults.action import Action
from fencepost.hunt.sim.setting import Setting


@dataclass(frozen=True)
class Simulated:
    """`name`: the family's. `actions`: its part of a setting's table, from the simplest on.

    Which hunts have it:
    - `kinds`: the kinds of its actions, if not the family itself: FAMILY/VARIANT each. `unusual`:
      those that a hunt has only where they are named in full, or where the family has no other.
    - `refuses`: why a setting cannot have it; "" if it can. `usual`: whether a hunt that names no
      faults has it.
    - `slows`: a client can work past its lease by it.

    What real servers and clients can do of it (hunt/bridge):
    - `messages`: it concerns single messages, not nodes or links.
    - `kills`: a client that it concerns does not come back.
    - `unsynced_lost`: its servers lose what they had not synced.
    - `unreplicated_lost`: what its first target had carried out last never reaches its second one.
    """

    name: str
    actions: Callable[[Setting], Iterable[Action]]
    kinds: tuple[str, ...] = ()
    unusual: tuple[str, ...] = ()
    refuses: Callable[[Setting], str] = lambda setting: ""
    usual: Callable[[Setting], bool] = lambda setting: True
    slows: bool = False
    messages: bool = False
    kills: bool = False
    unsynced_lost: bool = False
    unreplicated_lost: bool = False

    @property
    def all_kinds(self) -> tuple[str, ...]:
        return self.kinds or (self.name,)

    @property
    def usual_kinds(self) -> tuple[str, ...]:
        """What the family's name alone stands for."""
        return tuple(kind for kind in self.all_kinds if kind not in self.unusual) or self.all_kinds
