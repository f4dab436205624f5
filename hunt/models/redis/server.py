"""Simulates one Redis server: commands, crashes, persistence and replication.

It refuses features that are not modelled. Not modelled are memory use (`run_out` and `limit` come
from outside), several databases, and the execution time of a command, which is zero.

**Persistence** follows redis.conf. `none`: a restart begins empty. `always`: acknowledged writes
are on the disk. `everysec`: acknowledged writes are with the kernel, and so survive a crash; they
are on the disk, and so survive a loss of power, once the wall clock shows a later second than that
of the last sync (aof.c, flushAppendOnlyFile: `server.unixtime > server.aof_last_fsync`).

**Expiry** follows the wall clock, when a command accesses a key, or in a cycle ten times a second.
The effect of the cycle shows only if the clock moves back, if a primary replicates the deletion, or
if no command accessed the key before a crash; `settle` catches up then.

**Replication** is asynchronous. A replica has an earlier state of its primary. The stream uses TCP,
so a cut link delays it, and the delayed part arrives at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from fencepost.hunt.models.redis import administration
from fencepost.hunt.models.redis.arguments import WRONG_TYPE, CommandError, integer
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
from fencepost.hunt.models.redis.host import Host
from fencepost.hunt.models.redis.lists import BLOCKS
from fencepost.hunt.models.redis.pubsub import PubSub
from fencepost.hunt.models.redis.replies import OK
from fencepost.hunt.models.redis.script_cache import Scripts
from fencepost.hunt.models.redis.scripts import KNOWN
from fencepost.hunt.models.redis.session import Session
from fencepost.hunt.models.redis.store import Store
from fencepost.hunt.models.redis.waiting import Line
from fencepost.hunt.models.redis.watched import Watched
from fencepost.hunt.sim.network import LATENCY, LATER, Network, Refusal, Request, Wire
from fencepost.hunt.sim.world import MS, Timer
from fencepost.workloads.locks.redis import RELEASE

_SECOND = 1_000_000_000
# The disk of a server that has synced nothing.
_NOTHING = Store()
_WAIT_AT_REPLICA = (
    "ERR WAIT cannot be used with replica instances. Please also note that since Redis 4.0 if a "
    "replica is configured to be writable (which is not the default) writes to replicas are just "
    "local and are not propagated."
)


class RedisServer(Host):
    """A Redis server. `replica`: the server that follows it, if any; `cut`: the replica is cut
    off."""

    __slots__ = ("_acked", "_audience", "_last_sync", "_line", "_plain", "_quick", "_scripts",
                 "_sessions", "_synced", "_synced_at", "_together", "_waiters", "_waiting", "cut",
                 "offset", "persistence", "primary", "replica")  # fmt: skip

    port = 6379

    def __init__(self, name: str, index: int, network: Network, persistence: str) -> None:
        super().__init__(name, index)
        self.network = network
        self.world = network.world
        self.store = Store()
        self.persistence = persistence
        self.kept = persistence != "none"
        self.primary: RedisServer | None = None
        self.replica: RedisServer | None = None
        self.offset = 0
        self.cut = False
        # Without later syncs and replication, a write needs no further work.
        self._plain = persistence != "everysec"
        # The same, and no client waits for changes of keys.
        self._quick = self._plain
        self._audience: Audience | None = None
        self._line = Line(self)
        self._waiting = self._line.waiters
        self._together = False
        self._acked = 0
        self._waiters: list[tuple[Request, int, Timer]] = []
        self._scripts = Scripts()
        self._sessions = 0
        self._synced, self._synced_at = _NOTHING, 0
        self._last_sync = self.clock.ns(0) // _SECOND

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
        name = command[0]
        if self._quick and not store.full and not self._waiting:
            # The most frequent commands, with the results of `execute` and scripts.py.
            if name == "EVAL" and len(command) > 4:
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
            elif name == "SET" and len(command) == 6 and command[3] == "NX" and command[4] == "PX":
                key, ttl_ms = command[1], command[5]
                if type(ttl_ms) is int and ttl_ms > 0:
                    if key in store.values and now_ms <= store.expires.get(key, now_ms):
                        return None
                    store.values[key] = command[2]
                    store.expires[key] = now_ms + ttl_ms
                    return OK
            elif name == "HMGET" and len(command) > 2:
                fields = store.look(command[1])
                if type(fields) is dict:
                    return [fields.get(one) for one in command[2:]]
        return self._and_write(name.upper(), command[1:])

    def _and_write(self, name: str, args: tuple[Any, ...]) -> Any:
        """Execute a command, then sync and replicate its writes."""
        self._sync_if_due()
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
        return execute(self.store, name, [text(one) for one in args])

    def _role(self, args: tuple[Any, ...]) -> Any:
        if self.primary is not None:
            state = "connected" if self.primary.up and not self.cut else "connect"
            return ["slave", self.primary.name, self.port, state, self.offset]
        followers = [[self.replica.name, str(self.port), str(self._acked)]] if self.replica else []
        # Without a replica Redis does not count.
        offset = self.offset if self.replica is not None or self._acked else 0
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
            self._line.look_soon()

    def _sync_if_due(self) -> None:
        """Catch up with Redis' periodic sync since the last command; it syncs only new writes."""
        new = self.offset != self._synced_at
        if (
            new
            and self.persistence == "everysec"
            and self.clock.ns(self.world.now) // _SECOND > (self._last_sync)
        ):
            self._sync()

    def _sync(self) -> None:
        self._synced, self._synced_at = self.store.copy(), self.offset
        self._last_sync = self.clock.ns(self.world.now) // _SECOND

    def _written(self) -> None:
        self.offset += 1
        if self.persistence == "everysec" and self.clock.ns(self.world.now) // _SECOND > (
            self._last_sync
        ):
            self._sync()
        if self.replica is not None and not self.cut:
            self._stream()

    def crash(self, power: bool) -> None:
        """Stop; if `power` is lost, unsynced data is lost."""
        self.settle()
        if power:
            self._sync_if_due()
        self.up = False
        self.boots += 1
        self._waiters.clear()
        self._line.clear()
        if self._audience is not None:
            self._audience.crash()
        if self.persistence == "none":
            self.store = Store()
        elif power and self.persistence == "everysec":
            self.store = self._synced.copy()
        self.listen()
        self.network.broken(self)

    def start(self) -> None:
        self.up = True
        self.paused_until = 0
        self._last_sync = self.clock.ns(self.world.now) // _SECOND
        if self.persistence == "everysec":
            self._synced, self._synced_at = self.store.copy(), self.offset
        self._scripts, self._sessions = Scripts(), 0

    def forget(self) -> None:
        self.primary = self.replica = None
        self._waiters.clear()
        self._line.forget()
        self.store.listener = None
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
        self._quick = self._plain and not hears

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
                self.world.at(self.world.now + LATENCY, Timer(self, lambda: self._ack(offset)))

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

    def _ack(self, offset: int) -> None:
        self._acked = max(self._acked, offset)
        for _, wanted, alarm in list(self._waiters):
            if self._acked >= wanted:
                alarm.off = True
                alarm.call()

    def _replicas(self, args: tuple[Any, ...]) -> Any:
        """Execute WAIT: return the number of replicas that have all writes so far."""
        if self.primary is not None:
            raise CommandError(_WAIT_AT_REPLICA)
        wanted = integer(text(args[0]))
        _wait_ms(args)
        have = self._have(self.offset)
        return have if have >= wanted or self._together else LATER

    def _have(self, offset: int) -> int:
        return int(self.replica is not None and self._acked >= offset)

    def wait(self, request: Request) -> None:
        name, *args = request.asked
        if name.upper() in BLOCKS:
            self._line.enter(request)
            return
        for_ms, wanted = _wait_ms(tuple(args)), self.offset

        def over() -> None:
            self._waiters[:] = [one for one in self._waiters if one[0] is not request]
            request.give(self._have(wanted))

        alarm = Timer(self, over)
        self._waiters.append((request, wanted, alarm))
        if for_ms:
            self.world.at(self.world.now + for_ms * MS, alarm)

    # Clients that wait for a list.

    def left(self, link: Wire) -> None:
        session = getattr(link, "session", None)
        if self._audience is not None and session is not None:
            self._audience.leave(session)
        self._line.leave(link)

    def attend(self) -> None:
        if self._line.attend():
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
    "EVAL": lambda server, args: server._scripts.eval(server.store, args, server.publish),
    "EVALSHA": lambda server, args: server._scripts.evalsha(server.store, args, server.publish),
    "SCRIPT": lambda server, args: server._scripts.script(server.store, args),
    "ROLE": RedisServer._role,
    "WAIT": RedisServer._replicas,
    "PUBLISH": lambda server, args: server.publish(*map(text, args)),
    "PUBSUB": lambda server, args: server.pubsub.describe([text(one) for one in args]),
    "CONFIG": administration.config,
    "INFO": administration.info,
}
"""Commands that concern more than the data; their numbers of arguments are in commands.py."""


def _wait_ms(args: tuple[Any, ...]) -> int:
    """Return the timeout of WAIT; 0: none."""
    try:
        found = integer(text(args[1]))
    except CommandError:
        raise CommandError("ERR timeout is not an integer or out of range") from None
    if found < 0:
        raise CommandError("ERR timeout is negative")
    return found
