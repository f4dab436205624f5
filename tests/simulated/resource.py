"""The registers that the locks protect, on a node of their own: storage.

Each has a version that rises by one with every accepted write. The guard decides: `none` accepts
all, `fenced` refuses a token below the highest seen, `compare-and-set` a version other than the one
that was read. The storage records applied writes in order: they are the truth about the data.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tests.simulated.defects import Defect
from tests.simulated.world import World

STORAGE = "storage"


@dataclass(frozen=True)
class Applied:
    """A write that was applied: its base version, and its own.

    `hold`: the grant's place in the service's order, 0 if there is none.
    """

    value: str
    read: int
    before: int
    lock: str
    hold: int
    token: int | None


@dataclass
class Register:
    version: int = 0
    value: Any = None
    highest: int = -1
    applied: list[Applied] = field(default_factory=list)


class Store:
    def __init__(self, world: World, guard: str, defect: Defect) -> None:
        self._world = world
        self._guard = guard
        self._defect = defect
        self.registers: dict[str, Register] = {}

    def read(self, name: str) -> tuple[Any, int]:
        register = self._register(name)
        return register.value, register.version

    def write(
        self, name: str, value: str, read: int, token: int | None, lock: str, hold: int
    ) -> tuple[bool, int]:
        """Return whether it was accepted, and its version or the value that the guard expected."""
        register = self._register(name)
        against = self._refuses(register, read, token)
        if against is not None:
            if self._defect.strikes("shows_refused"):
                register.value = value
                register.version += self._world.random.randrange(2)
            return False, against
        if self._guard == "fenced" and token is not None:
            register.highest = max(register.highest, token)
        if self._defect.strikes("loses_update"):
            return self._lose(register, value)
        register.applied.append(Applied(value, read, register.version, lock, hold, token))
        register.value, register.version = value, register.version + 1
        return True, register.version

    def _refuses(self, register: Register, read: int, token: int | None) -> int | None:
        if self._guard == "fenced":
            if token is None or token < register.highest:
                return None if self._defect.strikes("accepts_stale") else register.highest
        elif self._guard == "compare-and-set" and read != register.version:
            return register.version
        return None

    def _lose(self, register: Register, value: str) -> tuple[bool, int]:
        """Acknowledge a write and forget it: at once, or a little later."""
        before = register.version, register.value
        if self._world.chance(0.5):
            register.value, register.version = value, register.version + 1

            def back() -> None:
                register.version, register.value = before

            self._world.after(self._world.between(1, 300), back)
        return True, before[0] + 1

    def _register(self, name: str) -> Register:
        return self.registers.setdefault(name, Register())
