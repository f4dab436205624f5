"""Defects that a search with real clients finds among its first schedules."""

from __future__ import annotations

import shutil
from itertools import islice
from pathlib import Path

import pytest

from fencepost.harness.hunting.hunts import described
from fencepost.harness.hunting.programs import conductor
from fencepost.hunt.faults.registry import table
from fencepost.hunt.live.conductor import Job
from fencepost.hunt.live.first import simple
from fencepost.hunt.search.judge import violations

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not shutil.which("node"), reason="needs node"),
]
SDK = Path(__file__).parents[3] / "sdk"
PROGRAMS = Path(__file__).parent / "programs"
MOST = 350
"""The simple schedules of these programs are more than that, and drawn ones come after them."""


@pytest.fixture
def described_as(tmp_path):
    """Return the function that describes the hunt of a program."""
    shutil.copy(SDK / "javascript" / "fencepost.js", tmp_path)

    def hunt(program, servers, **more):
        shutil.copy(PROGRAMS / program.split()[0], tmp_path)
        return described(
            "", {}, {"seed": 1}, servers=servers, program=f"node {program}", ship=tmp_path,
            budget="1200s", **more,
        )  # fmt: skip

    return hunt


@pytest.fixture
def find(described_as):
    """Return the function that hunts a program, and returns its counterexample."""

    def hunt(program, servers):
        tried, found = described_as(program, servers).carry_out(4)
        assert found is not None and tried.schedules < MOST
        return found

    return hunt


@pytest.mark.parametrize("servers", ["redis:3", "redis:5"])
def test_an_extension_without_a_quorum_that_frees_the_lock(find, servers):
    found = find("quorum.js extend-unlocks", servers)
    assert "lease_exclusion" in found.broken
    extends = [row for row in found.run.rows if row[2:4] == ("fail", "extend")]
    assert extends, "it fails because the extension does"


def test_a_grant_that_came_later_than_its_lease(find):
    found = find("quorum.js grants-late", "redis:3")
    assert "lease_exclusion" in found.broken
    late = [row for row in found.run.rows if row[2:4] == ("ok", "acquire")]
    assert any(row[0] > row[4]["deadline"] for row in late)


@pytest.mark.parametrize("waits", ["", " 20"])
def test_a_release_that_checks_and_then_deletes_whether_clients_wait_or_not(find, waits):
    found = find(f"lock.js check-then-delete{waits}", "redis:1")
    assert "lease_exclusion" in found.broken


def test_a_sound_lock_on_several_servers_keeps_its_promises_in_these_schedules(described_as):
    made = described_as("quorum.js none", "redis:3", faults="packet/loss,delay,pause:client")
    first = simple(made.setting, table(made.setting), made.look.moments[0])
    with conductor(made.spec, made.setting, 4) as playing:
        for run in playing.play(map(Job, islice(first, 150))):
            assert not run.hung and not violations(run, ("lease_exclusion", "ownership"))
