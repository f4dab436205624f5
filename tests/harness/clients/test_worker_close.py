"""A client closes while its successor works: how the handle on its worker records both."""

from __future__ import annotations

import json
import time
from itertools import pairwise

import pytest

from fencepost.checker.history.history import read
from fencepost.harness.clients.worker import Worker
from tests.harness.local import recorded
from tests.harness.talk import Fed, typed


@pytest.fixture
def fed(recorder, setup):
    """Return a worker, and functions that pass it (process, f, type) and end its program."""
    made = []

    def make():
        remote = Fed()
        worker = Worker(remote, recorder, typed(setup), [])

        def take(*events):
            names = ("process", "f", "type")
            rows = [dict(zip(names, e, strict=True)) | {"time": 0, "value": {}} for e in events]
            worker._take([json.dumps(row).encode() for row in rows])

        def end():
            remote.end()
            worker.wait_gone(120)

        made.append(end)
        return worker, take, end

    yield make
    for end in made:
        end()


GONE = [(3, "write", "invoke"), (3, "write", "info"), (3, "close", "invoke"), (3, "close", "ok")]

FOLLOWS = [(8, "acquire", "invoke"), (8, "acquire", "ok")]


def splits(events):
    """Return every way to split the lines into chunks."""
    for cuts in range(2 ** (len(events) - 1)):
        places = [n for n in range(1, len(events)) if cuts >> (n - 1) & 1]
        yield [events[a:b] for a, b in pairwise([0, *places, len(events)])]


def test_a_client_has_its_successor_s_number_after_its_info_in_any_chunks(fed, recorder):
    written = 0
    for chunks in splits([*GONE, *FOLLOWS]):
        worker, take, end = fed()
        seen = []
        for chunk in chunks:
            take(*chunk)
            seen += chunk
            assert worker.process == (8 if GONE[1] in seen else 3), chunks
        end()
        assert worker.process == 8
        # All ops have completed, so the end adds none.
        assert recorded(recorder)[written:] == seen
        written += len(seen)


def test_a_close_completes_no_op_that_was_sent(fed):
    for chunks in splits(GONE):
        worker, take, _ = fed()
        worker.begin("write", {})
        done = []
        for chunk in chunks:
            take(*chunk)
            if (completion := worker.finish(0)) is not None:
                done.append((completion["f"], completion["type"]))
        assert done == [("write", "info")], chunks


def test_a_close_is_not_the_invocation_of_an_op_that_was_sent(fed):
    """The next op is sent when the write has completed, while its client still closes."""
    worker, take, _ = fed()
    worker.begin("write", {})
    take(*GONE[:2])
    assert worker.finish(0)["type"] == "info"
    worker.begin("acquire", {})
    take(*GONE[2:3])
    assert worker.wait_begun(0) is False
    take(*GONE[3:], *FOLLOWS[:1])
    assert worker.wait_begun(0) is True
    assert worker.finish(0) is None
    take(*FOLLOWS[1:])
    assert worker.finish(0)["f"] == "acquire"


@pytest.mark.parametrize("chunks", list(splits(GONE[:3])))
def test_a_close_that_a_death_interrupts_is_unknown(fed, recorder, chunks):
    worker, take, end = fed()
    for chunk in chunks:
        take(*chunk)
    end()
    assert recorded(recorder) == [*GONE[:3], (3, "close", "info")]
    assert read(recorder.path).ops[-1].error[0] == "killed"
    assert worker.process == 8


def test_events_of_a_library_between_a_close_and_its_end_change_nothing(fed, recorder):
    worker, take, end = fed()
    take(*GONE[:3], (3, "lost", "info"))
    assert worker.process == 8
    take(GONE[3])
    end()
    assert recorded(recorder) == [*GONE[:3], (3, "lost", "info"), GONE[3]]


def test_a_driver_takes_no_close_for_the_answer_to_the_successor_s_first_op(
    fed, eventually, monkeypatch
):
    """The client in another language closes after its driver has continued."""
    worker, take, end = fed()
    sent = []
    monkeypatch.setattr(worker, "_send", lambda message: sent.append(message["f"]))
    worker._generates = False
    worker.work({"hold_ms": (0, 0), "think_ms": (0, 0)}, 10**15)
    eventually(lambda: len(sent) == 1)
    take((3, "acquire", "invoke"), (3, "acquire", "info"))
    eventually(lambda: len(sent) == 2)
    take(*GONE[2:])
    time.sleep(0.05)  # a driver with an answer would have sent the next op
    assert sent == ["acquire", "acquire"]
    end()
    assert worker.rest(120)


@pytest.mark.parametrize("said", [None, "renewed", "lost"])
def test_for_a_client_without_a_generator_the_harness_reports_the_loss_of_its_hold(
    fed, recorder, eventually, monkeypatch, said
):
    """Unless the client reported it itself, or its lease was renewed."""
    worker, _, end = fed()
    sent = []
    monkeypatch.setattr(worker, "_send", lambda message: sent.append(message["f"]))
    worker._generates = False
    ttl_ns = 10**8
    work = {"ttl_ns": ttl_ns, "write": False, "hold_ms": (200, 200), "think_ms": (0, 0)}
    worker.work(work, 10**15)
    eventually(lambda: sent == ["acquire"])

    def tell(f, type, **value):
        row = {"process": 3, "f": f, "type": type, "time": recorder.now(), "value": value}
        worker._take([json.dumps(row).encode()])

    tell("acquire", "invoke", lock="orders", ttl=ttl_ns)
    far = recorder.now() + ttl_ns
    tell("acquire", "ok", lock="orders", hold="3-1", ttl=ttl_ns, deadline=far)
    if said == "renewed":
        tell("renewed", "info", lock="orders", hold="3-1", deadline=far + 10**10)
    elif said == "lost":
        tell("lost", "info", lock="orders", hold="3-1")
    eventually(lambda: sent == ["acquire", "release"])
    ends = [op for op in read(recorder.path) if op.f == "lost"]
    assert [op.value["hold"] for op in ends] == ([] if said == "renewed" else ["3-1"])
    tell("release", "invoke", lock="orders", hold="3-1")
    tell("release", "ok", lock="orders", hold="3-1")
    end()
    assert worker.rest(120)
