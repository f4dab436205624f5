"""The fast decoder refuses the same lines as the strict one, and returns the same ops."""

from __future__ import annotations

import json

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from fencepost.checker.history import decoding
from fencepost.checker.history.decoding import BadLine, parse
from fencepost.strictjson import decode

LINE = b'{"index":0,"time":1,"process":0,"type":"ok","f":"read","value":{}}\n'
USUAL = json.loads(LINE)

PLAIN = (
    st.none()
    | st.booleans()
    | st.integers(-(2**130), 2**130)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=3)
)
ANY = st.recursive(
    PLAIN,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=4,
)
NAMES = st.sampled_from(
    [
        *("deadline", "ttl", "token", "version", "stored", "lock", "hold", "resource", "mode"),
        *("fault", "phase", "targets", "impairs", "links", "forgets", "arguments", "receipt"),
        *("processes", "other"),
    ]
)
PAIRS = st.lists(st.lists(st.sampled_from("abc"), min_size=1, max_size=3), max_size=2)
FIELDS = ANY | PAIRS | st.dictionaries(NAMES, ANY | PAIRS | st.lists(PLAIN, max_size=2))
ROWS = st.fixed_dictionaries(
    {},
    optional={
        "index": PLAIN,
        "time": PLAIN,
        "process": PLAIN | st.just("nemesis"),
        "type": st.sampled_from(["invoke", "ok", "fail", "info", "okay"]) | PLAIN,
        "f": PLAIN,
        "value": st.dictionaries(NAMES, FIELDS, max_size=4) | ANY,
        "error": ANY,
        "node": PLAIN,
        "extra": ANY,
    },
)


def thorough(line):
    try:
        return parse(decode(line))
    except ValueError:
        return None


@given(ROWS, st.sets(st.sampled_from(sorted(USUAL))))
@example({"value": {"deadline": 1e38}}, set())
@example({"value": {"token": 2**127}}, set())
@example({"extra": {}}, set())
@settings(max_examples=400)
def test_a_line_is_the_same_op_or_refused_both_ways(row, missing):
    row = {name: what for name, what in (USUAL | row).items() if name not in missing or name in row}
    line = json.dumps(row).encode() + b"\n"
    quick, slow = decoding._quickly(line), thorough(line)
    if quick is not None:
        assert quick == [slow]
        assert repr(quick) == repr([slow])  # 1 is not 1.0
    if slow is None:
        with pytest.raises(BadLine):
            decoding.ops(line)
    else:
        assert decoding.ops(LINE + line + LINE) == [parse(USUAL), slow, parse(USUAL)]


@given(st.binary(max_size=6), st.integers(0, len(LINE)), st.integers(0, 4))
@example(b"\r", 1, 0)
@example(b"\n", 1, 0)
@example(b"}\n{", 60, 0)
@settings(max_examples=400)
def test_a_spoilt_line_is_the_same_op_or_refused_both_ways(more, place, fewer):
    line = LINE[:place] + more + LINE[place + fewer :]
    quick = decoding._quickly(line)
    slow = [thorough(one + b"\n") for one in line.split(b"\n") if one.strip()]
    assert quick is None or quick == slow


def test_lines_written_by_fencepost_take_the_fast_decoder():
    receipt = {"proved": True, "how": "x", "probes": {"a to b": "open"}, "processes": [4]}
    value = {"fault": "kill-1", "phase": "start", "targets": ["a"], "links": [["a", "b"]]}
    value |= {"arguments": {"words": "x", "links": [["a", "b"]]}, "receipt": receipt}
    rows = [
        USUAL | {"value": {"lock": "a", "ttl": 5, "token": None}, "node": "client-1"},
        USUAL | {"type": "fail", "error": ["not-granted", "held"]},
        USUAL | {"process": "nemesis", "f": "kill", "value": value | {"impairs": ["a"]}},
    ]
    lines = b"".join(json.dumps(row).encode() + b"\n" for row in rows)
    assert decoding._quickly(lines) == [parse(row) for row in rows]


@pytest.mark.parametrize(
    "lines",
    [
        LINE[:-1] + LINE + b"\n",
        LINE[:-1] + LINE + LINE[:-2] + b"\n}\n",
        b"\n" + LINE,
        LINE + b"[" * 65 + b"]" * 65 + b"\n",
        LINE[:-3] + b'"a":' + b"[" * 63 + b"]" * 63 + b"}}\n",
    ],
)
def test_lines_that_are_not_an_object_each_or_may_be_too_deep_are_not_decoded_quickly(lines):
    assert decoding._quickly(lines) is None


def test_the_error_of_a_bad_line_among_good_ones_says_which_it_is():
    with pytest.raises(BadLine, match="no time, process, type, f") as error:
        decoding.ops(LINE + LINE + b"{}\n" + LINE)
    assert error.value.number == 2


def test_an_empty_line_is_no_op():
    assert decoding.ops(LINE + b" \r\n" + LINE) == [parse(USUAL)] * 2


def test_times_of_64_bits_are_accepted_to_the_last_one():
    for time in (-(2**63), 2**63 - 1):
        assert parse(USUAL | {"time": time}).time == time
    for time in (-(2**63) - 1, 2**63):
        with pytest.raises(ValueError, match="is not a 64-bit integer"):
            parse(USUAL | {"time": time})
