"""The watches that connections have set on one server. Each fires once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from fencepost.hunt.models.zookeeper import acls
from fencepost.hunt.models.zookeeper.requests import Acl
from fencepost.hunt.models.zookeeper.tree import CHANGED, CHILD, CREATED, DELETED, Event, Tree


class Watcher(Protocol):
    """A connection, which receives notices."""

    def tell(self, kind: int, path: str, acl: Sequence[Acl] = acls.ALL) -> None:
        """Tell the client, if it may read the znode with this list."""


By = dict[str, dict[Watcher, None]]
ON_CHILDREN, ON_DATA = 1, 2
"""Kinds of watches, as bits (Watcher.WatcherType: 1, 2, and 3 for any)."""


class Watches:
    """`data`: on data and existence; `children`: on children."""

    def __init__(self) -> None:
        self._data: By = {}
        self._children: By = {}

    def on_data(self, path: str, watcher: Watcher) -> None:
        self._data.setdefault(path, {})[watcher] = None

    def on_children(self, path: str, watcher: Watcher) -> None:
        self._children.setdefault(path, {})[watcher] = None

    def _of(self, kinds: int) -> list[By]:
        each = (ON_CHILDREN, self._children), (ON_DATA, self._data)
        return [watches for kind, watches in each if kinds & kind]

    def has(self, path: str, kinds: int) -> bool:
        """Return whether any client has a watch of these kinds on a path. ZooKeeper 3.8 counts
        those of other clients, too (WatchManager.containsWatcher)."""
        return any(watches.get(path) for watches in self._of(kinds))

    def remove(self, path: str, watcher: Watcher, kinds: int) -> bool:
        """Remove a client's watches of these kinds from a path; return whether there were any."""
        found = [watches for watches in self._of(kinds) if watcher in watches.get(path, {})]
        for watches in found:
            del watches[path][watcher]
        return bool(found)

    def leave(self, watcher: Watcher) -> None:
        """Forget a connection, which is closed."""
        for watches in (self._data, self._children):
            for path in [path for path, those in watches.items() if watcher in those]:
                del watches[path][watcher]

    def fire(self, events: Iterable[Event]) -> None:
        for kind, path, acl in events:
            if kind == CHILD:
                watchers = self._children.pop(path, {})
            else:
                watchers = self._data.pop(path, {})
                if kind == DELETED:
                    # A watcher of both receives one notice.
                    watchers = watchers | self._children.pop(path, {})
            for watcher in watchers:
                watcher.tell(kind, path, acl)

    def renew(
        self,
        tree: Tree,
        watcher: Watcher,
        seen_zxid: int,
        data: Iterable[str],
        existence: Iterable[str],
        children: Iterable[str],
    ) -> None:
        """Set a client's watches again after it has connected to another server; those that would
        have fired since `seen_zxid` fire at once (DataTree.setWatches)."""
        for path in data:
            node = tree.nodes.get(path)
            if node is None:
                watcher.tell(DELETED, path)
            elif node.mzxid > seen_zxid:
                watcher.tell(CHANGED, path)
            else:
                self.on_data(path, watcher)
        for path in existence:
            if path in tree.nodes:
                watcher.tell(CREATED, path)
            else:
                self.on_data(path, watcher)
        for path in children:
            node = tree.nodes.get(path)
            if node is None:
                watcher.tell(DELETED, path)
            elif node.pzxid > seen_zxid:
                watcher.tell(CHILD, path)
            else:
                self.on_children(path, watcher)
