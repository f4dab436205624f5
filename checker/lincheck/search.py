"""The general engine: all configurations that could explain what was seen so far.

The search follows the history event by event and keeps a set of configurations. One is
(state, which open ops are done, how many crashed ops of each class are used). Nothing is
linearized before it must be: an op takes its place when some op returns that needs it (Lowe 2017,
"Testing for linearizability", just-in-time linearization; the search itself goes back to Wing
and Gong 1993). So:

    invoke    only notes that the op is open;
    complete  extends every configuration, in all ways that end with the op that returns, and
              drops those in which it cannot be placed. None left: not linearizable, and this
              return is the first event that makes it so;
    crash     turns an open op into one that may happen at any time from now on, or never.

Breadth first, not depth first: the verdict false comes at the first event that earns it,
memory follows what is concurrent and not the history's length, and configurations that
dominate one another meet. Dominated are those that used more crashed ops (see crashed.py),
and those that left out an observer (an op that never changes anything) that fits their state:
taking it at once is never worse, so it is always taken.

States and actions are interned, steps memoized (table.py). What need not be looked at is
decided in pruning.py; which ops are open is kept in slots.py.
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

CHECK_EVERY = 512  # expansions between two looks at the clock and the memory
WORK = 4  # configurations looked at for one return, for each that is kept,
LEAST_WORK = 8  # and these at least
UNCOUNTED_WORK = 2_000  # for one return where crashed ops are endless: queues and sums have no end
ENOUGH = 1  # ways to place what returned before no more are looked for, for each that is kept
ENDLESS = 1 << 62  # more than there ever are
WRITE_OFF_AT = 8  # classes of crashed ops in the records before common use is written off


@dataclass(slots=True, eq=False)
class Search:
    """The configurations of one object after the events so far.

    trace: every configuration's path is kept. width: configurations kept; None: all. `cut` tells
    whether any was lost. relaxed: some crashed ops may happen as often as one likes. pruned: goals
    may be given, see Pruning. effort: moves tried, and configurations at each return.
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
        """A search before the first event. counted: of which actions the crashed ops are counted;
        the others may happen as often as one likes. None: all are."""
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
        """A search that can go another way from here; it shares what is remembered of steps."""
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
        """The numbers of the states and of the actions that this search still needs."""
        states = {state for state, _ in self.configurations}
        actions = {action for _, action in self.slots.ops.values()} | set(self.crashed.counts)
        return states, actions | self.pruning.live() | set(self.crashed.shifts)

    def forget(self) -> None:
        """Drop what is remembered of states, whose numbers may go now."""
        self.slots.fitting.clear()
        self.pruning.forget()

    @property
    def exact(self) -> bool:
        """Every way to explain the events so far is still there. Where some were dropped, the op at
        which the search stops need not be the first that cannot be placed."""
        return not (self.cut or self.pruned or self.relaxed)

    def overused(self) -> frozenset[Action]:
        """The actions of which the best configuration used more than there were."""
        _, (used, _) = best(self.configurations)
        return frozenset(self.table.actions[number] for number in self.crashed.overused(used))

    def settle(self) -> None:
        """Keep only configurations that used no more than there were."""
        self.configurations = faultless(self.configurations)

    # -- events

    def invoke(self, op: int, action: Action) -> None:
        """Op `op` is open from now on. `action` tells its result if it is known already."""
        self.slots.open(op, self.table.action_number(action))
        self.crashed.want(action)

    def crash(self, op: int) -> None:
        """Op `op` will never return: it may happen at any later time, or never."""
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
        """A step that nobody invoked may happen at any time from now on, or never."""
        self.crashed.want(action)
        self.crashed.add(self.table.action_number(action), action)

    def withdraw(self, action: Action) -> None:
        """A step given to `loose` cannot happen any more.

        An equal one may come later, or be there still: no record of what was used counts this one.
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
        """Crashed ops of these classes are of no use any more, and who used them is no matter.

        Of classes that are not counted those stay that were used.
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
        """Take out of every state what no op that may be `wanted` can tell: see Model.trimmed."""
        trimmed, table = self.model.trimmed, self.table
        assert trimmed is not None
        moved: Configurations = {}
        for (state, done), entries in self.configurations.items():
            after = table.state_number(trimmed(table.states[state], wanted))
            put_all(moved, (after, done), entries, self.crashed)
        self.configurations = moved

    def complete(self, op: int) -> bool:
        """Op `op` has returned. False if no configuration can place it: not linearizable.

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
        """The configurations, with the open observers taken that fit: those that have done the op
        of this slot, freed of it, and those that have not."""
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
        """All ways from `todo` that end with the op of slot `last` go into `done`.

        One loop on local names: it is where all time goes, and calls would cost a third of it.
        """
        table, crashed, pruning, trace = self.table, self.crashed, self.pruning, self.trace
        facets, steps = table.facets, table.steps
        slots, observers, fitting = self.slots, self.slots.observers, self.slots.fitting
        movers = users = pruning.movers(last, number, slots, crashed)
        loose = bool(crashed.counts)
        if loose:  # those movers that make use of what they find
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
                continue  # dominated since it was put on the list
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
                    # What a crashed op has just given and nobody has seen is not to be replaced:
                    # the same can be had without that op.
                    work.append((after, grown, more, further, not bit and not taken))
        self.until_check = until_check
        self.effort += tried

    def _limits(self, done: Configurations) -> tuple[int, int]:
        """(configurations to look at for one return, ways to find), before others are dropped."""
        if self.relaxed:
            return UNCOUNTED_WORK, ENDLESS
        if self.width is None:
            return ENDLESS, ENDLESS
        there = sum(map(len, done.values()))
        return LEAST_WORK + WORK * self.width, ENOUGH * self.width - there

    def _write_off(self) -> None:
        """Drop from every record what all of them have used."""
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
    """Forget states and actions that none of these needs any more. All that share one table."""
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
