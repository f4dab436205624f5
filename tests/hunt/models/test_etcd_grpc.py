"""gRPC to the model of etcd: it answers as etcd 3.4 and 3.5 do, and sends the same events."""

from __future__ import annotations

import base64
from random import Random

import pytest

from fencepost.hunt.models.etcd import protobuf
from fencepost.hunt.sim.unknown import Unknown
from tests.hunt.models.etcd_real import started
from tests.hunt.models.grpc_client import DATA, HEADERS, PATHS, Modelled, Real, frame

STEPS = 400


def coded(text):
    return base64.b64encode(text.encode()).decode()


NAMES = [coded(f"/lock/{name}") for name in ("a", "b", "c")]
FOLDER = {"key": coded("/lock/"), "range_end": coded("/lock0")}


def plain(body):
    """Leave out what differs between clusters, and zeros."""
    if isinstance(body, dict):
        left = ("cluster_id", "member_id", "raft_term")
        found = {name: plain(one) for name, one in body.items() if name not in left}
        return {name: one for name, one in found.items() if one not in ("0", False, {}, [], "")}
    return [plain(one) for one in body] if isinstance(body, list) else body


def drawn_op(random):
    key = random.choice(NAMES)
    kind = random.choice(("request_put", "request_range", "request_delete_range"))
    if kind == "request_put":
        lease = str(random.randrange(3))
        return {kind: {"key": key, "value": coded(str(random.randrange(9))), "lease": lease}}
    return {kind: random.choice(({"key": key}, FOLDER))}


def drawn(random):
    """Draw a call: its kind and its request."""
    key, kind = random.choice(NAMES), random.randrange(9)
    if kind == 0:
        return "Range", random.choice(({"key": key}, FOLDER))
    if kind == 1:
        order = random.choice(({}, {"sort_order": "DESCEND"}, {"sort_order": "ASCEND"}))
        more = {"sort_target": "CREATE", "limit": "1", **order}
        if random.random() < 0.5:
            more["max_create_revision"] = str(random.randrange(1, 60))
        return "Range", FOLDER | more
    if kind in (2, 3):
        (asked,) = drawn_op(random).values()
        return ("Put" if "value" in asked else "DeleteRange"), {
            name: one for name, one in asked.items() if "value" in asked or name != "lease"
        }
    if kind in (4, 5):
        revision = str(random.choice((0, 0, random.randrange(60))))
        target = random.choice(("CREATE", "MOD", "VERSION"))
        field = {"CREATE": "create_revision", "MOD": "mod_revision", "VERSION": "version"}[target]
        return "Txn", {
            "compare": [{"key": key, "target": target, field: revision}],
            "success": [drawn_op(random) for _ in range(random.randrange(3))],
            "failure": [drawn_op(random) for _ in range(random.randrange(2))],
        }
    number = str(1 + random.randrange(2))
    if kind == 6:
        return "LeaseGrant", {"TTL": "5000", "ID": number}
    return ("LeaseRevoke" if kind == 7 else "LeaseKeepAlive"), {"ID": number}


@pytest.mark.parametrize("name", ["etcd", "etcd-3.5"])
@pytest.mark.parametrize("seed", range(3))
def test_random_calls_are_answered_and_watched_as_by_etcd(tmp_path, name, seed):
    with started(name, tmp_path) as (version, port):
        both = Real(port), Modelled(version, cut=7)
        try:
            compare(*both, Random(f"{seed}"))
        finally:
            for one in both:
                one.close()


def compare(real, model, random):
    watches = [[], []]
    for step in range(STEPS):
        if step % 100 == 50:
            body = {
                "create_request": random.choice((FOLDER, {"key": NAMES[0]}))
                | random.choice(({}, {"start_revision": str(random.randrange(1, step))}))
                | random.choice(({}, {}, {"filters": ["NOPUT"]}, {"filters": ["NODELETE"]}))
            }
            for client, mine in zip((real, model), watches, strict=True):
                stream = client.begin("Watch")
                client.say(stream, body)
                client.until(lambda client=client, stream=stream: client.answers[stream])
                mine.append(stream)
        kind, body = drawn(random)
        told, answered = real.call(kind, body), model.call(kind, body)
        if told[0][0]:
            assert answered[0] == told[0], (kind, body)
        assert plain(answered[1]) == plain(told[1]), (kind, body)
    assert any(told_events(model, stream) for stream in watches[1])
    for stream, other in zip(*watches, strict=True):
        wanted = told_events(model, other)
        real.until(
            lambda stream=stream, wanted=wanted: len(told_events(real, stream)) >= len(wanted)
        )
        assert plain(told_events(real, stream)) == plain(wanted)


def told_events(client, stream):
    return [event for answer in client.answers[stream] for event in answer.get("events", ())]


def test_a_message_has_the_bytes_of_protobuf():
    """As `protoc --encode` writes it."""
    body = {"key": coded("a"), "value": coded("b"), "lease": "300"}
    assert protobuf.encode("PutRequest", body).hex() == "0a0161120162" + "18ac02"
    assert protobuf.decode("PutRequest", bytes.fromhex("0a016112016218ac02")) == body
    assert protobuf.encode("LeaseRevokeRequest", {"ID": "-1"}).hex() == "08" + "ff" * 9 + "01"
    assert protobuf.decode("LeaseRevokeRequest", bytes.fromhex("08" + "ff" * 9 + "01")) == {
        "ID": "-1"
    }
    # Repeated numbers may be packed.
    packed = {"filters": ["NOPUT", "NODELETE"]}
    assert protobuf.decode("WatchCreateRequest", bytes.fromhex("2a020001")) == packed
    assert protobuf.decode("WatchCreateRequest", bytes.fromhex("28002801")) == packed


@pytest.mark.parametrize("data", ["0a05", "0a", "ff", "9a0600", "0d00000000"])
def test_bytes_that_are_no_message_are_refused(data):
    with pytest.raises(Unknown):
        protobuf.decode("PutRequest", bytes.fromhex(data))


def test_a_watch_that_is_cancelled_hears_no_more():
    client = Modelled()
    stream = client.begin("Watch")
    client.say(stream, {"create_request": FOLDER})
    client.say(stream, {"create_request": {"key": NAMES[1]}})
    client.say(stream, {"cancel_request": {}})
    assert [plain(one) for one in client.answers[stream]] == [
        {"header": {"revision": "1"}, "created": True},
        {"header": {"revision": "1"}, "watch_id": "1", "created": True},
        {"header": {"revision": "1"}, "canceled": True},
    ]
    client.call("Put", {"key": NAMES[1], "value": coded("v")})
    (event,) = told_events(client, stream)
    assert event["kv"]["key"] == NAMES[1] and client.answers[stream][-1]["watch_id"] == "1"
    client.close()
    client.call("Put", {"key": NAMES[1], "value": coded("w")})
    assert len(told_events(client, stream)) == 1


def test_a_request_may_come_before_the_end_of_its_stream():
    client = Modelled()
    stream = client.begin("Put")
    client.say(stream, {"key": NAMES[0]})
    assert client.status[stream] == (0, "") and len(client.answers[stream]) == 1
    client.send(frame(DATA, 1, stream))
    other = client.begin("Put")
    with pytest.raises(Unknown, match="without a request"):
        client.send(frame(DATA, 1, other))


def test_keepalives_of_one_stream_are_answered_in_order_until_it_ends():
    client = Modelled()
    client.call("LeaseGrant", {"ID": "7", "TTL": "60"})
    stream = client.begin("LeaseKeepAlive")
    for number in ("7", "8"):
        client.say(stream, {"ID": number})
    told = [(one["ID"], one.get("TTL")) for one in client.answers[stream]]
    assert told == [("7", "60"), ("8", None)] and stream not in client.status
    client.send(frame(DATA, 1, stream))
    assert client.status[stream] == (0, "")


def test_a_watch_at_a_paused_server_hears_of_a_change_once_it_continues():
    client = Modelled()
    stream = client.begin("Watch")
    client.say(stream, {"create_request": FOLDER})
    client.server.paused_until = 10
    client.cluster.state.execute("kv/put", {"key": NAMES[0]}, 0)
    client.cluster.watches.notify()
    assert not told_events(client, stream)
    (due, _, event) = client.world.queue[0]
    assert event.node is client.server and due == client.world.now


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("/etcdserverpb.Auth/Authenticate", "no call /etcdserverpb.Auth/Authenticate"),
        ("/v3lockpb.Lock/Lock", "no call /v3lockpb.Lock/Lock"),
    ],
)
def test_a_call_that_the_model_lacks_is_named(path, why, monkeypatch):
    monkeypatch.setitem(PATHS, "Put", path)
    client = Modelled()
    with pytest.raises(Unknown, match=why):
        client.call("Put", {"key": NAMES[0]})


@pytest.mark.parametrize(
    "data", [b"PRI * HTTP/9.9\r\n\r\nSM\r\n\r\n", frame(HEADERS, 4, 1, b"\xff")]
)
def test_a_connection_that_speaks_no_grpc_is_refused(data):
    client = Modelled()
    if data.startswith(b"PRI"):
        client.session = client.server.session()
    with pytest.raises(Unknown, match="the model of etcd cannot read its gRPC"):
        client.send(data)
