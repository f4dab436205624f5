"""What a client remembers of its holds does not grow with their number."""

from __future__ import annotations

import os

import pytest

from fencepost.workloads.client import holds
from fencepost.workloads.client.holds import Holds
from fencepost.workloads.client.wire import Outbox, Setup
from fencepost.workloads.locks.lock import Grant


@pytest.fixture
def out(tmp_path):
    setup = Setup(
        process=1, stride=5, node="client-1", lock="redis", options={}, servers=[], addresses={},
        storage="storage", guard="none", seed="1", origin_ns=0,
    )  # fmt: skip
    fd = os.open(tmp_path / "said", os.O_WRONLY | os.O_CREAT)
    yield Outbox(fd, setup)
    os.close(fd)


def grant(number):
    return Grant("orders", None, None, f"secret-{number}")


def test_of_holds_that_were_lost_and_released_nothing_is_kept(out):
    held = Holds(out)
    for number in range(100):
        held.add(f"1-{number}", grant(number))
        held.lost(f"secret-{number}", "its lease is over")
        assert held.is_lost(grant(number))
        held.remove(f"1-{number}")
    assert (held._lost, held._grants, held._names) == ({}, {}, {})


def test_of_what_no_acquire_returned_the_latest_are_known(out, monkeypatch):
    monkeypatch.setattr(holds, "_LOST", 10)
    held = Holds(out)
    for number in range(100):
        held.lost(f"secret-{number}", "it was over before it was granted")
    assert len(held._lost) == 10
    assert held.is_lost(grant(99))
