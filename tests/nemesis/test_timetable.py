"""A few threads execute a schedule, and no fault delays another one."""

from __future__ import annotations

import sys
import threading

import pytest

from fencepost.harness.servers.kinds import KINDS
from fencepost.nemesis.schedule import Scheduled, from_rows
from fencepost.nemesis.targets import Layout
from fencepost.nemesis.timetable import HEALING, INJECTING, Timetable

pytestmark = pytest.mark.slow

WAIT_S = 120.0


class Carried:
    """Records injections and heals. `slow`: an injection of this family waits for `free`."""

    def __init__(self, slow=""):
        self.slow = slow
        self.free = threading.Event()
        self.events = []
        self.threads = 0
        self.changed = threading.Condition()

    def inject(self, fault):
        self._note("inject", fault.name)
        if fault.family == self.slow:
            assert self.free.wait(WAIT_S)
        self._note("injected", fault.name)

    def heal(self, name):
        self._note("heal", name)

    def over(self, fault):
        return None

    def _note(self, what, name):
        with self.changed:
            self.threads = max(self.threads, threading.active_count())
            self.events.append((what, name))
            self.changed.notify_all()

    def seen(self, what, name):
        with self.changed:
            return self.changed.wait_for(lambda: (what, name) in self.events, WAIT_S)

    def names(self, what):
        return [name for verb, name in self.events if verb == what]


def timetable(carried, over=None, apart=lambda mine, other: False):
    return Timetable(carried.inject, carried.heal, over or carried.over, apart)


def fault(at_s, duration_s, family="pause"):
    return Scheduled(at_s, duration_s, family, ["redis-1"], {})


def test_eight_hours_of_faults_take_a_few_threads():
    before = set(threading.enumerate())  # those of earlier tests may end meanwhile
    carried = Carried()
    night = [fault(0.0, 0.0) for _ in range(3000)]
    timetable(carried).carry_out(night, lambda: False)
    assert carried.threads <= len(before) + 1 + INJECTING + HEALING
    assert len(carried.names("inject")) == len(carried.names("heal")) == 3000
    assert set(threading.enumerate()) <= before


def test_faults_are_injected_while_active_ones_are_observed():
    carried = Carried()
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for _ in range(5):
            table = timetable(carried, over=lambda fault: lambda: False)
            table.carry_out([fault(n / 10_000, 0.0005) for n in range(2000)], lambda: False)
    finally:
        sys.setswitchinterval(before)
    assert len(carried.names("heal")) == 10_000


class SlowToHeal(Carried):
    """A heal of the first fault waits for `free`."""

    def heal(self, name):
        if name.endswith("-1"):
            assert self.free.wait(WAIT_S)
        super().heal(name)


def carried_out_beside(carried, schedule, apart, until=lambda: False):
    table = timetable(carried, apart=apart)
    thread = threading.Thread(target=table.carry_out, args=(schedule, until))
    thread.start()
    return table, thread


def is_kill(mine, other):
    return {mine.family, other.family} == {"kill", "partition"}


def test_a_fault_waits_for_an_earlier_one_that_is_not_healed_yet():
    carried = SlowToHeal()
    three = [fault(0, 0.01, "kill"), fault(0.02, 0, "partition"), fault(0.03, 0, "pause")]
    _, thread = carried_out_beside(carried, three, is_kill)
    assert carried.seen("heal", "pause-3")
    assert carried.names("inject") == ["kill-1", "pause-3"]
    carried.free.set()
    thread.join(WAIT_S)
    assert carried.events.index(("heal", "kill-1")) < carried.events.index(
        ("inject", "partition-2")
    )
    assert carried.names("heal")[-1] == "partition-2"


def test_faults_that_overlap_in_the_schedule_overlap_in_the_run():
    carried = SlowToHeal()
    two = [fault(0, 5.0, "kill"), fault(0.02, 0, "partition")]
    table, thread = carried_out_beside(carried, two, is_kill)
    assert carried.seen("heal", "partition-2")
    carried.free.set()
    table.stop()
    thread.join(WAIT_S)
    assert carried.names("heal") == ["partition-2", "kill-1"]


def test_a_waiting_fault_is_not_injected_after_the_shutdown_started():
    carried = SlowToHeal()
    two = [fault(0, 0.01, "kill"), fault(0.02, 0, "partition"), fault(0.03, 0, "pause")]
    over = threading.Event()
    _, thread = carried_out_beside(carried, two, is_kill, until=over.is_set)
    assert carried.seen("heal", "pause-3")
    over.set()
    threading.Timer(0.2, carried.free.set).start()
    thread.join(WAIT_S)
    assert carried.names("inject") == ["kill-1", "pause-3"]
    assert carried.names("heal") == ["pause-3", "kill-1"]


def test_of_eight_hours_of_faults_only_the_next_one_waits_for_its_time():
    carried = Carried()
    table = timetable(carried)
    schedule = [fault(0.0, 0.0), fault(0.0, 0.0), *(fault(1000.0 + n, 1.0) for n in range(5000))]
    most = 0

    def until():
        nonlocal most
        most = max(most, len(table._due))
        return carried.seen("heal", "pause-2")

    table.carry_out(schedule, until)
    assert most <= 5


def test_faults_that_never_end_being_injected_keep_no_other_one_on():
    carried = Carried(slow="partition")
    schedule = [fault(0.0, 0.05), *(fault(0.01, 0.0, "partition") for _ in range(5 * INJECTING))]

    def frees():
        carried.seen("heal", "pause-1")
        carried.free.set()

    other = threading.Thread(target=frees)
    other.start()
    timetable(carried).carry_out(schedule, lambda: False)
    other.join()
    assert carried.names("heal")[0] == "pause-1"
    assert len(carried.names("heal")) == len(schedule)


def test_a_fault_injected_during_shutdown_is_healed_after_it():
    carried = Carried(slow="pause")

    def until():
        begun = carried.seen("inject", "pause-1")
        carried.free.set()
        return begun

    timetable(carried).carry_out([fault(0.0, 3600.0), fault(3600.0, 1.0)], until)
    assert carried.events == [("inject", "pause-1"), ("injected", "pause-1"), ("heal", "pause-1")]


def test_faults_are_injected_and_healed_in_the_order_of_their_times():
    carried = Carried()
    schedule = [fault(0.0, 0.2, "a"), fault(0.05, 0.05, "b"), fault(0.3, 0.0, "c")]
    timetable(carried).carry_out(schedule, lambda: False)
    assert [event for event in carried.events if event[0] != "injected"] == [
        ("inject", "a-1"), ("inject", "b-2"), ("heal", "b-2"), ("heal", "a-1"),
        ("inject", "c-3"), ("heal", "c-3"),
    ]  # fmt: skip


def test_a_fault_that_ends_early_is_healed_once_and_awaited_no_longer():
    carried = Carried()
    timetable(carried, lambda fault: lambda: True).carry_out([fault(0.0, 3600.0)], lambda: False)
    assert carried.names("heal") == ["pause-1"]


def test_an_exception_of_an_injection_is_raised_after_all_is_healed():
    carried = Carried()

    def inject(fault):
        carried.inject(fault)
        if fault.family == "pause":
            raise ZeroDivisionError("a defect of ours")

    broken = Timetable(inject, carried.heal, carried.over)
    with pytest.raises(ZeroDivisionError):
        broken.carry_out([fault(0.0, 0.01), fault(0.0, 0.01, "kill")], lambda: False)
    assert sorted(carried.names("heal")) == ["kill-2", "pause-1"]


def test_stopping_is_idempotent():
    carried = Carried()
    table = timetable(carried)
    table.carry_out([fault(0.0, 0.0)], lambda: False)
    table.stop()
    assert carried.names("heal") == ["pause-1"]


LAYOUT = Layout(
    [f"redis-{n}" for n in range(1, 6)],
    ["client-1", "client-2"],
    ttl_s=2.0,
    restart_s=2.2,
    kind=KINDS["redis"],
)


@pytest.mark.parametrize("field", ["at_s", "duration_s"])
@pytest.mark.parametrize("number", [float("inf"), float("nan"), 1e12, -1.0])
def test_a_fault_without_an_end_is_refused_before_anything_starts(field, number):
    row = {"at_s": 1.0, "duration_s": 1.0, "family": "pause", "targets": ["redis-1"],
           "arguments": {}}  # fmt: skip
    assert from_rows([row], LAYOUT)
    with pytest.raises(ValueError, match=f"fault 1: {field}: expected `float`"):
        from_rows([row | {field: number}], LAYOUT)


class OneThread(threading.Thread):
    """A machine that is left with one thread: the one that watches the clock."""

    def start(self):
        if self.name != "faults":
            raise RuntimeError("can't start new thread")
        super().start()


class Spent:
    """Records heals. Its first injection uses up the machine's threads."""

    def __init__(self, monkeypatch):
        self.healed, self._monkeypatch = [], monkeypatch

    def inject(self, fault):
        self._monkeypatch.setattr(threading, "Thread", OneThread)

    def heal(self, name):
        self.healed.append((name, threading.current_thread().name))
        raise OSError(f"{name} cannot be healed")


@pytest.mark.parametrize("length_s", [0.0, 60.0])
def test_a_machine_without_threads_heals_in_the_thread_that_watches(monkeypatch, length_s):
    spent = Spent(monkeypatch)
    table = Timetable(spent.inject, spent.heal, lambda fault: None)
    with pytest.raises(OSError, match="pause-1 cannot be healed"):
        table.carry_out([fault(0.0, length_s)], lambda: threading.Thread is OneThread)
    assert spent.healed == [("pause-1", "faults")]


def test_without_a_thread_to_inject_nothing_is_injected_and_the_run_ends(monkeypatch):
    monkeypatch.setattr(threading, "Thread", OneThread)
    carried = Carried()
    with pytest.raises(RuntimeError, match="can't start new thread"):
        timetable(carried).carry_out([fault(0.0, 60.0)], lambda: False)
    assert carried.events == []
