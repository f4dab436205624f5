"""One schedule with real clients: their messages pass the run, which decides what arrives.

A schedule counts the messages of each client by itself: number k of client c among n has the step
1 + k * n + c. The speed of one client then does not change what another one meets, and a schedule
that is played again meets nearly always the same messages.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence
from functools import partial
from typing import Any, cast

from fencepost.hunt.faults.packet import LOSS
from fencepost.hunt.faults.simulated import Action
from fencepost.hunt.live.client import RealClient
from fencepost.hunt.live.clocks import Clocks
from fencepost.hunt.live.connection import Connection, RealNetwork
from fencepost.hunt.live.program import Faulty, Program
from fencepost.hunt.live.witness import Witness
from fencepost.hunt.live.worked import Worked
from fencepost.hunt.live.world import STILL_NS, RealWorld
from fencepost.hunt.lock_error import LockError
from fencepost.hunt.models.registry import MODELS
from fencepost.hunt.run import Run
from fencepost.hunt.sim.client_node import ClientNode
from fencepost.hunt.sim.network import Network, Request, Tap
from fencepost.hunt.sim.record import Outbox
from fencepost.hunt.sim.schedule import Aim, Schedule
from fencepost.hunt.sim.setting import Setting
from fencepost.hunt.sim.unknown import Unknown
from fencepost.hunt.sim.world import MS, Timer, World
from fencepost.workloads.client.client import Client

_LEASES, _MORE = 20, 2000 * MS
"""A run takes at most this many leases, the bound of liveness, and some time."""
_REIGNS = 2
"""Leaders work for so much longer than a lock is held."""
_LOOKS = 40
"""How often to look at a client of which some thread is at work, until time passes as usual. One
that gets no processor is looked at for longer."""
_WORKS_S, _THREAD_WORKS_S = 0.25, 0.02
"""How long clients work that never rest, or some thread does of clients that wait, until time
passes: both get the processor then."""
_SOON_NS = 10 * MS
_MOST_WORK_S = 2.0
"""A run in which the clients take more processor time, and never rest, is ended."""


class RealRun(Run):
    """The state of one run with real clients.

    `moments`: how many messages each client has had. `hung`: an op did not end, so the run is not
    judged. `worked_s`: the processor time of clients that took too much. `longest_ns`: the longest
    lease that a grant left on a server. `asked`: the lock's servers got a message. `programs`:
    those of the clients. `late_ns`: how long time stood still at most, because a client did not get
    the processor. `unasked`: servers sent without a request. `leaving`: the clients whose elector's
    process ends, and has no successor yet.
    """

    world: RealWorld
    network: RealNetwork

    def __init__(
        self,
        setting: Setting,
        schedule: Schedule,
        actions: Sequence[Action],
        programs: list[Program],
        tap: Tap | None = None,
        aims: Sequence[Aim] = (),
    ) -> None:
        super().__init__(setting, schedule, actions, tap, aims)
        self.programs = programs
        self.hung = False
        self.longest_ns = 0
        self.unasked = False
        self.asked = False
        self.started_ns = -1
        self.late_ns = self.stood_ns = 0
        self._looks = 0
        self.worked_s = self._worked_before_s = 0.0
        self.moments = [0] * len(self.clients)
        self._due = dict(schedule.injections)
        self._held: list[deque[int]] = [deque() for _ in self.clients]
        leases = _LEASES * (_REIGNS if setting.elector else 1)
        self._end_ns = leases * setting.ttl_ns + setting.bound_ns + _MORE
        self.leaving: set[int] = set()
        self.world.meet = self._meets
        self.world.worked = Worked(self._work_s, _WORKS_S).enough
        self._worked = Worked(self._work_s, _WORKS_S)
        self._threads = Worked(self._work_s, _THREAD_WORKS_S)
        self._witness = tap if isinstance(tap, Witness) else None
        for node in self.clients:
            node.inject_after = partial(self._after, node)
        pairs = zip(self.clients, programs, strict=True)
        self.parts = [RealClient(node, one, self.world, self.rows) for node, one in pairs]

    def new_world(self) -> World:
        return RealWorld()

    def new_network(self, world: World, tap: Tap | None) -> Network:
        return RealNetwork(world, tap)

    # From start to end.

    def start(self) -> None:
        """Begin the clients' work: all of them are ready."""
        self.started_ns = self.world.begin(self._clocks())
        self._worked_before_s = self._work_s()
        if self._witness is not None:
            self.network.sees = self._witness.trace
            self._witness.trace.begin(self.rows, self.parts)
        self.start_clients()

    def _clocks(self) -> Clocks | None:
        """Return the clocks of the programs, if all of them can be set."""
        found = [one.clock for one in self.programs if one.clock is not None]
        whole = len(found) == len(self.programs)
        if not whole:
            return None
        ahead = max(one.ahead_ns for one in self.programs)
        return Clocks(found, time.monotonic_ns() + ahead - MS)

    def hurries(self) -> bool:
        """End timed waits that do not end by themselves, where the clocks run: before the run, when
        programs make their new locks, or if not all clocks can be set. Return whether there are
        such programs."""
        if self.world.clocks is not None:
            return False
        for one in self.programs:
            one.hurry()
        return any(one.hurries for one in self.programs)

    def calms(self, patience_ns: int) -> bool:
        """Let time pass if all clients wait; return whether it passes."""
        world = self.world
        if self.started_ns < 0:
            world.rest()
            return True
        world.halt()
        works = False
        for one in self.programs:
            if not one.version:
                world.stir()  # a successor starts
                return False
            works = works or not one.waits()
        if works:
            world.stir()
            if world.clocks is not None:
                patience_ns = max(patience_ns, STILL_NS)
            if world.stands_ns <= patience_ns or self._starves():
                return False
            self._bound_work()
        before = world.now
        self.stood_ns = world.rest(works) if world.stirred else 0
        # Where time jumps, it is late only if it has made up for some of this.
        if not self._can_jump or world.now > before:
            self.late_ns = max(self.late_ns, self.stood_ns)
        return True

    def _starves(self) -> bool:
        """Whether a client whose clocks stand has something to do, and gets no processor."""
        if self.world.clocks is None or self._worked.enough(self.world.stirred_ns):
            return False
        return any(one.works() for one in self.programs)

    def _bound_work(self) -> None:
        """End the run if the clients have worked for long, and still do."""
        worked_s = self._work_s() - self._worked_before_s
        if worked_s > _MOST_WORK_S:
            self.worked_s = worked_s
            self.hung = self.world.over = True

    def _work_s(self) -> float:
        return sum(one.worked_s() for one in self.programs)

    @property
    def is_over(self) -> bool:
        """Whether it has ended, or takes too long."""
        if self.world.over:
            return True
        if self.started_ns >= 0 and self.world.look() > self.started_ns + self._end_ns:
            self.hung = self.world.over = True
        return self.world.over

    def turn(self) -> None:
        """Run the events that are due."""
        try:
            self.world.run()
        except Exception as error:
            self._fail(error)
        if not self._jumps():
            self.world.go_on()

    @property
    def _can_jump(self) -> bool:
        clocks = self.world.clocks
        return clocks is not None and clocks.jumps

    def _jumps(self) -> bool:
        """Let time jump to the next event or the next timeout of a client, whichever comes first.
        Return False if time must pass as it really does: it cannot jump for these programs, or a
        thread stays at work although its client waits."""
        world = self.world
        if not self._can_jump:
            return False
        if world.stirred or world.over or world.is_due:
            return True
        assert world.clocks is not None
        wakes = [one.wakes_ns(world.clocks.shown) for one in self.programs]
        if None in wakes:
            # A thread of which the client's first one does not know, as a garbage collector.
            self._looks += 1
            if self._looks > _LOOKS and self._threads.enough(world.now):
                if any(one.hurries for one in self.programs):
                    self._looks = 0  # no timeout ends by itself: look again soon
                    world.at(world.now + _SOON_NS, Timer(world.nowhere, _nothing))
                return False
            world.stir()
            return True
        self._looks = 0
        to = min(world.due_ns, self.started_ns + self._end_ns + 1, *cast(list[int], wakes))
        world.jump(max(to, world.now))
        for one, at in zip(self.programs, wakes, strict=True):
            if at is not None and at <= world.now:
                world.stir()
                one.wake(world.now)
        return True

    def fail(self, error: BaseException) -> None:
        """End the run with an error."""
        self._fail(error)

    def end(self) -> None:
        """Stop the clients' tasks, and put the history in order."""
        steps = self.world.step
        if self.world.clocks is not None:
            ahead = self.world.ends()
            for one in self.programs:
                one.ahead_ns = ahead
        if self._witness is not None:
            self._witness.ends(self.world)
        self.unasked = bool(self.network.duplexes)
        self.world.stop()
        for links in list(self.network.open.values()):
            for link in list(links):
                link.close()  # type: ignore[attr-defined]  # all are connections
        self._forget()
        self.world.step = steps
        self.rows.sort(key=lambda row: row[0])

    def is_lost(self, number: int) -> bool:
        """Return whether the action with this number loses a message."""
        return self._actions[number - 1].kind == LOSS

    def check_failure(self) -> None:
        if isinstance(self.failure, Faulty):
            raise LockError(str(self.failure)) from self.failure
        super().check_failure()

    @property
    def exact_schedule(self) -> Schedule:
        return Schedule(self.schedule.head, tuple(sorted(self.injected)))

    # Clients.

    def client(self, node: ClientNode, out: Outbox) -> Client:
        return cast(Client, self.parts[node.index])

    def _begin_end(self) -> None:
        alive = next(client for client in self.clients if client.up)
        self.begin(alive, lambda: self.finish(alive, self.client(alive, alive.out)))

    def hear(self, index: int, message: dict[str, Any]) -> None:
        """Take a line of a client's program."""
        if index in self.leaving:
            return  # a program that has executed itself
        if self.clients[index].up and not self.world.over:
            self.world.stir()
            if message.get("control") == "stopped":
                self.parts[index].stopped()
                return
            self.parts[index].hear(message)
            if self.setting.elector and message["f"] == "close" and message["type"] == "invoke":
                self.leaving.add(index)
            if message.get("f") == "acquire" and message.get("type") == "ok":
                lease_ns = MODELS[self.setting.model].lease_ns
                left = (lease_ns(server, self.world.now) for server in self.servers)
                self.longest_ns = max(self.longest_ns, *left)

    def leave(self, index: int, successor: Program) -> int:
        """Take the successor of an elector's process, which has ended; return its number."""
        if self.world.clocks is not None:
            self.world.clocks.drop(self.programs[index].clock)
        self.programs[index] = successor
        self.leaving.discard(index)
        return self.clients[index].out.process + len(self.clients)

    def succeed(self, index: int) -> None:
        """Continue with the successor of a process, which is ready."""
        program, clocks = self.programs[index], self.world.clocks
        if clocks is not None:
            if program.clock is None:
                raise Unknown("the clocks of its successor cannot be set")
            clocks.stand(self.world.now)
            clocks.add(program.clock, self.world.now, time.monotonic_ns())
            self.world.stand_on()
        self.parts[index].succeeds(program)

    # Decisions.

    def _after(self, node: ClientNode, messages: int, action: int) -> None:
        place = self.moments[node.index] + messages
        while (step := self._step(node, place)) in self._due:
            place += 1
        self._due[step] = action

    def _step(self, node: ClientNode, place: int) -> int:
        return 1 + place * len(self.clients) + node.index

    def _meets(self, request: Request) -> None:
        self._meet(request)
        if self._witness is not None:
            self._witness.sees(request, self.world.now)

    def _meet(self, request: Request) -> None:
        """Count a message before it arrives, and inject the actions for it."""
        node, link = request.link.client, request.link
        assert isinstance(node, ClientNode) and isinstance(link, Connection)
        if self.started_ns < 0 or not link.is_about_data(request):
            return
        step = self._step(node, self.moments[node.index])
        self.moments[node.index] += 1
        self.asked = self.asked or request.server is not self.storage
        self.world.step = max(self.world.step, step)
        self.parts[node.index].step = step
        held = self._held[node.index]
        if step in self._due:
            held.append(self._due.pop(step))
        if not held or self._no_more_faults:
            return
        action = self._actions[held[0] - 1] if held[0] <= len(self._actions) else None
        if action is None:
            held.popleft()
            return
        activities, rows = [client.activity for client in self.clients], len(self.rows)
        if self._inject(action, request) is False:
            return
        if self._witness is not None:
            self._witness.trace.meets(request, rows)
        self.injected.append((step, held.popleft()))
        met = "reply" if request.back else "request"
        self.seen[action.kind, action.way, met, *activities] = None
        if request.off:
            link.lost(request)
        self._carry_out(rows)

    def _carry_out(self, place: int) -> None:
        """Stop and kill the programs of clients that a fault has met. Its rows begin at this
        place."""
        for node, program in zip(self.clients, self.programs, strict=True):
            if program.dead:
                continue
            if not node.up:
                program.strike()
                # A request that it had sent is answered, so its op has begun.
                written = [one for one in program.last_messages() if "f" in one]
                self.parts[node.index].hear_last(written, place)
            elif node.paused_until > self.world.now and not program.stopped:
                program.stop()
                resume = partial(self._resume, program)
                self.world.at(node.paused_until, Timer(self.world.nowhere, resume))

    def _resume(self, program: Program) -> None:
        self.world.stir()
        program.resume()


def _nothing() -> None:
    """Let time pass."""
