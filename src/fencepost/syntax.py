"""Parses Python's source text in several threads.

CPython counts the depth of a syntax tree for all threads together (its issue gh-106905, seen with
3.11.7). Two trees that are made at the same time may then end with `SystemError: AST constructor
recursion depth mismatch`.
"""

from __future__ import annotations

import ast
import threading

_ONE_TREE = threading.Lock()


def tree(source: bytes | str, name: str = "<unknown>") -> ast.Module:
    """Return the syntax tree of a source text; `name` is its file's, for errors. Raises what
    `ast.parse` does."""
    with _ONE_TREE:
        return ast.parse(source, name)
