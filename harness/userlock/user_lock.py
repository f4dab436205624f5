"""Defines user locks: locks outside the registry, named on a command line or in Python.

test.json describes one under `lock.own`, and the run's folder has its files under `own/`. The
stored files are those that were shipped to the clients' nodes, so a run can be repeated and read
after the user's files have changed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

import msgspec

from fencepost.harness.errors import BadArguments
from fencepost.harness.userlock import files, requirements
from fencepost.harness.userlock.promises import Promised
from fencepost.harness.userlock.servers import Servers
from fencepost.node.places import DATA
from fencepost.workloads.contract.locktype import LockType
from fencepost.workloads.contract.option import Option
from fencepost.workloads.locks import user_lock

EndsWith = Literal["lease", "close", "connection"]
OWN = f"{DATA}/own"
"""The folder of the files on a client's node; not in /run, which may be mounted with noexec."""
FOLDER = "own"
"""The folder of the files within a run's folder."""
_GIVEN = Option(None, free=True, what="passed to the lock's constructor")


@dataclass(frozen=True)
class UserLock:
    """A user lock: either `python`, FILE:NAME below its folder on a node, or `program`, a command.

    `files` maps each path below that folder to the file on this machine. `ends_with` is what ends
    its grants (LockType). `bundle` is the LockType that FILE:NAME names, if it names one. `image`
    is the image that its clients run in; empty: that of the nodes. `promises`, if they are given,
    replace those of the bundle, and those that its program names. `elector`: it is an elector;
    `drives_work`: its own loop sends the jobs of its leader.
    """

    servers: Servers
    ends_with: EndsWith
    files: Mapping[str, Path] = field(compare=False)
    python: str = ""
    program: tuple[str, ...] = ()
    bundle: LockType | None = None
    image: str = ""
    promises: Promised = None
    elector: bool = False
    drives_work: bool = False

    def lock_type(self, name: str, options: Mapping[str, Any]) -> LockType:
        """Return the bundle of this lock with these options, as a registry would have it."""
        promises = dict.fromkeys(self.promises or (), True)
        if self.bundle is not None:
            kept = self.promises is None
            return self.bundle if kept else replace(self.bundle, promises=promises)
        return LockType(
            name=name,
            what=f"{self.described}, a user lock",
            make=None if self.program else partial(user_lock.make, Path(OWN), self.python),
            program=self._command,
            servers=self.servers.count,
            kind=self.servers.kind,
            options=dict.fromkeys(options, _GIVEN),
            promises=promises,
            ends_with=self.ends_with,
            elector=self.elector,
            drives_work=self.drives_work,
            extends=not self.elector,
            tells_tokens=False,
            # fencepost cannot tell which threads of a program in another language act.
            renews=False if self.program else None,
        )

    @property
    def _command(self) -> tuple[str, ...]:
        # A container of an image has a working directory.
        within = () if self.image else ("env", "-C", OWN)
        return (*within, *self.program) if self.program else ()

    @property
    def needs_python(self) -> bool:
        """Whether its image needs Python, because the lock is a class and not a program."""
        return self.program[:1] == ("python3",)

    @property
    def packages(self) -> list[str]:
        """Return NAME==VERSION of each package that is shipped with it."""
        return requirements.packages(self.files)

    @property
    def described(self) -> str:
        return self.python or " ".join(self.program)

    def to_json(self) -> dict[str, Any]:
        """Return the row for test.json; the files are stored next to it."""
        row: dict[str, Any] = {
            "servers": str(self.servers),
            "ends_with": self.ends_with,
        }
        if self.promises is not None:
            row["promises"] = list(self.promises)
        if self.packages:
            row["packages"] = self.packages
        if self.image:
            row["image"] = self.image
        if self.elector:
            row["elector"] = True
        if self.drives_work:
            row["drives_work"] = True
        return row | ({"program": list(self.program)} if self.program else {"python": self.python})

    def kept(self, run: Path) -> UserLock:
        """Copy its files into the folder of a run; return the lock with these files."""
        return replace(self, files=files.copied(self.files, run / FOLDER))

    def archive(self, within: str = "") -> bytes:
        """Return its files as a tar archive, below a folder."""
        return files.archive(self.files, within)


class _Stored(msgspec.Struct):
    servers: str
    ends_with: EndsWith
    python: str = ""
    program: tuple[str, ...] = ()
    image: str = ""
    promises: tuple[str, ...] | None = None
    elector: bool = False
    drives_work: bool = False


def from_json(row: Mapping[str, Any], run: Path) -> UserLock:
    """Read the lock that a run's test.json has under `lock.own`, with the run's files.

    Raises:
        ValueError: the row does not describe a lock.
        BadArguments: a file is missing, or the bundle cannot be imported here.
    """
    from fencepost.harness.userlock import python

    found = msgspec.convert(row, _Stored)
    if bool(found.python) == bool(found.program):
        raise ValueError("lock.own must have either `python` or `program`")
    there = files.tree(run / FOLDER)
    if found.python and found.python.rpartition(":")[0] not in there:
        raise BadArguments(f"{run / FOLDER} has no {found.python.rpartition(':')[0]}")
    return UserLock(
        Servers.stored(found.servers),
        found.ends_with,
        there,
        found.python,
        found.program,
        python.bundle(run / FOLDER, found.python) if found.python else None,
        found.image,
        found.promises,
        found.elector,
        found.drives_work,
    )
