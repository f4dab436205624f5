"""The one file that shows a row without fencepost: its script, and the parts of the frame it uses.

A script takes functions, classes and constants from modules of scripts/frame, by lines such as
`from frame.redis_server import redis_server`. `text` puts their source, and that of whatever they
use in turn, below the script's own.
"""

from __future__ import annotations

import ast
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

_FRAME = "frame"
_WIDTH = 100


@dataclass(frozen=True)
class _Import:
    """`import module` (`name` is ''), or `from module import name`; `bound` is its name here."""

    module: str
    name: str
    bound: str

    @property
    def of_frame(self) -> bool:
        return self.module.startswith(f"{_FRAME}.")

    @property
    def words(self) -> str:
        of = self.name or self.module
        return of if self.bound == (self.name or self.module.partition(".")[0]) else (
            f"{of} as {self.bound}"
        )  # fmt: skip


@dataclass(frozen=True)
class _Part:
    """A statement of a module: its lines with the comments above it, what it defines and uses."""

    text: str
    defines: frozenset[str]
    uses: frozenset[str]
    is_block: bool


@dataclass(frozen=True)
class _Module:
    """`head` is the docstring as it is written, `body` the lines between imports and last part."""

    head: str
    title: str
    imports: tuple[_Import, ...]
    body: str
    parts: tuple[_Part, ...]


def text(script: Path) -> str:
    """Return the file: the script, with parts of the frame before its last statement.

    Raises:
        ValueError: a name means two things in it, or the frame does not define it.
    """
    own = _read(script)
    if not any(one.of_frame for one in own.imports):
        return script.read_text(encoding="utf-8")
    folder, modules, chosen = script.parent, dict[str, _Module](), dict[str, list[_Part]]()
    imports = {one for one in own.imports if not one.of_frame}
    asked = [one for one in own.imports if one.of_frame]
    for one in asked:  # it grows
        if one.module not in modules:
            modules[one.module] = _read(folder / f"{one.module.replace('.', '/')}.py")
        module, its = modules[one.module], chosen.setdefault(one.module, [])
        defining = [part for part in module.parts if one.name in part.defines]
        if not defining:
            raise ValueError(f"{one.module} has no {one.name}")
        for part in defining:
            if part in its:
                continue
            its.append(part)
            names = {name for other in module.parts for name in other.defines} & part.uses
            asked += [_Import(one.module, name, name) for name in sorted(names)]
            used = [other for other in module.imports if other.bound in part.uses]
            asked += [other for other in used if other.of_frame]
            imports |= {other for other in used if not other.of_frame}
    _must_differ([own.parts, *chosen.values()], imports)
    sections = [
        _section(modules[name].title, [part for part in modules[name].parts if part in its])
        for name, its in chosen.items()
    ]
    parts = [own.body, *sections] if own.body else sections
    head = "\n\n".join([own.head, *_import_blocks(imports)])
    # Above a function are two empty lines, and above all else one.
    above = "\n\n\n" if parts[0].startswith(("def ", "async ", "class ", "@")) else "\n\n"
    return head + above + "\n\n\n".join([*parts, own.parts[-1].text]) + "\n"


def _read(file: Path) -> _Module:
    source = file.read_text(encoding="utf-8")
    lines, (first, *others) = source.splitlines(), ast.parse(source).body
    ends = [one.end_lineno or 0 for one in (first, *others)]
    count = sum(isinstance(one, ast.Import | ast.ImportFrom) for one in others)
    imports, parts = others[:count], []
    for one, end in zip(others[count:], ends[count:], strict=False):
        parts.append(_part(one, lines, end))
    last = _start(others[-1], lines, ends[-2])
    return _Module(
        "\n".join(lines[: ends[0]]),
        (ast.get_docstring(ast.Module([first], [])) or "").partition("\n")[0],
        tuple(found for one in imports for found in _imports(one)),
        "\n".join(lines[ends[count] : last]).strip("\n"),
        tuple(parts),
    )


def _imports(statement: ast.stmt) -> Iterator[_Import]:
    if isinstance(statement, ast.Import):
        for one in statement.names:
            yield _Import(one.name, "", one.asname or one.name.partition(".")[0])
    elif isinstance(statement, ast.ImportFrom):
        for one in statement.names:
            yield _Import(statement.module or "", one.name, one.asname or one.name)


def _part(statement: ast.stmt, lines: Sequence[str], after: int) -> _Part:
    start, names = _start(statement, lines, after), list(ast.walk(statement))
    is_block = isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        defines = {statement.name}
    else:
        defines = {
            one.id for one in names if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)
        }
    uses = {one.id for one in names if isinstance(one, ast.Name)}
    text = "\n".join(lines[start : statement.end_lineno])
    return _Part(text, frozenset(defines), frozenset(uses), is_block)


def _start(statement: ast.stmt, lines: Sequence[str], after: int) -> int:
    """Return the index of its first line: of a comment above it, a decorator, or itself."""
    decorators = getattr(statement, "decorator_list", [])
    start = min([statement.lineno, *(one.lineno for one in decorators)]) - 1
    while start > after and lines[start - 1].startswith("#"):
        start -= 1
    return start


def _must_differ(modules: Iterable[Sequence[_Part]], imports: Iterable[_Import]) -> None:
    """Raise ValueError if a name of one module is also that of another, or that of an import."""
    counted = Counter[str]()
    for parts in modules:
        counted.update({name for part in parts for name in part.defines})
    # `import urllib.error` and `import urllib.request` bind the same thing.
    bound = {(one.bound, one.name and f"{one.module}.{one.name}") for one in imports}
    counted.update(name for name, _ in bound)
    if twice := sorted(name for name, count in counted.items() if count > 1):
        raise ValueError(f"one name for two things: {', '.join(twice)}")


def _section(title: str, parts: Sequence[_Part]) -> str:
    found = f"# {title}\n" + ("\n\n" if parts[0].is_block else "\n") + parts[0].text
    for before, part in pairwise(parts):
        found += ("\n\n\n" if before.is_block or part.is_block else "\n") + part.text
    return found


def _import_blocks(imports: Iterable[_Import]) -> Iterator[str]:
    """Return the import lines as ruff sorts them: those of the standard library, then others."""
    for of_python in (True, False):
        its = [one for one in imports if _is_pythons(one) is of_python]
        lines = sorted(f"import {one.words}" for one in its if not one.name)
        for module in sorted({one.module for one in its if one.name}):
            lines.append(_from(module, [one for one in its if one.module == module and one.name]))
        if lines:
            yield "\n".join(lines)


def _is_pythons(one: _Import) -> bool:
    return one.module.partition(".")[0] in sys.stdlib_module_names


def _from(module: str, its: Iterable[_Import]) -> str:
    names = [one.words for one in sorted(its, key=lambda one: (_kind(one.name), one.name))]
    line = f"from {module} import {', '.join(names)}"
    if len(line) <= _WIDTH:
        return line
    return f"from {module} import (\n" + "".join(f"    {one},\n" for one in names) + ")"


def _kind(name: str) -> int:
    """Return where a name stands in an import: constants, classes, then all others."""
    return 0 if name.isupper() and len(name) > 1 else 1 if name[:1].isupper() else 2
