"""A lock that is in no registry: what a person named on a command line or in Python.

It stands in test.json, under `lock.own`, and its files lie in the run's folder, under `own/`: what
is shipped to the clients' nodes is what is stored, so that a run can be repeated and read when the
person's own files have changed.
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
from fencepost.harness.userlock.servers import Servers
from fencepost.node.places import DATA
from fencepost.workloads.contract.locktype import LockType
from fencepost.workloads.contract.option import Option
from fencepost.workloads.locks import user_lock

EndsWith = Literal["lease", "close", "connection"]
OWN = f"{DATA}/own"
"""Of a client's node, with the files. Not in /run, where some machines run no programs."""
FOLDER = "own"
"""Of a run's folder, with the files of its lock."""
_GIVEN = Option(None, free=True, what="as the lock's own constructor takes it")


@dataclass(frozen=True)
class Own:
    """One lock: `python`, FILE:NAME below its folder on a node, or `program`, a command there.

    `files` gives, for each path below that folder, the file on this machine. `ends_with` is what
    ends its grants (LockType). `bundle` is the LockType that FILE:NAME names, if it names one.
    `image` is what its clients run in, if not in that of the nodes.
    """

    servers: Servers
    ends_with: EndsWith
    files: Mapping[str, Path] = field(compare=False)
    python: str = ""
    program: tuple[str, ...] = ()
    bundle: LockType | None = None
    image: str = ""

    def lock_type(self, name: str, options: Mapping[str, Any]) -> LockType:
        """The bundle of this lock with these options, as a registry would have it."""
        if self.bundle is not None:
            return self.bundle
        return LockType(
            name=name,
            what=f"{self.described}, a lock of one's own",
            make=None if self.program else partial(user_lock.make, Path(OWN), self.python),
            program=self._command,
            servers=self.servers.count,
            kind=self.servers.kind,
            options=dict.fromkeys(options, _GIVEN),
            ends_with=self.ends_with,
            tells_tokens=False,
            # Of a program in another language nobody could say which threads do.
            renews=False if self.program else None,
        )

    @property
    def _command(self) -> tuple[str, ...]:
        # A container of an image has a working directory.
        within = () if self.image else ("env", "-C", OWN)
        return (*within, *self.program) if self.program else ()

    @property
    def needs_python(self) -> bool:
        """Whether its image has to have a Python: a class, and no program, was named."""
        return self.program[:1] == ("python3",)

    @property
    def packages(self) -> list[str]:
        """NAME==VERSION of each package that is shipped with it."""
        return requirements.packages(self.files)

    @property
    def described(self) -> str:
        return self.python or " ".join(self.program)

    def to_json(self) -> dict[str, Any]:
        """As in test.json; the files are beside it."""
        row: dict[str, Any] = {
            "servers": str(self.servers),
            "ends_with": self.ends_with,
        }
        if self.packages:
            row["packages"] = self.packages
        if self.image:
            row["image"] = self.image
        return row | ({"program": list(self.program)} if self.program else {"python": self.python})

    def kept(self, run: Path) -> Own:
        """The same lock, with its files copied into the folder of a run."""
        return replace(self, files=files.copied(self.files, run / FOLDER))

    def archive(self, within: str = "") -> bytes:
        """Its files as a tar archive, below a folder."""
        return files.archive(self.files, within)


class _Stored(msgspec.Struct):
    servers: str
    ends_with: EndsWith
    python: str = ""
    program: tuple[str, ...] = ()
    image: str = ""


def stored(row: Mapping[str, Any], run: Path) -> Own:
    """The lock that a run's test.json has under `lock.own`, with the run's files.

    Raises:
        ValueError: it is none.
        BadArguments: a file of it is missing, or its bundle cannot be imported here.
    """
    from fencepost.harness.userlock import python

    found = msgspec.convert(row, _Stored)
    if bool(found.python) == bool(found.program):
        raise ValueError("lock.own: it has either `python` or `program`")
    there = files.tree(run / FOLDER)
    if found.python and found.python.rpartition(":")[0] not in there:
        raise BadArguments(f"{run / FOLDER} has no {found.python.rpartition(':')[0]}")
    return Own(
        Servers.stored(found.servers),
        found.ends_with,
        there,
        found.python,
        found.program,
        python.bundle(run / FOLDER, found.python) if found.python else None,
        found.image,
    )
