"""Resolves the lock that a command line names: one of the registry, or a user lock.

    redlock                                  of the registry
    mylock.py:MyLock  --servers redis:1      a class of the plain contract (docs/your-lock.md)
    --program ./worker --ship DIR --servers redis:1    a program in any language (program.py)

Each kind of user lock has a function here that returns its name and an Own.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from fencepost.harness.errors import BadArguments, choose
from fencepost.harness.package import PACKAGE
from fencepost.harness.servers.external_names import Foreign
from fencepost.harness.servers.kinds import KINDS
from fencepost.harness.userlock import program, promises, python
from fencepost.harness.userlock.requirements import installed
from fencepost.harness.userlock.servers import Servers
from fencepost.harness.userlock.user_lock import EndsWith, UserLock
from fencepost.workloads.contract.locktype import ENDS_WITH


@dataclass(frozen=True)
class LockRequest:
    """The options of a user lock. Empty or None: not given.

    `requirements`: a requirements file, a wheel, or a project's folder to install for it.
    `beside`: its external servers, if it uses such; `servers` names them then.
    `program`: a command instead of a class; it runs in the folder `ship`.
    `elector`: the program is an elector.
    `client_image`: the image that its clients run in. `promises`: names of PROMISES, separated by
    commas or as a list.
    """

    servers: str = ""
    ends_with: str = ""
    requirements: Path | None = None
    beside: Foreign | None = None
    program: str = ""
    ship: Path | None = None
    client_image: str = ""
    promises: str | Sequence[str] = ""
    elector: bool = False


def resolve(lock: str | type, asked: LockRequest) -> tuple[str, UserLock | None]:
    """Return the name of a lock, and its Own if it is a user lock.

    Raises:
        BadArguments: there is no such file or class, or an option does not fit this lock.
    """
    text = lock if isinstance(lock, str) else name_of(lock)
    if asked.program:
        return of_program(text, asked)
    if asked.elector:
        raise BadArguments("--elector needs --program: a class is an elector if it has run")
    if asked.ship:
        raise BadArguments("--ship needs --program: it sends the files of a client program")
    if ":" in text or text.endswith(".py"):
        return in_image(text, asked) if asked.client_image else of_python(text, asked)
    options = {
        "ends-with": asked.ends_with,
        "requirements": asked.requirements,
        "client-image": asked.client_image,
    }
    if asked.beside is None:
        options["servers"] = asked.servers
    if asked.promises:
        raise BadArguments(
            f"--promises is for user locks; the promises of {text or 'this lock'} are known: "
            "`fencepost locks` lists them"
        )
    for option, value in options.items():
        if value:
            raise BadArguments(
                f"--{option} is for user locks (FILE.py:CLASS or --program), but "
                f"{text or 'this lock'} is a lock of the registry"
            )
    return text, None


def name_of(lock: type) -> str:
    """Return FILE.py:NAME of a class.

    Raises:
        BadArguments: it has no file, or is not defined at the top level of its file.
    """
    try:
        path = Path(inspect.getfile(lock))
    except (TypeError, OSError) as error:
        raise BadArguments(f"{lock!r} has no source file to send to the nodes") from error
    if "." in lock.__qualname__:
        raise BadArguments(
            f"{lock.__qualname__} is defined within a function or a class: clients import it from "
            "its file, so define it at the top level"
        )
    return f"{path}:{lock.__name__}"


def of_python(text: str, asked: LockRequest) -> tuple[str, UserLock]:
    """Resolve a lock by FILE.py:NAME."""
    if ":" not in text:
        raise BadArguments(f"{text} does not name a class: write {text}:CLASS")
    found = python.find(text)
    bundle, files = found.bundle, found.files
    if bundle is None:
        there = _servers(text, asked)
        ends = _ends_with(asked.ends_with, there)
    elif (asked.servers and not asked.beside) or asked.ends_with:
        raise BadArguments(
            f"{text} is a LockType, which defines its servers and how grants end: omit --servers "
            "and --ends-with"
        )
    else:
        there = Servers(bundle.kind, bundle.servers)
        ends = _ends_with(bundle.ends_with, there)
    if asked.requirements is not None:
        files = files | installed(asked.requirements)
    name = bundle.name if bundle else found.name
    given = promises.read(asked.promises)
    promised = found.promises if given is None else given
    own = UserLock(
        there,
        ends,
        files,
        python=found.reference,
        bundle=bundle,
        promises=promised,
        elector=found.elector,
        drives_work=found.drives_work,
    )
    return name, own


def in_image(text: str, asked: LockRequest) -> tuple[str, UserLock]:
    """Resolve a lock by FILE.py:NAME in a client image: a program that uses the Python SDK."""
    if asked.requirements is not None:
        raise BadArguments(
            "--requirements cannot be combined with --client-image: install them in the image"
        )
    name, own = of_python(text, asked)
    if own.bundle is not None:
        raise BadArguments(
            f"{text} is a LockType, which runs in fencepost's own client: omit --client-image"
        )
    sdk = PACKAGE / "sdk" / "python" / "fencepost_sdk.py"
    words = ("python3", sdk.name, own.python)
    files = {**own.files, sdk.name: sdk}
    return name, replace(own, python="", program=words, files=files, image=asked.client_image)


def of_program(lock: str, asked: LockRequest) -> tuple[str, UserLock]:
    """Resolve a lock by --program; `lock` is an optional name for the run's folder."""
    if asked.requirements is not None:
        raise BadArguments(
            "--requirements is for a class in Python; with --program, use --ship DIR to send files"
        )
    if ":" in lock or lock.endswith(".py"):
        raise BadArguments(f"{lock} and --program name two locks: give only one")
    there = _servers(f"--program {asked.program!r}", asked)
    found = program.find(asked.program, asked.ship, bool(asked.client_image))
    ends = _ends_with(asked.ends_with, there)
    own = UserLock(
        there,
        ends,
        found.files,
        program=found.words,
        image=asked.client_image,
        promises=promises.read(asked.promises),
        elector=asked.elector,
    )
    return lock or found.name, own


def _servers(lock: str, asked: LockRequest) -> Servers:
    if asked.beside:
        return Servers.beside(asked.beside)
    if not asked.servers:
        raise BadArguments(f"{lock} needs servers: add for example --servers redis:1")
    return Servers.read(asked.servers)


def _ends_with(text: str, servers: Servers) -> EndsWith:
    if not text:
        return KINDS[servers.kind].ends_with if servers.kind in KINDS else "lease"
    choose("ends-with", text, ENDS_WITH)
    return text  # type: ignore[return-value]
