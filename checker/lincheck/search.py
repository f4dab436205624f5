"""The general engine: tracks all configurations that could explain the events so far.

The search follows the history event by event and keeps a set of configurations. One is (state,
which open ops are done, how many crashed ops of each class are used). Ops are linearized as late as
possible: when an op that needs them returns (Lowe 2017, "Testing for linearizability", just-in-time
linearization; the search itself goes back to Wing and Gong 1993). So:

    invoke    only notes that the op is open;
    complete extends every configuration, in all ways that end with the op that returns, and
              drops those in which it cannot be placed. None left: not linearizable, and this
              return is the first event that makes it so;
    crash     turns an open op into one that may happen at any time from now on, or never.

The search is breadth first: the verdict false comes at the first event that causes it, memory
depends on concurrency rather than on the history's length, and dominated configurations are found.
Dominated are those that used more crashed ops (see crashed.py), and those that left out an observer
(an op that never changes anything) that fits their state: taking it at once is never worse, so it
is always taken.

States and actions are interned, steps memoized (table.py). pruning.py decides what to skip;
slots.py tracks the open ops.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass

from fencepost.checker.lincheck.budget import UNLIMITED, Budget
from fencepost.checker.lincheck.configurations import (
    Configurations,
    Entry,
    Taken,
    best,
    faultless,
    narrowed,
    put,
    put_all,
    waste,
)
from fencepost.checker.lincheck.crashed import Crashed
from fencepost.checker.lincheck.model import ANY_STATE, Action, Model
from fencepost.checker.lincheck.pruning import Pruning
from fencepost.checker.lincheck.slots import Slots
from fencepost.checker.lincheck.table import Table

CHECK_EVERY = 512  # expansions between two checks of the limits
WORK = 4  # configurations expanded per return, for each that is kept,
LEAST_WORK = 8  # but at least this many
UNCOUNTED_WORK = 2_000  # for one return with unlimited crashed ops: queues and sums have no bound
ENOUGH = 1  # ways to place the returned op after which the search stops, for each that is kept
ENDLESS = 1 << 62  # more than there ever are
WRITE_OFF_AT = 8  # classes of crashed ops in the records before common use is subtracted


@dataclass(slots=True, eq=False)
class Search:
    """The configurations of one object after the events so far.

    trace: every configuration's path is kept. width: configurations kept; None: all. cut: whether
    any was dropped. relaxed: some crashed ops may happen any number of times. pruned: goals may be
    given, see Pruning. effort: moves tried, and configurations at each return.
    """

    model: Model
    budget: Budget
    trace: bool
    width: int | None
    relaxed: bool
    table: Table
    crashed: Crashed
    slots: Slots
    pruning: Pruning
    configurations: Configurations  # never changed in place: copies share it
    write_off_at: int
    until_check: int
    cut: bool = False
    pruned: bool = False
    effort: int = 0

    @classmethod
    def begin(
        cls,
        model: Model,
        budget: Budget = UNLIMITED,
        *,
        trace: bool = False,
        width: int | None = None,
        counted: frozenset[Action] | None = None,
    ) -> Search:
        """Start a search before the first event. counted: the actions whose crashed ops are
        counted; the others may happen any number of times. None: all are counted."""
        table = Table(model)
        return cls(
            model,
            budget,
            trace,
            width,
            counted is not None,
            table,
            Crashed(model, counted),
            Slots(table, keep=trace),
            Pruning(model, table),
            {(table.state_number(model.initial), 0): [(0, None)]},
            WRITE_OFF_AT,
            CHECK_EVERY,
        )

    def copy(self) -> Search:
        """Return an independent copy; memoized steps are shared."""
        return Search(
            self.model,
            self.budget,
            self.trace,
            self.width,
            self.relaxed,
            self.table,
            self.crashed.copy(),
            self.slots.copy(),
            self.pruning.copy(),
            self.configurations,
            self.write_off_at,
            self.until_check,
            self.cut,
            self.pruned,
            self.effort,
        )

    def live(self) -> tuple[set[int], set[int]]:
        """Return the numbers of the states and actions that this search still needs."""
        states = {state for state, _ in self.configurations}
        actions = {action for _, action in self.slots.ops.values()} | set(self.crashed.counts)
        return states, actions | self.pruning.live() | set(self.crashed.shifts)

    def forget(self) -> None:
        """Forget memoized states, whose numbers may be dropped."""
        self.slots.fitting.clear()
        self.pruning.forget()

    @property
    def exact(self) -> bool:
        """Return whether every way to explain the events so far is still present. If some were
        dropped, the op at which the search stops may not be the first that cannot be placed."""
        return not (self.cut or self.pruned or self.relaxed)

    def overused(self) -> frozenset[Action]:
        """Return the actions that the best configuration overuses."""
        _, (used, _) = best(self.configurations)
        return frozenset(self.table.actions[number] for number in self.crashed.overused(used))

    def settle(self) -> None:
        """Keep only configurations that overuse no op."""
        self.configurations = faultless(self.configurations)

    # -- events

    def invoke(self, op: int, action: Action) -> None:
        """Open op `op`. `action` includes its result if that is known already."""
        self.slots.open(op, self.table.action_number(action))
        self.crashed.want(action)

    def crash(self, op: int) -> None:
        """Mark op `op` as crashed: it may happen at any later time, or never."""
        bit, number = self.slots.ops[op]
        self.slots.close(op)
        unit = 0
        if self.table.observing[number]:
            self.crashed.unwant(self.table.actions[number])
        else:
            self.crashed.add(number, self.table.actions[number])
            unit = self.crashed.unit(number)
        moved: Configurations = {}
        for (state, done), entries in self.configurations.items():
            if done & bit:
                entries = [(used + unit, path) for used, path in entries]
            put_all(moved, (state, done & ~bit), entries, self.crashed)
        self.configurations = moved

    def loose(self, action: Action) -> None:
        """Add a step without an invocation, which may happen at any time from now on, or never."""
        self.crashed.want(action)
        self.crashed.add(self.table.action_number(action), action)

    def withdraw(self, action: Action) -> None:
        """Remove a step given to `loose`, which cannot happen any more.

        An equal one may remain, or come later: no record counts this one as used.
        """
        number = self.table.numbers.get(action)
        if number not in self.crashed.counts:
            return
        if number in self.crashed.shifts:
            moved: Configurations = {}
            for key, entries in self.configurations.items():
                for used, path in entries:
                    put(moved, key, self.crashed.without(number, used), path, self.crashed)
            self.configurations = moved
        self.crashed.withdraw(number)
        self.crashed.unwant(action)

    def drop(self, numbers: Iterable[int]) -> None:
        """Drop crashed ops of these classes, which have no further effect, and their uses.

        Used ops of uncounted classes stay.
        """
        records = [used for own in self.configurations.values() for used, _ in own]
        gone = [number for number in numbers if self.crashed.droppable(number, records)]
        used_some = [number for number in gone if number in self.crashed.shifts]
        if used_some:
            moved: Configurations = {}
            for key, entries in self.configurations.items():
                for used, path in entries:
                    put(moved, key, self.crashed.cleared(used_some, used), path, self.crashed)
            self.configurations = moved
        for number in gone:
            action, many = self.table.actions[number], self.crashed.counts[number]
            self.crashed.remove(number)
            for _ in range(many):
                self.crashed.unwant(action)

    def trim(self, wanted: Callable[[Hashable], bool]) -> None:
        """Trim every state to the parts that ops with these wants can distinguish: see
        Model.trimmed."""
        trimmed, table = self.model.trimmed, self.table
        assert trimmed is not None
        moved: Configurations = {}
        for (state, done), entries in self.configurations.items():
            after = table.state_number(trimmed(table.states[state], wanted))
            put_all(moved, (after, done), entries, self.crashed)
        self.configurations = moved

    def complete(self, op: int) -> bool:
        """Handle the return of op `op`. Return False if no configuration can place it: not
        linearizable.

        The configurations are then left as they were before, as evidence.
        """
        self.effort += len(self.configurations)
        bit, number = self.slots.ops[op]
        done, todo = self._observed(bit)
        if todo:
            self._extend(todo, done, bit, number)
        if not done:
            return False
        if self.width is not None and sum(map(len, done.values())) > self.width:
            self.cut = True
            done = narrowed(done, self.width)
        self.configurations = done
        self.slots.close(op)
        self.crashed.unwant(self.table.actions[number])
        if len(self.crashed.shifts) > self.write_off_at:
            self._write_off()
        return True

    # -- the search

    def _observed(self, bit: int) -> tuple[Configurations, Configurations]:
        """Take the open observers that fit. Return the configurations that have done the op of this
        slot, freed of it, and those that have not."""
        done: Configurations = {}
        todo: Configurations = {}
        slots, observers, fitting = self.slots, self.slots.observers, self.slots.fitting
        for (state, mask), entries in self.configurations.items():
            if observers:
                fits = fitting.get(state)
                if fits is None:
                    fits = slots.fit(state)
                taken = fits & ~mask
                if taken:
                    mask |= taken
                    if self.trace:
                        entries = self._traced(entries, taken, state)
            if mask & bit:
                put_all(done, (state, mask ^ bit), entries, self.crashed)
            else:
                put_all(todo, (state, mask), entries, self.crashed)
        return done, todo

    def _traced(self, entries: list[Entry], taken: int, state: int) -> list[Entry]:
        value, names = self.table.states[state], self.slots.names
        return [(used, Taken(0, taken, None, names, value, path)) for used, path in entries]

    def _extend(self, todo: Configurations, done: Configurations, last: int, number: int) -> None:
        """Add all ways from `todo` that end with the op of slot `last` to `done`.

        One loop on local names, because all time is spent here, and calls would cost a third of it.
        """
        table, crashed, pruning, trace = self.table, self.crashed, self.pruning, self.trace
        facets, steps = table.facets, table.steps
        slots, observers, fitting = self.slots, self.slots.observers, self.slots.fitting
        movers = users = pruning.movers(last, number, slots, crashed)
        loose = bool(crashed.counts)
        if loose:  # the movers that need the current facet
            wants, actions = self.model.wants, table.actions
            users = [mover for mover in movers if wants(actions[mover[1]]) is not ANY_STATE]
        goal, replacing = pruning.goal(number, slots), pruning.replacing(slots)
        work = [
            (state, mask, used, path, False)
            for (state, mask), entries in todo.items()
            for used, path in entries
        ]
        if (self.relaxed or self.width is not None) and len(work) > 1:
            work.sort(key=lambda entry: waste(entry[2]))
        most, enough = self._limits(done)
        seen = todo
        looked_at = found = tried = 0
        until_check = self.until_check
        for state, mask, used, path, idle in work:
            until_check -= 1
            if not until_check:
                until_check = CHECK_EVERY
                self.budget.spend(f"with {len(work)} configurations at one return")
            if loose and (used, path) not in seen[state, mask]:
                continue  # dominated since it was queued
            if looked_at > most or found > enough:
                self.cut = True
                break
            looked_at += 1
            own = users if idle else movers
            moves = [(bit, action, 0) for bit, action in own if not mask & bit]
            if loose:
                moves += crashed.moves(facets[state], used, idle)
            tried += len(moves)
            for bit, action, unit in moves:
                after = steps[action].get(state)
                if after is None:
                    after = table.step(action, state)
                if after < 0 or (not bit and after == state):
                    continue
                grown = mask | bit
                if goal is not None and goal.lost(after, grown):
                    continue
                if replacing & ~grown:
                    after = pruning.stand_in(after)
                taken = 0
                if observers:
                    fits = fitting.get(after)
                    if fits is None:
                        fits = slots.fit(after)
                    taken = fits & ~grown
                    grown |= taken
                more = used + unit
                further = None
                if trace:
                    crash = None if bit else table.actions[action]
                    further = Taken(bit, taken, crash, slots.names, table.states[after], path)
                if grown & last:
                    found += put(done, (after, grown ^ last), more, further, crashed)
                elif put(seen, (after, grown), more, further, crashed):
                    # Do not replace the unseen effect of a crashed op: the result is the same
                    # without that op.
                    work.append((after, grown, more, further, not bit and not taken))
        self.until_check = until_check
        self.effort += tried

    def _limits(self, done: Configurations) -> tuple[int, int]:
        """Return (configurations to expand for one return, ways to find) before others are
        dropped."""
        if self.relaxed:
            return UNCOUNTED_WORK, ENDLESS
        if self.width is None:
            return ENDLESS, ENDLESS
        there = sum(map(len, done.values()))
        return LEAST_WORK + WORK * self.width, ENOUGH * self.width - there

    def _write_off(self) -> None:
        """Subtract from every record the use common to all."""
        entries = [entry for own in self.configurations.values() for entry in own]
        common, over = self.crashed.spent([used for used, _ in entries])
        for number in over:
            self.crashed.unwant(self.table.actions[number])
        self.configurations = {
            key: [(used - common, path) for used, path in own]
            for key, own in self.configurations.items()
        }
        self.write_off_at = max(WRITE_OFF_AT, 2 * len(self.crashed.shifts))


def compact(searches: list[Search]) -> None:
    """Drop states and actions that none of these needs, from the table that all share."""
    table = searches[0].table
    if not table.crowded():
        return
    states: set[int] = set()
    actions: set[int] = set()
    for search in searches:
        own_states, own_actions = search.live()
        states |= own_states
        actions |= own_actions
        search.forget()
    table.compact(states, actions)
