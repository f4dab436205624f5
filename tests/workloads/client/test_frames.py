"""Commands and replies of Redis are found in bytes that come in any pieces."""

from __future__ import annotations

import pytest

from fencepost.hunt.models.redis import session
from fencepost.hunt.models.redis.decoder import MALFORMED
from fencepost.workloads.client.frames import QUIET, cut, end_of, name_of

REPLIES = [
    b"+OK\r\n",
    b"-ERR no\r\n",
    b":12\r\n",
    b"$-1\r\n",
    b"$0\r\n\r\n",
    b"$4\r\na\r\nb\r\n",
    b"*-1\r\n",
    b"*0\r\n",
    b"*2\r\n$1\r\na\r\n*1\r\n:3\r\n",
    b"%1\r\n+key\r\n,1.5\r\n",
    b"=7\r\ntxt:a\r\n\r\n",
    b"_\r\n",
    b">2\r\n+message\r\n$1\r\nx\r\n",
]


@pytest.mark.parametrize("reply", REPLIES)
def test_a_reply_ends_where_its_last_byte_is(reply):
    assert end_of(reply + b"+more\r\n") == len(reply)
    assert all(end_of(reply[:at]) is None for at in range(len(reply)))


def test_bytes_are_cut_into_whole_replies_and_a_rest():
    assert cut(b"".join(REPLIES) + b"$5\r\nab") == (REPLIES, b"$5\r\nab")


def test_the_name_of_a_command_is_its_first_word():
    assert name_of(b"*2\r\n$3\r\nget\r\n$1\r\na\r\n") == "GET"
    assert name_of(b"ping\r\n") == "PING" and name_of(b"\r\n") == ""


def test_the_hunt_and_the_gate_number_the_same_commands():
    assert QUIET | {MALFORMED} == session._QUIET
