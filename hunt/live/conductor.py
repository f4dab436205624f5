"""Plays schedules with real clients, many side by side in one thread: clients mostly wait.

A lane is a set of client programs that is kept for one schedule after the other. Each client has
addresses of its own on loopback (loopback.py), and each schedule a port of its own, so a lock of an
earlier schedule that is still at work reaches no later one, and no client reaches another hunt.
"""

from __future__ import annotations

import gc
import select
import selectors
import socket
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple, Self

from fencepost import processors
from fencepost.hunt.faults.registry import table
from fencepost.hunt.live.clocks import OfProgram, not_set
from fencepost.hunt.live.connection import Connection
from fencepost.hunt.live.guard import Guard
from fencepost.hunt.live.loopback import Loopback
from fencepost.hunt.live.program import VERSIONS, Command, Faulty, Program
from fencepost.hunt.live.run import RealRun
from fencepost.hunt.search.pool import COLLECTED
from fencepost.hunt.sim.network import Server, Tap
from fencepost.hunt.sim.schedule import Aim, Schedule
from fencepost.hunt.sim.setting import Setting

_READY_S, _RESET_S = 20.0, 1.0
"""How long a program may take to start, and to make a new lock."""
_TURN_S, _LOOK_S, _FINE_S = 0.05, 0.0001, 0.01
"""How long to wait at most for a message or an event; until the next look at a client at work;
which waits take microseconds into account."""
_NARROW, _WIDENS_S = 4, 0.05
"""How many schedules are played side by side at first; how long it takes to add one."""
_BUSY = 2
"""How many, for each processor, where time jumps. Then some client is at work at nearly any time.
More processes would take longer: Node.js compiles a program within hundreds of schedules, in each
process."""
_FIRST_PORT, _LAST_PORT = 20_000, 32_000
"""Below the ports that Linux gives to connections."""


class Job(NamedTuple):
    """A schedule to play, with the aims of its injections and an observer."""

    schedule: Schedule
    aims: Sequence[Aim] = ()
    tap: Tap | None = None


@dataclass
class _Lane:
    """The clients of one run at a time. `waits`: those that are not ready yet. `looks_at_s`: when
    to look again at clients that were at work."""

    index: int
    programs: list[Program | None]
    port: int = _FIRST_PORT
    run: RealRun | None = None
    job: Job | None = None
    waits: set[int] = field(default_factory=set)
    until_s: float = 0.0
    looks_at_s: float = 0.0
    listeners: list[socket.socket] = field(default_factory=list)


class Conductor:
    """Plays schedules. `script`: the Lua script by which a client writes to the resource. `clock`:
    returns the clocks of a client's process.

    `programs`: those that run now.
    """

    def __init__(
        self,
        setting: Setting,
        command: Command,
        script: str,
        lanes: int,
        clock: OfProgram = not_set,
    ) -> None:
        self._setting = setting
        self._command = command
        self._script = script
        self.clock = clock
        self._actions = table(setting)
        self._selector = selectors.DefaultSelector()
        count = len(setting.clients)
        self._loopback = Loopback(lanes * count)
        self._guard = Guard(self._loopback.held)
        self._lanes = [_Lane(index, [None] * count) for index in range(lanes)]
        self._watched: dict[int, Callable[[], None]] = {}
        self.lanes = lanes
        self._wide, self._widened_s, self._lag_ns = min(_NARROW, lanes), 0.0, 0
        self.gives_up_ns = 2 * setting.ttl_ns
        self._patience_ns = setting.ttl_ns
        self._jumps = False
        self.hung = 0
        # Whether programs are kept. Those that sent nothing after a reset are not.
        self._keeps = True

    def __enter__(self) -> Self:
        self._collected = gc.get_threshold()
        gc.set_threshold(*COLLECTED)
        return self

    def __exit__(self, *_: object) -> None:
        gc.set_threshold(*self._collected)
        for lane in self._lanes:
            self._abandon(lane)
            for index in range(len(lane.programs)):
                self._kill(lane, index)
        self._selector.close()
        self._guard.close()
        self._loopback.close()

    def play(self, jobs: Iterable[Job]) -> Iterator[RealRun]:
        """Play schedules, and yield each run when it has ended. Raises the errors of a run."""
        left, busy = iter(jobs), list[_Lane]()
        free = self._lanes[::-1]
        try:
            while True:
                while free and len(busy) < self._wide and (job := next(left, None)) is not None:
                    lane = free.pop()
                    busy.append(lane)
                    self._begin(lane, job)
                if not busy:
                    return
                self._turn(busy)
                self._widen(busy)
                for lane in [one for one in busy if one.run is not None and one.run.is_over]:
                    run = self._end(lane)
                    busy.remove(lane)
                    free.append(lane)
                    run.check_failure()
                    yield run
        finally:
            for lane in busy:
                self._abandon(lane)

    @property
    def programs(self) -> list[Program]:
        return [one for lane in self._lanes for one in lane.programs if one is not None]

    # A run.

    def _begin(self, lane: _Lane, job: Job) -> None:
        programs = []
        for index in range(len(lane.programs)):
            old = lane.programs[index]
            if old is not None and (old.dead or old.version < 2 or not self._keeps):
                self._kill(lane, index)
            programs.append(lane.programs[index] or self._start(lane, index))
        run = RealRun(self._setting, job.schedule, self._actions, programs, job.tap, job.aims)
        lane.run, lane.job, lane.waits = run, job, set(range(len(programs)))
        lane.until_s = time.monotonic() + _READY_S
        self._listen(lane, run)
        for index, program in enumerate(programs):
            word = "reset" if program.version else "setup"
            if program.version:
                lane.until_s = min(lane.until_s, time.monotonic() + _RESET_S)
            program.forget_errors()
            program.awaited += 1
            program.tell({"control": word, "versions": VERSIONS, **self._setup(lane, run, index)})
        if not all(program.version for program in programs):
            lane.until_s = time.monotonic() + _READY_S

    def _setup(self, lane: _Lane, run: RealRun, index: int) -> dict[str, Any]:
        setup, nodes = self._setting.setup(index), list(run.nodes)
        mine = lane.listeners[index * len(nodes) : (index + 1) * len(nodes)]
        addresses = {name: one.getsockname() for name, one in zip(nodes, mine, strict=True)}
        return {
            "process": setup.process, "stride": setup.stride, "node": setup.node,
            "lock": setup.lock, "options": setup.options, "servers": setup.servers,
            "addresses": addresses, "storage": setup.storage, "store": setup.store,
            "guard": setup.guard, "write_script": self._script,
            "seed": str(run.schedule.at(0)), "origin_ns": run.world.origin_ns,
            **({} if setup.stops is None else {"stops": setup.stops}),
        }  # fmt: skip

    def _listen(self, lane: _Lane, run: RealRun) -> None:
        """Listen for each client at an address for each server, on the next free port."""
        servers = list(run.nodes.values())
        for _ in range(_LAST_PORT - _FIRST_PORT):
            lane.port = _FIRST_PORT + (lane.port + 1 - _FIRST_PORT) % (_LAST_PORT - _FIRST_PORT)
            made: list[socket.socket] = []
            try:
                for index in range(len(run.clients)):
                    for number in range(len(servers)):
                        made.append(_listener(self._address(lane, index, number)))
                break
            except OSError:
                for one in made:
                    one.close()
        else:
            raise RuntimeError("no port on loopback is free")
        lane.listeners = made
        for place, listener in enumerate(made):
            index, number = divmod(place, len(servers))
            self._watch(
                listener.fileno(), partial(self._accept, run, listener, index, servers[number])
            )

    def _address(self, lane: _Lane, client: int, server: int) -> tuple[str, int]:
        place = lane.index * len(lane.programs) + client
        port = lane.port if self._loopback.held else 0
        return self._loopback.address(place, server), port

    def _accept(self, run: RealRun, listener: socket.socket, index: int, server: Server) -> None:
        try:
            sock, _ = listener.accept()
        except OSError:
            return
        run.world.stir()
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        poke = partial(_poke, run, index)
        link = Connection(self, run.world, run.network, run.clients[index], server, sock, poke)
        if not server.up:
            if run.tap is not None:
                run.tap.refused(link)
            link.reset()
            return
        self._watch(sock.fileno(), partial(_read, run, link))

    def _turn(self, busy: list[_Lane]) -> None:
        """Wait for the next message or event, and run the events that are due.

        A client that waits has sent everything before. So messages are read after the look at the
        clients, and before the events.
        """
        wait_s, due, now_s = _TURN_S, list[RealRun](), time.monotonic()
        for lane in busy:
            run = lane.run
            assert run is not None
            world = run.world
            if run.hurries():
                wait_s = min(wait_s, _LOOK_S)
            if not world.stirred and not world.is_due:
                wait_s = min(wait_s, (world.due_ns - world.now) / 1e9)
            elif now_s < lane.looks_at_s:
                wait_s = min(wait_s, lane.looks_at_s - now_s)
            elif run.calms(self._patience_ns):
                due.append(run)
            else:
                lane.looks_at_s = now_s + _LOOK_S
                wait_s = min(wait_s, _LOOK_S)
        if not due and wait_s < _FINE_S:
            # Its own wait is one of whole milliseconds (epoll_wait).
            select.select([self._selector], [], [], wait_s)
            wait_s = 0.0
        for key, _ in self._selector.select(0.0 if due else wait_s):
            call = self._watched.get(key.fd)
            if call is not None:
                call()
        for run in due:
            if not run.world.stirred:
                self._lag_ns = max(self._lag_ns, run.stood_ns)
                run.turn()
        for lane in busy:
            if lane.waits and now_s > lane.until_s:
                self._late(lane)

    def _widen(self, busy: list[_Lane]) -> None:
        """Play more schedules side by side as long as no client starts and none is late. Where time
        jumps, clients do not wait for it, and a few use the processors up."""
        if self._jumps:
            return
        now_s = time.monotonic()
        programs = [one for lane in busy if lane.run is not None for one in lane.run.programs]
        if any(one.clock is not None and one.clock.jumps for one in programs):
            self._jumps, self._wide = True, min(self.lanes, _BUSY * processors.count())
            return
        starting = sum(not program.version for program in programs)
        # Electors start for each schedule.
        few = starting <= (_NARROW if self._setting.elector else 0)
        if few and now_s - self._widened_s > _WIDENS_S:
            late, self._lag_ns = self._lag_ns > self._setting.ttl_ns // 5, 0
            self._wide = max(_NARROW, self._wide - 1) if late else self._wide + 1
            self._wide, self._widened_s = min(self._wide, self.lanes), now_s

    def _late(self, lane: _Lane) -> None:
        """Replace programs that do not make a new lock in time; a new one must."""
        assert lane.run is not None and lane.job is not None
        if any(lane.run.programs[index].version == 0 for index in lane.waits):
            lane.run.fail(Faulty(f"it was not ready within {_READY_S:g} s"))
            return
        for index in list(lane.waits):
            self._kill(lane, index)
        job = lane.job
        self._abandon(lane)
        self._begin(lane, job)

    def _end(self, lane: _Lane) -> RealRun:
        run = lane.run
        assert run is not None
        for index, program in enumerate(run.programs):
            if program.stopped:
                program.resume()
            if run.hung:
                self._kill(lane, index)
        self.hung += run.hung
        if not run.hung and not run.asked and run.failure is None:
            self._keeps = False
        self._abandon(lane)
        return run

    def _abandon(self, lane: _Lane) -> None:
        run, lane.run, lane.job = lane.run, None, None
        for listener in lane.listeners:
            self._unwatch(listener.fileno())
            listener.close()
        lane.listeners = []
        if run is not None:
            for program in run.programs:
                if program.stopped and not program.dead:
                    program.resume()
            run.world.over = True
            run.end()

    # Programs.

    def _start(self, lane: _Lane, index: int) -> Program:
        program = Program(self._command, lambda message: self._hear(lane, index, message))
        self._guard.add(program.pid)
        lane.programs[index] = program
        self._watch(program.output, partial(self._read_program, lane, index, program))
        return program

    def _succeed(self, lane: _Lane, index: int) -> None:
        """Kill the program of an elector's process that ends, and start another one as its
        successor. So all of its threads, timers and connections end, in every language."""
        run, old = lane.run, lane.programs[index]
        assert run is not None and old is not None
        self._unwatch(old.output)
        old.strike()
        program = self._start(lane, index)
        process = run.leave(index, program)
        old.close()
        self._guard.drop(old.pid)
        lane.waits.add(index)
        lane.until_s = time.monotonic() + _READY_S
        program.awaited += 1
        setup = self._setup(lane, run, index) | {"process": process}
        program.tell({"control": "setup", "versions": VERSIONS, **setup})

    def _kill(self, lane: _Lane, index: int) -> None:
        program = lane.programs[index]
        lane.programs[index] = None
        if program is not None:
            self._unwatch(program.output)
            program.close()
            self._guard.drop(program.pid)

    def _read_program(self, lane: _Lane, index: int, program: Program) -> None:
        run = lane.run
        try:
            if program.dead or program.readable():
                if program.dead:
                    self._unwatch(program.output)
                elif run is not None and index in run.leaving:
                    self._succeed(lane, index)
                return
            self._unwatch(program.output)
            code = program.exit_code()
            words = f"its program ended with exit code {code}{program.last_words}"
            failure = Faulty(words)
        except Faulty as error:
            failure = error
        if run is not None and run.clients[index].up:
            run.fail(failure)

    def _hear(self, lane: _Lane, index: int, message: dict[str, Any]) -> None:
        run, program, control = lane.run, lane.programs[index], message.get("control")
        if control == "broken":
            raise Faulty(str(message.get("why")))
        if program is None or run is None:
            return
        if control == "ready" and program.awaited:
            program.awaited -= 1
            first = not program.version
            _take_ready(program, message, self._setting.elector)
            if first:
                program.is_at(int(message.get("pid", program.pid)), self.clock)
            if not program.awaited:
                lane.waits.discard(index)
                if run.started_ns >= 0:
                    run.succeed(index)
                elif not lane.waits:
                    run.start()
        elif not program.awaited:
            run.hear(index, message)
        elif control is None and "f" not in message:
            raise Faulty(f"it wrote {message!r:.80} before it was ready (docs/protocol.md)")

    # Sockets.

    def _watch(self, fd: int, call: Callable[[], None]) -> None:
        self._watched[fd] = call
        self._selector.register(fd, selectors.EVENT_READ)

    def _unwatch(self, fd: int) -> None:
        if self._watched.pop(fd, None) is not None:
            with suppress(KeyError):
                self._selector.unregister(fd)

    def unwatch(self, sock: socket.socket) -> None:
        self._unwatch(sock.fileno())


def _poke(run: RealRun, index: int, wakes: bool) -> None:
    run.programs[index].poke(wakes)


def _read(run: RealRun, link: Connection) -> None:
    try:
        link.readable()
    except Exception as error:  # Unknown: the model lacks it
        run.fail(error)


def _take_ready(program: Program, message: dict[str, Any], elects: bool) -> None:
    version = message.get("version", 1)
    if version not in VERSIONS:
        known = ", ".join(map(str, VERSIONS))
        raise Faulty(f"it speaks version {version} of the protocol; fencepost supports {known}")
    program.elects = bool(message.get("elector", False))
    if program.elects != elects:
        raise Faulty(f"it is {'an elector: add' if program.elects else 'a lock: omit'} --elector")
    if message.get("generates", True):
        raise Faulty('its `ready` lacks "generates": false, so it takes no ops (docs/protocol.md)')
    program.version, program.extends = version, bool(message.get("extends", True))
    program.resigns = bool(message.get("resigns", True))
    named = message.get("promises")
    if named is not None and not (
        isinstance(named, list) and all(isinstance(n, str) for n in named)
    ):
        raise Faulty(f"its `ready` has the promises {named!r:.80}, and not a list of names")
    program.promises = named


def _listener(address: tuple[str, int]) -> socket.socket:
    made = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind(address)
        made.listen(16)
        made.setblocking(False)
    except OSError:
        made.close()
        raise
    return made
