"""Compact values of a history take little memory and equal the decoded ones."""

from __future__ import annotations

import json
import sys

import pytest

from fencepost.checker.history import compact


@pytest.fixture(autouse=True)
def empty(monkeypatch):
    for name in ("_shapes", "_texts", "_numbers"):
        monkeypatch.setattr(compact, name, {})


@pytest.mark.parametrize(
    "decoded",
    [
        {},
        {"hold": "1-2", "token": 7, "deadline": 10**12, "stored": None},
        {"token": 1, "shared": True, "part": 1.0, "nested": {"a": [1, True]}},
        {"b": 2, "a": 1},
    ],
)
def test_a_compact_value_equals_the_decoded_value(decoded):
    compact.value({"token": 1, "other": 0, "flag": 1})
    found = compact.value(decoded)
    # JSON distinguishes 1 from true and 1.0, and keeps the order, which == does not.
    assert json.dumps(found) == json.dumps(decoded)
    assert type(found) is dict
    found["more"] = 1
    assert "more" not in compact.value(decoded)


def test_values_with_the_same_fields_share_their_keys():
    decoded = dict.fromkeys(("lock", "hold", "token", "deadline", "ttl", "more"), "x")
    # The table shrinks to the size that its first dicts need.
    found = [compact.value(decoded) for _ in range(100)]
    assert sys.getsizeof(found[-1]) < sys.getsizeof(json.loads(json.dumps(decoded)))


def test_a_repeated_value_is_stored_once():
    first, second = (compact.value(json.loads('{"hold": "0-23", "token": 12345678}')) for _ in "ab")
    assert first["hold"] is second["hold"]
    assert first["token"] is second["token"]


def test_the_cache_of_values_is_bounded(monkeypatch):
    monkeypatch.setattr(compact, "_MOST_SHAPES", 2)
    monkeypatch.setattr(compact, "_MOST_SHARED", 3)
    for number in range(10):
        assert compact.value({f"f{number}": number}) == {f"f{number}": number}
        assert compact.value({"f": f"text {number}"}) == {"f": f"text {number}"}
        assert len(compact._shapes) <= 2
        assert len(compact._texts) <= 3
        assert len(compact._numbers) <= 3
    assert len(compact._shapes) == 2
    compact.value({"f": "x" * 257, "g": "x" * 256})
    assert [len(text) for text in compact._texts if text.startswith("x")] == [256]
