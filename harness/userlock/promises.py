"""Reads the promises of a user lock: from an option, from its class, or from its program.

The option decides, then the class or the program. The files of a lock in Python are parsed and not
imported, so the class must name its promises as literals.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from fencepost.harness.errors import BadArguments, choose
from fencepost.workloads.contract.locktype import PROMISES

NONE = "none"
"""The word for a lock that promises exclusion alone, whatever its class says."""
Promised = tuple[str, ...] | None
"""Names of PROMISES, in their order; None: not given."""


def read(given: str | Iterable[str]) -> Promised:
    """Return the promises of an option: names separated by commas, or a list of names.

    Raises:
        BadArguments: there is no such promise; the text lists the valid names.
    """
    names = given.split(",") if isinstance(given, str) else list(given)
    names = [name.strip() for name in names if name.strip()]
    if names == [NONE]:
        return ()
    for name in names:
        choose("promise", name, PROMISES)
    return tuple(name for name in PROMISES if name in names) or None


def of_class(module: ast.Module, name: str, given: str) -> Promised:
    """Return the promises that a class, or its base class in the same file, has as its attribute.

    Raises:
        BadArguments: they are not literals, or there is no such promise.
    """
    for found in family(module, name):
        for value in _assigned(found):
            try:
                return read(ast.literal_eval(value)) or ()
            except BadArguments as error:
                raise BadArguments(f"{given}: {error}") from error
            except (ValueError, TypeError, AttributeError) as error:
                raise BadArguments(
                    f"{given}: `promises` of class {found.name} must be written as names (its file "
                    f'is read and not imported): promises = ("{next(iter(PROMISES))}",)'
                ) from error
    return None


def family(module: ast.Module, name: str) -> Iterator[ast.ClassDef]:
    """Yield a class, and its base classes in the same file, nearest first."""
    classes = {one.name: one for one in ast.walk(module) if isinstance(one, ast.ClassDef)}
    names, seen = [name], set[str]()
    while names:
        found = classes.get(names.pop(0))
        if found is not None and found.name not in seen:
            seen.add(found.name)
            yield found
            names += [base.id for base in found.bases if isinstance(base, ast.Name)]


def _assigned(found: ast.ClassDef) -> Iterator[ast.expr]:
    for node in found.body:
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if any(isinstance(one, ast.Name) and one.id == "promises" for one in targets):
                yield node.value
