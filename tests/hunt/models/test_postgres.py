"""The model of PostgreSQL answers as PostgreSQL 15 does, and refuses queries that it lacks."""

from __future__ import annotations

import json
import os
import pwd
import random
import signal
import socket
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from fencepost.hunt.models.postgres.pooler import PgBouncer
from fencepost.hunt.models.postgres.settings import Settings
from fencepost.hunt.sim.network import Network
from fencepost.hunt.sim.unknown import Unknown
from fencepost.hunt.sim.world import World
from fencepost.workloads.contract.lock import Env, Failed
from fencepost.workloads.locks.registry import LOCKS
from fencepost.workloads.transport.postgres_link import PostgresLink, Refused

dialogue = pytest.importorskip("tests.hunt.models.postgres_dialogue")
directed = pytest.importorskip("tests.hunt.models.postgres_directed")
BIN = Path("/usr/lib/postgresql/15/bin")
HOST, START_S = "127.0.0.1", 60.0
DIALOGUES, STEPS = 5, 150


def test_the_model_answers_a_recorded_dialogue_as_postgresql_15_did() -> None:
    model = dialogue.Modelled()
    for number, (step, told) in enumerate(json.loads(dialogue.RECORD.read_text())):
        assert json.loads(json.dumps(model.step(step))) == told, f"step {number}: {step}"


def test_the_recorded_dialogue_has_errors_warnings_deadlocks_and_cancelled_statements() -> None:
    record = json.loads(dialogue.RECORD.read_text())
    messages = [one for _, told in record for its in told.values() for one in its]
    codes = Counter(one[2] for one in messages if one[0] in "EN")
    assert {"23505", "25P02", "40P01", "55P03", "57014", "01000", "42P01", "22P02"} <= set(codes)
    tags = {one[1].split(" ")[0].strip("\0") for one in messages if one[0] == "C"}
    assert {"INSERT", "UPDATE", "DELETE", "SELECT", "BEGIN", "COMMIT", "SAVEPOINT"} <= tags


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, int]]:
    """Start Debian's PostgreSQL 15 on this machine, for these tests alone."""
    if not (BIN / "initdb").exists() or os.getuid() != 0:
        pytest.skip("Debian's package `postgresql-15` is not installed, or root is not the user")
    user = pwd.getpwnam("postgres")
    folder = Path(subprocess.check_output(["mktemp", "-d"], text=True).strip())
    os.chown(folder, user.pw_uid, user.pw_gid)
    with closing(socket.socket()) as free:
        free.bind((HOST, 0))
        port = free.getsockname()[1]
    become = ["setpriv", "--reuid", "postgres", "--regid", "postgres", "--init-groups"]
    data = str(folder / "data")
    made = [*become, str(BIN / "initdb"), "-A", "trust", "-E", "UTF8", "--no-locale", "-D", data]
    subprocess.run(made, check=True, capture_output=True, cwd=folder)
    options = ["-c", "fsync=off", "-c", f"deadlock_timeout={dialogue.DEADLOCK_MS}ms"]
    where = ["-D", data, "-p", str(port), "-h", HOST, "-k", str(folder)]
    server = subprocess.Popen(
        [*become, str(BIN / "postgres"), *where, *options],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=folder,
    )  # fmt: skip
    try:
        end = time.monotonic() + START_S
        ready = [str(BIN / "pg_isready"), "-q", "-h", HOST, "-p", str(port)]
        while subprocess.run(ready, check=False).returncode:
            assert time.monotonic() < end and server.poll() is None, "it does not start"
            time.sleep(0.1)
        yield HOST, port
    finally:
        server.send_signal(signal.SIGINT)  # also if a test has left a session
        server.wait()
        subprocess.run(["rm", "-rf", str(folder)], check=True)


@pytest.mark.slow
def test_random_dialogues_with_a_real_server_are_those_with_the_model(
    real: tuple[str, int],
) -> None:
    first = int(os.environ.get("FENCEPOST_MODEL_SEED") or 786_234)
    for seed in range(first, first + DIALOGUES):
        print(f"seed {seed}")
        dialogue.compare(real, seed, STEPS)


@pytest.mark.parametrize("name", directed.ROW_LOCKS)
def test_row_locks_of_the_model_wait_as_in_postgresql_15(name: str) -> None:
    steps = directed.ROW_LOCKS[name]
    found = directed.answered(dialogue.Modelled(), dialogue.SETUP, steps)
    assert [one for one, _ in found] == [expected for _, _, expected in steps]


@pytest.mark.slow
def test_row_locks_of_a_real_server_wait_as_in_the_model(real: tuple[str, int]) -> None:
    for name, steps in directed.ROW_LOCKS.items():
        side = dialogue.Real(real)
        try:
            found = directed.answered(side, dialogue.SETUP, steps)
        finally:
            side.close()
        assert [one for one, _ in found] == [expected for _, _, expected in steps], name
        assert found == directed.answered(dialogue.Modelled(), dialogue.SETUP, steps), name


def _env(address: tuple[str, int], told: list[str]) -> Env:
    def begin(work: Any) -> None:
        threading.Thread(target=work, daemon=True).start()

    return Env(
        now=time.monotonic_ns, sleep=time.sleep, random=random.Random(), connect=_unused,
        address=lambda name: address, failpoint=_unused, background=begin,
        renewed=lambda secret, deadline: None, lost=lambda secret, why: told.append(why),
        expired=told.append,
    )  # fmt: skip


def _unused(*_: Any) -> Any:
    raise AssertionError("a lock on PostgreSQL needs none of it")


@pytest.mark.parametrize(
    ("lock", "options"),
    [
        ("postgres", {"mode": "advisory", "token": "sequence"}),
        ("postgres", {"mode": "row", "token": "sequence"}),
        ("postgres-lease", {"token": "row"}),
    ],
)
@pytest.mark.slow
def test_fencepost_s_own_locks_work_on_a_real_server(
    real: tuple[str, int], lock: str, options: dict[str, str]
) -> None:
    made, told = LOCKS[lock].make, list[str]()
    assert made is not None
    if lock == "postgres":
        options = {**options, "wait_ms": "200"}
    given = LOCKS[lock].read_options({**options, "node_timeout_ms": "60000"})
    one, two = (made(_env(real, told), ["postgres-1"], given) for _ in range(2))
    name, ttl_ns = f"it's {lock} {options}", 600 * 10**9
    first = one.acquire(name, ttl_ns)
    with pytest.raises(Failed) as refused:
        two.acquire(name, ttl_ns)
    assert refused.value.kind == "not-granted"
    assert one.extend(first, ttl_ns).deadline > first.deadline  # type: ignore[operator]
    one.release(first)
    second = two.acquire(name, ttl_ns)
    assert second.token is not None and first.token is not None
    assert second.token > first.token
    two.release(second)
    if options.get("mode") != "row":  # a second COMMIT is only warned of
        with pytest.raises(Failed):
            two.release(second)
    one.close()
    two.close()
    assert not told


@pytest.mark.slow
def test_a_session_that_the_server_ends_is_reported_lost(real: tuple[str, int]) -> None:
    made, told = LOCKS["postgres"].make, list[str]()
    assert made is not None
    lock = made(_env(real, told), ["postgres-1"], LOCKS["postgres"].read_options({}))
    grant = lock.acquire("ended", 600 * 10**9)
    other = PostgresLink(real, 60.0, {})
    (ended,) = other.ask(
        "SELECT count(pg_terminate_backend(pid)) FROM pg_locks WHERE locktype = 'advisory'"
    )
    assert ended == ["1"]
    with pytest.raises(Failed):
        lock.extend(grant, 600 * 10**9)
    with pytest.raises(Refused) as refused:
        other.ask("SELECT 1 FROM nowhere")
    assert refused.value.code == "42P01"
    assert other.ask("SELECT NULL; SELECT 7") == [[None], ["7"]]
    other.close()
    lock.close()
    assert told


@pytest.mark.parametrize(
    "sql",
    [
        "WITH a AS (SELECT 1) SELECT * FROM a", "SELECT * FROM a, b", "LISTEN x",
        "SELECT id FROM t GROUP BY id", "SELECT * FROM pg_locks", "SELECT gen_random_uuid()",
        "BEGIN ISOLATION LEVEL SERIALIZABLE", "SET work_mem = '1MB'",
    ],
)  # fmt: skip
def test_a_query_that_the_model_lacks_is_refused(sql: str) -> None:
    with pytest.raises(Unknown, match="the model of PostgreSQL has no"):
        dialogue.Modelled().step([0, "query", sql])


def test_the_name_of_an_encoding_is_cleaned_as_postgresql_does() -> None:
    settings = Settings()
    settings.start({"client_encoding": "'utf-8'"})  # asyncpg's
    assert settings.show("client_encoding") == "UTF8"
    with pytest.raises(Unknown, match="has no client_encoding"):
        settings.set("client_encoding", "latin-1")


def test_a_parsed_query_that_the_model_lacks_is_refused_with_its_text() -> None:
    with pytest.raises(Unknown, match=r"has no join: SELECT \* FROM a, b WHERE"):
        dialogue.Modelled().step([0, "query", "SELECT * FROM a, b WHERE a.id = b.id"])


class _Clients:
    """Clients of a pooler."""

    def __init__(self) -> None:
        self.pooler = PgBouncer("pgbouncer-1", 0, Network(World(), None))
        self._clients: dict[int, Any] = {}

    def ask(self, number: int, sql: str) -> list[Any]:
        if number not in self._clients:
            client, line = self.pooler.session(), dialogue._Line()
            client.line = line
            self._clients[number] = client, line
            self._send(client, dialogue.startup())
            line.taken()
        client, line = self._clients[number]
        self._send(client, dialogue.sent([number, "query", sql]))
        return list(dialogue.Reader().feed(line.taken()))

    def _send(self, client: Any, data: bytes) -> None:
        for command in client.commands(data):
            client.execute(self.pooler, command)


def _value(messages: list[Any]) -> str:
    return str(next(one[1] for one in messages if one[0] == "D"))[-1]


def test_clients_of_a_pooler_share_a_session_and_its_advisory_locks() -> None:
    clients = _Clients()
    assert _value(clients.ask(0, "SELECT pg_try_advisory_lock(1)")) == "t"
    assert _value(clients.ask(1, "SELECT pg_try_advisory_lock(1)")) == "t"


def test_clients_of_a_pooler_have_sessions_of_their_own_in_transactions() -> None:
    clients = _Clients()
    clients.ask(0, "BEGIN")
    clients.ask(1, "BEGIN")
    assert _value(clients.ask(0, "SELECT pg_try_advisory_xact_lock(1)")) == "t"
    assert _value(clients.ask(1, "SELECT pg_try_advisory_xact_lock(1)")) == "f"
    clients.ask(0, "COMMIT")
    assert _value(clients.ask(1, "SELECT pg_try_advisory_xact_lock(1)")) == "t"
