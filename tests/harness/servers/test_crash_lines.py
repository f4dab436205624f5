"""The lines by which servers crash: each kind names its own, and all of them are searched for."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fencepost.harness.errors import BadArguments
from fencepost.harness.judge.judge import judge
from fencepost.harness.servers import crash_lines
from fencepost.harness.servers.external_names import read
from fencepost.harness.servers.kinds import KINDS, check
from fencepost.harness.spec import needs
from tests.harness.conftest import cluster, places, short  # noqa: F401  fixtures
from tests.harness.disturbed import SPEC, carried_out

MYDB = """
from fencepost.node.kind import Kind

KIND = Kind("mydb", __name__, port=7000, health=lambda: True, crash_lines=({pattern!r},))
"""
REDIS = KINDS["redis"]


def test_every_kind_of_ours_has_valid_lines():
    for kind in KINDS.values():
        check(kind)


def test_a_kind_with_redis_programs_crashes_as_redis_does():
    for name in ("valkey", "sentinel"):
        assert KINDS[name].crash_lines == REDIS.crash_lines
        assert KINDS[name].loss_lines == REDIS.loss_lines
    assert KINDS["kube-apiserver"].crash_lines == KINDS["etcd"].crash_lines


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        ("(", r"missing \)"),
        ("a*", "matches every line"),
        ("(?i)dead", "global flags not at the start"),
    ],
)
def test_an_invalid_line_is_refused(pattern, why, tmp_path):
    with pytest.raises(ValueError, match=why):
        check(replace(REDIS, crash_lines=(pattern,)))
    with pytest.raises(ValueError, match=why):
        check(replace(REDIS, loss_lines=(pattern,)))
    (tmp_path / "mydb.py").write_text(MYDB.format(pattern=pattern))
    with pytest.raises(BadArguments, match=f"mydb.py: crash line .* of mydb.*{why}"):
        read((f"{tmp_path}/mydb.py=a",), "redis")


def test_a_run_keeps_the_lines_of_a_kind_in_a_user_s_file(tmp_path):
    (tmp_path / "mydb.py").write_text(MYDB.format(pattern="mydb: halted"))
    facts = crash_lines.of_file(read((f"{tmp_path}/mydb.py=a",), "redis").kind)
    assert facts == {"crash_lines": ["mydb: halted"], "loss_lines": []}
    assert crash_lines.known(facts).every.search("12:00 mydb: halted")
    assert not crash_lines.known().every.search("12:00 mydb: halted")


def test_the_log_of_a_server_of_that_kind_is_searched_for_them(cluster, tmp_path):  # noqa: F811
    (tmp_path / "mydb.py").write_text(MYDB.format(pattern="mydb: halted"))
    cluster.up(needs.nodes([SPEC]))
    cluster.logs["redis-1"] = b"12:00 mydb: halted"
    ended = carried_out(cluster, replace(SPEC, containers=(f"{tmp_path}/mydb.py=redis-1",)), [])
    assert ended.results["checkers"]["server-log"]["valid"] is False
    assert judge(ended.folder).verdicts["server-log"].valid is False


def test_a_run_does_not_keep_the_lines_of_a_registered_kind():
    assert crash_lines.of_file(REDIS) == crash_lines.of_file(None) == {}


def test_a_loss_is_a_crash_too():
    lines = crash_lines.known({"loss_lines": ["mydb: my files are gone"]})
    for pattern in (lines.every, lines.of_loss):
        assert pattern.search("mydb: my files are gone")


def test_an_invalid_line_in_the_description_of_a_run_is_refused():
    with pytest.raises(BadArguments, match=r"run\.json cannot be used: crash_lines: missing \)"):
        crash_lines.known({"crash_lines": ["("]})
