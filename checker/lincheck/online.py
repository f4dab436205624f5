"""Checks events as they happen.

The search needs results at the invocation, but they are not known then, because an open op may have
to be placed before another returns. So open ops are searched as if they might never return (a read
carries no information yet, a write may or may not have happened). When an op returns as assumed,
nothing changes. When it brings new information (a read's value, a grant's token, a failure), the
search goes back to the copy made at its invocation, and repeats the events since then with that
information. Configurations are few, so copies are cheap; and only the events since the oldest open
op was invoked are kept.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from fencepost.checker.lincheck.budget import Budget, Exhausted
from fencepost.checker.lincheck.history import NEMESIS, SPONTANEOUS, BadHistory, Call, calls
from fencepost.checker.lincheck.leases import Leases
from fencepost.checker.lincheck.model import Action, Model
from fencepost.checker.lincheck.models import named
from fencepost.checker.lincheck.operation import read, unknown_function
from fencepost.checker.lincheck.search import Search, compact

RESUMED = (
    "an op cannot be placed, but a process continued after an op with a lease that never "
    "returned: only a check of the whole history can decide"
)


@dataclass
class _Event:
    """One event of an object: op `op` (its id) is invoked, has returned, or is given up.

    action: the op as known, None if it carries no information (yet). before: the search at the op's
    invocation, while the op is open.
    """

    kind: Literal["invoke", "ok", "info"]
    op: int
    action: Action | None
    time: int | None
    open: bool = False
    before: tuple[Search, Leases | None] | None = None


class _Object:
    """The events of one object since its oldest open op, and the search after them."""

    def __init__(self, model: Model, budget: Budget) -> None:
        self.search = Search.begin(model, budget)
        self.leases = Leases(model, self.search) if model.spawns is not None else None
        self.events: list[_Event] = []
        self.open = 0
        self.unheard: set[Hashable] = set()  # keys of the Timed steps of calls that never return
        self.resumed = False  # a process continued with such a key: False may be wrong

    def feed(self, event: _Event) -> bool:
        """Take an event; return False if no linearization is left."""
        self.events.append(event)
        if event.kind == "invoke":
            event.open = True
            self.open += 1
            return self._apply(event)
        self.open -= 1
        index = next(i for i, e in enumerate(self.events) if e.op == event.op)
        began = self.events[index]
        began.open = False
        self._note(event)
        if began.action == event.action:
            possible = self._apply(event)
        else:
            began.action = event.action
            assert began.before is not None
            self.search, self.leases = began.before
            possible = all(self._apply(again) for again in self.events[index:])
        began.before = None
        self._trim()
        if self.resumed and not possible:
            raise Exhausted(RESUMED)
        return possible

    def _note(self, event: _Event) -> None:
        """Note the leases of unobserved grants, and whether their process continues: see Leases."""
        model = self.search.model
        if model.spawns is None or event.action is None:
            return
        timed = model.spawns(event.action)
        key = model.resumes(event.action) if timed is None else timed.key
        if event.kind == "ok":
            self.resumed = self.resumed or key in self.unheard
        elif timed is not None:
            self.unheard.add(key)

    def _apply(self, event: _Event) -> bool:
        search, leases = self.search, self.leases
        if leases is not None:
            leases.advance(event.time)
        if event.kind == "invoke":
            if event.open:
                event.before = self._copy()
            if event.action is not None:
                search.invoke(event.op, event.action)
                if leases is not None:
                    leases.invoked(event.action)
        elif event.action is None:
            pass
        elif event.kind == "info":
            search.crash(event.op)
        else:
            if not search.complete(event.op):
                return False
            if leases is not None:
                leases.returned(event.action)
        return True

    def _copy(self) -> tuple[Search, Leases | None]:
        copy = self.search.copy()
        return copy, None if self.leases is None else self.leases.copy(copy)

    def _trim(self) -> None:
        """Forget the events before the oldest open op, and unused states."""
        if not self.open:
            self.events.clear()
        while self.events and self.events[0].before is None:
            del self.events[0]
        befores = [event.before[0] for event in self.events if event.before is not None]
        compact([self.search, *befores])


class Online:
    """Checks a history event by event, with memory for concurrent ops only.

    model: a Model, or the name of one, with `init` and `failed_release` as in `check`. time_limit
    (s, of all time since the start) and memory_limit (MB of growth): once reached, the verdict is
    "unknown" and stays so. After False it stays False.
    """

    def __init__(
        self,
        model: Model | str,
        *,
        init: Any = None,
        failed_release: str = "nothing",
        time_limit: float | None = None,
        memory_limit: float | None = None,
    ) -> None:
        self.model = named(model, init, failed_release) if isinstance(model, str) else model
        self.budget = Budget.starting_now(time_limit, memory_limit)
        self.valid: bool | Literal["unknown"] = True
        self.reason: str | None = None
        self.fed = 0
        self._objects: dict[Hashable, _Object] = {}
        self._open: dict[int | str, tuple[int, Mapping[str, Any], Hashable]] = {}

    def feed(self, event: Mapping[str, Any]) -> bool | Literal["unknown"]:
        """Return the verdict on all events so far, with this one. Raises BadHistory as `check`
        does."""
        self.fed += 1
        if self.valid is True:
            try:
                if not self._feed(event):
                    self.valid = False
                    self.reason = f"event {self.fed} cannot be placed"
                    self._objects.clear()
            except Exhausted as limit:
                self.valid, self.reason = "unknown", limit.reason
                self._objects.clear()
        return self.valid

    def _feed(self, event: Mapping[str, Any]) -> bool:
        if not self.fed & 63:
            self.budget.spend(f"after {self.fed} events")
        line = self.fed
        process = event.get("process") if isinstance(event, Mapping) else None
        if process == NEMESIS:
            return True
        opened = self._open.get(process) if isinstance(process, int | str) else None
        if opened is None or event.get("f") in SPONTANEOUS:
            call = next(calls([(line, event)]))
        else:  # raises for an op on top of an open one
            call = next(calls([(opened[0], opened[1]), (line, event)]))
        if call.f not in self.model.functions and call.f not in self.model.ignored:
            raise unknown_function(call, self.model)
        if event["type"] == "invoke":
            key = self._key(call)
            self._open[call.process] = line, event, key
            return self._tell("invoke", call, line, key, event)
        if opened is None or call.f in SPONTANEOUS:
            return True
        del self._open[call.process]
        kind: Literal["ok", "info"] = "info" if call.type == "info" else "ok"
        if self._key(call) != opened[2]:
            raise BadHistory(f"{call.f} did not name its object at its invocation", line)
        return self._tell(kind, call, opened[0], opened[2], event)

    def _key(self, call: Call) -> Hashable:
        return self.model.partition(call) if call.f in self.model.functions else None

    def _tell(
        self,
        kind: Literal["invoke", "ok", "info"],
        call: Call,
        op: int,
        key: Hashable,
        event: Mapping[str, Any],
    ) -> bool:
        if call.f not in self.model.functions:
            return True
        if key not in self._objects:
            self._objects[key] = _Object(self.model, self.budget)
        operation = read(call, self.model)
        action: Action | None = None if operation is None else operation.action
        return self._objects[key].feed(_Event(kind, op, action, event.get("time")))
