"""Header fields of HTTP/2, by the examples of RFC 7541."""

from __future__ import annotations

import pytest

from fencepost.hunt.models import hpack

GET = [(":method", "GET"), (":scheme", "http"), (":path", "/"), (":authority", "www.example.com")]
INDEX = [
    (":method", "GET"),
    (":scheme", "https"),
    (":path", "/index.html"),
    (":authority", "www.example.com"),
    ("custom-key", "custom-value"),
]
# Appendix C.3 without, and C.4 with Huffman's code: three requests of one connection each.
PLAIN = (
    "828684410f7777772e6578616d706c652e636f6d",
    "828684be58086e6f2d6361636865",
    "828785bf400a637573746f6d2d6b65790c637573746f6d2d76616c7565",
)
CODED = (
    "828684418cf1e3c2e5f23a6ba0ab90f4ff",
    "828684be5886a8eb10649cbf",
    "828785bf408825a849e95ba97d7f8925a849e95bb8e8b4bf",
)
# Appendix C.6.1 and C.6.2: answers; the table of the example has 256 bytes.
ANSWERS = (
    "488264025885aec3771a4b6196d07abe941054d444a8200595040b8166e082a62d1bff"
    "6e919d29ad171863c78f0b97c8e9ae82ae43d3",
    "4883640effc1c0bf",
)
ANSWERED = [
    (":status", "302"),
    ("cache-control", "private"),
    ("date", "Mon, 21 Oct 2013 20:13:21 GMT"),
    ("location", "https://www.example.com"),
]


@pytest.mark.parametrize("blocks", [PLAIN, CODED])
def test_requests_of_one_connection_are_read(blocks):
    reader = hpack.Reader()
    first, second, third = [reader.read(bytes.fromhex(block)) for block in blocks]
    assert first == GET
    assert second == [*GET, ("cache-control", "no-cache")]
    assert third == INDEX


def test_fields_leave_a_table_that_is_full():
    reader = hpack.Reader()
    assert reader.read(bytes.fromhex("3fe101")) == []  # 256 bytes
    first, second = [reader.read(bytes.fromhex(block)) for block in ANSWERS]
    assert first == ANSWERED
    assert second == [(":status", "307"), *ANSWERED[1:]]
    with pytest.raises(hpack.Wrong, match="has no field 66"):
        reader.read(bytes([0x80 | 66]))


@pytest.mark.parametrize("length", [0, 1, 126, 127, 128, 254, 255, 5000])
def test_what_is_written_is_read(length):
    fields = [("grpc-message", "x" * length), (":status", "200")]
    assert hpack.Reader().read(hpack.write(fields)) == fields


@pytest.mark.parametrize("block", ["80", "ff", "ffffffffffff", "40", "4001", "000161", "0081ff"])
def test_bytes_that_are_no_fields_are_refused(block):
    with pytest.raises(hpack.Wrong):
        hpack.Reader().read(bytes.fromhex(block))


def test_each_symbol_has_a_code():
    assert len(hpack._by_code()) == 256
    # A complete code but for the end of a text, whose code is the last one of 30 bits.
    assert sum(2 ** (30 - length) for length, _ in hpack._by_code()) == 2**30 - 1
