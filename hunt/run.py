"""One simulated run: servers, clients, a schedule, and the record of what came of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from heapq import heappop, heappush

from greenlet import GreenletExit

from fencepost.hunt.faults.action import Action
from fencepost.hunt.faults.kill import BOOT
from fencepost.hunt.intercept.context import Place
from fencepost.hunt.intercept.inside import inside
from fencepost.hunt.machine import Failpoints, simulated
from fencepost.hunt.models.model import Storage
from fencepost.hunt.models.registry import MODELS, storage
from fencepost.hunt.sim.client_node import ClientNode
from fencepost.hunt.sim.code_location import where_in, where_now
from fencepost.hunt.sim.faults import Faults
from fencepost.hunt.sim.network import Network, Request, Server, Tap
from fencepost.hunt.sim.record import Outbox, Row
from fencepost.hunt.sim.schedule import Aim, Schedule
from fencepost.hunt.sim.setting import STORAGE, Setting
from fencepost.hunt.sim.unknown import Unknown
from fencepost.hunt.sim.world import MS, NEVER, Event, Node, Task, World
from fencepost.hunt.work import Plan, last_words, sections
from fencepost.workloads.client.client import Client
from fencepost.workloads.client.sockets import Sockets
from fencepost.workloads.client.steps import Steps, Watcher
from fencepost.workloads.locks.user_lock import forget

# No run of a lock that works has so many steps.
_MOST_STEPS = 200_000
_STORAGE = 99


class LockError(Exception):
    """The lock's code raised what a lock may not raise, or does not come to an end."""


class Run:
    """Everything of one run. `seen` are pairs of what was injected and what the clients were doing.

    `watch` gives who is told of each step of a client's ops. `worked_ns`: when all had done their
    work, and one only looked whether the lock comes back; `healed_ns`: when all faults were over.
    `working`: how many are at it still. `denied`: beside a few dead servers it did not come back.
    `missed`: an action waited for a message, and none came.
    """

    def __init__(
        self,
        setting: Setting,
        schedule: Schedule,
        actions: Sequence[Action],
        tap: Tap | None = None,
        aims: Sequence[Aim] = (),
        watch: Callable[[str], Watcher] | None = None,
    ) -> None:
        self.setting = setting
        self._watch = watch
        self._sockets: dict[Node, Sockets] = {}
        self.schedule = schedule
        self.rows: list[Row] = []
        self.world = world = World()
        self.network = Network(world, tap)
        self.faults = Faults(world, self.rows)
        self.tap = tap
        self.servers = MODELS[setting.model].servers(setting, self.network)
        site = Storage(STORAGE, _STORAGE, self.network, self.servers, self._begin)
        self.storage = storage(setting.store, site)
        self.nodes: Mapping[str, Server] = {one.name: one for one in (*self.servers, self.storage)}
        self.clients = [
            ClientNode(name, index, Outbox(world, self.rows, index, name), aims, self.inject_after)
            for index, name in enumerate(setting.clients)
        ]
        self.failure: BaseException | None = None
        self.came_back = True
        self.worked_ns = self.healed_ns = NEVER
        self.denied = False
        self.worked_step = 0
        self.seen: dict[tuple[str, ...], None] = {}
        self._actions = actions
        # Steps rise, so that this is a heap.
        self._injections = list(schedule.injections)
        self.injected: list[tuple[int, int]] = []
        self._pending: Action | None = None
        self.missed = False
        self.working = len(self.clients)
        self._making = len(self.clients) if setting.own else 0

    def _begin(self, node: Node, work: Callable[[], None]) -> None:
        self.world.start(node, self.thread(work), self.world.now)

    def carry_out(self) -> Run:
        """Run it. Raises LockError where the lock's own code fails."""
        world = self.world
        world.decide = self.decide
        world.decision = self._next()
        for client in self.clients:
            world.start(client, self._life(client), 0)
        with self._outside() if self.setting.outside else nullcontext():
            world.run()
            steps = world.step
            world.stop()
        self._forget()
        world.step = steps
        if isinstance(self.failure, Unknown | LockError):
            raise self.failure
        if self.failure is not None:
            raise LockError(
                f"{type(self.failure).__name__}: {self.failure} ({where_in(self.failure)}), "
                f"at step {steps}"
            ) from self.failure
        if not world.over:
            raise LockError(f"the lock waits for ever, from step {steps} on")
        return self

    def _forget(self) -> None:
        """Break the circles among what took part, so that Python's collector need not look for
        them: it would take a tenth of a hunt's time."""
        self.world.forget()
        self.network.open.clear()
        for server in self.nodes.values():
            server.forget()
        for client in self.clients:
            client.inject_after = _never

    def _outside(self) -> AbstractContextManager[None]:
        """What brings its own connections finds this world instead of the real one."""

        def thread(node: Node, work: Callable[[], None]) -> Task:
            return self.world.start(node, self.thread(_on_its_own(work)), self.world.now)

        place = Place(self.world, self.network, self.nodes, self._fail, thread, self._sockets)
        return inside(place, self.schedule.at(0), self._stuck)

    def _fail(self, error: BaseException) -> None:
        self.failure = self.failure or error
        self.world.over = True

    def _stuck(self, where: str) -> BaseException:
        """The lock's code has run for seconds without a step."""
        step = self.world.step
        self._fail(LockError(f"the lock does not come to an end ({where}), at step {step}"))
        return GreenletExit()

    # Decisions.

    def _next(self) -> int:
        return min(self._injections[0][0], _MOST_STEPS) if self._injections else _MOST_STEPS

    def inject_after(self, steps: int, action: int) -> None:
        """Let an action be injected so many steps from now."""
        world = self.world
        step = world.step + 1 + steps
        heappush(self._injections, (step, action))
        world.decision = min(world.decision, step)

    def decide(self, event: Event | None) -> int:
        """Carry out what is due at this step; return the next step at which something is."""
        step = self.world.step
        if step >= _MOST_STEPS:
            where = where_now()
            error = LockError(f"the lock does not come to an end within {step:,} steps{where}")
            self._fail(error)
            raise GreenletExit  # which a lock that catches every Exception does not catch
        if self._making:
            return step + 1
        if self._pending is not None:
            if self._over_faults:
                self.missed = True
            elif not self._pending.inject(self, event):
                return step + 1
            self._pending = None
        elif self._injections and self._injections[0][0] <= step:
            number = heappop(self._injections)[1]
            if not self._over_faults and number <= len(self._actions):
                self.injected.append((step, number))
                action = self._actions[number - 1]
                doing = [client.doing for client in self.clients]
                met = "" if event is None else _of(event)
                self.seen[action.kind, action.way, met, *doing] = None
                if not action.inject(self, event):
                    self._pending = action
                    return step + 1
        return max(step + 1, self._next())

    @property
    def _over_faults(self) -> bool:
        """Whether the clients have done their work, and only look whether the lock comes back."""
        return self.working == 0

    @property
    def pending(self) -> Action | None:
        """The action that waits for a message."""
        return self._pending

    def end(self) -> None:
        """Let nothing more happen."""
        self.world.over = True

    @property
    def played(self) -> Schedule:
        """The schedule that gives this very run once more, aims and all."""
        return Schedule(self.schedule.head, tuple(self.injected))

    # Clients.

    def _life(self, node: ClientNode) -> Callable[[], None]:
        setting = self.setting
        plan = Plan.of(setting, self.schedule, node.index)

        def live() -> None:
            try:
                # A lock of one's own may connect at once: its servers are up then, as in a test.
                made = self._made_in_peace(node) if setting.own else None
                self.world.sleep(plan.begins_ns)
                client = made or self.client(node, node.out)
                sections(client, plan, setting, self.world, node)
                node.doing = "rest"
                self._rest(node, client)
            except GreenletExit:
                raise
            except BaseException as error:
                self._fail(error)

        return live

    def _made_in_peace(self, node: ClientNode) -> Client:
        """Nothing strikes before all clients are made."""
        try:
            return self.client(node, node.out)
        finally:
            self._making -= 1

    def _rest(self, node: ClientNode, client: Client) -> None:
        """The last client that has worked sees to it that the lock comes back, and ends the run."""
        self.working -= 1
        if self.working:
            client.close()
            return
        self.finish(node, client)

    def finish(self, node: ClientNode, client: Client) -> None:
        world, setting = self.world, self.setting
        self.worked_ns, self.worked_step = world.now, world.step
        # No fault strikes any more; those that end by themselves do.
        world.sleep(max(0, self.faults.until - world.now) + MS)
        if setting.minority and self._only_a_minority_is_down:
            self.denied = not last_words(client, setting, world)
        self.healed_ns = world.now
        self.faults.heal()
        world.sleep(2 * BOOT)
        self.came_back = last_words(client, setting, world) and not self.denied
        client.close()
        self.world.over = True

    @property
    def _only_a_minority_is_down(self) -> bool:
        """Whether a few servers are gone for good, and nothing else stands in the way."""
        down = [server.name for server in self.servers if not server.up]
        return len(self.faults.on) == len(down) and 0 < 2 * len(down) < len(self.servers)

    def client(self, node: ClientNode, out: Outbox) -> Client:
        setting = self.setting
        forget(setting.modules)
        machine = simulated(self, node, out)
        setup = setting.setup(node.index)
        steps = None if self._watch is None else Steps(self._watch(node.name))
        if steps is not None:
            self._sockets[node] = Sockets(steps)
        return Client(setup, out, Failpoints(self.world), machine, steps)

    def thread(self, work: Callable[[], None]) -> Callable[[], None]:
        def run() -> None:
            try:
                work()
            except GreenletExit:
                raise
            except BaseException as error:
                self._fail(error)

        return run

    # Words.

    def ends(self, request: Request) -> tuple[str, str]:
        """The sender and the receiver of each message that is under way now."""
        ends = request.link.client.name, request.server.name
        return (ends[1], ends[0]) if request.back else ends

    def told(self, request: Request) -> str:
        """What is under way now, as a sentence has it."""
        what = "the reply" if request.back else "the request"
        source, to = self.ends(request)
        return f"{what} of {source} to {to}"


def _never(steps: int, action: int) -> None:
    """The run has ended: nothing is injected any more."""


def _on_its_own(work: Callable[[], None]) -> Callable[[], None]:
    """A thread that ends with an exception ends nothing else (threading.excepthook)."""

    def run() -> None:
        with suppress(Exception):
            work()

    return run


def _of(event: Event) -> str:
    if isinstance(event, Request):
        return "reply" if event.back else "request"
    return "wake"
