"""What a model is: a pure sequential specification, in a few plain functions.

    initial          the state before the first op; any hashable value
    action(call)     what the call means to the model: an Action, or None if the call says nothing.
                     A value that cannot be read raises BadValue
    step(state, a)   the state after `a`, or Inconsistent(why) if `a` cannot happen there

That is a whole model. The rest are hints: each says something true about the model that lets
the search do less, and leaving one out costs time, never a verdict.

An Action is also an identity. Two ops that never completed and have equal actions are
interchangeable, and the search counts them instead of telling them apart; so an action
names its process only where the model minds who acts.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final, NamedTuple

from fencepost.checker.lincheck.history import UNKNOWN, Call

State = Any  # any hashable value


class BadValue(ValueError):
    """A value that the model cannot read; the message says what it expected."""


class Action(NamedTuple):
    """An op as its model sees it: function, argument, result (or UNKNOWN), and who (or None)."""

    f: str
    value: Any = None  # hashable, as the others
    result: Any = UNKNOWN
    owner: Hashable = None


class Inconsistent(NamedTuple):
    """A step that cannot happen, and why, as a sentence that ends up in the report."""

    why: str


class Timed(NamedTuple):
    """A step that nobody invokes: it may happen at any time from `at_ns` on, or never.

    idle: the call that brings it may never have happened, so the step matters only where an op of
    later rests on that call (Model.resumes).
    """

    at_ns: int
    action: Action
    key: Hashable
    idle: bool = False


class Want(Enum):
    ANY_STATE = "any state"  # works everywhere, and what it finds makes no difference
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
    """A value of a history for people: as Python writes it, but null for None."""
    return "null" if value is None else repr(value)


@dataclass(frozen=True)
class Model:
    """A sequential specification and what is known about it. See the module's docstring.

    name, initial, action, step, functions: the model itself; `functions` are the names of the
        ops that it reads.
    ignored: names of ops that may stand in the same history and are none of its business.
    partition(call): calls with different keys act on independent objects (Herlihy and Wing's
        locality; Horn and Kroening 2015, "Faster linearizability checking via P-compositionality").
    observes(a): in every state, `a` changes nothing or cannot happen.
    facet(state), needs(a): where facet(state) != needs(a), `a` changes nothing or cannot happen.
        needs may be UNSAID.
    gives(a): what `a`, where it changes anything, provides: a value to compare with wants. It is
        not asked of observers.
    leads(a): the facet of the state after `a`, where `a` changes it; UNSAID if it may be any. None:
        it is not known, and no crashed op is dropped as outlived.
    wants(a): `a` can be helped only by an action that gives this value; ANY_STATE if nothing
        need be given and `a` replaces the whole state; UNSAID if anything may help.
    cells(a): the independent cells of the state that `a` touches, or None for all: actions
        without a common cell commute.
    reaches(state, a): could the observer `a` become possible in `state`, or after further
        actions that do not reset? False only if certainly not.
    resets(a): `a` may make `reaches` true again.
    replaces(a): `a` resets, and what its cell holds afterwards does not depend on what it held.
    rests_on(a, other): `a` had its result because of `other`: without it, `a` would be impossible
        for a reason that the history does not have. None: what gives what it wants.
    spawns(a): a Timed step that the call `a` brings with it (a lease's end), or None.
    settles(a): once `a` has returned, the Timed steps of this key are over; or None.
    resumes(a): the key of the Timed steps of the call without which `a` would be impossible; or
        None.
    trimmed(state, wanted): the state without what makes no difference to ops that want (`wants`)
        only such things as `wanted` says; None: every state is as small as it can be.
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


def frozen(value: Any) -> Any:
    """A JSON or EDN value as a hashable one: lists to tuples, maps to sorted tuples of pairs.

    Booleans become words of their own: in Python 1 == True, in a history they differ.
    """
    kind = type(value)
    if kind is int or kind is str or value is None or value is UNKNOWN:
        return value
    if kind is bool:
        return Truth.TRUE if value else Truth.FALSE
    if isinstance(value, list | tuple):
        return tuple([frozen(item) for item in value])
    if isinstance(value, dict):
        pairs = [(frozen(key), frozen(item)) for key, item in value.items()]
        return ("map", *sorted(pairs, key=repr))
    if isinstance(value, set | frozenset):
        return frozenset(frozen(item) for item in value)
    try:
        hash(value)
    except TypeError:
        raise BadValue(f"a value of type {kind.__name__} cannot be compared") from None
    return value


class Truth(Enum):
    TRUE = "true"
    FALSE = "false"

    def __repr__(self) -> str:
        return self.value
