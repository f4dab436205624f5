"""The terminal display of a run in progress."""

from __future__ import annotations

from rich.console import Console

from fencepost.harness.clients.current_holders import CurrentHolders
from fencepost.harness.clients.event import Event, Value
from fencepost.harness.command.live import View
from fencepost.harness.execute.progress import Status

S = 1_000_000_000


def shown(view, *statuses):
    console = Console(width=120, record=True, force_terminal=True)
    for status in statuses:
        frame = view.frame(status)
    console.print(frame)
    return console.export_text()


def test_a_frame_has_the_phase_the_time_left_the_rate_the_holders_and_the_faults():
    said = shown(
        View("redis", 20.0),
        Status("starting servers", 1.0, 0, 0, []),
        Status("running", 3.0, 10, 2, []),
        Status("running", 5.0, 800, 102, ["client-1 is paused"], {}, 0.0,
               ["client-2 orders 0.120 s"], ["client-1 orders 0.020 s"]),
    )  # fmt: skip
    assert "running" in said and "18 s left" in said
    assert "50 per second, 102 in total, 800 events" in said
    assert "held by" in said and "client-2 orders 0.120 s" in said
    assert "client-1 orders 0.020 s" in said
    assert "client-1 is paused" in said


def test_a_row_s_label_is_readable_however_long_the_row_is():
    last = [f"client-{number} orders 0.020 s" for number in range(9)]
    said = shown(View("redis", 20.0), Status("running", 5.0, 800, 102, last, {}, 0.0, last, last))
    rows = ["holds", "held by", "last holds", "faults on"]
    assert [row for row in rows if f"  {row} " in said] == rows and "…" in said


def test_the_first_violation_is_shown_at_once():
    status = Status("running", 3.0, 10, 2, [], {"lease_exclusion": "two holders"})
    assert "lease_exclusion: two holders" in shown(View("redis", 20.0), status)


def test_a_run_of_unknown_length_shows_its_phase():
    said = shown(View("clock-jump", None), Status("step 3", 4.0, 10, 2, []))
    assert "step 3" in said and "left" not in said


def event(at, process, type, f, lock="orders"):
    return Event(at * S, process, type, f, Value(lock=lock))


def test_the_current_and_last_holder_come_from_client_events():
    holding = CurrentHolders(lambda process: f"client-{process % 2 + 1}")
    holding.heard(event(1, 0, "ok", "acquire"))
    holding.heard(event(2, 1, "ok", "acquire", "other"))
    assert [held.describe(3 * S) for held in holding.on] == [
        "client-1 orders 2.000 s", "client-2 other 1.000 s",
    ]  # fmt: skip
    holding.heard(event(4, 0, "invoke", "release"))
    holding.heard(event(5, 1, "info", "close", ""))
    assert holding.on == []
    assert [held.describe(9 * S) for held in holding.last] == [
        "client-2 other 3.000 s", "client-1 orders 3.000 s",
    ]  # fmt: skip


def test_a_successor_s_hold_replaces_one_that_was_never_released():
    holding = CurrentHolders(lambda process: f"client-{process % 2 + 1}")
    for process in range(0, 200, 2):
        holding.heard(event(process, process, "ok", "acquire"))
    assert len(holding.on) == 1
