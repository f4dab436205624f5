"""A restarted search with more room obeys the options of the first one."""

from random import Random

import pytest

from fencepost.checker.lincheck import linearize, verify
from fencepost.checker.lincheck.budget import UNLIMITED
from fencepost.checker.lincheck.evidence import steps_of
from fencepost.checker.lincheck.linearize import Walk, widening
from fencepost.checker.lincheck.operation import objects
from tests.checker.lincheck.lincheck_histories import SUBJECTS, history

MODEL = SUBJECTS["cas-register"].model()


@pytest.fixture(autouse=True)
def _at_once(monkeypatch):
    """A stuck search restarts at once, and then keeps everything."""
    monkeypatch.setattr(linearize, "WIDER", ())
    monkeypatch.setattr(linearize, "WIDTHS", (None,))


def histories(*more):
    """Draw operations of histories with crashed ops, and these events after each of them."""
    for seed in range(60):
        random = Random(f"again {seed}")
        events = history(random, SUBJECTS["cas-register"], 14, processes=5, crash=0.4, spoil=0.7)
        yield from objects(enumerate([*events, *more], 1), MODEL).parts.values()


def answer(operations, trace, until=None):
    """Return (search, operation at which it stopped) for a way that keeps one configuration."""
    way = widening(operations, MODEL, UNLIMITED, trace, until)
    try:
        while True:
            next(way)
    except StopIteration as end:
        return end.value


def test_a_restarted_search_keeps_the_paths():
    again = 0
    for operations in histories():
        search, failed = answer(operations, True)
        if failed is None and search.width is None:
            (_, path), *_ = next(iter(search.configurations.values()))
            assert verify(operations, steps_of(path, operations), MODEL) is None
            again += 1
    assert again, "no search began again and came to the end"


def test_a_restarted_search_stops_at_the_given_operation():
    never = [
        {"process": "x", "type": type, "f": "cas", "value": [7, 8]} for type in ("invoke", "ok")
    ]
    again = 0
    for operations in histories(*never):
        before = max(operation.returned or 0 for operation in operations) - 1
        search, failed = answer(operations, False, before)
        full = Walk.begin(operations, MODEL, UNLIMITED, until=before).to_end()
        assert (failed is None) is (full is None)
        again += failed is None and search.width is None
        assert answer(operations, False)[1] is not None
    assert again, "no search began again and came to where it was told to stop"
