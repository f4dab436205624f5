"""A memory limit is proved by the server's behaviour, not by its settings."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from fencepost.nemesis import memory
from fencepost.nemesis.memory import Memory
from fencepost.nemesis.nemesis import Fault


@dataclass
class Redis:
    """A server, as far as the nemesis uses it. `deaf`: it accepts settings and ignores them."""

    deaf: bool = False
    config: dict[str, str] = field(default_factory=lambda: {"maxmemory": "0"})
    used: int = 1 << 20
    evicted: int = 0
    filled: set[int] = field(default_factory=set)
    clock: list[int] = field(default_factory=list)
    filled_at: list[int] = field(default_factory=list)

    def run(self, argv, *, timeout_s=10.0, check=True):
        return type("Result", (), {"code": 0, "out": self.answer(*argv[1:])})()

    def answer(self, verb, *words):
        if verb == "info":
            shown = f"lru_clock:{self.clock.pop(0)}\n" if self.clock else ""
            return f"{shown}# Memory\nused_memory:{self.used}\nevicted_keys:{self.evicted}\n"
        if verb == "config" and words[0] == "get":
            return f"{words[1]}\n{self.config[words[1]]}\n"
        if verb == "config":
            if not self.deaf:
                self.config[words[1]] = words[2]
            return "OK\n"
        assert verb == "eval"
        if "del" in words[0]:
            self.used -= 10_240 * len(self.filled)
            self.filled.clear()
            return "\n"
        return self.fill(int(words[2]), int(words[3]))

    def fill(self, start, count):
        self.filled_at.append(len(self.clock))
        limit = int(self.config["maxmemory"])
        for key in range(start, start + count):
            if limit and self.used + 10_240 > limit:
                if self.config["maxmemory-policy"] == "noeviction":
                    return "OOM command not allowed when used memory > 'maxmemory'.\n"
                self.evicted += 1
            else:
                self.used += 10_240
                self.filled.add(key)
        return "\n"


class Site:
    def __init__(self, redis):
        self.redis = redis

    def remote(self, node):
        assert node == "redis-1"
        return self.redis


def fault(policy):
    return Fault("full", "memory", ["redis-1"], {"policy": policy})


def test_under_allkeys_lru_keys_are_evicted_until_it_is_healed():
    redis = Redis()
    receipt = Memory(Site(redis)).inject(fault("allkeys-lru"))
    assert receipt.proved
    assert receipt.data["evicted"] > 0
    assert not receipt.data["refused"]
    assert Memory(Site(redis)).heal(fault("allkeys-lru")).proved
    assert redis.config["maxmemory"] == "0"
    assert redis.used == 1 << 20


def test_under_noeviction_writes_are_refused():
    redis = Redis()
    receipt = Memory(Site(redis)).inject(fault("noeviction"))
    assert receipt.proved
    assert receipt.data["refused"]
    assert receipt.data["evicted"] == 0


@pytest.mark.parametrize("policy", ["allkeys-lru", "noeviction"])
def test_a_limit_that_the_server_ignores_is_not_proved(policy):
    assert not Memory(Site(Redis(deaf=True))).inject(fault(policy)).proved


def test_a_limit_that_stays_is_not_proved_to_be_gone():
    redis = Redis()
    Memory(Site(redis)).inject(fault("allkeys-lru"))
    redis.deaf = True
    assert not Memory(Site(redis)).heal(fault("allkeys-lru")).proved


def test_existing_keys_are_older_than_new_ones_by_the_server_s_own_clock():
    """That clock has whole seconds: of keys used in the same one any may be evicted first."""
    redis = Redis(clock=[7, 7, 7, 8, 8])
    assert Memory(Site(redis)).inject(fault("allkeys-lru")).proved
    assert redis.filled_at[0] == 1


def test_a_stopped_clock_is_not_waited_for_for_ever(monkeypatch):
    monkeypatch.setattr(memory, "_OLDER_S", 0.1)
    redis = Redis(clock=[7] * 1000)
    assert Memory(Site(redis)).inject(fault("allkeys-lru")).proved
