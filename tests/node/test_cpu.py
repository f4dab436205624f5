"""A CPU quota for one process: on this machine's own cgroups, where they are writable."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

import pytest

from fencepost.node import cpu

pytestmark = pytest.mark.slow


@pytest.fixture
def groups(tmp_path, monkeypatch):
    """Mount cgroups of the test's own in its folder."""
    monkeypatch.setattr(cpu, "MOUNT", tmp_path / "cgroup")
    monkeypatch.setattr(cpu, "NAME", f"fencepost-{os.getpid()}")
    yield
    for place in (tmp_path / "cgroup").glob("v?"):
        subprocess.run(["umount", str(place)], check=False)


@pytest.fixture
def loop(groups):
    """Start a process that only uses the CPU."""
    process = subprocess.Popen(["sh", "-c", "while :; do :; done"])
    try:
        try:
            cpu.command(["limit", str(process.pid), "1.0"])
        except OSError as error:
            pytest.skip(f"cgroups cannot be written to here: {error}")
        cpu.command(["free"])
        yield process
    finally:
        process.kill()
        process.wait()
        cpu.command(["free"])


def used_s(pid):
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_a_process_with_a_quota_gets_no_more_than_that(loop):
    before = cpu.command(["show", str(loop.pid)])["cgroup"]
    told = cpu.command(["limit", str(loop.pid), "0.1"])
    assert told["throttled"] > 0
    assert told["share"] == pytest.approx(0.1)

    began_s, used = time.monotonic(), used_s(loop.pid)
    throttled = cpu.command(["show", str(loop.pid)])["throttled"]
    while cpu.command(["show", str(loop.pid)])["throttled"] < throttled + 10:
        assert time.monotonic() < began_s + 60
        time.sleep(0.02)
    # Ten periods of 50 ms at a tenth of a CPU; the clock ticks are 10 ms.
    assert used_s(loop.pid) - used <= 0.1 * (time.monotonic() - began_s) + 0.06

    assert cpu.command(["left"]) == {"left": True}
    assert cpu.command(["free"]) == {"freed": 1}
    assert cpu.command(["show", str(loop.pid)]) == {
        "cgroup": before,
        "share": None,
        "throttled": 0,
    }
    assert cpu.command(["left"]) == {"left": False}


def test_a_group_whose_process_has_ended_is_found_and_removed(loop):
    cpu.command(["limit", str(loop.pid), "0.5"])
    loop.kill()
    loop.wait()
    assert cpu.command(["left"]) == {"left": True}
    cpu.command(["free"])
    assert cpu.command(["left"]) == {"left": False}


def test_another_program_s_cgroup_of_the_same_name_is_left_alone(loop):
    group = cpu.of(loop.pid)
    group.path.mkdir()
    try:
        with pytest.raises(OSError, match="was not made by fencepost"):
            cpu.command(["limit", str(loop.pid), "0.5"])
        cpu._write(group.path / "cgroup.procs", str(loop.pid))
        assert cpu.command(["free"]) == {"freed": 0}
        assert cpu.command(["show", str(loop.pid)])["share"] is None
        assert Path(cpu.of(loop.pid).parent).name == cpu.NAME
    finally:
        foreign = cpu.of(loop.pid).parent
        cpu._write(foreign.parent / "cgroup.procs", str(loop.pid))
        foreign.rmdir()


def test_neither_the_mount_nor_anything_else_stays(loop, tmp_path):
    cpu.command(["limit", str(loop.pid), "0.5"])
    assert cpu._mounts()
    cpu.command(["free"])
    assert list(tmp_path.iterdir()) == []
    assert cpu.command(["left"]) == {"left": False}


def test_a_process_that_is_gone_can_not_be_limited():
    with pytest.raises(OSError):
        cpu.command(["limit", "999999999", "0.5"])
