"""Redis' keyspace notifications (notify.c): which events of keys a server publishes.

`m` (misses) and `n` (new keys) have no model.
"""

from __future__ import annotations

from collections.abc import Callable

from fencepost.hunt.models.redis.arguments import CommandError
from fencepost.hunt.sim.unknown import Unknown

OPTION = "notify-keyspace-events"
_ALL = "g$lshzxetd"
_KINDS = frozenset(_ALL + "KE")
_ORDER = "g$lshzxetdKE"


class Notices:
    """The events that a server publishes, as set with CONFIG."""

    def __init__(self) -> None:
        self._flags: frozenset[str] = frozenset()

    def __bool__(self) -> bool:
        return bool(self._flags)

    def set(self, flags: str) -> None:
        for letter in "mn":
            if letter in flags:
                raise Unknown(f"the model of Redis has no keyspace events of the class {letter}")
        if set(flags) - _KINDS - {"A"}:
            raise CommandError(
                f"ERR CONFIG SET failed (possibly related to argument '{OPTION}') - Invalid event "
                "class character. Use 'Ag$lshzxeKEtmdn'."
            )
        self._flags = frozenset(flags.replace("A", _ALL))

    def __str__(self) -> str:
        """Return the flags as CONFIG GET shows them (notify.c, keyspaceEventsFlagsToString)."""
        every = set(_ALL) <= self._flags
        kinds = "A" if every else "".join(one for one in _ORDER[:-2] if one in self._flags)
        return kinds + "".join(one for one in "KE" if one in self._flags)

    @property
    def of_expiry(self) -> bool:
        """Whether clients may hear of keys that expire."""
        return "x" in self._flags

    def tell(self, kind: str, event: str, key: str, publish: Callable[[str, str], int]) -> None:
        """Publish an event of a key if its kind is among the flags."""
        if kind in self._flags:
            if "K" in self._flags:
                publish(f"__keyspace@0__:{key}", event)
            if "E" in self._flags:
                publish(f"__keyevent@0__:{event}", key)
