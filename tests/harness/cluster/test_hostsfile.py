"""The file of `--hosts`: how it is parsed, and how its errors are reported."""

from __future__ import annotations

import pytest

from fencepost.harness.cluster.hostsfile import read
from fencepost.harness.errors import BadArguments
from fencepost.harness.remote.ssh import Host


@pytest.fixture
def write(tmp_path):
    for name in ("key", "known_hosts"):
        (tmp_path / name).touch()
    path = tmp_path / "hosts.toml"

    def put(text, defaults='known_hosts = "known_hosts"'):
        path.write_text(f"[defaults]\n{defaults}\n{text}")
        return path

    return put


def test_hosts_take_missing_fields_from_the_defaults(write, tmp_path):
    found = read(
        write(
            """
[nodes.redis-1]
host = "127.0.0.1"
[nodes.client-1]
host = "127.0.0.2"
port = 22
user = "root"
address = "10.0.0.2"
""",
            'user = "us"\nsudo = true\nport = 2222\nkey = "key"\nknown_hosts = "known_hosts"',
        )
    )
    known, key = tmp_path / "known_hosts", tmp_path / "key"
    assert found.hosts == {
        "redis-1": Host("127.0.0.1", known, 2222, "us", True, key),
        "client-1": Host("127.0.0.2", known, 22, "root", True, key),
    }
    assert found.addresses == {"redis-1": "127.0.0.1", "client-1": "10.0.0.2"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "[nodes.redis-9]\nhost = 'h'",
            "nodes.redis-9: there is no such node; choose from: redis-1, ",
        ),
        ("[nodes.redis-1]\nport = 22", "nodes.redis-1: missing required field `host`"),
        ("[nodes.redis-1]\nhost = ''", "nodes.redis-1.host: Expected `str` of length >= 1"),
        (
            "[nodes.redis-1]\nhots = 'h'",
            "nodes.redis-1: contains unknown field `hots`; choose from: host, address,",
        ),
        ("[nodes.redis-1]\nhost = 7", "nodes.redis-1.host: Expected `str`, got `int`"),
        (
            "[nodes.redis-1]\nhost = 'h'\nport = 'x'",
            "nodes.redis-1.port: Expected `int`, got `str`",
        ),
        (
            "[nodes.redis-1]\nhost = 'h'\nport = true",
            "nodes.redis-1.port: Expected `int`, got `bool`",
        ),
        ("[nodes.redis-1]\nhost = 'h'\nport = 0", "nodes.redis-1.port: Expected `int` >= 1"),
        ("[nodes.redis-1]\nhost = 'h'\nsudo = 1", "nodes.redis-1.sudo: Expected `bool`, got `int`"),
        ("[nodes.redis-1]\nhost = 'h'\nuser = 'u'", "u is not root: set sudo = true"),
        ("[nodes.redis-1]\nhost = '127.0.0.1'\nkey = 'no'", "no cannot be read: No such file"),
        (
            "[nodes.redis-1]\nhost = 'no.invalid'",
            "nodes.redis-1.address: no.invalid has no IPv4 address here",
        ),
        (
            "[nodes.redis-1]\nhost = '127.0.0.1'\n[nodes.redis-2]\nhost = '127.0.0.1'",
            "nodes.redis-2: has the same address (127.0.0.1) as redis-1",
        ),
        ("nodes = 3", "defaults: contains unknown field `nodes`; choose from: port,"),
        ("[nodes]\nredis-1 = 3", "nodes.redis-1: Expected `object`, got `int`"),
        ("", "nodes: names no node"),
        (
            "[node.redis-1]\nhost = 'h'",
            "the file: contains unknown field `node`; choose from: nodes, defaults",
        ),
        ("[nodes.redis-1\n", "is not a TOML file: "),
        ("[nodes.redis-1]\nhost = h", "(at line 4, column 8)"),
    ],
)
def test_an_error_names_the_file_and_the_place(write, text, message):
    path = write(text)
    with pytest.raises(BadArguments) as refused:
        read(path)
    assert message in str(refused.value)
    assert str(path) in str(refused.value)


def test_a_file_that_can_not_be_read(tmp_path):
    with pytest.raises(BadArguments, match=r"none cannot be read: No such file"):
        read(tmp_path / "none")
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    with pytest.raises(BadArguments, match="is not a TOML file"):
        read(tmp_path / "binary")


def test_a_node_that_a_test_needs_must_be_there(write):
    found = read(write("[nodes.redis-1]\nhost = '127.0.0.1'"))
    found.must_name(["redis-1"])
    with pytest.raises(
        BadArguments, match=r"does not name storage, client-1, which this test needs"
    ):
        found.must_name(["redis-1", "storage", "client-1"])
