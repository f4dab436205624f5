"""The engine of campaigns: runs the items of a plan, round after round, and stores a line for each.

A round runs one kind of server after another, and the cluster of a kind stays up meanwhile. If
items are compared, their planner puts those of a kind in random order. So a server that warms up or
fills up in the course of an hour does not look like a property of a lock.

Several lanes run several items at a time, each lane on its own cluster. The items and their seeds
stay the same.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import Any

from fencepost.harness.campaigns import item as items
from fencepost.harness.campaigns.campaign import Campaign, Line
from fencepost.harness.campaigns.executors import Executor, Place
from fencepost.harness.campaigns.item import Item
from fencepost.harness.judge.judge import Outcome

Say = Callable[[Campaign, Line], None]
"""Called with each line as soon as it is stored."""
Task = tuple[Campaign, Item]


def carry_out(
    campaigns: Sequence[Campaign],
    executor: Executor,
    say: Say,
    rounds: int | None = 1,
    budget_s: float | None = None,
) -> bool:
    """Run the missing items of `rounds` rounds, or of as many rounds as the budget permits. Return
    whether the budget sufficed for all of them.

    If an item crashes, its line has the reason, and the next item has a new cluster.

    Raises:
        Crashed: a cluster did not start, or the executor was lost (Gone).
        BadArguments: the arguments of an item are invalid.
    """
    end = None if budget_s is None else time.monotonic() + budget_s
    number = max(min((one.done for one in campaigns), default=0), 1)
    while rounds is None or number <= rounds:
        tasks = [(one, item) for one in campaigns for item in one.left(number)]
        if not tasks and not any(one.plan.items(number) for one in campaigns):
            return True
        if not _Round(tasks, executor, say, end).carry_out():
            return False
        number += 1
    return True


class _Round:
    """The rest of one round.

    A lane takes a kind of server that no other lane has, so that as few clusters as possible start.
    If no kind is left, it joins another lane's kind with its own cluster, if the remaining items
    take long enough.
    """

    def __init__(
        self, tasks: Sequence[Task], executor: Executor, say: Say, end: float | None
    ) -> None:
        self._executor, self._say, self._end = executor, say, end
        self._todo: dict[str, list[Task]] = {}
        for task in tasks:
            self._todo.setdefault(task[1].kind, []).append(task)
        self._all = {kind: [item for _, item in todo] for kind, todo in self._todo.items()}
        self._fresh = list(self._todo)
        self._lock = threading.Lock()
        self._whole, self._stopped = True, False

    def carry_out(self) -> bool:
        """Run it; return whether the budget sufficed."""
        lanes = min(self._executor.lanes, sum(map(len, self._todo.values())))
        if lanes <= 1:
            self._lane()
            return self._whole
        with ThreadPoolExecutor(lanes) as pool:
            running = [pool.submit(self._lane) for _ in range(lanes)]
            try:
                for lane in as_completed(running):
                    lane.result()
            except BaseException:
                # Interrupted, or one lane has failed: the others end after their current item.
                self._stopped = True
                self._executor.stop()
                raise
        return self._whole

    def _lane(self) -> None:
        while (kind := self._next_kind()) is not None:
            self._items_of(kind)

    def _next_kind(self) -> str | None:
        with self._lock:
            if self._stopped or not self._whole:
                return None
            if self._fresh:
                return self._fresh.pop(0)
            left = {
                kind: sum(item.takes_s for _, item in todo)
                for kind, todo in self._todo.items()
                if todo
            }
            most = max(left, key=lambda kind: left[kind], default=None)
            if most is None:
                return None
            # A cluster of its own for a lane must pay off; simulations need none.
            up_s = self._executor.up_s if most else 0.0
            if up_s and left[most] <= 2 * up_s:
                return None
            return most

    def _items_of(self, kind: str) -> None:
        """Run items of one kind until none is left."""
        with Place(self._executor, self._all[kind]) as place:
            while (task := self._next(kind, place.is_up)) is not None:
                self._item(*task, place)

    def _item(self, campaign: Campaign, item: Item, place: Place) -> None:
        """Run one item, and store its line."""
        with self._lock:
            campaign.begin()
        tries = 0
        while True:
            tries += 1
            place.come_up()
            found, why = place.run(item)
            if _left_something(found):
                place.leave()
            if why or tries == item.tries or item.settled(found):
                break
        with self._lock:
            self._say(campaign, campaign.add(item, found, why, tries))

    def _next(self, kind: str, is_up: bool) -> Task | None:
        """Return the next item of a kind, or None if none is left or it exceeds the budget."""
        with self._lock:
            todo = self._todo[kind]
            if not todo or self._stopped or not self._whole:
                return None
            up_s = 0.0 if is_up or not kind else items.UP_S
            if self._end is not None and time.monotonic() + todo[0][1].takes_s + up_s > self._end:
                self._whole = False
                return None
            return todo.pop(0)


def _left_something(found: Any) -> bool:
    """Return whether something went wrong with a run, so that its cluster may not be clean."""
    return isinstance(found, Outcome) and bool(found.results.get("run_notes"))
