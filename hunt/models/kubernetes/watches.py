"""Watches, and the changes that an API server keeps for them (apiserver/pkg/storage/cacher).

An API server has the latest changes of each kind in its memory: all of the last 75 s, and at least
100. A watch begins after a version. If changes since then are gone, its only event is an ERROR with
410. A watch that names no version, or 0, begins with each object as ADDED. A bookmark comes only if
the kind has changed since the watch began. Without timeoutSeconds a watch lasts 30 min, as the
shortest one of a real server does.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import parse_qsl

from fencepost.hunt.models.kubernetes.kinds import Kind
from fencepost.hunt.models.kubernetes.status import Object, Refusal, encoded
from fencepost.hunt.sim.unknown import Unknown

_S = 10**9
_FRESH_NS = 75 * _S
_LEAST, _MOST = 100, 100 * 1024
_LASTS_NS = 1800 * _S
_BOOKMARKS_NS = 60 * _S
_BEFORE_THE_END_NS = 2 * _S
_ON = ("true", "1")
_NAMES = "metadata.name="


@dataclass(frozen=True)
class Change:
    """A write to an object. `old` is None if it is new, `new` if it was deleted."""

    version: int
    namespace: str
    name: str
    old: Object | None
    new: Object | None

    def event(self) -> bytes:
        if self.new is not None:
            return _event("MODIFIED" if self.old else "ADDED", self.new)
        assert self.old is not None, "a deleted object was there"
        last = self.old["metadata"] | {"resourceVersion": str(self.version)}
        return _event("DELETED", self.old | {"metadata": last})


@dataclass(frozen=True)
class Asked:
    """The request of a watch. `name`: of the only object, "" for all; `version`: after which it
    begins, 0 for the present objects."""

    kind: Kind
    namespace: str
    name: str
    version: int
    lasts_ns: int
    bookmarks: bool

    def concerns(self, namespace: str, name: str) -> bool:
        return namespace == self.namespace and self.name in ("", name)


def is_watch(method: str, query: str) -> bool:
    """Return whether a request is a watch."""
    return method == "GET" and any(
        name == "watch" and value in _ON for name, value in parse_qsl(query)
    )


def asked(kind: Kind, namespace: str, query: str) -> Asked:
    """Read the query of a watch. Raises Unknown if the model lacks any of it."""
    given = dict(parse_qsl(query, keep_blank_values=True))
    selector = given.pop("fieldSelector", "")
    version, lasts = given.pop("resourceVersion", "") or "0", given.pop("timeoutSeconds", "0")
    bookmarks = given.pop("allowWatchBookmarks", "false")
    known = {"watch": _ON, "pretty": ("false", "0")}
    strange = [name for name, value in given.items() if value not in known.get(name, ())]
    strange += [selector] if selector and not selector.startswith(_NAMES) else []
    strange += [one for one in (version, lasts) if not one.isdecimal()]
    strange += [bookmarks] if bookmarks not in (*_ON, "false", "0") else []
    if strange or any(sign in selector for sign in ",!"):
        raise Unknown(f"the model of Kubernetes has no watch with {query}")
    return Asked(
        kind, namespace, selector.removeprefix(_NAMES).removeprefix("="), int(version),
        int(lasts) * _S or _LASTS_NS, bookmarks in _ON,
    )  # fmt: skip


class Watch:
    """One watch. `present` are the objects that it shows first if it names no version; `exists`:
    there are objects of the kind, which it may not concern. `wake` is called when it has an event.
    """

    def __init__(
        self, asked: Asked, cache: Cache, present: list[Object], exists: bool, now_ns: int
    ) -> None:
        self.asked = asked
        self.wake: Callable[[], None] | None = None
        self.ends_ns = now_ns + asked.lasts_ns
        self._cache = cache
        self._bookmark_ns = self._next_bookmark(now_ns) if asked.bookmarks else None
        self._events: list[bytes] = []
        self._begun = asked.version
        try:
            changes = cache.since(asked.version) if asked.version else []
        except Refusal as expired:
            self._events = [_event("ERROR", expired.status())]
            self.ends_ns = now_ns
            return
        if not asked.version:
            self._events = [_event("ADDED", one) for one in present]
        for change in changes:
            self.hear(change)
        # The server counts every change, or object, of the kind, also those that it leaves out.
        begins_later = bool(changes) or (exists and not asked.version)
        self._begun = cache.seen if begins_later else asked.version
        cache.watches.append(self)

    def hear(self, change: Change) -> None:
        if change.version > self.asked.version and self.asked.concerns(
            change.namespace, change.name
        ):
            self._events.append(change.event())
            if self.wake is not None:
                self.wake()

    def take(self, now_ns: int) -> bytes:
        """Return the events since the last call."""
        if self._bookmark_ns is not None and now_ns >= self._bookmark_ns:
            self._bookmark_ns = self._next_bookmark(now_ns)
            if self._cache.seen > self._begun:
                self._events.append(_event("BOOKMARK", self._mark()))
        found, self._events = b"".join(self._events), []
        return found

    @property
    def next_ns(self) -> int:
        """When it has something to do, even if nothing changes."""
        return min(self.ends_ns, self._bookmark_ns or self.ends_ns)

    def close(self) -> None:
        if self in self._cache.watches:
            self._cache.watches.remove(self)

    def _next_bookmark(self, now_ns: int) -> int | None:
        """Return when a bookmark is due: each minute, and 2 s before the end."""
        found = min(now_ns + _BOOKMARKS_NS, self.ends_ns - _BEFORE_THE_END_NS)
        return found if found > now_ns else None

    def _mark(self) -> Object:
        """Return an empty object with the version of the latest change of its kind."""
        kind = self.asked.kind
        spec: Object = {"spec": {}} if kind.name == "Lease" else {}
        meta = {"resourceVersion": str(self._cache.seen), "creationTimestamp": None}
        return {"kind": kind.name, "apiVersion": kind.version, "metadata": meta, **spec}


class Cache:
    """The latest changes of one kind, and the watches that hear of new ones. `seen`: the version of
    the last change, 0 before any."""

    def __init__(self, version: int) -> None:
        self.seen = 0
        self.watches: list[Watch] = []
        self._listed = version
        self._kept: list[tuple[int, Change]] = []
        self._most = _LEAST
        self._dropped = False

    def add(self, change: Change, now_ns: int) -> None:
        self._resize(now_ns)
        if len(self._kept) == self._most:
            del self._kept[0]
            self._dropped = True
        self._kept.append((now_ns, change))
        self.seen = change.version
        for watch in self.watches:
            watch.hear(change)

    def since(self, version: int) -> list[Change]:
        """Return the changes after a version. Raises Refusal (410) if some of them are gone."""
        oldest = self._kept[0][1].version if self._dropped else self._listed + 1
        if version < oldest - 1:
            words = f"too old resource version: {version} ({oldest - 1})"
            raise Refusal(410, "Expired", words)
        return [change for _, change in self._kept if change.version > version]

    def _resize(self, now_ns: int) -> None:
        """Keep twice as many if all are fresh, half as many if three quarters are not."""
        if len(self._kept) < self._most:
            return
        if now_ns - self._kept[0][0] < _FRESH_NS:
            self._most = min(2 * self._most, _MOST)
        elif now_ns - self._kept[-(self._most // 4)][0] > _FRESH_NS and self._most > _LEAST:
            self._most //= 2
            self._dropped = True
            del self._kept[: -self._most]


class Caches:
    """Those of one API server, since it has started."""

    def __init__(self, version: int) -> None:
        self._version = version
        self._by_kind: dict[str, Cache] = {}

    def of(self, plural: str) -> Cache:
        if plural not in self._by_kind:
            self._by_kind[plural] = Cache(self._version)
        return self._by_kind[plural]


def _event(type_: str, about: Object) -> bytes:
    return encoded({"type": type_, "object": about}) + b"\n"
