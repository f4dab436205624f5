"""A server runs as a user of its own, where its kind has one and the node knows that user."""

from __future__ import annotations

import os
import pwd
from types import SimpleNamespace

import pytest

from fencepost.compose.node import server
from fencepost.harness.db.kinds import KINDS


@pytest.fixture
def known(monkeypatch):
    """A node with the user `redis`; and who was given what."""
    entry = SimpleNamespace(pw_name="redis", pw_uid=71, pw_gid=72)
    given = []
    monkeypatch.setattr(pwd, "getpwall", lambda: [entry])
    monkeypatch.setattr(pwd, "getpwnam", lambda name: entry)
    monkeypatch.setattr(os, "chown", lambda path, *ids, **how: given.append((path, ids, how)))
    return given


def test_a_server_runs_as_its_own_user_and_has_its_data(known, tmp_path):
    (tmp_path / "appendonlydir").mkdir()
    (tmp_path / "link").symlink_to("/etc/passwd")
    words = ["setpriv", "--reuid", "redis", "--regid", "redis", "--init-groups", "--"]
    assert server._as("redis") == words
    server._give("redis", tmp_path)
    assert {path for path, *_ in known} == {tmp_path, *tmp_path.iterdir()}
    assert all(rest == [(71, 72), {"follow_symlinks": False}] for _, *rest in known)


@pytest.mark.parametrize("user", ["", "somebody"])
def test_where_there_is_no_such_user_nothing_changes(known, tmp_path, user):
    assert server._as(user) == []
    server._give(user, tmp_path)
    assert known == []


def test_servers_have_users_of_their_own():
    # PostgreSQL runs as nobody else: its own command sees to that.
    users = {name: kind.user for name, kind in KINDS.items() if name != "postgres"}
    assert users == {
        "redis": "redis", "valkey": "redis", "etcd": "etcd", "zookeeper": "zookeeper"
    }  # fmt: skip
