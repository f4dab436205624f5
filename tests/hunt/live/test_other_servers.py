"""Real client programs on models of PostgreSQL, ZooKeeper and etcd, and on Redis' subscriptions:
the server sends whenever it likes."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from fencepost.harness.errors import BadArguments
from fencepost.harness.hunting.hunts import described
from fencepost.harness.hunting.programs import conductor
from fencepost.harness.judge.judge import judge
from fencepost.hunt.faults.registry import table
from fencepost.hunt.live.conductor import Job
from fencepost.hunt.search.judge import violations
from fencepost.hunt.sim.schedule import Schedule
from fencepost.strictjson import decode

pytestmark = pytest.mark.slow
HERE = Path(__file__).parent
SERVERS = {"postgres": "postgres", "zookeeper": "zookeeper:3", "etcd": "etcd:3"}
CLIENTV3 = Path("/usr/share/gocode/src/go.etcd.io/etcd/clientv3")
PATIENT = "3s"
"""On a busy machine kazoo gives up a connection of a shorter session: its clock is the real one."""


@pytest.fixture
def folder(tmp_path):
    shutil.copy(HERE.parents[2] / "sdk" / "python" / "fencepost_sdk.py", tmp_path)
    for path in ("live/programs/other.py", "live/programs/lock.py", "locks_postgres_raw.py",
                 "locks_etcd.py"):  # fmt: skip
        shutil.copy(HERE.parent / path, tmp_path)
    return tmp_path


def hunt_of(folder, servers, words, ttl=None, **more):
    program = f"{sys.executable} {words}"
    settings = {"seed": 1, "ttl": ttl or (PATIENT if "zookeeper" in servers else None)}
    return described("", {}, settings, servers=servers, program=program, ship=folder, **more)


def other(folder, kind, lock, **more):
    return hunt_of(folder, SERVERS[kind], f"other.py {kind} {lock}", **more)


def played(hunt, *schedules):
    with conductor(hunt.spec, hunt.setting, 1) as made:
        return list(made.play(Job(schedule) for schedule in schedules))


def ops(run, process):
    return [row[2:4] for row in run.rows if row[1] == process and row[2] != "invoke"]


def grants(run):
    return [row[0] for row in run.rows if row[2:4] == ("ok", "acquire")]


def numbered(hunt, kind, client=None):
    found = enumerate(table(hunt.setting), 1)
    return next(n for n, one in found if one.kind == kind and one.client == client)


@pytest.mark.parametrize("kind", SERVERS)
def test_clients_of_other_servers_play_schedules_and_stay(folder, kind):
    # Python's clients see the real clock: without the processor for a short lease, they give up.
    runs = played(other(folder, kind, "sound", ttl=PATIENT), Schedule(), Schedule())
    for run in runs:
        done = ("ok", "acquire"), ("ok", "read"), ("ok", "write"), ("ok", "release")
        assert set(done) <= set(ops(run, 0)) and set(done) <= set(ops(run, 1))
        # A request and a reply of acquire, read, write and release each.
        assert run.came_back and min(run.moments) >= 8
        assert run.unasked == (kind != "etcd")
    assert runs[0].programs == runs[1].programs


def test_a_session_of_zookeeper_ends_while_its_client_is_paused(folder):
    hunt = other(folder, "zookeeper", "sound", faults="pause:client")
    # client-2 asks once client-1 is paused, and again when its session has ended.
    pause = numbered(hunt, "pause", 0)
    runs = played(hunt, *(Schedule((), ((1 + 2 * place, pause),)) for place in range(9, 12)))
    assert any(len(grants(run)) > 1 for run in runs)
    for run in runs:
        (begun,) = [row[0] for row in run.rows if row[3] == "pause" and row[2] == "ok"][:1]
        later = [at for at in grants(run) if at > begun]
        assert not run.hung and later, "nobody got the lock after the pause"


def test_a_connection_with_a_lost_message_is_reset(folder):
    hunt = other(folder, "postgres", "sound", faults="packet/loss")
    loss = numbered(hunt, "packet/loss")
    (run,) = played(hunt, Schedule((), ((1, loss),)))
    assert run.injected == [(1, loss)] and not run.hung
    # The client gave up by its own timeout, and asked again on another connection.
    assert ("info", "acquire") in ops(run, 0) and run.came_back


def test_a_release_of_anothers_key_is_found_on_etcd_and_stored_without_a_scenario(
    folder, monkeypatch
):
    monkeypatch.chdir(folder)
    hunt = other(folder, "etcd", "deletes-anothers", faults="pause:client", budget="1200s")
    tried, find = hunt.carry_out(8)
    assert find is not None and {"lease_exclusion", "ownership"} & set(find.broken)
    outcome, made = hunt.store(tried, find, "the command")
    assert made is None and (outcome.folder / "report.html").exists()
    assert (outcome.folder / "schedule.json").exists()
    assert not (outcome.folder / "scenario.json").exists()


@pytest.mark.skipif(
    not shutil.which("go") or not CLIENTV3.exists(), reason="needs go and golang-etcd-server-dev"
)
def test_gos_own_lock_on_etcd_plays_schedules_over_grpc(tmp_path):
    build = HERE.parents[2] / "sdk" / "examples" / "etcd-mutex" / "build.sh"
    subprocess.run([build, tmp_path], check=True)
    hunt = described(
        "", {}, {"seed": 1, "ttl": "2s"}, servers="etcd:1", program="./worker", ship=tmp_path,
        faults="kill:client",
    )  # fmt: skip
    # client-1 dies while it holds the lock; its session keeps the key until the lease ends.
    killed = Schedule((), ((15, numbered(hunt, "kill", 0)),))
    usual, dead = played(hunt, Schedule(), killed)
    first, second = sorted(grants(usual))[:2]
    (freed,) = [row[0] for row in usual.rows if row[1:4] == (0, "ok", "release")]
    # A watch tells the waiter of the release: it waits for no lease.
    assert first < freed < second < freed + 100_000_000
    assert usual.unasked and usual.came_back
    assert dead.injected and not dead.hung
    first, second = sorted(grants(dead))[:2]
    assert second - first > 1_000_000_000


def test_a_waiter_hears_of_a_release_by_a_subscription(folder):
    (run,) = played(hunt_of(folder, "redis:1", "lock.py waits"), Schedule())
    assert run.unasked and run.came_back
    first, second = sorted(grants(run))[:2]
    freed = min(row[0] for row in run.rows if row[2:4] == ("ok", "release"))
    # It is woken at once, and not at the end of its patience of two leases.
    assert first < second < freed + 75_000_000


def test_silence_taken_for_consent_is_found_on_postgres_and_stored_without_a_scenario(
    folder, monkeypatch
):
    monkeypatch.chdir(folder)
    hunt = other(
        folder, "postgres", "silence-is-consent", faults="packet/loss,delay", budget="1200s"
    )
    with pytest.raises(BadArguments, match="can be replayed on real servers of redis only"):
        hunt.must_have_servers()
    tried, find = hunt.carry_out(8)
    assert find is not None and "lease_exclusion" in find.broken
    # A lost message may end a session, so the reference lock was asked: it survives such faults.
    assert not find.compared.inherent and find.compared.lock == "postgres"
    outcome, made = hunt.store(tried, find, "the command")
    assert made is None and (outcome.folder / "report.html").exists()
    assert (outcome.folder / "schedule.json").exists()
    assert not (outcome.folder / "scenario.json").exists()
    test = decode((outcome.folder / "test.json").read_bytes())
    assert set(test["session_ends"]) == {"client-1", "client-2"}
    assert judge(outcome.folder).verdicts["lease_exclusion"].valid is False


@pytest.mark.parametrize("place", range(8))
def test_a_sound_client_of_postgres_with_a_lost_message_is_not_accused(folder, place):
    hunt = other(folder, "postgres", "sound", faults="packet/loss")
    loss = numbered(hunt, "packet/loss")
    # client-2 asks while client-1 waits for its answer, and holds the lock then.
    (run,) = played(hunt, Schedule((0, 0, 2, 0, 0, 2, 1), ((1 + 2 * place, loss),)))
    assert run.injected and not violations(run, ("lease_exclusion", "linearizable"), surely=True)
