"""Electors on one Redis server, for tests: a sound one, and twins of it with one defect each."""

import asyncio
import threading
import time

import redis

BEATS = 8
"""Attempts to renew, or to be elected, in each lease."""
RENEW = "return redis.call('get', KEYS[1]) == ARGV[1] and redis.call('pexpire', KEYS[1], ARGV[2])"
RESIGN = "return redis.call('get', KEYS[1]) == ARGV[1] and redis.call('del', KEYS[1])"
TAKE = """
if redis.call('get', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('incr', KEYS[2])
"""


class Sound:
    """Its deadline is counted from before the request that renews the lease."""

    def __init__(self, servers):
        self.servers = servers
        self.resigned = threading.Event()

    def run(self, name, identity, ttl, started, stopped, *work):
        self.work = work
        host, port = self.servers[0]
        self.redis = redis.Redis(
            host, port, socket_timeout=ttl / BEATS, socket_connect_timeout=ttl / BEATS
        )
        self.name, self.identity, self.ttl = name, identity, ttl
        until = self.campaign()
        if until is None:
            return
        renewed = started(deadline=until)
        while not self.resigned.wait(ttl / BEATS):
            later = self.renew()
            if later is not None:
                until = later
                renewed(until)
            elif self.given_up(until):
                break
            self.turn()
        stopped()
        self.hand_over()

    def given_up(self, until):
        """Return whether it stops after a failed renewal."""
        return time.monotonic() >= until

    def turn(self):
        """Do nothing else in a turn of the loop: the client works by itself."""

    def resign(self):
        self.resigned.set()

    def campaign(self):
        while not self.resigned.is_set():
            begun = time.monotonic()
            if self.asked(self.redis.set, self.name, self.identity, nx=True, px=self.ms()):
                return begun + self.ttl
            self.resigned.wait(self.ttl / BEATS)
        return None

    def renew(self):
        begun = time.monotonic()
        kept = self.asked(self.redis.eval, RENEW, 1, self.name, self.identity, self.ms())
        return begun + self.ttl if kept else None

    def hand_over(self):
        self.asked(self.redis.eval, RESIGN, 1, self.name, self.identity)

    def asked(self, request, *words, **more):
        """Return the server's answer; None without one."""
        try:
            return request(*words, **more)
        except redis.RedisError:
            return None

    def ms(self):
        return round(self.ttl * 1000)


class GoesOn(Sound):
    """It names no deadline, and works on when it cannot renew its lease."""

    def run(self, name, identity, ttl, started, stopped, *work):
        def started_only(deadline):
            started()
            return lambda later: None

        super().run(name, identity, ttl, started_only, stopped, *work)

    def given_up(self, until):
        return False


class Raises(GoesOn):
    """It leaves run with an exception when it cannot renew its lease, and calls no stopped."""

    def given_up(self, until):
        raise ConnectionError("the lease is lost")


class NoResign(Sound):
    resign = None


class Async(Sound):
    """The sound elector in an event loop."""

    async def run(self, name, identity, ttl, started, stopped):
        await asyncio.to_thread(super().run, name, identity, ttl, started, stopped)


class Schedules(Sound):
    """A scheduler: it takes the next job under its lock, and then sends it."""

    drives_work = True

    def turn(self):
        job = self.asked(self.redis.eval, TAKE, 2, self.name, f"{self.name}:job", self.identity)
        if job:
            self.work[0](f"job {job}")


class SendsTwice(GoesOn):
    """The same without a look at its lock: it counts the jobs itself, from those of its reign's
    beginning."""

    drives_work = True
    job = None

    def turn(self):
        if self.job is None:
            self.job = int(self.asked(self.redis.get, f"{self.name}:job") or 0)
        self.job += 1
        self.work[0](f"job {self.job}")
        self.asked(self.redis.set, f"{self.name}:job", self.job)


class WorksUnasked(Schedules):
    def run(self, name, identity, ttl, started, stopped, *work):
        work[0]("job 1")


class StartsTwice(Sound):
    def run(self, name, identity, ttl, started, stopped):
        started()
        started()
        time.sleep(60)
