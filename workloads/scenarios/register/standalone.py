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
from dataclasses import dataclass, replace
from itertools import pairwise, takewhile
from pathlib import Path

_FRAME = "frame"
_IMPORTS = ast.Import | ast.ImportFrom
_BLOCKS = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
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
        """Return the text after `import`."""
        imported = self.name or self.module
        is_renamed = self.bound != (self.name or self.module.partition(".")[0])
        return f"{imported} as {self.bound}" if is_renamed else imported


@dataclass(frozen=True)
class _Part:
    """A statement of a module: its lines with the comments above it, its names, those it uses."""

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

    def uses(self, name: str) -> bool:
        return any(name in part.uses for part in self.parts)


def text(script: Path) -> str:
    """Return the file: the script, with parts of the frame before its last statement.

    Raises:
        ValueError: a name means two things in it, or the frame does not define it.
    """
    own = _read(script)
    asked = [one for one in own.imports if one.of_frame]
    if not asked:
        return script.read_text(encoding="utf-8")
    taken = [own, *_taken(asked, script.parent)]
    imports = {
        one
        for module in taken
        for one in module.imports
        if not one.of_frame and (module is own or module.uses(one.bound))
    }
    _must_differ(taken, imports)
    sections = [*([own.body] if own.body else []), *map(_section, taken[1:])]
    head = "\n\n".join([own.head, *_import_blocks(imports)])
    # Above a function are two empty lines, and above all else one.
    above = "\n\n\n" if sections[0].startswith(("def ", "async ", "class ", "@")) else "\n\n"
    return head + above + "\n\n\n".join([*sections, own.parts[-1].text]) + "\n"


def _taken(asked: Iterable[_Import], folder: Path) -> Iterator[_Module]:
    """Yield the modules of the frame that define these names, with the parts that define them and
    what those use in turn. The modules that a script asks for come first."""
    modules, taken, queue = dict[str, _Module](), dict[str, list[_Part]](), list(asked)
    for one in queue:  # it grows
        if one.module not in modules:
            modules[one.module] = _read(folder / f"{one.module.replace('.', '/')}.py")
        module, its = modules[one.module], taken.setdefault(one.module, [])
        defining = [part for part in module.parts if one.name in part.defines]
        if not defining:
            raise ValueError(f"{one.module} has no {one.name}")
        for part in defining:
            if part not in its:
                its.append(part)
                names = {name for other in module.parts for name in other.defines & part.uses}
                queue += [_Import(one.module, name, name) for name in sorted(names)]
                queue += [other for other in module.imports
                          if other.of_frame and other.bound in part.uses]  # fmt: skip
    for name, its in taken.items():
        parts = tuple(part for part in modules[name].parts if part in its)
        yield replace(modules[name], parts=parts)


def _read(file: Path) -> _Module:
    source = file.read_text(encoding="utf-8")
    lines, (first, *others) = source.splitlines(), ast.parse(source).body
    ends = [one.end_lineno or 0 for one in (first, *others)]
    count = len(list(takewhile(lambda one: isinstance(one, _IMPORTS), others)))
    last = _start(others[-1], lines, ends[-2])
    return _Module(
        head="\n".join(lines[: ends[0]]),
        title=(ast.get_docstring(ast.Module([first], [])) or "").partition("\n")[0],
        imports=tuple(found for one in others[:count] for found in _imports(one)),
        body="\n".join(lines[ends[count] : last]).strip("\n"),
        parts=tuple(
            _part(one, lines, end) for one, end in zip(others[count:], ends[count:-1], strict=True)
        ),
    )


def _imports(statement: ast.stmt) -> Iterator[_Import]:
    if isinstance(statement, ast.Import):
        for one in statement.names:
            yield _Import(one.name, "", one.asname or one.name.partition(".")[0])
    elif isinstance(statement, ast.ImportFrom):
        for one in statement.names:
            yield _Import(statement.module or "", one.name, one.asname or one.name)


def _part(statement: ast.stmt, lines: Sequence[str], after: int) -> _Part:
    names = [one for one in ast.walk(statement) if isinstance(one, ast.Name)]
    is_block = isinstance(statement, _BLOCKS)
    if isinstance(statement, _BLOCKS):
        defines = {statement.name}
    else:
        defines = {one.id for one in names if isinstance(one.ctx, ast.Store)}
    text = "\n".join(lines[_start(statement, lines, after) : statement.end_lineno])
    return _Part(text, frozenset(defines), frozenset(one.id for one in names), is_block)


def _start(statement: ast.stmt, lines: Sequence[str], after: int) -> int:
    """Return the index of its first line: of a comment above it, a decorator, or itself."""
    decorators: list[ast.expr] = getattr(statement, "decorator_list", [])
    start = min([statement.lineno, *(one.lineno for one in decorators)]) - 1
    while start > after and lines[start - 1].startswith("#"):
        start -= 1
    return start


def _must_differ(modules: Iterable[_Module], imports: Iterable[_Import]) -> None:
    """Raise ValueError if a name of one module is also that of another, or that of an import."""
    counted = Counter[str]()
    for module in modules:
        counted.update({name for part in module.parts for name in part.defines})
    # `import urllib.error` and `import urllib.request` bind the same thing.
    bound = {(one.bound, one.name and f"{one.module}.{one.name}") for one in imports}
    counted.update(name for name, _ in bound)
    if twice := sorted(name for name, count in counted.items() if count > 1):
        raise ValueError(f"one name for two things: {', '.join(twice)}")


def _section(module: _Module) -> str:
    first = module.parts[0]
    found = f"# {module.title}\n" + ("\n\n" if first.is_block else "\n") + first.text
    for before, part in pairwise(module.parts):
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
    """Return the rank of a name in an import: constants, classes, then all others."""
    return 0 if name.isupper() and len(name) > 1 else 1 if name[:1].isupper() else 2
