"""The model of Redis answers directed commands as the recorded server did, or refuses them."""

from __future__ import annotations

import json

import pytest

from fencepost.hunt.models.redis.server import RedisServer
from fencepost.hunt.models.redis.session import Session
from fencepost.hunt.sim.network import Network
from fencepost.hunt.sim.unknown import Unknown
from fencepost.hunt.sim.world import Node, World
from tests.hunt.models.directed import GROUPS, RECORD, line, masked

RECORDED = json.loads(RECORD.read_text())
REFUSED = """
SELECT 1
SCRIPT DEBUG YES
XREAD BLOCK 0 STREAMS x 0
XSETID x 5
GEOADD x 1 2 a
CONFIG GET port
CONFIG SET maxmemory 1
CONFIG SET notify-keyspace-events Km
SSUBSCRIBE a
PUBSUB SHARDCHANNELS
CLIENT TRACKING ON
OBJECT ENCODING a
NONSENSE a b
EVAL "return cjson.encode({1})" 0
EVAL "return pcall(function() return cjson.encode({1}) end)" 0
EVAL "return bit.band(7, 2)" 0
EVAL "return cmsgpack.pack(1)" 0
EVAL "redis.setresp(3)" 0
EVAL "return redis.acl_check_cmd('get', 'a')" 0
EVAL "return redis.call('select', 1)" 0
EVAL "return redis.call('nonsense')" 0
EVAL "return math.random(0)" 0
EVAL "return {map={a=1}}" 0
EVAL "return {set={a=true}}" 0
EVAL "return {big_number='1'}" 0
EVAL "error({code=1})" 0
EVAL "#!lua flags=no-writes\\nreturn 1" 0
""".strip().splitlines()
"""Commands that the model lacks. The last but one crashes Redis 7.0."""


class Line:
    """The server's end of a connection; it keeps the messages that answer no request."""

    client, open = Node("client", 0), True

    def __init__(self):
        self.said = b""

    def say(self, data):
        self.said += data

    def hang_up(self):
        self.open = False


class Model:
    """The model, with connections."""

    def __init__(self):
        self.server = RedisServer("redis-1", 0, Network(World(), None), "none")
        self.sessions: dict[int, Session] = {}

    def ask(self, one):
        session = self.sessions.get(one.connection)
        if session is None:
            session = self.sessions[one.connection] = self.server.session()
            session.line = Line()
        data, session.line.said = session.line.said, b""
        for command in session.commands(one.data):
            data += session.encoded(command, session.execute(self.server, command))
            if session.over:
                break
        assert session.over == one.closes
        if session.over:
            del self.sessions[one.connection]
        return masked(data)


@pytest.mark.parametrize("name", GROUPS)
def test_the_model_answers_as_redis_did(name):
    model = Model()
    answers = [[text, model.ask(line(text)).decode("latin-1")] for text in GROUPS[name]]
    assert answers == RECORDED[name]


@pytest.mark.parametrize("text", REFUSED)
def test_a_command_without_a_model_is_refused_with_a_sentence(text):
    with pytest.raises(Unknown, match=r"^(the model of Redis has|a script) .*[a-z0-9]"):
        Model().ask(line(text))


def test_every_group_has_recorded_replies():
    assert list(GROUPS) == list(RECORDED)
    assert sum(map(len, RECORDED.values())) > 1000
