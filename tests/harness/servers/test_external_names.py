"""External servers are named by [KIND=]NAME[:PORT]; names and options are validated."""

from __future__ import annotations

from pathlib import Path

import pytest

from fencepost.harness.errors import BadArguments
from fencepost.harness.servers.external_names import read
from fencepost.harness.spec import from_arguments
from fencepost.harness.spec.needs import nodes
from fencepost.harness.spec.respec import respec
from fencepost.harness.spec.spec import layout_of
from fencepost.report.words.settings import again

OWN_KIND = """
from fencepost.node.kind import Kind

KIND = Kind("mydb", __name__, port=7000, health=lambda: True)
"""


def named(*entries, kind="redis"):
    return [(one.node, one.kind and one.kind.name, one.port) for one in read(entries, kind).servers]


def test_a_name_without_a_kind_has_the_lock_s_kind():
    assert named("a", "b:7000") == [("a", "redis", None), ("b", "redis", 7000)]
    assert named("a:7000", kind="") == [("a", None, 7000)]


def test_a_kind_applies_to_all_names_that_follow():
    assert named("etcd=a", "b") == [("a", "etcd", None), ("b", "etcd", None)]


def test_a_kind_may_come_from_the_user_s_file(tmp_path):
    (tmp_path / "mydb.py").write_text(OWN_KIND)
    (one,) = read((f"{tmp_path}/mydb.py=a",), "redis").servers
    assert one.kind is not None and (one.kind.name, one.kind.port) == ("mydb", 7000)


@pytest.mark.parametrize(
    ("entries", "sentence"),
    [
        (["a b"], "server 'a b' cannot be read: write"),
        (["mysql=a"], "there is no kind of server 'mysql'; choose one of: redis"),
        (["redis=a", "etcd=b"], "the servers of a lock must be of one kind, not redis, etcd"),
        (["client-2"], "a server cannot have the name 'client-2'"),
        (["storage"], "a server cannot have the name 'storage'"),
        (["primary"], "a server cannot have the name 'primary'"),
        (["a", "a:1"], "server 'a' is named twice"),
        (["./none.py=a"], "the file none.py of a kind of server does not exist"),
    ],
)
def test_a_name_that_cannot_be_parsed_gives_one_sentence(entries, sentence):
    with pytest.raises(BadArguments, match="(?s)^" + sentence.replace(".", r"\.")):
        read(tuple(entries), "redis")


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("import nothing_of_this_name", "ModuleNotFoundError"),
        ("", "defines 0 kinds of servers, but must define one"),
        (OWN_KIND + 'OTHER = Kind("b", __name__, port=1, health=print)', "defines 2 kinds"),
    ],
)
def test_a_file_without_a_valid_kind_is_named(tmp_path, content, sentence):
    (tmp_path / "mydb.py").write_text(content)
    with pytest.raises(BadArguments, match=sentence):
        read((f"{tmp_path}/mydb.py=a",), "redis")


def spec(lock="redlock", **settings):
    return from_arguments.spec(lock, {}, settings)


def test_named_servers_are_the_nodes_of_the_test_and_all_are_external():
    test = spec(containers="a,b,c")
    assert test.servers == ["a", "b", "c"]
    assert nodes([test]) == ["storage", *test.clients]
    assert layout_of(test).foreign
    assert respec(test.to_json()).foreign == test.foreign


def test_the_command_that_repeats_a_test_names_its_servers():
    test = spec(compose="c.yml", servers="redis=a,b:7000")
    words = again(test.to_json(), Path("results/redlock/now"))
    assert "--servers redis=a,b:7000 --compose c.yml" in str(words)
    assert layout_of(test).kind.name == "redis" and test.servers == ["a", "b"]


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"servers": "a"}, "--servers a needs a Compose file: name it with --compose"),
        ({"compose": "c.yml"}, "--compose c.yml needs --servers: name the services"),
        ({"compose": "c.yml", "servers": "a", "containers": "b"}, "exclude one another"),
        (
            {"containers": "a", "server": {"redis": "valkey"}},
            "--server applies only to servers that",
        ),
        (
            {"containers": "a", "persistence": "always"},
            "--persistence applies only to servers that",
        ),
        ({"containers": "etcd=a"}, "redlock runs on redis, but the servers are etcd"),
        ({"lock": "redis", "containers": "a,b"}, "redis runs on one server, but 2 are named"),
        ({"containers": "a", "nemesis": "power"}, "nemesis power: it needs fencepost's own disk"),
        ({"containers": "a", "nemesis": "kill:a/wiped"}, "the data of external servers must not"),
        ({"containers": "a", "nemesis": "pause:redis-1"}, "the test has no 'redis-1'"),
    ],
)
def test_an_invalid_option_for_such_servers_gives_one_sentence(settings, sentence):
    with pytest.raises(BadArguments, match=sentence):
        spec(**settings)
