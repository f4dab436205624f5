"""The messages of a counterexample are those of its run: each one, with its fate."""

from __future__ import annotations

import json

import msgspec
import pytest

from fencepost.hunt.faults.registry import table
from fencepost.hunt.models.etcd import words as etcd
from fencepost.hunt.models.redis import words as redis
from fencepost.hunt.run import Run
from fencepost.hunt.sim.schedule import Schedule
from fencepost.hunt.story.messages import MOST, Message, messages, to_json
from fencepost.runfiles import messages as read

SET = "SET lock:orders … NX PX 2000"


def named(one, words):
    """Return the number of the first action whose fault has these words."""
    for number, action in enumerate(table(one), 1):
        run = Run(one, Schedule(), ())
        action.inject(run, None)
        if any(words in str(row[4]["arguments"]["words"]) for row in run.rows):
            return number
    raise AssertionError(words)


def played(one, *injections):
    run = Run(one, Schedule((), tuple(injections)), table(one)).execute()
    return run, messages(run, Schedule((), tuple(injections)))


def between(found, source, to, **fields):
    return [
        m for m in found
        if (m.source, m.to) == (source, to) and all(getattr(m, k) == v for k, v in fields.items())
    ]  # fmt: skip


@pytest.fixture
def kleppmann(setting):
    """Play his schedule of 2016, as `hunt redlock --faults clock,partition --seed 5` finds it."""
    one = setting("redlock", "clock,partition")
    cut = named(one, "client-1 is cut off from redis-4")
    jump = named(one, "the clock of redis-1 jumps ahead by 2.2 s")
    return played(one, (1, cut), (44, jump))


def test_each_request_of_a_grant_is_there_with_its_answer(kleppmann):
    _, found = kleppmann
    for server in ("redis-1", "redis-2", "redis-3"):
        first = between(found, "client-1", server)[0]
        reply = next(m for m in found if m.reply and m.call == first.call)
        assert (first.words, first.f, first.fate) == (SET, "acquire", "")
        assert (reply.words, reply.denied, reply.fate) == ("OK", False, "")
        assert first.sent_ns < first.arrived_ns == reply.sent_ns < reply.arrived_ns


def test_a_request_that_is_refused_the_key_has_an_answer_that_denies(kleppmann):
    _, found = kleppmann
    nil = between(found, "redis-2", "client-2", words="nil")
    assert nil and all(m.denied for m in nil)


def test_a_cut_shows_as_a_connection_that_was_not_opened(kleppmann):
    _, found = kleppmann
    tries = between(found, "client-1", "redis-4", fate="refused")
    assert tries[0].words == "connect, no answer in 50 ms"
    assert tries[0].arrived_ns - tries[0].sent_ns == 50_000_000
    assert between(found, "client-2", "redis-4", fate="refused") == []


def test_accesses_of_the_resource_say_versions_and_tokens(kleppmann):
    _, found = kleppmann
    storage = [m.words for m in found if "storage" in (m.source, m.to)][:8]
    assert storage == ["read", "version 0"] * 2 + [
        "write on version 0, no token", "version 1", "write on version 0, no token", "version 2",
    ]  # fmt: skip


def test_no_messages_are_shown_if_the_replay_has_other_ops(kleppmann):
    run, _ = kleppmann
    assert messages(run, Schedule()) == []


def test_a_message_that_is_held_back_is_late(setting):
    one = setting("redis", "delay", guard="none")
    _, found = played(one, (9, 1))
    late = [m for m in found if m.fate]
    assert [(m.fate, m.source, m.to, m.words) for m in late] == [
        ("late", "client-1", "storage", "read")
    ]
    assert late[0].arrived_ns - late[0].sent_ns > 2_000_000_000
    answer = next(m for m in found if m.reply and m.call == late[0].call)
    assert answer.sent_ns == late[0].arrived_ns


def test_a_lost_request_has_no_answer_and_a_lost_reply_was_sent(setting):
    one = setting("redis", "packet")
    seen = set()
    for step in range(1, 16):
        _, found = played(one, (step, 1))
        lost = next(m for m in found if m.fate == "lost")
        exchange = [m.reply for m in found if m.call == lost.call]
        assert (lost.arrived_ns, exchange) == (None, [False, True][: lost.reply + 1])
        seen.add(lost.reply)
    assert seen == {False, True}


def test_a_request_to_a_crashed_server_meets_nobody(setting):
    one = setting("redis", "kill")
    _, found = played(one, (6, named(one, "redis-1 crashes")))
    assert found[0].fate == "dead"
    assert not any(m.reply for m in found if m.call == found[0].call)


def test_a_message_of_a_library_shows_its_commands_and_not_those_of_the_connection(setting):
    one = setting("redis-py", "clock")
    _, found = played(one)
    words = {m.words for m in found if m.to == "redis-1"}
    assert "SET orders … NX PX 2000" in words
    assert not any(word.startswith(("HELLO", "CLIENT")) for word in words)


@pytest.mark.parametrize("lock", ["redis", "redlock", "redis-replicated", "etcd", "etcd-lock-api"])
def test_every_message_of_an_undisturbed_run_arrives(setting, lock):
    _, found = played(setting(lock, "pause"))
    done = [m for m in found if m.f != "close"]
    assert len(done) > 10
    assert {m.fate for m in done} <= {"", "unread"}
    assert all(m.words for m in done)


def test_the_file_has_the_last_messages_and_can_be_read_back(tmp_path):
    one = Message("client-1", "redis-1", 1, None, "SET", "lost", 7, f="acquire")
    made = to_json([one] * (MOST + 5))
    (tmp_path / "messages.json").write_bytes(msgspec.json.encode(made))
    found = read(tmp_path / "messages.json")
    assert (len(found.messages), found.left_out) == (MOST, 5)
    assert found.messages[0].words == "SET" and found.messages[0].arrived_ns is None
    assert found.messages[0].fate == "lost"


@pytest.mark.parametrize("text", ["[]", '{"messages": 7}', '{"messages": [{"source": 1}]}', "{"])
def test_a_damaged_file_is_refused(tmp_path, text):
    (tmp_path / "messages.json").write_text(text)
    with pytest.raises(ValueError):
        read(tmp_path / "messages.json")


def test_commands_are_described_without_their_random_values():
    script = "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end"
    assert redis.asked(("EVAL", script, 1, "lock:orders", "f" * 40)) == "EVAL get·del lock:orders"
    assert redis.asked((b"set", b"k1", b"v", b"NX", b"PX", b"3000")) == "SET k1 v NX PX 3000"
    assert len(redis.asked(("SET", "k" * 500, *["x"] * 100))) <= 40
    assert redis.asked(("GET", "a\nb <script>")) == "GET a b <script>"


def test_requests_to_etcd_are_described_by_their_keys():
    grant = ("lease/grant", json.dumps({"TTL": 2}).encode())
    assert etcd.asked(grant) == "lease/grant TTL 2"
    body = {"success": [{"request_put": {"key": "bG9jay9hYg==", "value": ""}}]}
    assert etcd.asked(("kv/txn", json.dumps(body).encode())) == "kv/txn put lock/ab"
    assert etcd.answered(("kv/txn", b""), (200, b"{}")) == "not succeeded"
    assert etcd.answered(("kv/txn", b""), (400, b'{"message": "gone"}')) == "error gone"
    assert etcd.asked(("kv/range", b"no json")) == "kv/range"


def test_connections_on_which_servers_send_unasked_have_no_picture(setting):
    run, found = played(setting("zookeeper", ""))
    assert run.rows
    assert found == []
