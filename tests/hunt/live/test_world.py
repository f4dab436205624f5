"""The time of a run passes only while all clients wait, and never faster than in reality."""

from __future__ import annotations

import time

from fencepost.hunt.live.world import RealWorld
from fencepost.hunt.sim.world import MS, Timer


def world():
    made = RealWorld()
    made.begin()
    return made


def really(made):
    return time.monotonic_ns() - made.origin_ns


def test_time_stands_still_while_a_client_has_something_to_do():
    made = world()
    before = made.look()
    time.sleep(0.02)
    assert made.look() == before == MS
    assert made.rest() >= 20 * MS
    time.sleep(0.02)
    assert made.look() >= before + 10 * MS


def test_between_two_moments_no_more_time_passes_than_really():
    made = world()
    moments = []
    for _ in range(20):
        made.rest()
        moments.append((really(made), made.look()))
        time.sleep(0.002)
        made.stir()
        time.sleep(0.001)
    assert moments[-1][1] > moments[0][1]
    for first, there in moments:
        assert all(now - there <= later - first + MS // 10 for later, now in moments if now > there)


def test_an_event_happens_at_its_time_however_late_the_conductor_is():
    made, seen = world(), []
    for by in (3, 1, 2):
        made.at(made.now + by * MS, Timer(made.nowhere, lambda: seen.append(made.now)))
    made.rest()
    time.sleep(0.01)
    for _ in range(1000):
        made.run()
        if len(seen) == 3:
            break
        time.sleep(0.001)
    assert seen == [2 * MS, 3 * MS, 4 * MS]


def test_the_next_event_waits_until_the_clients_that_the_last_one_woke_wait_again():
    made, seen = world(), []

    def wake():
        seen.append(made.now)
        made.stir()

    for by in (0, MS):
        made.at(made.now + by, Timer(made.nowhere, wake))
    made.rest()
    made.run()
    time.sleep(0.01)
    made.run()
    assert seen == [MS]
    made.rest()
    time.sleep(0.01)
    made.run()
    assert seen == [MS, 2 * MS]


def test_a_client_that_is_never_at_rest_does_not_stop_time_for_ever():
    made, seen = world(), []
    made.at(made.now + 5 * MS, Timer(made.nowhere, lambda: seen.append(made.now)))
    end = time.monotonic() + 60
    while not seen and time.monotonic() < end:
        made.rest()
        made.run()
        made.stir()
    assert seen == [6 * MS]


def test_a_clients_time_is_converted_to_that_of_the_run():
    made = world()
    begun = really(made)
    time.sleep(0.01)
    middle = really(made)
    assert made.time_of(middle) == made.now == MS
    made.rest()
    time.sleep(0.02)
    made.stir()
    passed = made.now - MS
    stopped = really(made)
    time.sleep(0.01)
    assert made.time_of(begun) == MS and made.time_of(really(made)) == made.now
    assert made.time_of(stopped) == made.now and passed >= 10 * MS
    half = made.time_of(stopped - passed // 2)
    assert MS < half < made.now


def test_a_message_that_arrives_just_after_the_clients_seemed_to_wait_takes_no_time():
    made = world()
    made.at(made.now + 100_000, Timer(made.nowhere, lambda: None))
    for _ in range(100):
        before = made.now
        made.rest()
        begun = time.monotonic_ns()
        made.stir()
        if time.monotonic_ns() - begun < MS // 2:
            assert made.now == before
