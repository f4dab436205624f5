"""Carries out a schedule of faults: one thread watches the clock, a few others act.

A long run has tens of thousands of faults, of which a handful are active at a time; a thread for
each could not even be started. Injecting and healing wait for nodes, some of which may not answer
for a while. So the thread that watches the clock does neither. Heals have separate threads, so that
a fault which takes long to inject does not delay the healing of another.

The calling thread is none of them, because signals interrupt it anywhere: for example between the
time a fault is due and the time it is known to be active.
"""

from __future__ import annotations

import heapq
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from fencepost.nemesis.nemesis import Fault
from fencepost.nemesis.schedule import Scheduled

Over = Callable[[], bool]
"""Tells whether a fault must end early."""
_Coming = tuple[float, str, Scheduled]

# Numbers of faults that are injected and healed at a time. Further ones wait. A healed server may
# wait for others, which need further threads.
INJECTING, HEALING = 8, 32
# Intervals of the checks whether a fault may end early, and whether all must end.
_LOOK_S, _UNTIL_S = 0.01, 0.05
# How long a fault waits for another one that should have ended. Then it is injected all the same,
# and recorded as failed if it cannot be, so that the run continues.
_KEPT_BACK_S = 30.0


def _together(mine: Scheduled, other: Scheduled) -> bool:
    return False


class Timetable:
    """Schedules injections and heals. `over` is called once a fault was injected, and returns a
    function that tells whether it may end early, or None.

    `apart`: whether two faults cannot be active at a time. If the schedule separates such two, the
    second one waits until the first is healed, however long that takes.
    """

    def __init__(
        self,
        inject: Callable[[Fault], object],
        heal: Callable[[str], object],
        over: Callable[[Fault], Over | None],
        apart: Callable[[Scheduled, Scheduled], bool] = _together,
    ) -> None:
        self._inject = inject
        self._heal = heal
        self._over = over
        self._apart = apart
        self._changed = threading.Condition()
        self._due: list[tuple[float, int, Callable[[], None]]] = []
        self._on: dict[str, Over | None] = {}
        self._unhealed: dict[str, Scheduled] = {}
        self._under_way: set[Future[Any]] = set()
        self._failed: list[BaseException] = []
        self._count = self._to_come = 0
        self._injecting = ThreadPoolExecutor(INJECTING, "inject")
        self._healing = ThreadPoolExecutor(HEALING, "heal")
        self._state = threading.Lock()
        self._begun = self._stopped = self._ended = False

    def carry_out(self, schedule: Sequence[Scheduled], until: Callable[[], bool]) -> None:
        """Inject and heal as scheduled; at the end, or once `until` returns true, heal the rest.

        Errors of injecting or healing are raised once all is healed.
        """
        watch = threading.Thread(target=self._watch, args=(schedule,), name="faults", daemon=True)
        try:
            watch.start()
            while not self._ended and not until():
                time.sleep(_UNTIL_S)
        finally:
            self.stop()
        watch.join()
        if self._failed:
            raise self._failed[0]

    def stop(self) -> None:
        """Stop injecting, heal active faults, and wait until all is done. Idempotent."""
        with self._state:
            self._stopped = True
            begun = self._begun
        while begun and not self._ended:
            time.sleep(_LOOK_S)

    def _watch(self, schedule: Sequence[Scheduled]) -> None:
        with self._state:
            if self._stopped:
                return
            self._begun = True
        self._to_come = len(schedule)
        try:
            self._next(_in_order(schedule, time.monotonic()))
            while self._left() and not self._stopped:
                self._do_what_is_due()
        except Exception as error:  # a defect; raised again for the caller
            self._failed.append(error)
        finally:
            try:
                self._injecting.shutdown()  # a fault being injected is active after that
                for name in list(self._on):
                    self._end(name)
                self._healing.shutdown()
            finally:
                self._ended = True

    def _left(self) -> bool:
        with self._changed:
            # Not by the due times: the end of a fault that has ended early stays among them.
            return bool(self._to_come or self._on or self._under_way)

    def _do_what_is_due(self) -> None:
        with self._changed:
            acts = []
            while self._due and self._due[0][0] <= time.monotonic():
                acts.append(heapq.heappop(self._due)[2])
            early = {name: over for name, over in self._on.items() if over is not None}
        for act in acts:
            act()
        for name in [name for name, over in early.items() if over()]:
            self._end(name)
        look_s = _LOOK_S if early else _UNTIL_S
        with self._changed:
            if self._due:
                look_s = min(look_s, self._due[0][0] - time.monotonic())
            if look_s > 0:
                self._changed.wait(look_s)

    def _at(self, when_s: float, act: Callable[[], None]) -> None:
        with self._changed:
            self._count += (
                1  # two that are due at a time are carried out in the order of their arrival
            )
            heapq.heappush(self._due, (when_s, self._count, act))
            self._changed.notify()

    def _next(self, coming: Iterator[_Coming]) -> None:
        """Wait for the next fault; when that is due, for the one after it, and so on.

        Queuing all of a long run's faults at once would be a hundred thousand.
        """
        found = next(coming, None)
        if found is None:
            return
        when_s, name, scheduled = found
        inject = self._injection(name, scheduled)

        def start() -> None:
            with self._changed:
                self._unhealed[name] = scheduled
            self._start(self._injecting, inject)
            self._to_come -= 1
            self._next(coming)

        self._at(when_s, start)

    def _injection(self, name: str, scheduled: Scheduled) -> Callable[[], None]:
        fault = Fault(name, scheduled.family, scheduled.targets, scheduled.arguments)

        def inject() -> None:
            self._wait_for_room(name, scheduled)
            if self._stopped:
                return
            try:
                self._inject(fault)
            finally:  # it may be active, whatever error was raised
                with self._changed:
                    self._on[name] = None
                self._at(time.monotonic() + scheduled.duration_s, lambda: self._end(name))
            over = self._over(fault)
            with self._changed:
                if name in self._on:
                    self._on[name] = over

        return inject

    def _wait_for_room(self, name: str, scheduled: Scheduled) -> None:
        """Wait until those are healed that should be by now, and cannot be active together with
        this one.

        Each waits only for earlier ones, which have been given a thread before it.
        """
        with self._changed:
            others = [
                other
                for other, one in self._unhealed.items()
                if other != name
                and one.at_s + one.duration_s <= scheduled.at_s
                and self._apart(scheduled, one)
            ]
            late_s = time.monotonic() + _KEPT_BACK_S
            while not self._stopped and not self._unhealed.keys().isdisjoint(others):
                left_s = late_s - time.monotonic()
                if left_s <= 0:
                    return
                self._changed.wait(min(_UNTIL_S, left_s))

    def _end(self, name: str) -> None:
        with self._changed:
            if name not in self._on:
                return  # it has ended early
            del self._on[name]
        claimed = threading.Lock()

        def heal() -> None:
            if claimed.acquire(blocking=False):
                self._healed(name)

        try:
            self._start(self._healing, heal)
        except RuntimeError:
            # No thread can be started: heal in this one. The pool has kept the task all the same,
            # and may carry it out later.
            heal()

    def _healed(self, name: str) -> None:
        try:
            self._heal(name)
        except Exception as error:
            self._failed.append(error)
        finally:
            with self._changed:
                self._unhealed.pop(name, None)
                self._changed.notify_all()

    def _start(self, pool: ThreadPoolExecutor, act: Callable[[], object]) -> None:
        with self._changed:
            task = pool.submit(act)
            self._under_way.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: Future[Any]) -> None:
        with self._changed:
            self._under_way.discard(task)
            if error := task.exception():
                self._failed.append(error)
            self._changed.notify()


def _in_order(schedule: Sequence[Scheduled], begun_s: float) -> Iterator[_Coming]:
    """Return when each fault is due, its name and itself. A name has the fault's position in the
    schedule."""
    for place in sorted(range(len(schedule)), key=lambda place: schedule[place].at_s):
        one = schedule[place]
        yield begun_s + one.at_s, f"{one.family}-{place + 1}", one
