"""Unmodified locks with connections of their own run on patched sockets, clocks and threads."""

from __future__ import annotations

import gc
import random
import socket
import threading
import time
import uuid
from pathlib import Path
from random import Random

import pytest

from fencepost.harness.errors import BadArguments, Crashed
from fencepost.harness.spec import from_arguments
from fencepost.harness.spec.simulation import setting_of
from fencepost.harness.userlock.resolve import LockRequest, resolve
from fencepost.hunt.faults.registry import table
from fencepost.hunt.intercept import watch
from fencepost.hunt.lock_error import LockError
from fencepost.hunt.models.redis.decoder import Decoder
from fencepost.hunt.models.redis.resp import encoded
from fencepost.hunt.run import Run
from fencepost.hunt.search.draw import Drawer
from fencepost.hunt.search.hunt import hunt
from fencepost.hunt.search.search import search
from fencepost.hunt.sim import record
from fencepost.hunt.sim.schedule import Schedule
from fencepost.hunt.sim.unknown import Unknown
from fencepost.hunt.story.story import numbered
from tests.hunt.processes import assert_same_digest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[3]
HERE = Path(__file__).parents[1]


def own(name, faults="pause,partition", until=None, file="locks", **options):
    lock, found = resolve(f"{HERE / file}.py:{name}", LockRequest(servers="redis:1"))
    spec = from_arguments.spec(lock, options, {"concurrency": 2, "seed": 1}, found)
    return setting_of(spec, faults, until, False)


def undisturbed(one):
    return Run(one, Schedule(), table(one)).execute()


def test_redis_pys_own_lock_runs_on_simulated_sockets_and_a_clock_jump_breaks_it(setting):
    one = setting("redis-py", "clock")
    _, found = hunt(one, 1, 60, processes=1)
    assert found is not None
    story = "\n".join(numbered(found.story))
    assert "is granted the lock by redis-1" in story
    assert "The clock of redis-1 jumps" in story


@pytest.mark.parametrize("name", ["Right", "Raw", "Renews", "Counts", "Waits", "Pools"])
def test_a_user_lock_works_without_faults(name):
    run = undisturbed(own(name))
    assert run.came_back
    assert [row[3] for row in run.rows if row[2:4] == ("ok", "write")] == ["write"] * 2


ENDS = """
import os

class Ends:
    def __init__(self, servers):
        os.{call}

    acquire = extend = release = lambda self, name, ttl=0: True
"""


@pytest.mark.parametrize("call", ["_exit(1)", "abort()", "kill(os.getpid(), 9)", "fork()"])
def test_a_lock_that_ends_its_process_does_not_end_the_hunt(tmp_path, call):
    (tmp_path / "ends.py").write_text(ENDS.format(call=call))
    lock, found = resolve(f"{tmp_path}/ends.py:Ends", LockRequest(servers="redis:1"))
    spec = from_arguments.spec(lock, {}, {"concurrency": 2, "seed": 1}, found)
    one = setting_of(spec, "pause", None, False)
    with pytest.raises(Unknown, match=rf"it calls os\.{call.partition('(')[0]}, and "):
        hunt(one, 1, 1, processes=1)


def test_a_release_without_an_owner_check_is_a_counterexample():
    _, found = hunt(own("Deletes", "pause", "ownership"), 1, 60, processes=1)
    assert found is not None
    assert "ownership is violated" in numbered(found.story)[-1]


def test_a_release_with_an_owner_check_has_no_counterexample():
    tried = search(own("Right", "pause,partition"), 1, 60, 1, most=60)
    assert tried.found is None
    assert tried.failure == ""


HISTORIES = """
import hashlib, sys
from random import Random
sys.path.insert(0, sys.argv[1])
from tests.hunt.intercept.test_outside import drawn, own
from fencepost.hunt.sim import record

found = hashlib.sha256()
for name in ("Right", "Renews"):
    for run in drawn(own(name, None, wait_s="1"), 8):
        found.update(record.lines(run.rows))
print(found.hexdigest())
"""


def drawn(one, count):
    actions, chance = table(one), Random(5)
    drawer = Drawer(one, actions, 100, {})
    for _ in range(count):
        schedule, aims = drawer.draw(chance)
        yield Run(one, schedule, actions, aims=aims).execute()


def test_its_histories_are_the_same_bytes_in_every_process():
    assert_same_digest(HISTORIES, str(ROOT))


def test_a_run_of_a_user_lock_is_replayed_from_its_list_of_integers():
    one = own("Renews", None)
    for run in drawn(one, 10):
        again = Run(one, run.exact_schedule, table(one)).execute()
        assert record.lines(again.rows) == record.lines(run.rows)


def test_garbage_collection_takes_no_step():
    one = own("Leaves", None)
    lines = set()
    before = gc.get_threshold()
    try:
        for threshold in (1, 40, 700):
            gc.set_threshold(threshold, 2, 2)
            lines.add(b"".join(record.lines(run.rows) for run in drawn(one, 4)))
    finally:
        gc.set_threshold(*before)
    assert len(lines) == 1


def test_another_thread_takes_no_step_of_a_run():
    over, looks = threading.Event(), []

    def look():
        while not over.is_set():
            looks.append(time.monotonic())

    one = own("Renews", None)
    quiet = [record.lines(run.rows) for run in drawn(one, 4)]
    thread = threading.Thread(target=look)
    thread.start()
    try:
        beside = [record.lines(run.rows) for run in drawn(one, 4)]
    finally:
        over.set()
        thread.join()
    assert looks and beside == quiet


def test_outside_of_a_run_nothing_is_patched():
    undisturbed(own("Right"))
    random.seed(3)
    before = random.random()
    random.seed(3)
    undisturbed(own("Renews"))
    assert random.random() == before
    begun = time.monotonic()
    time.sleep(0.01)
    assert 0.01 <= time.monotonic() - begun < 120
    assert uuid.uuid4() != uuid.uuid4()
    with socket.create_server(("127.0.0.1", 0)) as server:
        near = socket.create_connection(server.getsockname(), 120)
        far, _ = server.accept()
        near.sendall(b"there")
        assert far.recv(5) == b"there"
        near.close()
        far.close()
    seen = threading.Event()
    thread = threading.Thread(target=seen.set)
    thread.start()
    thread.join(120)
    assert seen.is_set()


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("NoOrders", "the model of Redis has no command GEOADD"),
        ("Elsewhere", "example.org, which is not one of its servers"),
    ],
)
def test_an_unsimulated_call_is_named(name, said):
    with pytest.raises(Unknown, match=said):
        undisturbed(own(name))


def test_a_user_lock_that_raises_is_reported_with_its_line():
    with pytest.raises(LockError, match=r"name 'undefined' is not defined.*at step"):
        undisturbed(own("Raises"))


def test_with_several_processes_it_is_reported_as_well():
    with pytest.raises(LockError, match="undefined"):
        search(own("Raises"), 1, 10, processes=2)
    with pytest.raises(Unknown, match="GEOADD"):
        search(own("NoOrders"), 1, 10, processes=2)


def test_the_counterexample_is_the_same_with_any_number_of_processes():
    one = own("Deletes", "pause", "ownership")
    alone, together = (search(one, 2, 60, processes) for processes in (1, 2))
    assert alone.found == together.found
    assert alone.found is not None


def test_a_user_lock_that_never_takes_a_step_is_ended_and_reported(monkeypatch):
    monkeypatch.setattr(watch, "_LONGEST_S", 0.5)
    with pytest.raises(Crashed, match=r"does not terminate \(.*locks.py:\d+\), at step"):
        own("Spins")


def test_a_pool_of_threads_of_one_client_never_waits_for_that_of_another(monkeypatch):
    monkeypatch.setattr(watch, "_LONGEST_S", 1)
    one = own("Pools", "pause")
    actions = table(one)
    pause = 1 + next(n for n, action in enumerate(actions) if action.way == "client")
    steps = undisturbed(one).world.step
    for step in range(1, steps // 2):
        # It would raise, for a lock that does not terminate.
        assert Run(one, Schedule((), ((step, pause),)), actions).execute().injected


def test_a_file_that_imports_a_module_without_a_replacement_is_refused():
    with pytest.raises(BadArguments, match="imports subprocess, and other processes are not"):
        own("Starts", file="other_processes")


def test_commands_are_read_however_they_are_cut_into_pieces():
    data = b"*3\r\n$3\r\nSET\r\n$1\r\na\r\n$2\r\n\xff\xfe\r\nPING\r\n*1\r\n$4\r\nQUIT\r\n"
    whole = Decoder().feed(data)
    for at in range(len(data)):
        decoder = Decoder()
        assert decoder.feed(data[:at]) + decoder.feed(data[at:]) == whole
    assert [command[0] for command in whole] == ["SET", "PING", "QUIT"]
    assert encoded(whole[0][2], 2) == b"$2\r\n\xff\xfe\r\n"
    assert encoded([1, None, ["x"]], 2) == b"*3\r\n:1\r\n$-1\r\n*1\r\n$1\r\nx\r\n"
    assert encoded(None, 3) == b"_\r\n"
