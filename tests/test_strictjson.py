"""Strict decoding refuses JSON that would cause errors later, and gives the reason."""

from __future__ import annotations

import pytest

from fencepost.strictjson import DEEPEST, decode


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (b'{"a": [1, 2.5, null, true, "\\u00e4"]}', {"a": [1, 2.5, None, True, "ä"]}),
        (b' "\\ud83d\\ude00" ', "😀"),
        (b'"' + b"[" * 1000 + b'"', "[" * 1000),
        (b"1e308", 1e308),
        (b"-0", 0),
    ],
)
def test_sound_json_decodes_as_in_the_json_module(text, found):
    assert decode(text) == found


def test_brackets_may_be_nested_so_deep_and_no_deeper():
    assert isinstance(decode(b"[" * DEEPEST + b"]" * DEEPEST), list)
    with pytest.raises(ValueError, match="nested too deeply"):
        decode(b"[0," * (DEEPEST + 1) + b"0" + b"]" * (DEEPEST + 1))


def test_many_sibling_brackets_are_not_deep():
    assert len(decode(b"[" + b"[],{}," * 1000 + b"[]]")) == 2001


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (b"NaN", "NaN is not a JSON number"),
        (b'{"a": [-Infinity]}', "-Infinity is not a JSON number"),
        (b"1e999", "1e999 is too large"),
        (b"-1" + b"0" * 400 + b".0", "is too large"),
        (b'"\\ud800"', "half of a surrogate pair"),
        (b'{"\\uDEAD": 1}', "half of a surrogate pair"),
        (b"[" * (DEEPEST + 1) + b"]" * (DEEPEST + 1), "nested too deeply"),
        (b'{"a":' * 100_000 + b"1" + b"}" * 100_000, "nested too deeply"),
        (b"{", "Expecting property name"),
        (b"{} {}", "Extra data"),
        (b"\xff", "invalid start byte"),
        (b"1" + b"0" * 5000, "digits"),
        (b"", "Expecting value"),
    ],
)
def test_json_that_would_cause_errors_later_is_refused_with_its_reason(text, why):
    with pytest.raises(ValueError, match=why):
        decode(text)
