"""The disk of a Redis server, by its persistence.

It follows redis.conf. `none`: a restart begins empty. `always`: acknowledged writes are on the
disk. `everysec`: acknowledged writes are with the kernel, and so survive a crash; they are on the
disk, and so survive a loss of power, once the wall clock shows a later second than that of the last
sync (aof.c, flushAppendOnlyFile: `server.unixtime > server.aof_last_fsync`).
"""

from __future__ import annotations

from fencepost.hunt.models.redis.store import Store

_SECOND = 1_000_000_000
# The disk of a server that has synced nothing.
_NOTHING = Store()


class Disk:
    """`lags`: acknowledged writes may be missing on it."""

    __slots__ = ("_kept", "_last_sync", "_offset", "_synced", "lags")

    def __init__(self, persistence: str, wall_ns: int) -> None:
        self.lags = persistence == "everysec"
        self._kept = persistence != "none"
        self._synced, self._offset = _NOTHING, 0
        self._last_sync = wall_ns // _SECOND

    def written(self, store: Store, offset: int, wall_ns: int) -> None:
        """Sync a write at this time, if a sync is due."""
        if self.lags and wall_ns // _SECOND > self._last_sync:
            self._synced, self._offset = store.copy(), offset
            self._last_sync = wall_ns // _SECOND

    def catch_up(self, store: Store, offset: int, wall_ns: int) -> None:
        """Sync the writes since the last sync, which it does periodically, if that is due."""
        if offset != self._offset:
            self.written(store, offset, wall_ns)

    def after_crash(self, store: Store, power: bool) -> Store:
        """Return the data that survives a crash, or a loss of power."""
        if not self._kept:
            return Store()
        return self._synced.copy() if power and self.lags else store

    def start(self, store: Store, offset: int, wall_ns: int) -> None:
        """Note that the server starts with this data."""
        if self.lags:
            self._last_sync = wall_ns // _SECOND
            self._synced, self._offset = store.copy(), offset


def disk(persistence: str, wall_ns: int) -> Disk:
    """Return the disk of a new server. Those that do not lag have no state, so servers share them:
    a hunt creates thousands of servers a second."""
    return _SHARED.get(persistence) or Disk(persistence, wall_ns)


_SHARED = {name: Disk(name, 0) for name in ("none", "always")}
