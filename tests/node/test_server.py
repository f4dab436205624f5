"""A server runs as a user of its own, if its kind has one and the node has that user."""

from __future__ import annotations

import os
import pwd
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import pytest

from fencepost.harness.servers.kinds import KINDS
from fencepost.node import server
from fencepost.node.kind import Kind


@pytest.fixture
def known(monkeypatch):
    """A node with the user `redis`, and the changes of ownership."""
    entry = SimpleNamespace(pw_name="redis", pw_uid=71, pw_gid=72)
    given = []
    monkeypatch.setattr(pwd, "getpwall", lambda: [entry])
    monkeypatch.setattr(pwd, "getpwnam", lambda name: entry)
    monkeypatch.setattr(os, "chown", lambda path, **how: given.append((path, how)))
    return given


def test_a_server_runs_as_its_own_user_and_has_its_data(known, tmp_path):
    (tmp_path / "appendonlydir").mkdir()
    (tmp_path / "link").symlink_to("/etc/passwd")
    words = ["setpriv", "--reuid", "redis", "--regid", "redis", "--init-groups", "--"]
    assert server._as("redis") == words
    server._give("redis", tmp_path)
    assert sorted(str(path) for path, _ in known) == sorted(
        [str(tmp_path), "appendonlydir", "link"]
    )
    ids = {"uid": 71, "gid": 72, "follow_symlinks": False}
    assert all(ids.items() <= how.items() for _, how in known)


def test_its_user_cannot_lead_the_change_of_owners_to_another_folder(known, tmp_path):
    """A path that was found may have become a link; an open folder remains the one that was."""
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "b" / "log").touch()
    server._give("redis", tmp_path)
    assert [(str(path), "dir_fd" in how) for path, how in known] == [
        (str(tmp_path), False), ("a", True), ("b", True), ("log", True)
    ]  # fmt: skip


@pytest.mark.parametrize("user", ["", "somebody"])
def test_where_there_is_no_such_user_nothing_changes(known, tmp_path, user):
    assert server._as(user) == []
    server._give(user, tmp_path)
    assert known == []


@pytest.fixture
def node(monkeypatch, tmp_path):
    """A node whose servers are called `sleeper`, and sleep; it records their starts."""
    kind = Kind(
        "sleeper",
        __name__,
        port=1,
        versions=("1",),
        command=lambda start: ["sleep", "600"],
        health=lambda: True,
        version=lambda: "1",
    )
    for name in ("RUN", "LOGS", "DATA"):
        monkeypatch.setattr(server, name, str(tmp_path / name))
    monkeypatch.setattr(server, "PID_FILE", str(tmp_path / "pid"))
    monkeypatch.setattr(server, "STARTING", str(tmp_path / "starting"))
    monkeypatch.setattr(server.kinds, "find", lambda name: kind)
    monkeypatch.setattr(server.disk, "lay", lambda *given: time.sleep(0.2))
    monkeypatch.setattr(server, "_give", lambda *given: None)
    started, popen = [], subprocess.Popen

    def begin(*given, **how):
        started.append(popen(*given, **how))
        return started[-1]

    monkeypatch.setattr(server.subprocess, "Popen", begin)
    yield started
    for one in started:
        one.kill()
        one.wait()


def test_two_concurrent_starts_of_a_server_start_one(node, tmp_path):
    with ThreadPoolExecutor(2) as pool:
        for done in [pool.submit(server.start, ["sleeper"]) for _ in range(2)]:
            done.result()
    assert [one.pid for one in node] == [int((tmp_path / "pid").read_text().split()[0])]


def test_one_that_has_ended_is_started_again(node):
    server.start(["sleeper"])
    node[0].kill()
    node[0].wait()
    server.start(["sleeper"])
    assert len(node) == 2


def test_a_node_starts_its_server_by_a_process_that_ends(node, tmp_path):
    server._start_apart(["sleeper"])
    pid = int((tmp_path / "pid").read_text().split()[0])
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
        parent = int(stat.rpartition(")")[2].split()[1])
        assert parent != os.getpid()
    finally:
        os.kill(pid, 9)


def test_a_node_whose_server_cannot_be_started_ends_and_says_so(node, monkeypatch, capfd):
    def refuse(*given):
        raise OSError("no room")

    monkeypatch.setattr(server.disk, "lay", refuse)
    with pytest.raises(SystemExit, match="sleeper could not be started"):
        server._start_apart(["sleeper"])
    assert "OSError: no room" in capfd.readouterr().err


def test_servers_have_users_of_their_own():
    users = {kind.role: kind.user for kind in KINDS.values() if kind.user}
    assert len(set(users.values())) == len(users)
    assert all(kind.user == users[kind.role] for kind in KINDS.values() if kind.role in users)
    # Their commands change to PostgreSQL's user.
    assert {kind.name for kind in KINDS.values() if not kind.user} == {"postgres", "pgbouncer"}
