"""Serves a lazydisk.Disk as a FUSE file system, by Debian's python3-pyfuse3.

There is no writeback cache: a write arrives before its system call returns. Inodes and handles from
before a loss answer ESTALE and EIO, because their machine has lost power.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

import pyfuse3
import trio

from fencepost.node.lazydisk import ROOT, Disk, Node

_ATTRIBUTES_S = 60.0
# Inode numbers of one epoch; the kernel takes those of another as other inodes.
_EPOCH = 1 << 40
_NOREPLACE = 1


# The library's own types, unknown where it is not installed.
Context = Any
Attributes = Any
Handle = Any

T = TypeVar("T")
Call = Callable[..., Awaitable[T]]


class Names:
    """Kernel inode numbers for the nodes of the current epoch."""

    def __init__(self, disk: Disk) -> None:
        self._disk = disk

    def inode(self, number: int) -> int:
        return ROOT if number == ROOT else self._disk.epoch * _EPOCH + number

    def number(self, inode: int) -> int:
        epoch, number = divmod(inode, _EPOCH)
        if inode != ROOT and epoch != self._disk.epoch:
            raise pyfuse3.FUSEError(errno.ESTALE)
        return number


def _answers(method: Call[T]) -> Call[T]:
    """Return an OSError of the disk as the system call's error."""

    async def answer(self: Operations, *arguments: Any) -> T:
        try:
            return await method(self, *arguments)
        except OSError as error:
            raise pyfuse3.FUSEError(error.errno) from None

    return answer


class Operations(pyfuse3.Operations):
    def __init__(self, disk: Disk) -> None:
        super().__init__()
        self._disk = disk
        self._names = Names(disk)
        self._handles: dict[int, tuple[int, bool]] = {}
        self._listings: dict[int, list[str]] = {}
        self._next = 1

    def lose(self) -> dict[str, int]:
        self._handles.clear()
        self._listings.clear()
        return self._disk.lose()

    @_answers
    async def lookup(self, parent: int, name: bytes, ctx: Context = None) -> Attributes:
        folder = self._names.number(parent)
        return self._entry(self._disk.find(folder, os.fsdecode(name)))

    @_answers
    async def getattr(self, inode: int, ctx: Context = None) -> Attributes:
        return self._entry(self._disk.node(self._names.number(inode)))

    @_answers
    async def setattr(
        self, inode: int, attr: Attributes, fields: Any, fh: int | None, ctx: Context
    ) -> Attributes:
        number = self._names.number(inode)
        node = self._disk.node(number)
        if fields.update_size:
            self._disk.truncate(number, attr.st_size)
        if fields.update_mtime:
            node.changed_ns = attr.st_mtime_ns
        mode = stat.S_IFMT(node.mode) | stat.S_IMODE(attr.st_mode)
        new = (
            mode if fields.update_mode else node.mode,
            attr.st_uid if fields.update_uid else node.uid,
            attr.st_gid if fields.update_gid else node.gid,
        )
        if new != (node.mode, node.uid, node.gid):
            self._disk.change(number, *new)
        return self._entry(node)

    @_answers
    async def readlink(self, inode: int, ctx: Context) -> bytes:
        return os.fsencode(self._disk.node(self._names.number(inode)).target)

    @_answers
    async def mkdir(self, parent: int, name: bytes, mode: int, ctx: Context) -> Attributes:
        return self._entry(self._make(parent, name, stat.S_IFDIR | (mode & ~ctx.umask), ctx))

    @_answers
    async def mknod(
        self, parent: int, name: bytes, mode: int, rdev: int, ctx: Context
    ) -> Attributes:
        if not (stat.S_ISREG(mode) or stat.S_ISSOCK(mode) or stat.S_ISFIFO(mode)):
            raise pyfuse3.FUSEError(errno.EPERM)
        return self._entry(self._make(parent, name, mode & ~ctx.umask, ctx))

    @_answers
    async def symlink(self, parent: int, name: bytes, target: bytes, ctx: Context) -> Attributes:
        mode = stat.S_IFLNK | 0o777
        return self._entry(self._make(parent, name, mode, ctx, os.fsdecode(target)))

    @_answers
    async def create(
        self, parent: int, name: bytes, mode: int, flags: int, ctx: Context
    ) -> tuple[Handle, Attributes]:
        node = self._make(parent, name, stat.S_IFREG | (mode & ~ctx.umask), ctx)
        return self._open(node.number, flags), self._entry(node)

    @_answers
    async def link(self, inode: int, new_parent: int, new_name: bytes, ctx: Context) -> Attributes:
        number, folder = self._names.number(inode), self._names.number(new_parent)
        return self._entry(self._disk.link(number, folder, os.fsdecode(new_name)))

    @_answers
    async def unlink(self, parent: int, name: bytes, ctx: Context) -> None:
        self._disk.unlink(self._names.number(parent), os.fsdecode(name))

    rmdir = unlink

    @_answers
    async def rename(
        self,
        parent_old: int,
        name_old: bytes,
        parent_new: int,
        name_new: bytes,
        flags: int,
        ctx: Context,
    ) -> None:
        old, new = self._names.number(parent_old), self._names.number(parent_new)
        there = os.fsdecode(name_new) in self._disk.node(new).entries
        if flags & ~_NOREPLACE:
            raise pyfuse3.FUSEError(errno.EINVAL)
        if flags and there:
            raise pyfuse3.FUSEError(errno.EEXIST)
        self._disk.rename(old, os.fsdecode(name_old), new, os.fsdecode(name_new))

    @_answers
    async def open(self, inode: int, flags: int, ctx: Context) -> Handle:
        number = self._names.number(inode)
        if flags & os.O_TRUNC:
            self._disk.truncate(number, 0)
        return self._open(number, flags)

    @_answers
    async def read(self, fh: int, offset: int, size: int) -> bytes:
        return self._disk.content(self._handle(fh)[0]).read(offset, size)

    @_answers
    async def write(self, fh: int, offset: int, data: bytes) -> int:
        number, syncs = self._handle(fh)
        written = self._disk.write(number, offset, data)
        if syncs:
            self._disk.sync(number)
        return written

    @_answers
    async def fsync(self, fh: int, datasync: bool) -> None:
        self._disk.sync(self._handle(fh)[0])

    fsyncdir = fsync

    @_answers
    async def release(self, fh: int) -> None:
        number, _ = self._handles.pop(fh, (0, False))
        self._listings.pop(fh, None)
        if number:
            self._disk.closed(number)

    releasedir = release

    async def flush(self, fh: int) -> None:
        pass

    async def forget(self, inode_list: list[tuple[int, int]]) -> None:
        pass

    @_answers
    async def opendir(self, inode: int, ctx: Context) -> int:
        handle: int = self._open(self._names.number(inode), 0).fh
        return handle

    @_answers
    async def readdir(self, fh: int, start_id: int, token: Any) -> None:
        folder = self._handle(fh)[0]
        if start_id == 0 or fh not in self._listings:
            # Snapshot of the entries, so that changes during the listing move no other entry.
            self._listings[fh] = list(self._disk.node(folder).entries)
        for index, name in enumerate(self._listings[fh][start_id:], start_id + 1):
            number = self._disk.node(folder).entries.get(name)
            if number is not None:
                entry = self._entry(self._disk.node(number))
                if not pyfuse3.readdir_reply(token, os.fsencode(name), entry, index):
                    return

    @_answers
    async def statfs(self, ctx: Context) -> Any:
        there = self._disk.space()
        found = pyfuse3.StatvfsData()
        found.f_bsize = found.f_frsize = 4096
        found.f_blocks = there.f_blocks * there.f_frsize // 4096
        found.f_bfree = found.f_bavail = self._disk.free() // 4096
        found.f_files, found.f_ffree, found.f_favail = 1 << 20, 1 << 19, 1 << 19
        found.f_namemax = 255
        return found

    def _make(self, parent: int, name: bytes, mode: int, ctx: Context, target: str = "") -> Node:
        folder = self._names.number(parent)
        return self._disk.make(folder, os.fsdecode(name), mode, ctx.uid, ctx.gid, target)

    def _open(self, number: int, flags: int) -> Handle:
        self._disk.opened(number)
        fh, self._next = self._next, self._next + 1
        # O_SYNC includes O_DSYNC's bit.
        self._handles[fh] = (number, bool(flags & os.O_DSYNC))
        return pyfuse3.FileInfo(fh=fh)

    def _handle(self, fh: int) -> tuple[int, bool]:
        try:
            return self._handles[fh]
        except KeyError:
            raise pyfuse3.FUSEError(errno.EIO) from None

    def _entry(self, node: Node) -> Attributes:
        entry = pyfuse3.EntryAttributes()
        entry.st_ino = self._names.inode(node.number)
        entry.generation = 0
        # Disable caching of names: after a loss they refer to other inodes.
        entry.entry_timeout = 0
        entry.attr_timeout = _ATTRIBUTES_S
        entry.st_mode, entry.st_nlink = node.mode, max(0, node.links)
        entry.st_uid, entry.st_gid, entry.st_rdev = node.uid, node.gid, 0
        entry.st_size = self._disk.content(node.number).size if node.is_file else len(node.target)
        entry.st_blksize, entry.st_blocks = 4096, (entry.st_size + 511) // 512
        entry.st_atime_ns = entry.st_mtime_ns = entry.st_ctime_ns = node.changed_ns
        return entry


Answer = Callable[[Mapping[str, Callable[[], dict[str, Any]]], bytes], bytes]
"""Runs the verb of a request, and returns its result as a line."""


def serve(backing: str, mountpoint: str, control: str, answer: Answer) -> None:
    """Serve until unmounted. `control` is a socket that takes a verb, and gets its `answer`."""
    operations = Operations(disk := Disk(backing))
    verbs = {"lose": operations.lose, "unsynced": disk.unsynced, "settle": disk.settle}

    async def respond(stream: Any) -> None:
        async with stream:
            # The caller may have hung up: it waits only for a time, and may be killed.
            with contextlib.suppress(trio.BrokenResourceError):
                await stream.send_all(answer(verbs, await stream.receive_some(100)))

    async def work() -> None:
        if os.path.exists(control):
            os.unlink(control)
        listening = trio.socket.socket(trio.socket.AF_UNIX, trio.socket.SOCK_STREAM)
        await listening.bind(control)
        listening.listen(16)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(trio.serve_listeners, respond, [trio.SocketListener(listening)])
            await pyfuse3.main()
            nursery.cancel_scope.cancel()

    options = {*pyfuse3.default_options, "fsname=lazy", "allow_other", "default_permissions"}
    pyfuse3.init(operations, mountpoint, options)
    try:
        trio.run(work)
    finally:
        pyfuse3.close(unmount=True)
