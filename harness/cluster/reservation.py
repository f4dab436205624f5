"""Reserves a cluster, or another exclusive thing, for one command at a time, with a locked file.

A second file records whether the cluster is kept running after a run. Their folder depends only on
the user, never on the environment: root's folder is writable only by root, that of all other users
by everyone. Anyone who can open a file can lock it, and anyone who can write to one can forge a
record. So only root opens its locked file, and root reads no file of the other folder: other users
wait for root's commands, by the kernel's list of locks, and root's commands do not wait for theirs.
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
    """Return the folders whose file of a reservation this user trusts, the user's own first."""
    if os.geteuid() == 0:
        return [_ROOTS]
    locks = Path("/run/lock")
    shared = locks if locks.is_dir() and locks.stat().st_mode & stat.S_IWOTH else Path("/tmp")
    return [shared, _ROOTS]


class InUse(Crashed):
    """Another command holds the reservation."""


class Reservation:
    """The exclusive right to use something, by name. It ends with the process at the latest."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._own, *self._others = (place / f"{name}.lock" for place in places())
        self._held: int | None = None

    def take(self) -> None:
        """Lock this user's file, unless root has locked its own.

        Raises:
            InUse: another process holds it; the text has its pid.
            Crashed: a file cannot be trusted; the text says why.
        """
        keep = self.keep
        if self._own.parent == _ROOTS:
            _make_safe(_ROOTS)
        for path in self._others:
            if (pid := _holder(path)) is not None:
                raise self._in_use(pid)
        self._held = _open(self._own)
        try:
            self._lock(self._held)
            self.set_keep(keep)
        except BaseException:
            self.release()
            raise

    def _lock(self, file: int) -> None:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise self._in_use(_read(self._own).get("pid", "?")) from error

    def _in_use(self, pid: int | str) -> InUse:
        return InUse(
            f"Another fencepost command (pid {pid}) is using {self._name}. Wait for it to end, or "
            "stop it."
        )

    @property
    def keep(self) -> bool:
        """Whether the cluster is kept running after a run (`cluster up`)."""
        return self._newest()[1]

    def _newest(self) -> tuple[int, bool]:
        """Return the latest record: its number, counted over all writes, and `keep`."""
        found = [_read(path) for path in (self._own, *self._others)]
        return max((int(one.get("turn", 0)), bool(one.get("keep"))) for one in found)

    def set_keep(self, keep: bool) -> None:
        turn = self._newest()[0] + 1
        content = json.dumps({"pid": os.getpid(), "keep": keep, "turn": turn}).encode()
        file = _open(_record(self._own))
        try:
            os.truncate(file, 0)
            os.pwrite(file, content, 0)
        finally:
            os.close(file)

    def release(self) -> None:
        if self._held is not None:
            os.close(self._held)
            self._held = None


def _record(lock: Path) -> Path:
    """Return the file with the record of a reservation."""
    return lock.with_suffix(".json")


def _holder(lock: Path) -> int | None:
    """Return the pid of the process that has locked a file; None if none has."""
    try:
        found = lock.lstat()
    except FileNotFoundError:
        return None
    device = os.major(found.st_dev), os.minor(found.st_dev)
    node = f"{device[0]:02x}:{device[1]:02x}:{found.st_ino}"
    # 1: FLOCK  ADVISORY  WRITE 4711 00:1a:1234 0 EOF
    rows = [line.split() for line in Path("/proc/locks").read_text().splitlines()]
    return next((int(row[4]) for row in rows if node in row), None)


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


def _mode(path: Path) -> int:
    """Return the permissions of a file of a reservation."""
    if path.parent != _ROOTS:
        return 0o666  # other users' commands write to it too
    return 0o600 if path.suffix == ".lock" else 0o644


def _open(path: Path) -> int:
    """Open a file of a reservation for writing.

    Raises:
        Crashed: it is a symbolic link, a hard link, or not a regular file.
    """
    try:
        file = _open_file(path)
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
    if found.st_uid == os.geteuid():
        os.fchmod(file, _mode(path))  # whatever the umask is
    return file


def _open_file(path: Path) -> int:
    safe = os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
    try:
        # In a folder that everyone can write to, the kernel refuses to open another user's file
        # with O_CREAT.
        return os.open(path, safe)
    except FileNotFoundError:
        return os.open(path, safe | os.O_CREAT, 0o600)


def _read(lock: Path) -> dict[str, Any]:
    """Return the record of a reservation; empty without one, or if it is not valid."""
    try:
        file = os.open(_record(lock), os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
        try:
            content = json.loads(os.read(file, _MOST_BYTES) or b"{}")
        finally:
            os.close(file)
    except (OSError, ValueError, RecursionError):
        return {}
    numbers = [content.get(name) for name in ("pid", "turn")] if isinstance(content, dict) else [""]
    return content if all(isinstance(one, int) for one in numbers) else {}
