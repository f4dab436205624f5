"""Kinds of servers: their versions, and their parts of the image, Compose and nodes."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace

import pytest

from fencepost.harness.campaigns.suite import entries
from fencepost.harness.cluster import image, nodecode, nodes
from fencepost.harness.cluster.services import service
from fencepost.harness.errors import BadArguments
from fencepost.harness.servers.kinds import KINDS, check, chosen, roles, versions
from fencepost.harness.spec.from_arguments import servers
from fencepost.harness.spec.respec import respec
from fencepost.harness.spec.spec import Spec
from fencepost.node import kinds as on_node
from fencepost.settings import SETTINGS
from fencepost.workloads.locks.registry import LOCKS

GUEST = '''
"""A kind of server from a package of its own."""

from fencepost.node.kind import Image, Kind


def command(start):
    return ["guestd", "--data", start.data, "--release", start.version]


def health():
    return False


KIND = Kind(
    "guest", __name__, port=4000, nodes=2, versions=("2", "1"), command=command, health=health,
    version=lambda: "guestd 2",
    image=Image(packages=("guestd",), stage="FROM scratch AS guest\\n", after="RUN guest-setup\\n"),
)
TWIN = Kind(
    "twin", __name__, port=6379, serves="redis", versions=("9",), command=command, health=health,
    version=lambda: "twin 9",
)
'''


@pytest.fixture
def guest(tmp_path, monkeypatch):
    """A package that adds two kinds, one of which replaces Redis."""
    (tmp_path / "guest_kind.py").write_text(GUEST)
    info = tmp_path / "guest-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: guest\nVersion: 1.0\n")
    points = "guest = guest_kind:KIND\ntwin = guest_kind:TWIN\n"
    (info / "entry_points.txt").write_text(f"[fencepost.servers]\n{points}")
    monkeypatch.syspath_prepend(tmp_path)
    KINDS.forget()
    yield
    KINDS.forget()
    sys.modules.pop("guest_kind", None)


def test_the_first_version_is_the_one_that_runs_where_none_is_asked_for():
    assert chosen("etcd") == (KINDS["etcd"], "3.5")
    assert chosen("etcd", "3.4") == (KINDS["etcd"], "3.4")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("etcd=3.6", "there is no etcd '3.6'; choose one of: 3.5, 3.4"),
        ("etcd", "'etcd' has no value: write etcd=VALUE"),
        ("cassandra=4", "there is no server 'cassandra'; choose one of: redis, zookeeper, etcd, "),
        ("redis=etcd", "there is no redis 'etcd'; choose one of: 7.0"),
    ],
)
def test_an_unknown_server_is_refused_with_the_known_ones(given, message):
    with pytest.raises(BadArguments) as refused:
        servers([given])
    assert message in str(refused.value)


def test_a_stored_test_without_a_server_runs_on_its_former_etcd_version():
    options = LOCKS["etcd"].read_options({})
    row = Spec("etcd", "etcd", options, server={"etcd": "3.4"}).to_json()
    assert respec(json.loads(json.dumps(row))).server == {"etcd": "3.4"}
    del row["server"]
    assert respec(row | {"etcd": "3.4"}).server == {"etcd": "3.4"}


def test_a_suite_runs_on_the_given_version_except_for_scenarios_that_name_another():
    found = {item.name: item.spec.server for item in entries("etcd", 1, {"etcd": "3.4"})}
    assert found.pop("expired-waiter-3.5") == {"etcd": "3.5"}
    assert all(server == {"etcd": "3.4"} for server in found.values())


def test_a_cluster_has_nodes_of_each_kind_and_a_server_s_starts_it():
    assert {name.rpartition("-")[0] for name in nodes.every()} == {
        *(name for name in roles() if KINDS[name].starts), "client", "",
    }  # fmt: skip
    assert service("storage", "an-image").command == ("redis",)
    assert service("etcd-3", "an-image").command == ("etcd",)
    assert service("client-1", "an-image").command == ()


def test_nothing_of_a_kind_is_left_to_fill_into_the_dockerfile():
    text = image.dockerfile()
    assert not [line for line in text.splitlines() if line.strip().startswith("@")]
    for kind in KINDS.values():
        assert all(package in text for package in kind.image.packages)


def test_a_package_s_kinds_are_in_the_image_in_compose_and_among_the_versions(guest):
    assert nodes.every()[-13:-11] == ["guest-1", "guest-2"]
    assert {"7.0", "twin"} <= set(versions("redis"))
    assert chosen("redis", "twin") == (KINDS["twin"], "9")
    assert KINDS["twin"].role == "redis"
    assert "twin" not in roles() and not any("twin" in node for node in nodes.every())
    assert service("guest-2", "an-image").command == ("guest",)
    text = image.dockerfile()
    assert (
        text.index("FROM scratch AS guest") < text.index("guestd") < text.index("RUN guest-setup")
    )


def test_a_kind_says_what_its_data_survive():
    assert KINDS["valkey"].persistence == KINDS["redis"].persistence
    assert list(KINDS["redis"].persistence) == list(SETTINGS["persistence"].choices)
    with pytest.raises(ValueError, match="persistence none of redis: 'fire' is no event"):
        check(replace(KINDS["redis"], persistence={"none": "fire"}))


def test_without_a_skew_a_program_is_launched_by_the_shell_alone(tmp_path, monkeypatch):
    monkeypatch.setattr(
        nodecode, "_ENTRY", nodecode._ENTRY.replace(nodecode.SKEW, f"{tmp_path}/skew")
    )
    nodecode.write(tmp_path / "node")
    for name, says in (("python3", "python"), ("program", '"program $@"')):
        (tmp_path / name).write_text(f"#!/bin/sh\necho {says}\n")
        (tmp_path / name).chmod(0o755)

    def launch(*words):
        entry = [str(tmp_path / "node" / "fencepost-node"), "launch", *words]
        return subprocess.run(entry, env={"PATH": str(tmp_path)}, capture_output=True, text=True)

    assert launch("program", "one two").stdout == "program one two\n"
    # Without the program, the code that needs it reports how to install it.
    assert launch("missing").stdout == "python\n"
    (tmp_path / "skew").touch()
    assert launch("program").stdout == "python\n"


@pytest.fixture
def shipped(guest, tmp_path, monkeypatch):
    """A node's files in a folder, and a way to call a function there."""
    nodecode.write(tmp_path / "node")
    library = str(tmp_path / "node" / "lib")
    code = f"import sys; sys.path.insert(0, {library!r}); from fencepost.node import kinds;"

    def call(expression):
        words = [sys.executable, "-ISc", f"{code} print({expression})"]
        return subprocess.check_output(words, text=True).strip()

    return call


def test_a_node_has_the_file_of_every_kind_and_needs_nothing_but_python(shipped):
    for name in KINDS:
        assert shipped(f"kinds.find({name!r}).name") == name
    assert shipped("kinds.find('twin').health()") == "False"


def test_a_kind_that_was_not_shipped_is_reported_as_missing(tmp_path, monkeypatch):
    (tmp_path / "kinds.json").write_text('{"redis": "fencepost.harness.servers.redis"}')
    monkeypatch.setattr(on_node, "INDEX", tmp_path / "kinds.json")
    assert on_node.find("redis") is KINDS["redis"]
    with pytest.raises(OSError, match="this node has no server 'guest', only redis"):
        on_node.find("guest")
