"""The clocks of clients show the time of the run, which is never behind them."""

from __future__ import annotations

import time

from fencepost.hunt.live.clocks import Clocks
from fencepost.hunt.live.world import RealWorld
from fencepost.hunt.sim.world import MS, Timer


class Clock:
    """A program's clock, in the process of the test."""

    hurries = False

    def __init__(self, jumps=False):
        self.jumps = jumps
        self.later_ns = self.stood = 0
        self.since = None

    def stand(self, shown_ns):
        self.stood, self.since = shown_ns + self.later_ns, None

    def run(self, shown_ns, since_ns):
        self.stood, self.since = shown_ns + self.later_ns, since_ns

    def close(self):
        pass

    @property
    def shown(self):
        return self.stood if self.since is None else self.stood + time.monotonic_ns() - self.since


def begun(jumps=False):
    made, clock = RealWorld(), Clock(jumps)
    base_ns = time.monotonic_ns() - MS
    made.begin(Clocks([clock], base_ns))
    return made, clock, base_ns


def test_a_clock_stands_while_a_client_has_something_to_do():
    made, clock, base_ns = begun()
    time.sleep(0.01)
    assert clock.shown - base_ns == made.look() == MS


def test_a_clock_runs_with_the_time_of_the_run():
    made, clock, base_ns = begun()
    made.rest()
    made.go_on()
    time.sleep(0.01)
    before = clock.shown - base_ns
    assert MS + 10 * MS <= before <= made.look()


def test_an_event_that_wakes_a_client_shows_its_own_time_however_late_the_conductor_is():
    made, clock, base_ns = begun()
    made.at(4 * MS, Timer(made.nowhere, made.stir))
    made.rest()
    made.go_on()
    time.sleep(0.02)
    made.halt()
    made.run()
    assert clock.shown - base_ns == made.now == 4 * MS


def test_a_client_that_wakes_by_itself_has_read_no_later_time_than_that_of_the_run():
    made, clock, base_ns = begun()
    made.at(4 * MS, Timer(made.nowhere, lambda: None))
    made.rest()
    made.go_on()
    time.sleep(0.02)
    read = clock.shown - base_ns
    made.halt()
    made.stir()
    assert read > 4 * MS
    assert clock.shown - base_ns == made.now >= read


def test_a_time_is_that_of_the_clocks_or_of_the_real_one():
    made, _, base_ns = begun()
    time.sleep(0.01)
    real, shown = time.monotonic_ns() - made.origin_ns, base_ns + MS - made.origin_ns
    assert made.shows(shown) and not made.shows(real)
    assert made.time_of(shown, True) == made.time_of(real) == MS


def test_the_clocks_are_right_after_the_run():
    made, clock, _ = begun()
    made.ends()
    before = time.monotonic_ns()
    assert before <= clock.shown <= time.monotonic_ns()


def test_clocks_show_a_time_to_which_it_has_jumped_once_a_client_has_something_to_do():
    made, clock, base_ns = begun(jumps=True)
    made.at(9_000 * MS, Timer(made.nowhere, made.stir))
    made.rest()
    made.jump(made.due_ns)
    assert made.look() == 9_000 * MS
    made.run()
    assert made.stirred and clock.shown - base_ns == 9_000 * MS


def test_a_time_behind_clocks_that_have_jumped_is_that_of_a_program_with_the_real_ones():
    made, _, base_ns = begun(jumps=True)
    made.rest()
    made.jump(9_000 * MS)
    early, behind = base_ns + MS - made.origin_ns, base_ns + 9_000 * MS - made.origin_ns
    assert made.shows(early) and not made.shows(behind)  # no client has read the later time yet
    made.stir()
    real, shown = time.monotonic_ns() - made.origin_ns, base_ns + 9_000 * MS - made.origin_ns
    assert made.shows(shown) and not made.shows(real)
    assert made.time_of(shown, True) == made.time_of(real) == 9_000 * MS


def test_a_clock_that_has_jumped_ahead_does_not_go_back_after_the_run():
    made, clock, base_ns = begun(jumps=True)
    made.rest()
    made.jump(9_000 * MS)
    before = clock.shown
    ahead = made.ends()
    assert clock.shown >= before
    assert 0 < ahead <= base_ns + 9_000 * MS - made.origin_ns


def test_the_clocks_of_a_successor_do_not_go_back_and_those_of_its_predecessor_are_left_alone():
    _, old, base_ns = begun()
    clocks = Clocks([old], base_ns)
    for really, later_ns in ((base_ns + 90 * MS, 70 * MS), (base_ns + 5 * MS, 0)):
        new = Clock()
        clocks.add(new, 20 * MS, really)
        assert new.later_ns == later_ns
        assert new.shown == max(really, base_ns + 20 * MS)
    clocks.drop(old)
    clocks.stand(30 * MS)
    assert new.shown == base_ns + 30 * MS and old.shown != new.shown


def test_clocks_that_stand_are_not_written_again_and_always_after_they_ran():
    clock = Clock()
    written = []
    clock.stand = lambda shown_ns: written.append(shown_ns)
    clocks = Clocks([clock], 100)
    for now in (1, 1, 2, 2, 1):
        clocks.stand(now)
    assert written == [101, 102, 101]
    clocks.run(1, 0)
    clocks.stand(1)
    clocks.set_right(1, 0)
    clocks.stand(1)
    assert written == [101, 102, 101, 101, 101]
