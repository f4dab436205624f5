"""Reserves a cluster, or another exclusive thing, for one command at a time, with a locked file.

The file also records whether a cluster is kept running after a run. Its folder depends only on the
user, never on the environment: root's folder is writable only by root, that of all other users by
everyone. Each command locks the file in its own folder, and the one in the other folder if it
exists. If two commands start at the same time, at least one finds the other's lock, so they never
both get the cluster.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import stat
from pathlib import Path
from typing import Any

from fencepost.harness.errors import Crashed

HOSTS, SETUP = "fencepost-hosts", "fencepost-setup"

_ROOTS = Path("/run/fencepost")
_MOST_BYTES = 4096


def places() -> list[Path]:
    """Return the folders that may have the file of a reservation, this user's first."""
    locks = Path("/run/lock")
    shared = locks if locks.is_dir() and locks.stat().st_mode & stat.S_IWOTH else Path("/tmp")
    return [_ROOTS, shared] if os.geteuid() == 0 else [shared, _ROOTS]


class InUse(Crashed):
    """Another command holds the reservation."""


class Reservation:
    """The exclusive right to use something, by name. It ends with the process at the latest."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._own, *self._others = (place / f"{name}.lock" for place in places())
        self._held: list[int] = []

    def take(self) -> None:
        """Lock this user's file, and then the existing files of other users.

        Raises:
            InUse: another process holds it; the text has its pid.
            Crashed: a file cannot be trusted; the text says why.
        """
        keep = self.keep
        if self._own.parent == _ROOTS:
            _make_safe(_ROOTS)
        try:
            self._lock(self._own, _open(self._own, create=True))
            for path in self._others:
                # Each locks its own file first, so of two at once at least one finds the other.
                if (found := _open(path, create=False)) is not None:
                    self._lock(path, found)
        except BaseException:
            self.release()
            raise
        self._write(keep)

    def _lock(self, path: Path, file: int | None) -> None:
        assert file is not None
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(file)
            raise InUse(
                f"Another fencepost command (pid {_read(path).get('pid', '?')}) is using "
                f"{self._name}. Wait for it to end, or stop it."
            ) from error
        self._held.append(file)

    @property
    def keep(self) -> bool:
        """Whether the cluster is kept running after a run (`cluster up`)."""
        return self._newest()[1]

    def _newest(self) -> tuple[int, bool]:
        """Return the latest record: its number, counted over all writes, and `keep`."""
        found = [_read(path) for path in (self._own, *self._others)]
        return max((int(one.get("turn", 0)), bool(one.get("keep"))) for one in found)

    def set_keep(self, keep: bool) -> None:
        self._write(keep)

    def release(self) -> None:
        while self._held:
            os.close(self._held.pop())

    def _write(self, keep: bool) -> None:
        own = self._held[0]
        turn = self._newest()[0] + 1
        content = json.dumps({"pid": os.getpid(), "keep": keep, "turn": turn}).encode()
        os.truncate(own, 0)
        os.pwrite(own, content, 0)


def _make_safe(folder: Path) -> None:
    """Make a folder that only root can write to. Raise Crashed if it is unsafe."""
    try:
        folder.mkdir(mode=0o755, exist_ok=True)
        found = folder.lstat()
    except OSError as error:
        raise Crashed(f"cannot make {folder}: {error.strerror}") from error
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != 0:
        raise Crashed(
            f"{folder} is not a folder that only root can write to, so other users could redirect "
            "this command: check who made it, and remove it"
        )
    if found.st_mode & 0o022:
        folder.chmod(0o755)


def _open(path: Path, create: bool) -> int | None:
    """Open the file of a reservation, for writing if `create`; None if it does not exist.

    Raises:
        Crashed: it is a symbolic link, a hard link, or not a regular file.
    """
    try:
        file = _open_file(path, create)
    except FileNotFoundError:
        return None
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise Crashed(
                f"{path} is a symbolic link, which fencepost does not follow there: it could lead "
                "to any file. Check who made it, and remove it."
            ) from error
        raise Crashed(f"cannot open {path}: {error.strerror}") from error
    found = os.fstat(file)
    if not stat.S_ISREG(found.st_mode) or found.st_nlink != 1:
        os.close(file)
        raise Crashed(
            f"{path} is a hard link or not a regular file: check who made it, and remove it"
        )
    return file


def _open_file(path: Path, create: bool) -> int:
    safe = os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
    if not create:
        return os.open(path, os.O_RDONLY | safe)
    try:
        # In a folder that everyone can write to, the kernel refuses to open another user's file
        # with O_CREAT.
        return os.open(path, os.O_RDWR | safe)
    except FileNotFoundError:
        made = os.open(path, os.O_RDWR | os.O_CREAT | safe, 0o644)
        if path.parent != _ROOTS:
            os.fchmod(made, 0o666)  # other users' commands write to it too
        return made


def _read(path: Path) -> dict[str, Any]:
    try:
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
        try:
            content = json.loads(os.read(file, _MOST_BYTES) or b"{}")
        finally:
            os.close(file)
    except (OSError, ValueError, RecursionError):
        return {}
    turn = content.get("turn", 0) if isinstance(content, dict) else None
    return content if isinstance(turn, int) else {}
