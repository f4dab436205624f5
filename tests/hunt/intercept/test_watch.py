"""Simulated code that never ends is ended; slow code on a busy machine is not."""

from __future__ import annotations

import select
import signal
import time
from pathlib import Path

import pytest

from fencepost.hunt.intercept import watch


class Stuck(Exception):
    pass


def waits(seconds):
    """Wait in the kernel, without a processor, as code that reads from a real socket does."""
    end = time.monotonic() + seconds
    with watch.watched(lambda: 0, lambda frame: Stuck()):
        while time.monotonic() < end:
            select.select([], [], [], 0.01)


@pytest.fixture(autouse=True)
def soon(monkeypatch):
    monkeypatch.setattr(watch, "_LOOK_S", 0.02)
    monkeypatch.setattr(watch, "_LONGEST_S", 0.2)


def test_code_that_waits_in_real_time_is_ended():
    with pytest.raises(Stuck):
        waits(30)


def test_code_that_waits_for_a_processor_is_not_ended(monkeypatch):
    monkeypatch.setattr(watch, "_queued_s", time.monotonic)
    waits(0.5)


def test_code_that_has_no_processor_until_the_first_look_is_not_ended():
    # As a thread that gets no processor: the first look is later than a run may last.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGALRM})
    try:
        with watch.watched(lambda: 0, lambda frame: Stuck()):
            time.sleep(2 * watch._LONGEST_S)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGALRM})
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGALRM})


def test_code_that_computes_without_a_step_is_ended(monkeypatch):
    monkeypatch.setattr(watch, "_LONGEST_S", 30)
    monkeypatch.setattr(watch, "_STEP_S", 0.1)
    with pytest.raises(Stuck), watch.watched(lambda: 0, lambda frame: Stuck()):
        while True:
            pass


@pytest.mark.skipif(not Path(watch._QUEUED).exists(), reason="no kernel that counts it")
def test_the_kernel_counts_how_long_a_thread_waited_for_a_processor(monkeypatch):
    assert 0 < watch._queued_s() < time.monotonic()
    monkeypatch.setattr(watch, "_QUEUED", "/nonexistent")
    assert watch._queued_s() == 0
