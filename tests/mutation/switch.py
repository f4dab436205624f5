"""Put a mutant into its function, instead of mutmut's trampolines.

mutmut decorates each function with a trampoline that gets the function's mutants by name. Here the
decorator only records the function; the process that runs a mutant gives the function that
mutant's code. So calls cost the same as without mutants, under every name of the function.
"""

from __future__ import annotations

import os
import sys
from types import FrameType, FunctionType
from typing import Any

from mutmut import __main__ as program
from mutmut.mutation import trampoline
from mutmut.mutation.trampoline_templates import mangle_function_name
from mutmut.runners.harness import PytestRunner
from mutmut.state import state
from mutmut.workers import isolation

_functions: list[tuple[FunctionType, dict[str, Any]]] = []  # each with its mutants by name


def install() -> None:
    trampoline.wrap_in_trampoline = remember
    for module in (program, isolation):
        module.set_mutant_under_test = switch
    run_stats = PytestRunner.run_stats

    def profiled(self: PytestRunner, *, tests: Any) -> int:
        sys.setprofile(_Watch())
        try:
            failed = run_stats(self, tests=tests)
        finally:
            sys.setprofile(None)
        return failed or run_stats(self, tests=tests)  # again, for how long they really take

    PytestRunner.run_stats = profiled


def remember(mutants: dict[str, Any], is_classmethod: bool = False) -> Any:
    def decorate(function: FunctionType) -> FunctionType:
        _functions.append((function, mutants))
        return function

    return decorate


def switch(mutant: str) -> None:
    """Make this mutant the one that runs in this process; "fail": all functions fail."""
    os.environ["MUTANT_UNDER_TEST"] = mutant  # for programs that a test starts
    module, _, name = mutant.rpartition(".")
    for function, mutants in _functions:
        if mutant == "fail":
            if not function.__code__.co_freevars:  # code can only replace code with as many
                function.__code__ = _fail.__code__
        elif _module(function) == module and name in mutants:
            _become(function, mutants[name])
        elif function.__code__ is _fail.__code__:
            _become(function, mutants["_mutmut_orig"])


def _become(function: FunctionType, other: Any) -> None:
    other = _plain(other)
    function.__code__ = other.__code__
    function.__defaults__, function.__kwdefaults__ = other.__defaults__, other.__kwdefaults__


def _plain(member: Any) -> FunctionType:
    """Return the function in a property or class method."""
    return getattr(member, "fget", None) or getattr(member, "__func__", member)


def _module(function: FunctionType) -> str:
    """mutmut names modules by the file's place in the repository."""
    return function.__module__.removeprefix("fencepost.")


def _fail(*_: Any, **__: Any) -> None:
    from mutmut.core import MutmutProgrammaticFailException

    raise MutmutProgrammaticFailException("no mutant: this shows that the tests notice a failure")


class _Watch:
    """Report to mutmut which functions a test reaches; the interpreter calls it at each call."""

    def __init__(self) -> None:
        self._names: dict[int, str] = {}  # id of a function's code -> mutmut's name of it
        self._seen = 0

    def __call__(self, frame: FrameType, event: str, argument: object) -> None:
        if event != "call":
            return
        for function, _ in _functions[self._seen :]:
            owner, _, name = function.__qualname__.rpartition(".")
            mangled = mangle_function_name(name=name, class_name=owner or None)
            self._names[id(function.__code__)] = f"{_module(function)}.{mangled}"
        self._seen = len(_functions)
        name = self._names.get(id(frame.f_code))
        if name is not None:
            state()._stats.add(name)
