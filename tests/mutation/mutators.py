"""The mutations of mutmut that differ from its defaults here.

Sentences are left alone: a string with a space in it, or an f-string, is text that a person reads,
and no such argument is dropped or replaced by None. Expressions in an f-string are mutated. Other
strings are names that code compares, and are mutated once (mutmut does it three times: longer, in
capitals and in small letters). Mutants that cannot differ are left out: the first argument of
`cast`.

Not mutated at all: code that runs when a module is imported (constants, tables of models), type
annotations, calls of `len` and `isinstance`, and functions with decorators other than `property`,
`classmethod` and `staticmethod`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import libcst as cst
from mutmut.mutation import mutators
from mutmut.mutation.file_mutation import MutationVisitor


def install() -> None:
    instead = {
        mutators.operator_string: name_mutated,
        mutators.operator_arg_removal: arguments_mutated,
    }
    mutators.mutation_operators[:] = [
        (kind, instead.get(operator, operator)) for kind, operator in mutators.mutation_operators
    ]
    skips = MutationVisitor._skip_node_and_children

    def skips_but_properties(self: MutationVisitor, node: cst.CSTNode) -> bool:
        return not _is_property(node) and skips(self, node)

    MutationVisitor._skip_node_and_children = skips_but_properties


def name_mutated(node: cst.BaseString) -> Iterable[cst.BaseString]:
    for mutated in mutators.operator_string(node):
        if not _words(node):
            yield mutated
        return


def arguments_mutated(call: cst.Call) -> Iterable[cst.Call]:
    if isinstance(call.func, cst.Name) and call.func.value == "cast":
        return
    for mutated in mutators.operator_arg_removal(call):
        kept = {id(argument) for argument in mutated.args}
        if not any(_words(old.value) for old in call.args if id(old) not in kept):
            yield mutated


def _words(node: Any) -> bool:
    if isinstance(node, cst.ConcatenatedString):
        return _words(node.left) or _words(node.right)
    if isinstance(node, cst.SimpleString):
        return " " in node.value
    return isinstance(node, cst.FormattedString)


def _is_property(node: cst.CSTNode) -> bool:
    if not isinstance(node, cst.FunctionDef) or len(node.decorators) != 1:
        return False
    decorator = node.decorators[0].decorator
    return isinstance(decorator, cst.Name) and decorator.value == "property"
