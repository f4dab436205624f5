"""The lock that a person asks for: one of the registry, or one of their own.

    redlock                                  of the registry
    mylock.py:MyLock  --servers redis:1      a class of the plain contract (docs/your-lock.md)
    --program ./worker --ship DIR --servers redis:1    a program in any language (program.py)

Each way of giving one is a function here that returns its name and an Own.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass, replace
from pathlib import Path

from fencepost.harness.errors import BadArguments, choose
from fencepost.harness.package import PACKAGE
from fencepost.harness.servers.external_names import Foreign
from fencepost.harness.servers.kinds import KINDS
from fencepost.harness.userlock import program, python
from fencepost.harness.userlock.requirements import installed
from fencepost.harness.userlock.servers import Servers
from fencepost.harness.userlock.user_lock import EndsWith, Own
from fencepost.workloads.contract.locktype import ENDS_WITH


@dataclass(frozen=True)
class Asked:
    """What a person says of a lock of their own. Empty, None: not said.

    `requirements`: what is installed for it: a requirements file, a wheel, or a project's folder.
    `beside`: its servers, if they are there already; `servers` names them then.
    `program`: a command in the place of a class, carried out in the folder `ship`. `client_image`:
    what its clients run in.
    """

    servers: str = ""
    ends_with: str = ""
    requirements: Path | None = None
    beside: Foreign | None = None
    program: str = ""
    ship: Path | None = None
    client_image: str = ""


def given(lock: str | type, asked: Asked) -> tuple[str, Own | None]:
    """The name of a lock, and what it is if it is in no registry.

    Raises:
        BadArguments: there is no such file or class, or something is asked that does not fit.
    """
    text = lock if isinstance(lock, str) else named(lock)
    if asked.program:
        return of_program(text, asked)
    if asked.ship:
        raise BadArguments("--ship goes with a --program: a client in another language")
    if ":" in text or text.endswith(".py"):
        return in_image(text, asked) if asked.client_image else of_python(text, asked)
    said = {
        "ends-with": asked.ends_with,
        "requirements": asked.requirements,
        "client-image": asked.client_image,
    }
    if asked.beside is None:
        said["servers"] = asked.servers
    for option, value in said.items():
        if value:
            raise BadArguments(
                f"--{option} is for a lock of your own (FILE.py:CLASS): "
                f"{text or 'a lock by name'} has its own"
            )
    return text, None


def named(lock: type) -> str:
    """FILE.py:NAME of a class.

    Raises:
        BadArguments: it has no file, or does not stand at its top level.
    """
    try:
        path = Path(inspect.getfile(lock))
    except (TypeError, OSError) as error:
        raise BadArguments(f"{lock!r} has no file that could be sent to the nodes") from error
    if "." in lock.__qualname__:
        raise BadArguments(
            f"{lock.__qualname__} stands within a function or a class: a client imports its file, "
            "so it has to stand at the top level"
        )
    return f"{path}:{lock.__name__}"


def of_python(text: str, asked: Asked) -> tuple[str, Own]:
    """A lock by FILE.py:NAME."""
    if ":" not in text:
        raise BadArguments(f"which class of {text}? Write {text}:CLASS")
    found = python.find(text)
    bundle, files = found.bundle, found.files
    if bundle is None:
        there = _servers(text, asked)
        ends = _ends_with(asked.ends_with, there)
    elif (asked.servers and not asked.beside) or asked.ends_with:
        raise BadArguments(f"{text} is a LockType, which says what --servers and --ends-with say")
    else:
        there = Servers(bundle.kind, bundle.servers)
        ends = _ends_with(bundle.ends_with, there)
    if asked.requirements is not None:
        files = files | installed(asked.requirements)
    name = bundle.name if bundle else found.name
    return name, Own(there, ends, files, python=found.reference, bundle=bundle)


def in_image(text: str, asked: Asked) -> tuple[str, Own]:
    """A lock by FILE.py:NAME in an image that has a Python: a program, on the SDK for Python."""
    if asked.requirements is not None:
        raise BadArguments("--requirements and --client-image: the image has what the lock needs")
    name, own = of_python(text, asked)
    if own.bundle is not None:
        raise BadArguments(f"{text} is a LockType, which runs in fencepost's own client")
    sdk = PACKAGE / "sdk" / "python" / "fencepost_sdk.py"
    words = ("python3", sdk.name, own.python)
    files = {**own.files, sdk.name: sdk}
    return name, replace(own, python="", program=words, files=files, image=asked.client_image)


def of_program(lock: str, asked: Asked) -> tuple[str, Own]:
    """A lock by --program; `lock` is a name that is given beside it, for the run's folder."""
    if asked.requirements is not None:
        raise BadArguments(
            "--requirements is for a class in Python; --ship sends a folder as it is"
        )
    if ":" in lock or lock.endswith(".py"):
        raise BadArguments(f"{lock} and --program are two locks: name one")
    there = _servers(f"--program {asked.program!r}", asked)
    found = program.find(asked.program, asked.ship, bool(asked.client_image))
    ends = _ends_with(asked.ends_with, there)
    own = Own(there, ends, found.files, program=found.words, image=asked.client_image)
    return lock or found.name, own


def _servers(lock: str, asked: Asked) -> Servers:
    if asked.beside:
        return Servers.beside(asked.beside)
    if not asked.servers:
        raise BadArguments(f"which servers does {lock} run on? Write --servers redis:1, say")
    return Servers.read(asked.servers)


def _ends_with(text: str, servers: Servers) -> EndsWith:
    if not text:
        return KINDS[servers.kind].ends_with if servers.kind in KINDS else "lease"
    choose("ends-with", text, ENDS_WITH)
    return text  # type: ignore[return-value]
