"""The harness drives an elector that is a program: campaign, beats, and the end of its process."""

from __future__ import annotations

import pytest

from fencepost.harness.clients.driver import Driver
from fencepost.harness.clients.reigns import work_of

SETTINGS = {"ttl_ns": 10**9, "hold_ms": (10**6, 10**6)}
ACQUIRE, READ, WRITE, RELEASE = "acquire", "read", "write", "release"


class Scripted:
    """A client whose ops end as a script says; it is gone at the script's end. `loses`: `lost` is
    reported with this op."""

    def __init__(self, *script, loses=None):
        self.done, self._script, self._loses = [], list(script), loses
        self.gone = self._lost = False

    def begin(self, f, value):
        self.done.append(f)

    def finish(self, timeout_s):
        type = self._script.pop(0)
        self._lost = self._lost or len(self.done) == self._loses
        self.gone = not self._script
        return {"type": type, "value": {"hold": "3-1", "version": 1} if type == "ok" else None}

    def is_lost(self, hold):
        return self._lost

    def leave(self):
        self.done.append("leave")

    def fail(self, part, error):
        raise error


def played(*script, stops="exit", resigns=True, loses=None, now=lambda: 0, **settings):
    client = Scripted(*script, loses=loses)
    work = work_of(SETTINGS | settings, "7", stops, resigns)
    driver = Driver(client, work, 10**15, now)
    driver._thread.join()
    return client.done


def test_a_leader_beats_until_it_has_stopped_and_its_process_ends():
    beats = [READ, WRITE, READ, WRITE]
    done = played("ok", "ok", "ok", "ok", "ok", "fail", loses=5)
    assert done == [ACQUIRE, *beats, "leave", ACQUIRE, "leave"]


@pytest.mark.parametrize(("stops", "then"), [("exit", ["leave"]), ("callback", [])])
def test_a_beat_that_is_declined_ends_the_reign(stops, then):
    done = played("ok", "stopped", "info", stops=stops)
    assert done == [ACQUIRE, READ, *then, ACQUIRE]


def test_a_process_that_has_ended_with_an_op_does_not_leave_again():
    assert played("ok", "ok", "info", "info") == [ACQUIRE, READ, WRITE, ACQUIRE]
    assert played("info", "info") == [ACQUIRE, ACQUIRE]


def test_a_candidate_that_was_refused_ends_its_process():
    assert played("fail", "info") == [ACQUIRE, "leave", ACQUIRE]


@pytest.mark.parametrize(
    ("resigns", "stops", "end"),
    [
        (True, "exit", ([RELEASE, ACQUIRE], ("ok", "info"))),
        (True, "exit", ([RELEASE, "leave", ACQUIRE], ("fail", "info"))),
        (True, "callback", ([RELEASE, ACQUIRE], ("fail", "info"))),
        (False, "exit", (["leave", ACQUIRE], ("info",))),
    ],
)
def test_a_leader_steps_down_at_the_end_of_its_time(resigns, stops, end):
    steps, types = end
    done = played("ok", "ok", "ok", *types, resigns=resigns, stops=stops, hold_ms=(0, 0))
    assert done == [ACQUIRE, READ, WRITE, *steps]
