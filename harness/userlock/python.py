"""Resolves a user lock in Python: FILE.py:NAME, which runs on the clients' nodes.

Its file is parsed and not imported, because its dependencies may exist only on the nodes. Its
import statements tell which neighbouring files to send with it; a package is sent as a whole. Only
a file that makes a LockType is imported here, because fencepost needs the bundle.
"""

from __future__ import annotations

import ast
import signal
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from fencepost import syntax
from fencepost.harness.errors import BadArguments
from fencepost.harness.userlock import promises
from fencepost.harness.userlock.files import tree
from fencepost.harness.userlock.promises import Promised
from fencepost.workloads.contract.locktype import LockType
from fencepost.workloads.locks import user_lock

_MARK = "LockType"
_IMPORT_S = 10.0
"""Longest time of the import of a file that makes a LockType."""
_AGAIN_S = 0.5
"""Interval of further attempts to end it: the file may catch the exception."""


class _Endless(BaseException):
    """The import of a file does not end. The text has the file and the line where it is."""


@dataclass(frozen=True)
class Source:
    """A lock's file and the files that it imports; `reference` is FILE:NAME below their folder.

    `promises` are those that its class names. `elector`: the class is an elector, not a lock;
    `drives_work`: it sets `drives_work = True`.
    """

    name: str
    reference: str
    files: dict[str, Path]
    bundle: LockType | None
    promises: Promised = None
    elector: bool = False
    drives_work: bool = False


def find(given: str) -> Source:
    """Resolve FILE.py:NAME in the current folder.

    Raises:
        BadArguments: there is no such file, it is not Python, or has no such name.
    """
    text, _, name = given.rpartition(":")
    path = Path(text).absolute()
    if not path.is_file():
        raise BadArguments(
            f"{given}: there is no file {text}; name the lock as FILE.py:CLASS, with a path from "
            "the current folder"
        )
    module = _parsed(path, given)
    names = _names(module)
    if name not in names and "*" not in names:
        classes = [one for one, is_class in names.items() if is_class]
        has = f"it has {', '.join(classes)}" if classes else "it has no class"
        raise BadArguments(f"{given}: {text} has no {name!r} at its top level; {has}")
    root = _root(path)
    if root != path.parent:  # a module of a package
        top = root / path.relative_to(root).parts[0]
        files = tree(top, top.name)
    else:
        files = {file.relative_to(root).as_posix(): file for file in _needed(path, root)}
    reference = f"{path.relative_to(root).as_posix()}:{name}"
    promised = promises.of_class(module, name, given)
    made = bundle(root, reference)
    elects = _elects(module, name)
    drives = elects and _drives_work(module, name)
    return Source(name, reference, dict(sorted(files.items())), made, promised, elects, drives)


def _elects(module: ast.Module, name: str) -> bool:
    """Return whether a class has `run` and no `acquire`, itself or from a base in its file."""
    verbs = {
        verb.name
        for found in promises.family(module, name)
        for verb in found.body
        if isinstance(verb, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    return "run" in verbs and "acquire" not in verbs


def _drives_work(module: ast.Module, name: str) -> bool:
    """Return whether a class has `drives_work = True`, itself or from a base in its file."""
    for found in promises.family(module, name):
        for line in found.body:
            targets = line.targets if isinstance(line, ast.Assign) else []
            if any(isinstance(one, ast.Name) and one.id == "drives_work" for one in targets):
                value = getattr(line, "value", None)
                return isinstance(value, ast.Constant) and value.value is True
    return False


def bundle(folder: Path, reference: str) -> LockType | None:
    """Return the LockType that FILE:NAME names; None if it names a class.

    Raises:
        BadArguments: its file cannot be imported here, or is not Python.
    """
    file, _, name = reference.rpartition(":")
    module = _parsed(folder / file, reference)
    if not any(_MARK in ast.dump(value) for value in _assigned(module, name)):
        return None
    try:
        with _bounded(folder):
            found = user_lock.load(folder, reference)
    except _Endless as error:
        raise BadArguments(
            f"{reference} makes a LockType, so it is imported here, but its import does not end: "
            f"after {_IMPORT_S:g} s it is at {error}. Move what takes long into `make`"
        ) from None
    except (Exception, SystemExit) as error:  # the user's file may raise anything
        raise BadArguments(
            f"{reference} makes a LockType, so it must be importable here, but the import failed: "
            f"{type(error).__name__}: {error}"
        ) from error
    return found if isinstance(found, LockType) else None


@contextmanager
def _bounded(folder: Path) -> Iterator[None]:
    """Raise _Endless from the running frame if the block takes longer than `_IMPORT_S`.

    Without such signals (on Windows, or outside the main thread) it has no limit.
    """
    main = threading.current_thread() is threading.main_thread()
    if not hasattr(signal, "setitimer") or not main:
        yield
        return

    ended = False

    def end(number: int, frame: FrameType | None) -> None:
        if not ended:
            raise _Endless(_place(folder, frame))

    before = signal.signal(signal.SIGALRM, end)
    left_s, every_s = signal.setitimer(signal.ITIMER_REAL, _IMPORT_S, _AGAIN_S)
    try:
        yield
    finally:
        ended = True
        signal.setitimer(signal.ITIMER_REAL, left_s, every_s)
        signal.signal(signal.SIGALRM, before)


def _place(folder: Path, frame: FrameType | None) -> str:
    """Return FILE, line N of the innermost frame in the user's folder, or else of the innermost."""
    stack = traceback.extract_stack(frame)
    own = [one for one in stack if Path(one.filename).is_relative_to(folder)]
    last = (own or stack)[-1]
    return f"{last.filename}, line {last.lineno}"


def _parsed(path: Path, given: str) -> ast.Module:
    try:
        return syntax.tree(path.read_bytes(), path.name)
    except SyntaxError as error:
        raise BadArguments(
            f"{given}: {path.name}, line {error.lineno}, is not valid Python: {error.msg}"
        ) from error
    except (MemoryError, RecursionError) as error:  # of Python's parser
        raise BadArguments(
            f"{given}: {path.name} has expressions that are nested too deeply for Python"
        ) from error
    except (OSError, ValueError) as error:
        raise BadArguments(f"{given}: cannot read {path.name}: {error}") from error


def _names(module: ast.Module) -> dict[str, bool]:
    """Return the names at a module's top level, and which are classes; `*`: a star import."""
    found: dict[str, bool] = {}
    for node in _top(module.body):
        match node:
            case ast.ClassDef(name=name):
                found[name] = True
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                found[name] = False
            case ast.Import(names=names) | ast.ImportFrom(names=names):
                found |= {(one.asname or one.name).partition(".")[0]: False for one in names}
            case ast.Assign() | ast.AnnAssign():
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                parts = (one for each in targets for one in ast.walk(each))
                found |= {one.id: False for one in parts if isinstance(one, ast.Name)}
    return found


def _top(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the statements of a module, including those under `if`, `try` and `with`."""
    for node in body:
        yield node
        for inner in ("body", "orelse", "finalbody"):
            if not isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                yield from _top(getattr(node, inner, []))
        for handler in getattr(node, "handlers", []):
            yield from _top(handler.body)


def _assigned(module: ast.Module, name: str) -> Iterator[ast.expr]:
    for node in _top(module.body):
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if any(isinstance(one, ast.Name) and one.id == name for one in targets):
                yield node.value


def _root(path: Path) -> Path:
    """Return the folder that a module is imported from: the parent of its outermost package."""
    folder = path.parent
    while (folder / "__init__.py").is_file():
        folder = folder.parent
    return folder


def _needed(path: Path, folder: Path) -> set[Path]:
    """Return a file and the files of its folder that it imports, directly or indirectly."""
    found, new = {path}, [path]
    while new:
        for name in _imported(new.pop()):
            module = folder / f"{name}.py"
            package = folder / name / "__init__.py"
            here = [module] if module.is_file() else []
            if package.is_file():
                here = list(tree(package.parent).values())
            fresh = [file for file in here if file not in found]
            found.update(fresh)
            new += [file for file in fresh if file.suffix == ".py"]
    return found


def _imported(path: Path) -> set[str]:
    """Return the top-level name of each module that a file imports anywhere."""
    found = set()
    for node in ast.walk(_parsed(path, path.name)):
        match node:
            case ast.Import(names=names):
                found |= {one.name.partition(".")[0] for one in names}
            case ast.ImportFrom(module=str(module), level=0):
                found.add(module.partition(".")[0])
    return found
