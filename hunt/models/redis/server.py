"""Simulates one Redis server: commands, crashes, persistence and replication.

It refuses features that are not modelled. Not modelled are memory use (`run_out` and `limit` come
from outside), several databases, and the execution time of a command, which is zero.

**Expiry** follows the wall clock, when a command accesses a key, or in a cycle ten times a second.
The effect of the cycle shows only if the clock moves back, if a primary replicates the deletion, or
if no command accessed the key before a crash; `settle` catches up then.

**Replication** is asynchronous. A replica has an earlier state of its primary. The stream uses TCP,
so a cut link delays it, and the delayed part arrives at once. WAIT is in acknowledged.py,
persistence in disk.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from fencepost.hunt.models.redis import administration
from fencepost.hunt.models.redis.acknowledged import Acknowledged
from fencepost.hunt.models.redis.arguments import WRONG_TYPE, CommandError
from fencepost.hunt.models.redis.audience import Audience
from fencepost.hunt.models.redis.commands import (
    ALLOCATES,
    OOM,
    READ_ONLY,
    WRITES,
    check,
    execute,
    text,
)
from fencepost.hunt.models.redis.cycle import CYCLE
from fencepost.hunt.models.redis.disk import disk
from fencepost.hunt.models.redis.host import Host
from fencepost.hunt.models.redis.lists import BLOCKS
from fencepost.hunt.models.redis.pubsub import PubSub
from fencepost.hunt.models.redis.replies import OK
from fencepost.hunt.models.redis.script_cache import Scripts
from fencepost.hunt.models.redis.scripts import KNOWN
from fencepost.hunt.models.redis.session import Session
from fencepost.hunt.models.redis.store import Store
from fencepost.hunt.models.redis.waiting import Line, Waiter
from fencepost.hunt.models.redis.watched import Watched
from fencepost.hunt.sim.network import LATENCY, LATER, Network, Refusal, Request, Wire
from fencepost.hunt.sim.world import MS, Timer
from fencepost.workloads.locks.redis import RELEASE

_SECOND = 1_000_000_000


class RedisServer(Host):
    """A Redis server. `replica`: the server that follows it, if any; `cut`: the replica is cut
    off."""

    __slots__ = ("_acknowledged", "_audience", "_disk", "_line", "_plain", "_quick", "_scripts",
                 "_sessions", "_together", "_waiting", "cut", "offset", "persistence")  # fmt: skip

    port = 6379

    def __init__(self, name: str, index: int, network: Network, persistence: str) -> None:
        super().__init__(name, index)
        self.network = network
        self.world = network.world
        self.store = Store()
        self.persistence = persistence
        self.kept = persistence != "none"
        self._disk = disk(persistence, self.clock.ns(0))
        self.primary: RedisServer | None = None
        self.replica: RedisServer | None = None
        self.offset = 0
        self.cut = False
        # Without later syncs and replication, a write needs no further work.
        self._plain = not self._disk.lags
        # The same, no client waits for changes of keys, and there is memory.
        self._quick = self._plain
        self._audience: Audience | None = None
        # Most servers never need these, and a hunt creates thousands of servers a second.
        self._line: Line | None = None
        self._waiting: list[Waiter] = []
        self._acknowledged: Acknowledged | None = None
        self._scripts: Scripts | None = None
        self._together = False
        self._sessions = 0

    def follow(self, primary: RedisServer | None) -> None:
        """Become a replica of a primary, or a primary itself."""
        if self.primary is not None:
            self.primary.replica = None
        self.primary = primary
        self.store.keeps = primary is not None
        self._plain = self._quick = False
        if primary is not None:
            primary.replica = self
            primary._plain = primary._quick = False
            self._take_over(primary.store.copy(), primary.offset)

    # Requests.

    def session(self) -> Session:
        self._sessions += 1
        made = Session(self._sessions)
        made.made_ms = made.seen_ms = self.clock.ms(self.world.now)
        return made

    @property
    def role(self) -> str:
        return "master" if self.primary is None else "replica"

    def admit(self, command: tuple[Any, ...], queued: bool) -> None:
        name, *args = command
        check(self.store, name, args)
        if self.store.full and queued:
            # A transaction may need any amount of memory for its commands.
            raise CommandError(OOM)

    def admit_all(self, commands: list[tuple[Any, ...]]) -> None:
        names = {name for name, *_ in commands}
        if self.store.full and names & ALLOCATES:
            raise CommandError(OOM)
        if self.store.keeps and names & WRITES:
            raise CommandError(READ_ONLY)

    def handle(self, command: tuple[Any, ...]) -> Any:
        store, clock = self.store, self.clock
        now = self.world.now
        store.now_ms = now_ms = (clock.base + now) // MS if clock.plain else clock.ms(now)
        name, size = command[0], len(command)
        if self._quick and not self._waiting:
            # The most frequent commands, with the results of `execute` and scripts.py.
            if size == 6 and name == "SET":
                _, key, value, mode, unit, ttl_ms = command
                if mode == "NX" and unit == "PX" and type(ttl_ms) is int and ttl_ms > 0:
                    expires = store.expires
                    if key in store.values and now_ms <= expires.get(key, now_ms):
                        return None
                    store.values[key] = value
                    expires[key] = now_ms + ttl_ms
                    return OK
            elif size > 4 and name == "EVAL":
                body = command[1]
                if body == RELEASE and command[2] == 1:
                    key = command[3]
                    value = store.values.get(key)
                    if value is None:
                        return 0
                    if value == command[4] and now_ms <= store.expires.get(key, now_ms):
                        del store.values[key]
                        store.expires.pop(key, None)
                        return 1
                    return 0 if type(store.look(key) or "") is str else Refusal(WRONG_TYPE)
                known = KNOWN.get(body)
                if known is not None and type(command[2]) is int:
                    count = 3 + command[2]
                    rest = [one if type(one) is str else text(one) for one in command[count:]]
                    try:
                        return known(store, command[3:count], rest)
                    except CommandError as error:
                        return Refusal(str(error))
            elif size > 2 and name == "HMGET":
                fields = store.look(command[1])
                if type(fields) is dict:
                    return [fields.get(one) for one in command[2:]]
        return self._and_write(name.upper(), command[1:])

    def _and_write(self, name: str, args: tuple[Any, ...]) -> Any:
        """Execute a command, then sync and replicate its writes."""
        if self._disk.lags:
            self._disk.catch_up(self.store, self.offset, self.clock.ns(self.world.now))
        before = dict(self.store.expires) if self.replica is not None else None
        try:
            reply = self._execute(name, args)
        except CommandError as error:
            reply = Refusal(str(error))
        if reply is LATER or (reply is None and name in BLOCKS and not self._together):
            return LATER
        if self.primary is None and (
            name in WRITES or name.startswith("EVAL") or before not in (None, self.store.expires)
        ):
            self._written()  # or a key expired, which must be replicated
        if self._waiting and not self._together:
            self.attend()
        return reply

    def _execute(self, name: str, args: tuple[Any, ...]) -> Any:
        own = _OWN.get(name)
        if own is not None:
            check(self.store, name, args)
            return own(self, args)
        if name == "TIME" and not args:
            ns = self.clock.ns(self.world.now)
            return [str(ns // _SECOND), str(ns % _SECOND // 1000)]
        return execute(self.store, name, [one if type(one) is str else text(one) for one in args])

    def _role(self, args: tuple[Any, ...]) -> Any:
        if self.primary is not None:
            state = "connected" if self.primary.up and not self.cut else "connect"
            return ["slave", self.primary.name, self.port, state, self.offset]
        replica, acknowledged = self.replica, self.acknowledged.offset
        followers = [[replica.name, str(self.port), str(acknowledged)]] if replica else []
        # Without a replica Redis does not count.
        offset = self.offset if replica is not None or acknowledged else 0
        return ["master", offset, followers]

    # Memory.

    def run_out(self) -> None:
        """Evict all present data, as under allkeys-lru when other data arrives."""
        if self.primary is None:
            gone = [*self.store.values]
            self.store.values.clear()
            self.store.expires.clear()
            for key in gone:
                self.store.signal("e", "evicted", key)
            if not self._plain:
                self._written()

    def limit(self, reached: bool) -> None:
        """Set whether memory is at its limit, under noeviction."""
        self.store.full = reached and self.primary is None
        self.listen()

    # Time and disks.

    def settle(self) -> None:
        """Catch up with Redis' expiry cycle, by the present clock."""
        now = self.world.now
        if self._audience is not None:
            self._audience.look_soon()
        phase = (13 * self.index) * MS % CYCLE
        last = now - (now - phase) % CYCLE
        if self.up and last >= self.clock.changed and self.store.sweep(self.clock.ms(last)):
            self._written()
        if self._waiting:
            self.line.look_soon()

    def _written(self) -> None:
        self.offset += 1
        if self._disk.lags:
            self._disk.written(self.store, self.offset, self.clock.ns(self.world.now))
        if self.replica is not None and not self.cut:
            self._stream()

    def crash(self, power: bool) -> None:
        """Stop; if `power` is lost, unsynced data is lost."""
        self.settle()
        if power:
            self._disk.catch_up(self.store, self.offset, self.clock.ns(self.world.now))
        self.up = False
        self.boots += 1
        if self._acknowledged is not None:
            self._acknowledged.crash()
        if self._line is not None:
            self._line.clear()
        if self._audience is not None:
            self._audience.crash()
        self.store = self._disk.after_crash(self.store, power)
        self.listen()
        self.network.broken(self)

    def start(self) -> None:
        self.up = True
        self.paused_until = 0
        self._disk.start(self.store, self.offset, self.clock.ns(self.world.now))
        self._scripts, self._sessions = None, 0

    def forget(self) -> None:
        self.primary = self.replica = None
        self.store.listener = None
        if self._acknowledged is not None:
            self._acknowledged.forget()
        if self._line is not None:
            self._line.forget()
        if self._audience is not None:
            self._audience.forget()
            self._audience = None

    # Those who hear of changes, and of each other.

    @property
    def audience(self) -> Audience:
        if self._audience is None:
            self._audience = Audience(self)
        return self._audience

    @property
    def pubsub(self) -> PubSub:
        return self.audience.pubsub

    @property
    def watched(self) -> Watched:
        return self.audience.watched

    def publish(self, channel: str, message: str) -> int:
        return self.pubsub.publish(channel, message)

    def listen(self) -> None:
        """Let those who wait for changes of keys hear of them."""
        hears = self._audience is not None and self._audience.hears
        self.store.listener = self.audience.changed if hears else None
        self._quick = self._plain and not hears and not self.store.full

    def sweep(self) -> None:
        """Delete expired keys, in a cycle."""
        if self.store.sweep(self.clock.ms(self.world.now)):
            self._written()
        self.audience.look_in_time()

    def expired(self, key: str) -> bool:
        when = self.store.expires.get(key)
        return when is not None and self.clock.ms(self.world.now) > when

    @property
    def blocked(self) -> int:
        return len(self._waiting)

    def clients(self, asking: Session, args: list[str]) -> str:
        return administration.clients(self, args)

    def disconnect(self, asking: Session, args: list[str]) -> Any:
        return administration.disconnect(self, asking, args)

    # Replication.

    def _stream(self) -> None:
        """Send the present state to the replica."""
        replica = self.replica
        assert replica is not None
        state, offset, boots = self.store.copy(), self.offset, self.boots

        def arrive() -> None:
            if self.boots == boots and replica.primary is self and not self.cut:
                replica._take_over(state, offset)
                ack = partial(self.acknowledged.take, offset)
                self.world.at(self.world.now + LATENCY, Timer(self, ack))

        self.world.at(self.world.now + LATENCY, Timer(replica, arrive))

    def _take_over(self, state: Store, offset: int) -> None:
        if offset >= self.offset:
            state.keeps = self.store.keeps
            if self._audience is not None:
                self._audience.replaced(self.store, state)
            self.store = state
            self.offset = offset
            self.listen()

    def reconnect(self) -> None:
        """Restore the link to the replica, and send the delayed state."""
        self.cut = False
        if self.replica is not None and self.up:
            self._stream()

    def wait(self, request: Request) -> None:
        if request.asked[0].upper() in BLOCKS:
            self.line.enter(request)
        else:
            self.acknowledged.wait(request, self.offset)

    @property
    def acknowledged(self) -> Acknowledged:
        if self._acknowledged is None:
            self._acknowledged = Acknowledged(self)
        return self._acknowledged

    @property
    def scripts(self) -> Scripts:
        if self._scripts is None:
            self._scripts = Scripts()
        return self._scripts

    # Clients that wait for a list.

    @property
    def line(self) -> Line:
        if self._line is None:
            self._line = Line(self, self._waiting)
        return self._line

    def left(self, link: Wire) -> None:
        session = getattr(link, "session", None)
        if self._audience is not None and session is not None:
            self._audience.leave(session)
        if self._waiting:
            self.line.leave(link)

    def attend(self) -> None:
        if self.line.attend():
            self._written()

    @contextmanager
    def together(self) -> Iterator[None]:
        """Execute a transaction: no command blocks, and no waiting client is served before its
        end."""
        self._together = True
        yield
        self._together = False
        if self._waiting:
            self.attend()


_OWN: dict[str, Callable[[RedisServer, tuple[Any, ...]], Any]] = {
    "EVAL": lambda server, args: server.scripts.eval(server.store, args, server.publish),
    "EVALSHA": lambda server, args: server.scripts.evalsha(server.store, args, server.publish),
    "SCRIPT": lambda server, args: server.scripts.script(server.store, args),
    "ROLE": RedisServer._role,
    "WAIT": lambda server, args: server.acknowledged.execute(
        args, server.offset, waits=not server._together
    ),
    "PUBLISH": lambda server, args: server.publish(*map(text, args)),
    "PUBSUB": lambda server, args: server.pubsub.describe([text(one) for one in args]),
    "CONFIG": administration.config,
    "INFO": administration.info,
}
"""Commands that concern more than the data; their numbers of arguments are in commands.py."""
