"""Third-party libraries are hunted as installed, without changes."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path
from random import Random

import pytest

from fencepost.hunt.faults.registry import table
from fencepost.hunt.intercept import patches
from fencepost.hunt.run import Run
from fencepost.hunt.search.draw import Drawer
from fencepost.hunt.search.hunt import hunt
from fencepost.hunt.search.search import search
from fencepost.hunt.sim import record
from fencepost.hunt.sim.schedule import Schedule
from fencepost.hunt.story.story import numbered
from fencepost.hunt.work import work_times
from tests.hunt.libraries import needs
from tests.hunt.processes import SRC, TESTS, assert_same_digest

ROOT = Path(__file__).parents[3]


POTTERY = pytest.param("pottery", marks=needs("pottery"))
REDIS_LOCK = pytest.param("python-redis-lock", marks=needs("python-redis-lock"))
BOTH = pytest.mark.parametrize("library", [POTTERY, REDIS_LOCK])
pytestmark = pytest.mark.slow


class Tap:
    """Records the requests of a library."""

    def __init__(self):
        self.asked = []

    def handled(self, link, command, reply):
        self.asked.append((link.client.name, link.server.name, command, reply))

    def lost(self, link, command): ...
    def refused(self, link): ...


def undisturbed(one, tap=None):
    return Run(one, Schedule(), table(one), tap).execute()


def drawn(one, count):
    actions, chance = table(one), Random(5)
    drawer = Drawer(one, actions, 100, {})
    for _ in range(count):
        schedule, aims = drawer.draw(chance)
        yield Run(one, schedule, actions, aims=aims).execute()


@BOTH
def test_a_library_works_without_faults(setting, library):
    run = undisturbed(setting(library))
    assert run.came_back
    assert [row[3] for row in run.rows if row[2:4] == ("ok", "write")] == ["write"] * 2


@BOTH
def test_a_run_of_a_library_is_replayed_from_its_list_of_integers(setting, library):
    one = setting(library)
    for run in drawn(one, 10):
        again = Run(one, run.exact_schedule, table(one)).execute()
        assert record.lines(again.rows) == record.lines(run.rows)


HISTORIES = """
import hashlib, sys
sys.path.insert(0, sys.argv[1])
from fencepost.harness.spec import from_arguments
from fencepost.harness.spec.simulation import setting_of
from fencepost.hunt.sim import record
from tests.hunt.intercept.test_libraries import drawn

spec = from_arguments.spec(sys.argv[2], {}, {"concurrency": 2, "seed": 1})
one = setting_of(spec, None, None, False)
found = hashlib.sha256()
# The library may have been loaded before the first run, or is in it.
if sys.flags.hash_randomization:
    found_before = list(drawn(one, 1))
for run in drawn(one, 6):
    found.update(record.lines(run.rows))
print(found.hexdigest())
"""


@BOTH
def test_its_histories_are_the_same_bytes_in_every_process_and_the_first_run_is_as_any(library):
    assert_same_digest(HISTORIES, str(ROOT), library)


@BOTH
def test_the_counterexample_is_the_same_with_any_number_of_processes(setting, library):
    one = setting(library, "kill")
    alone, together = (search(one, 1, 60, processes) for processes in (1, 2))
    assert alone.found == together.found
    assert alone.found is not None


@BOTH
def test_a_server_that_forgets_breaks_a_library(setting, library):
    _, found = hunt(setting(library, "kill"), 1, 60, processes=1)
    assert found is not None
    story = "\n".join(numbered(found.story))
    assert "crashes and restarts, its data gone" in story
    assert "lease_exclusion is violated" in story


@BOTH
def test_damage_by_a_paused_client_is_a_counterexample_if_data_is_the_goal(setting, library):
    one = setting(library, "pause", "resource", guard="none")
    _, found = hunt(one, 1, 60, processes=1)
    assert found is not None
    assert "resource is violated" in numbered(found.story)[-1]


@needs("pottery")
def test_every_client_asks_its_servers_in_the_order_in_which_it_made_its_connections(setting):
    tap = Tap()
    undisturbed(setting("pottery"), tap)
    names = [f"redis-{number}" for number in range(1, 6)]
    for client in ("client-1", "client-2"):
        asked = [to for who, to, (name, *_), _ in tap.asked if (who, name) == (client, "SET")]
        assert asked[:5] == names


@needs("pottery")
def test_its_threads_leave_nothing_behind_where_python_ends():
    code = """
from fencepost.harness.spec import from_arguments
from fencepost.harness.spec.simulation import setting_of
from fencepost.hunt.faults.registry import table
from fencepost.hunt.run import Run
from fencepost.hunt.sim.schedule import Schedule
spec = from_arguments.spec("pottery", {}, {"concurrency": 2, "seed": 1})
one = setting_of(spec, None, None, False)
Run(one, Schedule(), table(one)).execute()
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": str(SRC)},
        capture_output=True,
        text=True,
        cwd=TESTS,
    )
    assert (done.returncode, done.stderr) == (0, "")


@needs("python-redis-lock")
def test_a_waiting_client_is_woken_by_the_holder_s_release(setting):
    tap = Tap()
    undisturbed(setting("python-redis-lock"), tap)
    pops = [(who, reply) for who, _, (name, *_), reply in tap.asked if name == "BLPOP"]
    assert pops == [("client-2", ["lock-signal:orders", "1"])]


@needs("python-redis-lock")
def test_a_thread_of_its_own_renews_its_lease(setting):
    tap = Tap()
    # With pauses there are holds that are longer than a lease.
    one = setting("python-redis-lock", "pause", options={"auto_renewal": "true"})
    longest = max(work_times(one))
    head = (0, 0, work_times(one).index(longest))
    assert longest > one.ttl_ns
    Run(one, Schedule(head), table(one), tap).execute()
    extends = [one for one in tap.asked if one[2][0] == "EVALSHA" and one[2][-1] == "2"]
    assert [(who, reply) for who, _, _, reply in extends if who == "client-1"][-1:] == [
        ("client-1", 0)
    ]


def test_an_object_keeps_the_hash_that_it_had_outside_of_a_run():
    patches.put()
    thread = threading.Thread()
    assert hash(thread) == object.__hash__(thread) == hash(thread)
