"""The znodes, and the requests that read and change them.

A change of several znodes (multi, or the end of a session) has one zxid. It can be undone until it
is complete, because a multi that fails changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from fencepost.hunt.models.zookeeper import acls, paths
from fencepost.hunt.models.zookeeper.acls import Ids
from fencepost.hunt.models.zookeeper.errors import (
    BAD_ARGUMENTS,
    BAD_VERSION,
    NO_CHILDREN_FOR_EPHEMERALS,
    NO_NODE,
    NODE_EXISTS,
    NOT_EMPTY,
    UNIMPLEMENTED,
    Refused,
)
from fencepost.hunt.models.zookeeper.requests import Acl

EPHEMERAL, SEQUENTIAL = 1, 2
CONTAINER, WITH_TTL = 4, (5, 6)
_OWNER = -(2**63)
"""The owner of a container (EphemeralType.CONTAINER_EPHEMERAL_OWNER)."""
CREATED, DELETED, CHANGED, CHILD = range(1, 5)
_MOST, _WIDE = 2**31, 2**32

Event = tuple[int, str, Sequence[Acl]]
"""Its kind, the path of the znode, and who may read that."""


@dataclass(slots=True)
class Node:
    """A znode. `creates`: how often a child was created; `capacity`: of Java's set of children."""

    data: bytes | None
    acl: Sequence[Acl]
    czxid: int = 0
    mzxid: int = 0
    pzxid: int = 0
    ctime_ms: int = 0
    mtime_ms: int = 0
    version: int = 0
    aversion: int = 0
    owner: int = 0
    creates: int = 0
    capacity: int = 8
    children: dict[str, None] = field(default_factory=dict)

    @property
    def stat(self) -> tuple[int, ...]:
        count = len(self.children)
        # From the number of creates to the number of changes (DataNode.copyStat).
        cversion = self.creates * 2 - count
        size = len(self.data or b"")
        return (
            self.czxid, self.mzxid, self.ctime_ms, self.mtime_ms, self.version, cversion,
            self.aversion, max(self.owner, 0), size, count, self.pzxid,
        )  # fmt: skip

    def names(self) -> list[str]:
        """Return the names of its children, in ZooKeeper's order."""
        return paths.in_java_order(self.children, self.capacity)


@dataclass(frozen=True, slots=True)
class Author:
    """The author of a change: its session, and the ids of its connection; and its time: zxid and
    wall clock."""

    session: int
    ids: Ids
    zxid: int
    ms: int


class Tree:
    """`events`: those of the current change, for watchers."""

    def __init__(self) -> None:
        root = Node(b"", acls.ALL)
        self.nodes: dict[str, Node] = {"": root, "/": root}
        self.ephemerals: dict[int, dict[str, None]] = {}
        self.containers: dict[str, None] = {}
        self.events: list[Event] = []
        self._undo: list[Callable[[], None]] = []
        for path in paths.SPECIAL[1:]:
            parent, _, name = path.rpartition("/")
            self.nodes[path] = Node(b"", acls.ALL)
            self.nodes[parent].children[name] = None

    def get(self, path: str | None) -> Node:
        found = self.nodes.get(path or "")
        if path is None or found is None:
            raise Refused(NO_NODE)
        return found

    def begin(self) -> None:
        """Begin a change."""
        self.events.clear()
        self._undo.clear()

    def undo(self) -> None:
        """Undo the current change."""
        while self._undo:
            self._undo.pop()()
        self.events.clear()

    # Changes.

    def create(
        self,
        by: Author,
        path: str | None,
        data: bytes | None,
        acl: Sequence[Acl],
        flags: int,
        container: bool = False,
    ) -> str:
        """Create a znode; return its path, which ends with a number if it is sequential.

        Without `container`, the flag of one makes a persistent znode. Znodes with a TTL are
        refused, as by a server with its default settings (extendedTypesEnabled).
        """
        if flags in WITH_TTL:
            raise Refused(UNIMPLEMENTED)
        if not 0 <= flags <= CONTAINER:
            raise Refused(BAD_ARGUMENTS)
        above = paths.parent_of(path)
        assert path is not None
        acl = acls.fixed(acl, by.ids)
        parent = self.get(above)
        acls.check(parent.acl, acls.CREATE, by.ids)
        if flags & SEQUENTIAL:
            path = f"{path}{parent.creates:010d}"
        paths.check(path)
        if path in self.nodes:
            raise Refused(NODE_EXISTS)
        if parent.owner not in (0, _OWNER):
            raise Refused(NO_CHILDREN_FOR_EPHEMERALS)
        owner = _OWNER if container else by.session if flags & EPHEMERAL else 0
        wide = acls.ALL if acl == acls.ALL else acl
        made = Node(data, wide, by.zxid, by.zxid, by.zxid, by.ms, by.ms, owner=owner)
        before = parent.creates, parent.pzxid, parent.capacity
        self._put(path, parent, made)
        parent.creates, parent.pzxid = _next(parent.creates), by.zxid

        def undo() -> None:
            self._drop(path, parent)
            parent.creates, parent.pzxid, parent.capacity = before

        self._undo.append(undo)
        self.events += [(CREATED, path, wide), (CHILD, above or "/", parent.acl)]
        return path

    def delete(self, by: Author, path: str | None, version: int) -> None:
        above = paths.parent_of(path, paths.SPECIAL)
        assert path is not None
        parent = self.get(above)
        acls.check(parent.acl, acls.DELETE, by.ids)
        node = self.get(path)
        _checked(node.version, version)
        if node.children:
            raise Refused(NOT_EMPTY)
        self._remove(path, by.zxid)

    def abandoned(self) -> list[str]:
        """Return the containers that had children, and have none (ContainerManager)."""
        nodes = {path: self.nodes[path] for path in self.containers}
        return [path for path, one in nodes.items() if one.creates > 0 and not one.children]

    def sweep(self, path: str, zxid: int) -> None:
        """Delete a container."""
        self._remove(path, zxid)

    def end(self, session: int, zxid: int) -> None:
        """Delete the ephemeral znodes of a session."""
        ours = self.ephemerals.get(session, {})
        # In the order of a clone of a set (DataTree.getEphemerals, HashMap.putMapEntries).
        wanted, capacity = int(len(ours) / 0.75 + 1), 1
        while capacity < wanted:
            capacity *= 2
        ordered = paths.in_java_order(ours, paths.grown(16, len(ours)))
        for path in paths.in_java_order(ordered, capacity):
            self._remove(path, zxid)

    def set(self, by: Author, path: str | None, data: bytes | None, version: int) -> Node:
        node = self.get(paths.check(path))
        acls.check(node.acl, acls.WRITE, by.ids)
        new = _checked(node.version, version)
        before = node.data, node.version, node.mzxid, node.mtime_ms
        node.data, node.version, node.mzxid, node.mtime_ms = data, new, by.zxid, by.ms

        def undo() -> None:
            node.data, node.version, node.mzxid, node.mtime_ms = before

        self._undo.append(undo)
        self.events.append((CHANGED, path or "", node.acl))
        return node

    def set_acl(self, by: Author, path: str | None, acl: Sequence[Acl], version: int) -> Node:
        name = paths.check(path)
        acl = acls.fixed(acl, by.ids)
        node = self.get(name)
        acls.check(node.acl, acls.ADMIN, by.ids)
        node.aversion = _checked(node.aversion, version)
        node.acl = acls.ALL if acl == acls.ALL else acl
        return node

    def check(self, by: Author, path: str | None, version: int) -> None:
        node = self.get(paths.check(path))
        acls.check(node.acl, acls.READ, by.ids)
        _checked(node.version, version)

    def _remove(self, path: str, zxid: int) -> None:
        above = path[: path.rindex("/")]
        parent, node = self.nodes[above], self.nodes[path]
        before = dict(parent.children), parent.pzxid
        self._drop(path, parent)
        parent.pzxid = max(parent.pzxid, zxid)

        def undo() -> None:
            self._put(path, parent, node)
            parent.children, parent.pzxid = before

        self._undo.append(undo)
        self.events += [(DELETED, path, node.acl), (CHILD, above or "/", parent.acl)]

    def _put(self, path: str, parent: Node, node: Node) -> None:
        self.nodes[path] = node
        parent.children[path[path.rindex("/") + 1 :]] = None
        parent.capacity = paths.grown(parent.capacity, len(parent.children))
        if node.owner == _OWNER:
            self.containers[path] = None
        elif node.owner:
            self.ephemerals.setdefault(node.owner, {})[path] = None

    def _drop(self, path: str, parent: Node) -> None:
        node = self.nodes.pop(path)
        del parent.children[path[path.rindex("/") + 1 :]]
        if node.owner == _OWNER:
            del self.containers[path]
        elif node.owner:
            ours = self.ephemerals[node.owner]
            del ours[path]
            if not ours:
                del self.ephemerals[node.owner]


def _checked(version: int, expected: int) -> int:
    """Return the next version. Raises Refused if another one was expected; -1: any."""
    if expected not in (-1, version):
        raise Refused(BAD_VERSION)
    return _next(version)


def _next(number: int) -> int:
    """Return the next number, as Java counts in 32 bits."""
    return (number + 1 + _MOST) % _WIDE - _MOST
