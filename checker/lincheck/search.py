"""The general engine: all configurations that could explain what was seen so far.

The search follows the history event by event and keeps a set of configurations. One is
(state, which open ops are done, how many crashed ops of each class are used). Nothing is
linearized before it must be: an op takes its place when some op returns that needs it (Lowe 2017,
"Testing for linearizability", just-in-time linearization; the search itself goes back to Wing
and Gong 1993). So:

    invoke    only notes that the op is open;
    complete  extends every configuration, in all ways that end with the op that returns, and
              drops those in which it can not be placed. None left: not linearizable, and this
              return is the first event that makes it so;
    crash     turns an open op into one that may happen at any time from now on, or never.

Breadth first, not depth first: the verdict false comes at the first event that earns it,
memory follows what is concurrent and not the history's length, and configurations that
dominate one another meet. Dominated are those that used more crashed ops (see crashed.py),
and those that left out an observer (an op that never changes anything) that fits their state:
taking it at once is never worse, so it is always taken.

States and actions are interned, steps memoized: the model's own code runs once for each
pair of state and action.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import NamedTuple

from fencepost.checker.lincheck.budget import UNLIMITED, Budget
from fencepost.checker.lincheck.configurations import (
    Configurations,
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
from fencepost.checker.lincheck.table import Table

NOBODY = -2  # the key of the state that stands for all that nobody can see
CHECK_EVERY = 512  # expansions between two looks at the clock and the memory
WORK = 4  # configurations looked at for one return, for each that is kept,
LEAST_WORK = 8  # and these at least
UNCOUNTED_WORK = 2_000  # for one return where crashed ops are endless: queues and sums have no end
ENOUGH = 1  # ways to place what returned before no more are looked for, for each that is kept
WRITE_OFF_AT = 8  # classes of crashed ops in the records before common use is written off


class _Aim(NamedTuple):
    action: int
    bit: int  # of the goal's slot, 0 if it is not invoked yet
    resets: int  # open ops that reset: the goal binds those that have them all
    reached: dict[int, bool]


class _Unseen(NamedTuple):
    observers: list[Action]
    memo: dict[int, int]  # state -> the state to go on with; and NOBODY's


class Search:
    """The configurations of one object, from the model's initial state on."""

    def __init__(
        self,
        model: Model,
        budget: Budget = UNLIMITED,
        *,
        trace: bool = False,
        width: int | None = None,
        counted: frozenset[Action] | None = None,
    ) -> None:
        self.model = model
        self.budget = budget
        self.trace = trace  # keep every configuration's path
        self.width = width  # configurations kept; None: all. `cut` tells whether any was lost
        self.relaxed = counted is not None  # crashed ops but these may happen as often as one likes
        self.cut = False
        self.pruned = False  # by goals: see `aim` and `hide`
        self.effort = 0  # moves tried, and configurations at each return
        self.table = Table(model)
        self.crashed = Crashed(model, counted)
        self.open: dict[int, tuple[int, int]] = {}  # op id -> (slot's bit, action)
        self.movers: dict[int, int] = {}  # slot's bit -> action
        self.observers: dict[int, int] = {}
        self.slots: list[int] = []  # slot -> op id
        self.free: list[int] = []
        self.fitting: dict[int, int] = {}  # state -> bits of the open observers that fit it
        self.goals: dict[frozenset[Hashable] | None, tuple[int, int]] = {}
        self.reached: dict[int, dict[int, bool]] = {}
        self.unseen: _Unseen | None = None
        self.until_check = CHECK_EVERY
        self.write_off_at = WRITE_OFF_AT
        start = self.table.state_number(model.initial)
        self.configurations: Configurations = {(start, 0): [(0, None)]}

    def copy(self) -> Search:
        """A search that can go another way from here; it shares what is remembered of steps."""
        other = Search.__new__(Search)
        other.__dict__.update(self.__dict__)
        other.crashed = self.crashed.copy()
        other.open, other.movers = self.open.copy(), self.movers.copy()
        other.observers, other.fitting = self.observers.copy(), {}
        other.slots, other.free = self.slots.copy(), self.free.copy()
        return other

    def live(self) -> tuple[set[int], set[int]]:
        """The numbers of the states and of the actions that this search still needs."""
        states = {state for state, _ in self.configurations}
        actions = {action for _, action in self.open.values()} | set(self.crashed.counts)
        actions |= {action for _, action in self.goals.values()}
        return states, actions | set(self.crashed.shifts)

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
        """Keeps only configurations that used no more than there were."""
        self.configurations = faultless(self.configurations)

    # -- events

    def invoke(self, op: int, action: Action) -> None:
        """Op `op` is open from now on. `action` tells its result if it is known already."""
        number = self.table.action_number(action)
        if self.free:
            slot = self.free.pop()
            if self.trace:
                self.slots = self.slots.copy()
            self.slots[slot] = op
        else:
            slot = len(self.slots)
            self.slots = [*self.slots, op]
        bit = 1 << slot
        self.open[op] = bit, number
        self.crashed.want(action)
        if self.table.observing[number]:
            self.observers[bit] = number
            self.fitting.clear()
        else:
            self.movers[bit] = number

    def crash(self, op: int) -> None:
        """Op `op` will never return: it may happen at any later time, or never."""
        bit, number = self.open.pop(op)
        self._close(bit)
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

    def forget(self, action: Action) -> None:
        """A step given to `loose` can not happen any more."""
        number = self.table.numbers.get(action)
        if number in self.crashed.counts:
            self.crashed.remove(number)
            self.crashed.unwant(action)

    def complete(self, op: int) -> bool:
        """Op `op` has returned. False if no configuration can place it: not linearizable.

        The configurations are then left as they were before, as evidence.
        """
        self.effort += len(self.configurations)
        bit, number = self.open[op]
        done: Configurations = {}
        todo: Configurations = {}
        fitting, observers = self.fitting, self.observers
        for (state, mask), entries in self.configurations.items():
            if observers:
                fits = fitting.get(state)
                if fits is None:
                    fits = self._fit(state)
                taken = fits & ~mask
                if taken:
                    mask |= taken
                    if self.trace:
                        entries = [
                            (
                                used,
                                Taken(0, taken, None, self.slots, self.table.states[state], path),
                            )
                            for used, path in entries
                        ]
            if mask & bit:
                put_all(done, (state, mask ^ bit), entries, self.crashed)
            else:
                put_all(todo, (state, mask), entries, self.crashed)
        if todo:
            self._extend(todo, done, bit, number)
        if not done:
            return False
        if self.width is not None and sum(map(len, done.values())) > self.width:
            self.cut = True
            done = narrowed(done, self.width)
        self.configurations = done
        del self.open[op]
        self._close(bit)
        self.crashed.unwant(self.table.actions[number])
        if len(self.crashed.shifts) > self.write_off_at:
            self._write_off()
        return True

    def aim(self, cell: frozenset[Hashable] | None, op: int | None, action: Action | None) -> None:
        """Op `op` is the next observer of the cell to return, and no op that resets will be
        invoked before: states from which it can not become possible lead nowhere. None: no goal."""
        if op is None or action is None:
            self.goals.pop(cell, None)
        else:
            self.goals[cell] = op, self.table.action_number(action)

    def hide(self, observers: list[Action] | None) -> None:
        """Until the open ops that replace are placed, only these observers can come, so that states
        from which none of them can become possible are all alike. None: no such op is open."""
        if observers is None or self.trace:
            self.unseen = None
        elif self.unseen is None or self.unseen.observers != observers:
            self.unseen = _Unseen(observers, {})

    # -- the search

    def _extend(self, todo: Configurations, done: Configurations, last: int, number: int) -> None:
        """All ways from `todo` that end with the op of slot `last` go into `done`."""
        table, crashed, trace = self.table, self.crashed, self.trace
        facets, steps = table.facets, table.steps
        observers, fitting, slots = self.observers, self.fitting, self.slots
        movers = self._movers(last, number)
        loose = bool(crashed.counts)
        users = movers  # those of them that make use of what they find
        if loose:
            wants, actions = self.model.wants, table.actions
            users = [mover for mover in movers if wants(actions[mover[1]]) is not ANY_STATE]
        aim = self._aim(number) if self.goals else None
        replacing = self._open(self.model.replaces) if self.unseen is not None else 0
        work = [
            (state, mask, used, path, False)
            for (state, mask), entries in todo.items()
            for used, path in entries
        ]
        seen = todo
        relaxed = self.relaxed
        found = looked_at = tried = 0
        most = enough = 1 << 62
        if (relaxed or self.width is not None) and len(work) > 1:
            work.sort(key=lambda entry: waste(entry[2]))
        if relaxed:
            most = UNCOUNTED_WORK
        elif self.width is not None:
            found = sum(map(len, done.values()))
            most, enough = LEAST_WORK + WORK * self.width, ENOUGH * self.width
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
                    after = self.table.step(action, state)
                if after < 0 or (not bit and after == state):
                    continue
                grown = mask | bit
                if aim is not None and not grown & aim.bit and grown & aim.resets == aim.resets:
                    reached = aim.reached.get(after)
                    if reached is None:
                        reached = self._reach(aim, after)
                    if not reached:
                        continue
                if replacing & ~grown:
                    after = self._blurred(after)
                taken = 0
                if observers:
                    fits = fitting.get(after)
                    if fits is None:
                        fits = self._fit(after)
                    taken = fits & ~grown
                    grown |= taken
                more = used + unit
                further = None
                if trace:
                    crash = None if bit else table.actions[action]
                    further = Taken(bit, taken, crash, slots, table.states[after], path)
                if grown & last:
                    found += put(done, (after, grown ^ last), more, further, crashed)
                elif put(seen, (after, grown), more, further, crashed):
                    # What a crashed op has just given and nobody has seen is not to be replaced:
                    # the same can be had without that op.
                    work.append((after, grown, more, further, not bit and not taken))
        self.until_check = until_check
        self.effort += tried

    def _aim(self, number: int) -> _Aim | None:
        """The goal of the cell that this action touches, if it has one."""
        cell = self.model.cells(self.table.actions[number])
        if cell not in self.goals:
            return None
        op, goal = self.goals[cell]
        bit = self.open[op][0] if op in self.open else 0
        return _Aim(goal, bit, self._open(self.model.resets), self.reached.setdefault(goal, {}))

    def _open(self, kind: Callable[[Action], bool]) -> int:
        """The slots of the open ops of this kind."""
        actions = self.table.actions
        return sum(slot for slot, action in self.movers.items() if kind(actions[action]))

    def _blurred(self, state: int) -> int:
        """The same state; or if no observer can ever see it, one that stands for all such."""
        assert self.unseen is not None
        stand_in = self.unseen.memo.get(state)
        if stand_in is None:
            stand_in = state
            reaches = self.model.reaches
            assert reaches is not None
            value, memo = self.table.states[state], self.unseen.memo
            if not any(reaches(value, observer) for observer in self.unseen.observers):
                stand_in = memo.setdefault(NOBODY, state)
            memo[state] = stand_in
        return stand_in

    def _reach(self, aim: _Aim, state: int) -> bool:
        assert self.model.reaches is not None
        found = self.model.reaches(self.table.states[state], self.table.actions[aim.action])
        aim.reached[state] = found
        return found

    def _movers(self, last: int, number: int) -> list[tuple[int, int]]:
        """The open ops that a way to the op of slot `last` may pass, that op itself first."""
        chosen = [] if self.table.observing[number] else [(last, number)]
        serves, actions = self.crashed.serves, self.table.actions
        chosen += [
            (bit, other)
            for bit, other in self.movers.items()
            if bit != last and serves(actions[other])
        ]
        cells = self.model.cells(actions[number])
        if cells is None or len(chosen) < 2:
            return chosen
        out = [*self.movers.values(), *self.observers.values(), *self.crashed.counts]
        reach = _connected(cells, [self.model.cells(actions[other]) for other in out])
        if reach is None:
            return chosen
        return [
            mover
            for mover in chosen
            if not reach.isdisjoint(self.model.cells(actions[mover[1]]) or reach)
        ]

    def _fit(self, state: int) -> int:
        bits = 0
        for bit, action in self.observers.items():
            after = self.table.steps[action].get(state)
            if after is None:
                after = self.table.step(action, state)
            if after == state:
                bits |= bit
        self.fitting[state] = bits
        return bits

    def _write_off(self) -> None:
        """Drops from every record what all of them have used."""
        entries = [entry for own in self.configurations.values() for entry in own]
        common, over = self.crashed.spent([used for used, _ in entries])
        for number in over:
            self.crashed.unwant(self.table.actions[number])
        self.configurations = {
            key: [(used - common, path) for used, path in own]
            for key, own in self.configurations.items()
        }
        self.write_off_at = max(WRITE_OFF_AT, 2 * len(self.crashed.shifts))

    def _close(self, bit: int) -> None:
        if self.movers.pop(bit, None) is None:
            del self.observers[bit]
            self.fitting.clear()
        self.free.append(bit.bit_length() - 1)


def compact(searches: list[Search]) -> None:
    """Forgets states and actions that none of these needs any more. All that share one table."""
    table = searches[0].table
    if not table.crowded():
        return
    states: set[int] = set()
    actions: set[int] = set()
    for search in searches:
        own_states, own_actions = search.live()
        states |= own_states
        actions |= own_actions
        search.fitting.clear()
        search.reached.clear()
        search.unseen = None
    table.compact(states, actions)


def _connected(
    cells: frozenset[Hashable], touched: list[frozenset[Hashable] | None]
) -> set[Hashable] | None:
    """The cells that ops touching any of `cells` touch, and so on; None if that is all of them.

    Ops on other cells commute with all that leads to the op that returns, so they can wait.
    An op that only observes joins its cells as well: what it saw in one depends on the others.
    """
    reach = set(cells)
    joining = [own for own in touched if own is None or len(own) > 1]
    grew = True
    while grew:
        grew = False
        for own in joining:
            if own is None:
                return None
            if not reach.isdisjoint(own) and not own <= reach:
                reach |= own
                grew = True
    return reach
