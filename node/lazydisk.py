"""A disk that forgets what was not synced: the names of files, and their contents.

Names are kept as in ext4's ordered journal: a sync of a file or directory makes durable its last
change (its creation or rename, or an entry added or removed) and every earlier change, of any file;
changes are undone from the last one backwards. A change is written down by itself when it is
COMMIT_S old. A file's content (pages.py) is written down by its own sync, or with the journal entry
of a rename by which the file replaced another one (ext4's auto_da_alloc). A kernel writes back data
that is half a minute old (dirty_expire_centisecs); here only `settle` does, so that a loss drops
exactly the unsynced data.

The backing directory holds the objects (objects/<number>, the contents) and the durable part of the
journal (log), from which a new daemon reads the names. Part of the disk is reserved for the
journal, as on ext4: on a full disk names can still be removed, which frees their space.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import stat
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fencepost.node.pages import Content

ROOT = 1
COMMIT_S = 5.0  # like ext4's commit=5
# Room for some thousands of changes: more than servers make while a disk is full.
JOURNAL = 1 << 20

Op = dict[str, Any]


@dataclass
class Node:
    """A file, directory or symbolic link. `links` are its names."""

    number: int
    mode: int
    uid: int = 0
    gid: int = 0
    links: int = 0
    target: str = ""
    entries: dict[str, int] = field(default_factory=dict)
    changed_ns: int = 0

    @property
    def is_dir(self) -> bool:
        return stat.S_ISDIR(self.mode)

    @property
    def is_file(self) -> bool:
        return stat.S_ISREG(self.mode)


class Tree:
    """Names and their nodes, changed only by the journal's ops."""

    def __init__(self) -> None:
        self.nodes = {ROOT: Node(ROOT, stat.S_IFDIR | 0o755, links=2)}

    def copy(self) -> Tree:
        other = Tree()
        for number, node in self.nodes.items():
            other.nodes[number] = Node(
                number, node.mode, node.uid, node.gid, node.links, node.target,
                dict(node.entries), node.changed_ns,
            )  # fmt: skip
        return other

    def apply(self, op: Op) -> None:
        getattr(self, "_" + op["op"])(op)

    def _make(self, op: Op) -> None:
        number = op["number"]
        node = Node(number, op["mode"], op["uid"], op["gid"], target=op["target"])
        node.changed_ns = op["ns"]
        self.nodes[number] = node
        self._put(op["dir"], op["name"], node)

    def _link(self, op: Op) -> None:
        self._put(op["dir"], op["name"], self.nodes[op["number"]])

    def _unlink(self, op: Op) -> None:
        self._take(op["dir"], op["name"])

    def _rename(self, op: Op) -> None:
        node = self._take(op["dir"], op["name"])
        if op["new_name"] in self.nodes[op["new_dir"]].entries:
            self._take(op["new_dir"], op["new_name"])
        self._put(op["new_dir"], op["new_name"], node)

    def _change(self, op: Op) -> None:
        node = self.nodes[op["number"]]
        node.mode, node.uid, node.gid = op["mode"], op["uid"], op["gid"]

    def _put(self, folder: int, name: str, node: Node) -> None:
        self.nodes[folder].entries[name] = node.number
        node.links += 2 if node.is_dir else 1
        self.nodes[folder].links += node.is_dir

    def _take(self, folder: int, name: str) -> Node:
        node = self.nodes[self.nodes[folder].entries.pop(name)]
        node.links -= 2 if node.is_dir else 1
        self.nodes[folder].links -= node.is_dir
        return node


@dataclass
class _Pending:
    op: Op
    touched: set[int]
    at_s: float
    flush: int | None = None


class Disk:
    """A disk in memory and in a folder. Raises OSError as a file system does. `epoch` counts
    losses."""

    def __init__(self, backing: str, now: Callable[[], float] = time.monotonic) -> None:
        self._backing = backing
        self._now = now
        os.makedirs(f"{backing}/objects", exist_ok=True)
        # Unbuffered: no write may arrive late.
        self._log = open(f"{backing}/log", "ab", 0)  # noqa: SIM115  # as long as the disk
        self._durable = Tree()
        self._next = ROOT + 1
        self._replay()
        self._sweep()
        self._tree = self._durable.copy()
        self._pending: list[_Pending] = []
        self._contents: dict[int, Content] = {}
        self._opened: dict[int, int] = {}
        self.epoch = 0

    def node(self, number: int) -> Node:
        try:
            return self._tree.nodes[number]
        except KeyError:
            raise OSError(errno.ESTALE, "gone") from None

    def find(self, folder: int, name: str) -> Node:
        try:
            return self.node(self.node(folder).entries[name])
        except KeyError:
            raise OSError(errno.ENOENT, name) from None

    def content(self, number: int) -> Content:
        found = self._contents.get(number)
        if found is None:
            if not self.node(number).is_file:
                raise OSError(errno.EISDIR, "a directory")
            found = self._contents[number] = Content(f"{self._backing}/objects/{number}")
        return found

    def make(
        self, folder: int, name: str, mode: int, uid: int = 0, gid: int = 0, target: str = ""
    ) -> Node:
        if name in self.node(folder).entries:
            raise OSError(errno.EEXIST, name)
        number, self._next = self._next, self._next + 1
        self._do(
            {"op": "make", "dir": folder, "name": name, "number": number, "mode": mode,
             "uid": uid, "gid": gid, "target": target, "ns": time.time_ns()},
            {folder, number},
        )  # fmt: skip
        return self.node(number)

    def link(self, number: int, folder: int, name: str) -> Node:
        if name in self.node(folder).entries:
            raise OSError(errno.EEXIST, name)
        op = {"op": "link", "dir": folder, "name": name, "number": number}
        self._do(op, {folder, number})
        return self.node(number)

    def unlink(self, folder: int, name: str) -> None:
        """Remove a file or an empty directory."""
        node = self.find(folder, name)
        if node.entries:
            raise OSError(errno.ENOTEMPTY, name)
        self._do({"op": "unlink", "dir": folder, "name": name}, {folder, node.number})
        self._tidy(node.number)

    def rename(self, folder: int, name: str, new_folder: int, new_name: str) -> None:
        node = self.find(folder, name)
        touched = {folder, new_folder, node.number}
        replaced = self.node(new_folder).entries.get(new_name)
        if replaced == node.number:
            return
        if replaced is not None:
            if self.node(replaced).entries:
                raise OSError(errno.ENOTEMPTY, new_name)
            touched.add(replaced)
        op = {"op": "rename", "dir": folder, "name": name}
        op |= {"new_dir": new_folder, "new_name": new_name}
        took_place = node.number if replaced is not None and node.is_file else None
        self._do(op, touched, took_place)
        if replaced is not None:
            self._tidy(replaced)

    def change(self, number: int, mode: int, uid: int, gid: int) -> None:
        op = {"op": "change", "number": number, "mode": mode, "uid": uid, "gid": gid}
        self._do(op, {number})

    def write(self, number: int, offset: int, data: bytes) -> int:
        content = self.content(number)
        fresh = content.fresh(offset, len(data))
        if fresh > self.free() and self._pending:
            # Committing the journal frees the space of removed files, as on ext4.
            self._commit(len(self._pending))
        if fresh and fresh > self.free():
            raise OSError(errno.ENOSPC, "no space left")
        node = self.node(number)
        node.changed_ns = time.time_ns()
        return content.write(offset, data)

    def truncate(self, number: int, size: int) -> None:
        self.content(number).truncate(size)
        self.node(number).changed_ns = time.time_ns()

    def space(self) -> os.statvfs_result:
        """Return the disk's space in its current state, without unsynced data and the journal's
        part."""
        there = os.statvfs(f"{self._backing}/objects")
        journal = -(-JOURNAL // there.f_frsize)
        free, available = (max(0, n - journal) for n in (there.f_bfree, there.f_bavail))
        return os.statvfs_result((*there[:3], free, available, *there[5:10]))

    def free(self) -> int:
        """Return the bytes that writes may still take."""
        there = self.space()
        reserved = sum(content.reserved for content in self._contents.values())
        return max(0, there.f_bavail * there.f_frsize - reserved)

    def sync(self, number: int) -> None:
        """Sync a file, its content and name, or a directory's entries."""
        last = 0
        for index, pending in enumerate(self._pending):
            if number in pending.touched:
                last = index + 1
        self._commit(last)
        if number in self._contents:
            self._contents[number].sync()

    def settle(self) -> dict[str, int]:
        """Write everything down; return the amount."""
        written = self.unsynced()
        self._commit(len(self._pending))
        for content in self._contents.values():
            content.sync()
        return written

    def opened(self, number: int) -> None:
        self._opened[number] = self._opened.get(number, 0) + 1

    def closed(self, number: int) -> None:
        if number not in self._opened:
            return  # it was opened before a loss
        self._opened[number] -= 1
        if not self._opened[number]:
            del self._opened[number]
            if number in self._contents and not self._contents[number].dirty:
                self._contents.pop(number).close()
            self._tidy(number)

    def unsynced(self) -> dict[str, int]:
        """Count unsynced bytes, the files written, and changes of names."""
        dirty = [content for content in self._contents.values() if content.dirty]
        return {
            "bytes": sum(content.unsynced for content in dirty),
            "files": len(dirty),
            "names": len(self._pending),
        }

    def lose(self) -> dict[str, int]:
        """Drop what is unsynced, and return the amount. Open files become invalid."""
        old = [pending for pending in self._pending if pending.at_s <= self._now() - COMMIT_S]
        with contextlib.suppress(OSError):  # a full disk: then these are lost too
            self._commit(len(old))
        dropped = self.unsynced()
        self._pending = []
        for content in self._contents.values():
            content.lose()
            content.close()
        self._contents, self._opened = {}, {}
        self._sweep()
        self._tree = self._durable.copy()
        self.epoch += 1
        return dropped

    def _replay(self) -> None:
        """Apply the journal. Remove a torn last line, which a killed daemon leaves."""
        lines = Path(self._log.name).read_bytes()
        whole = lines[: lines.rfind(b"\n") + 1]
        for line in whole.splitlines():
            self._durable.apply(op := json.loads(line))
            self._next = max(self._next, op.get("number", 0) + 1)
        os.ftruncate(self._log.fileno(), len(whole))

    def _sweep(self) -> None:
        """Remove objects without a durable name."""
        nodes = self._durable.nodes
        for number in [number for number, node in nodes.items() if node.links <= 0]:
            del nodes[number]
        for name in os.listdir(f"{self._backing}/objects"):
            if int(name) not in nodes:
                os.unlink(f"{self._backing}/objects/{name}")

    def _do(self, op: Op, touched: set[int], flush: int | None = None) -> None:
        self._tree.apply(op)
        self._pending.append(_Pending(op, touched, self._now(), flush))

    def _commit(self, count: int) -> None:
        """Make the journal's first `count` changes durable."""
        for pending in self._pending[:count]:
            if pending.flush in self._contents:
                self._contents[pending.flush].sync()
        self._append("".join(f"{json.dumps(one.op)}\n" for one in self._pending[:count]).encode())
        for pending in self._pending[:count]:
            self._durable.apply(pending.op)
        done, self._pending = self._pending[:count], self._pending[count:]
        for number in {number for pending in done for number in pending.touched}:
            self._tidy(number)

    def _append(self, lines: bytes) -> None:
        """Write to the journal, all of it or nothing."""
        end = os.fstat(self._log.fileno()).st_size
        try:
            while lines:
                lines = lines[self._log.write(lines) :]
        except OSError:
            os.ftruncate(self._log.fileno(), end)
            raise

    def _tidy(self, number: int) -> None:
        """Remove an object without a name, current or durable, unless it is open."""
        seen, durable = self._tree.nodes.get(number), self._durable.nodes.get(number)
        if number in self._opened or (seen is not None and seen.links > 0):
            return
        if seen is not None:
            del self._tree.nodes[number]
        waits = any(number in pending.touched for pending in self._pending)
        if waits or (durable is not None and durable.links > 0):
            # It cannot be read any more, unless a loss restores its name.
            if number in self._contents and all(p.flush != number for p in self._pending):
                self._contents.pop(number).close()
            return
        self._durable.nodes.pop(number, None)
        content = self._contents.pop(number, None) or Content(f"{self._backing}/objects/{number}")
        content.remove()
