"""The definition of a model: a pure sequential specification, in a few plain functions.

    initial          the state before the first op; any hashable value
    action(call)     the call as the model reads it: an Action, or None if it has no information.
                     A value that cannot be read raises BadValue
    step(state, a)   the state after `a`, or Inconsistent(why) if `a` cannot happen there

That is a whole model. The rest are hints: true statements about the model that let the search do
less. Leaving one out costs time, never a verdict.

An Action is also an identity. Two ops that never completed and have equal actions are
interchangeable, and the search counts them instead of distinguishing them; so an action names its
process only if the model depends on it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final, NamedTuple

from fencepost.checker.lincheck.history import UNKNOWN, Call

State = Any  # any hashable value


class BadValue(ValueError):
    """The model cannot read a value; the message says what it expected."""


class Action(NamedTuple):
    """An op as its model sees it: function, argument, result (or UNKNOWN), and who (or None)."""

    f: str
    value: Any = None  # hashable, like the others
    result: Any = UNKNOWN
    owner: Hashable = None


class Inconsistent(NamedTuple):
    """An impossible step, and why, as a sentence for the report."""

    why: str


class Timed(NamedTuple):
    """A step without an invocation: it may happen at any time from `at_ns` on, or never.

    idle: the call that brings it may never have happened, so the step matters only if a later op
    depends on that call (Model.resumes).
    """

    at_ns: int
    action: Action
    key: Hashable
    idle: bool = False


class Want(Enum):
    ANY_STATE = "any state"  # has an effect in every state, which is always the same
    UNSAID = "unsaid"


ANY_STATE: Final = Want.ANY_STATE
UNSAID: Final = Want.UNSAID


def _no(action: Action) -> bool:
    return False


def _whole(call: Call) -> Hashable:
    return None


def _unsaid(action: Action) -> Hashable:
    return UNSAID


def _one_facet(state: State) -> Hashable:
    return UNSAID


def _nothing(action: Action) -> None:
    return None


def shown(value: Any) -> str:
    """Format a value of a history for people: as Python does, but null for None."""
    return "null" if value is None else repr(value)


@dataclass(frozen=True)
class Model:
    """A sequential specification and what is known about it. See the module's docstring.

    name, initial, action, step, functions: the model itself; `functions` are the names of the
        ops that it reads.
    ignored: names of ops in the same history that the model skips.
    partition(call): calls with different keys act on independent objects (Herlihy and Wing's
        locality; Horn and Kroening 2015, "Faster linearizability checking via P-compositionality").
    observes(a): in every state, `a` changes nothing or cannot happen.
    facet(state), needs(a): where facet(state) != needs(a), `a` changes nothing or cannot happen.
        needs may be UNSAID.
    gives(a): the value that `a` provides if it changes anything, to compare with wants. Not
        called for observers.
    leads(a): the facet of the state after `a`, if `a` changes it; UNSAID if it may be any. None:
        unknown, and no crashed op is dropped as outlived.
    wants(a): `a` can be enabled only by an action that gives this value; ANY_STATE if it needs
        none and `a` replaces the whole state; UNSAID if any action may enable it.
    cells(a): the independent cells of the state that `a` touches, or None for all: actions
        without a common cell commute.
    reaches(state, a): could the observer `a` become possible in `state`, or after further
        actions that do not reset? False only if certainly not.
    resets(a): `a` may make `reaches` true again.
    replaces(a): `a` resets, and the later content of its cell does not depend on the earlier.
    rests_on(a, other): `a` had its result because of `other`: without it, `a` would be impossible
        for a reason that the history does not have. None: what gives what it wants.
    spawns(a): a Timed step that the call `a` brings with it (a lease's end), or None.
    settles(a): once `a` has returned, the Timed steps of this key cannot happen; or None.
    resumes(a): the key of the Timed steps of the call without which `a` would be impossible; or
        None.
    trimmed(state, wanted): the state without the parts that make no difference to ops that want
        (`wants`) only values in `wanted`; None: every state is minimal.
    show(state): the state for people.
    """

    name: str
    initial: State
    action: Callable[[Call], Action | None]
    step: Callable[[Any, Action], State | Inconsistent]
    functions: frozenset[str]
    ignored: frozenset[str] = frozenset()
    partition: Callable[[Call], Hashable] = _whole
    observes: Callable[[Action], bool] = _no
    facet: Callable[[Any], Hashable] = _one_facet
    needs: Callable[[Action], Hashable] = _unsaid
    gives: Callable[[Action], Hashable] = _unsaid
    leads: Callable[[Action], Hashable] | None = None
    wants: Callable[[Action], Hashable] = _unsaid
    cells: Callable[[Action], frozenset[Hashable] | None] = _nothing
    reaches: Callable[[Any, Action], bool] | None = None
    resets: Callable[[Action], bool] = _no
    replaces: Callable[[Action], bool] = _no
    rests_on: Callable[[Action, Action], bool] | None = None
    spawns: Callable[[Action], Timed | None] | None = None
    settles: Callable[[Action], Hashable] = _nothing
    resumes: Callable[[Action], Hashable] = _nothing
    trimmed: Callable[[Any, Callable[[Hashable], bool]], State] | None = None
    show: Callable[[Any], str] = shown


class _Mark(Enum):
    """Marks maps and names among tuples: no list of a history has it."""

    MAP = "map"
    NAME = "name"

    def __repr__(self) -> str:
        return self.value


MAP: Final = _Mark.MAP


def frozen(value: Any) -> Any:
    """Convert a JSON or EDN value to a hashable one: lists to tuples, maps to sets of pairs.

    Booleans become separate words, because 1 == True in Python, but not in a history.
    """
    kind = type(value)
    if kind is int or kind is str or value is None or value is UNKNOWN:
        return value
    if kind is Pair:
        raise BadValue(f"{list(value)!r:.40} is a [key, value] of jepsen.independent: add --keyed")
    if kind is bool:
        return Truth.TRUE if value else Truth.FALSE
    if kind is Name:
        return value.written
    if kind is Written:
        return value
    if isinstance(value, list | tuple):
        return tuple([frozen(item) for item in value])
    if isinstance(value, dict):
        # Not in order: equal keys may be written in several ways, such as 11 and 11.0.
        pairs = ((frozen(key), frozen(item)) for key, item in value.items())
        return FrozenMap(MAP, frozenset(pairs))
    if isinstance(value, set | frozenset):
        return FrozenSet(frozen(item) for item in value)
    try:
        hash(value)
    except TypeError:
        raise BadValue(f"a value of type {kind.__name__} cannot be compared") from None
    return value


class FrozenMap(NamedTuple):
    """A map as a value: equal to no list and no set. It is shown as EDN writes it."""

    mark: _Mark
    pairs: frozenset[tuple[Any, Any]]

    def __repr__(self) -> str:
        return f"{{{', '.join(sorted(f'{key!r} {item!r}' for key, item in self.pairs))}}}"


class FrozenSet(frozenset[Any]):
    """A set as a value. It is shown as EDN writes it."""

    def __repr__(self) -> str:
        return f"#{{{' '.join(sorted(map(repr, self)))}}}"


class Written(NamedTuple):
    """A keyword, symbol or character among values, as EDN writes it: equal to no string."""

    mark: _Mark
    text: str

    def __repr__(self) -> str:
        return self.text


class Name(str):
    """A keyword, symbol or character, read as its name. As a value it is `written`."""

    written: Written

    def __new__(cls, name: str, text: str) -> Name:
        self = super().__new__(cls, name)
        self.written = Written(_Mark.NAME, text)
        return self


class Pair(list[Any]):
    """A value that its history marks as [key, value] of jepsen.independent."""


def refuse_pair(call: Call) -> None:
    """Raise BadValue if an op that asks for a value names a key, as in jepsen.independent."""
    value = call.value
    if isinstance(value, list | tuple) and len(value) == 2 and value[1] is None:
        raise BadValue(
            f"{call.f} is invoked with {list(value)!r:.40}, a [key, value] of several objects, as "
            "in jepsen.independent: add --keyed"
        )


class Truth(Enum):
    TRUE = "true"
    FALSE = "false"

    def __repr__(self) -> str:
        return self.value
