"""Loads a user lock on the client's node, from a file that was sent there.

A user lock is `FILE:NAME`, a file below the folder that it was sent to. NAME is a class of the
plain contract of a lock (plain.py) or of an elector (electors/plain.py), or a LockType, which makes
a lock as those in the registry do.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any
from zlib import crc32

from fencepost.workloads.contract.lock import BadAnswer, Env, Lock
from fencepost.workloads.contract.locktype import LockType
from fencepost.workloads.electors.plain import ElectorLock, is_elector
from fencepost.workloads.locks.plain import PlainLock


def load(folder: Path, reference: str) -> Any:
    """Return the object that `FILE:NAME` names. Raises any exception of its import, and BadAnswer
    if it is missing.

    Its folder comes last in the path, so that a user's file called redis.py does not hide the
    library.
    """
    file, _, name = reference.rpartition(":")
    if str(folder) not in sys.path:
        sys.path.append(str(folder))
    module = _module(folder, Path(file))
    try:
        return getattr(module, name)
    except AttributeError:
        raise BadAnswer(f"{file} has no {name!r} once it is imported on the node") from None


def _module(folder: Path, file: Path) -> ModuleType:
    if len(file.parts) > 1:  # of a package, which is imported as a whole
        return import_module(".".join(file.with_suffix("").parts))
    name = _name(folder, file)
    if name not in sys.modules:
        spec = spec_from_file_location(name, folder / file)
        assert spec is not None and spec.loader is not None, f"{file} is not a Python file"
        sys.modules[name] = module = module_from_spec(spec)
        try:
            spec.loader.exec_module(module)
        except BaseException:
            del sys.modules[name]
            raise
    return sys.modules[name]


def forget(modules: Sequence[str]) -> None:
    """Let these modules be imported again, because each simulated client has its own process."""
    for name in modules:
        sys.modules.pop(name, None)


def modules(folder: Path, files: Sequence[str], reference: str) -> list[str]:
    """Return the module names of the files below a folder, the lock's own first."""
    own = Path(reference.rpartition(":")[0])
    names = [".".join(Path(file).with_suffix("").parts) for file in files if file.endswith(".py")]
    alone = [] if len(own.parts) > 1 else [_name(folder, own)]
    return [*alone, *(name.removesuffix(".__init__") for name in names)]


def _name(folder: Path, file: Path) -> str:
    # Neither a library nor another folder has it.
    return f"own_{crc32(str(folder).encode()):x}_{file.stem}"


def make(
    folder: Path,
    reference: str,
    env: Env,
    nodes: Sequence[str],
    options: Mapping[str, Any],
    late: bool = False,
) -> Lock:
    """Make the lock. `late`: its servers may be down just now (PlainLock).

    Raises any exception of its import or its constructor.
    """
    found = load(folder, reference)
    if isinstance(found, LockType):
        assert found.make is not None, f"{found.name} is a separate program"
        return found.make(env, nodes, options)
    if not callable(found):
        raise BadAnswer(f"{reference} is {found!r:.80}, and should be a class")
    if is_elector(found):
        return ElectorLock(reference, found, env, nodes, options, late)
    return PlainLock(reference, found, env, nodes, options, late)
