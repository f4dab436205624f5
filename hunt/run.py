"""Runs one schedule: simulates servers and clients, injects faults, and records the history."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from heapq import heappop, heappush
from types import FrameType
from typing import Any

from greenlet import GreenletExit

from fencepost.hunt.endless import Watch, relent_later
from fencepost.hunt.faults.kill import BOOT, end_client
from fencepost.hunt.faults.simulated import Action
from fencepost.hunt.intercept import patches
from fencepost.hunt.intercept.context import Place, destroying
from fencepost.hunt.intercept.inside import inside
from fencepost.hunt.lock_error import Stuck, of_failure, without_end
from fencepost.hunt.machine import Failpoints, simulated
from fencepost.hunt.models.model import Storage
from fencepost.hunt.models.registry import MODELS, storage
from fencepost.hunt.reigns import reigns
from fencepost.hunt.sim import due
from fencepost.hunt.sim.client_node import ClientNode, no_call
from fencepost.hunt.sim.code_location import where_now
from fencepost.hunt.sim.faults import Faults
from fencepost.hunt.sim.network import Network, Server, Tap
from fencepost.hunt.sim.record import Outbox, Row
from fencepost.hunt.sim.schedule import Aim, Schedule
from fencepost.hunt.sim.setting import STORAGE, Setting
from fencepost.hunt.sim.world import MS, NEVER, Event, Node, Task, World
from fencepost.hunt.work import Plan, begins_ns, final_acquire, sections
from fencepost.workloads.client.client import Client
from fencepost.workloads.client.sockets import Sockets
from fencepost.workloads.client.steps import Steps, Watcher
from fencepost.workloads.contract.lock import Interrupt
from fencepost.workloads.locks.user_lock import forget

_STORAGE = 99


class Run:
    """The state of one simulated run.

    `seen`: pairs of an injected action and the activities of the clients at that moment. `struck`:
    the faults that took effect, each with the message and the ops that it struck. `watch`: returns
    the watcher of a client's steps. `worked_ns`: when all clients had finished their work; then one
    client checks that the lock recovers. `healed_ns`: when all faults had ended. `in_loop`: calls
    of the lock run in an event loop.
    `waits_forever`: a call of the lock did not end (endless.py).
    `checks_end`: the lock has ended the process of the final check once; a second time it fails.
    `working`: the number of clients still at work. `denied`: the lock was not granted although only
    a minority of the servers was away. `missed`: an action waited for a message, but none came.
    `most_steps`: far more steps than any run of a working lock takes.
    """

    __slots__ = ("_actions", "_being_created", "_finishing", "_injections", "_last_ns", "_pending",
                 "_sockets", "_watch", "came_back", "checks_end", "clients", "denied", "failure",
                 "faults", "healed_ns", "in_loop", "injected", "missed", "network", "nodes", "rows",
                 "schedule", "seen", "servers", "setting", "storage", "struck", "tap",
                 "waits_forever", "worked_ns", "worked_step", "working", "world")  # fmt: skip

    most_steps = 200_000
    last_steps = 10_000
    """The number of steps before the last one in which some time must pass."""

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
        self.world = world = self.new_world()
        self.network = self.new_network(world, tap)
        self.faults = Faults(world, self.rows)
        self.tap = tap
        self.servers = MODELS[setting.model].servers(setting, self.network)
        site = Storage(STORAGE, _STORAGE, self.network, self.servers, self.begin)
        self.storage = storage(setting.store, site)
        self.nodes: Mapping[str, Server] = {one.name: one for one in (*self.servers, self.storage)}
        self.clients = [
            ClientNode(name, index, Outbox(world, self.rows, index, name), aims, self.inject_after)
            for index, name in enumerate(setting.clients)
        ]
        self.failure: BaseException | None = None
        self.in_loop = False
        self.came_back = True
        self.worked_ns = self.healed_ns = NEVER
        self.denied = False
        self.worked_step = 0
        self.seen: dict[tuple[str, ...], None] = {}
        self.struck: dict[tuple[str, ...], None] = {}
        self._actions = actions
        # A sorted list is a heap, and steps rise.
        self._injections = list(schedule.injections)
        self.injected: list[tuple[int, int]] = []
        self._last_ns: int | None = None
        self._pending: Action | None = None
        self._finishing: ClientNode | None = None
        self.checks_end = self.waits_forever = False
        self.missed = False
        self.working = len(self.clients)
        self._being_created = len(self.clients) if setting.own else 0

    def new_world(self) -> World:
        return World()

    def new_network(self, world: World, tap: Tap | None) -> Network:
        return Network(world, tap)

    def execute(self) -> Run:
        """Execute the schedule.

        Raises:
            LockError: the lock's own code failed.
        """
        world = self.world
        world.decide = self.decide
        world.decision = self._next()
        self.start_clients()
        watch = Watch(self)
        if MODELS[self.setting.model].client:
            relent_later(self)
        with self._patched() if self.setting.outside else nullcontext():
            try:
                world.run()
            except GreenletExit:  # decide() has ended the run between two tasks
                if self.failure is None:
                    raise
            steps = world.step
            world.stop()
        watch.forget()
        destroying(True)
        try:
            self._forget()
        finally:
            destroying(False)
        world.step = steps
        self.check_failure()
        self.waits_forever = watch.gave_up
        return self

    def start_clients(self) -> None:
        for client in self.clients:
            self._start(client)

    def _start(self, client: ClientNode) -> None:
        # A call of a `partial` takes more of the stack, which a switch to another task copies.
        self.begin(client, lambda: self._live(client))

    @property
    def test(self) -> Mapping[str, Any]:
        """Return its test, as test.json has it. It tells when the servers ended sessions, if they
        know: then no checker has to suppose that a fault did."""
        known = [one.session_ends for one in self.servers if one.session_ends is not None]
        if len(known) < len(self.servers) or self.setting.ends_with != "connection":
            return self.setting.test
        names = self.setting.clients
        ends = {name: sorted(at for one in known for at in one.get(name, ())) for name in names}
        return {**self.setting.test, "session_ends": ends}

    def check_failure(self) -> None:
        """Raise the error with which the run has ended, if there is one."""
        if self.failure is not None:
            raise of_failure(self.failure, self.world.step)

    def _forget(self) -> None:
        """Break reference cycles, so that the garbage collector does not search for them.

        That would take a tenth of a hunt's time.
        """
        self.world.forget()
        self.network.open.clear()
        self.network.duplexes.clear()
        for server in self.nodes.values():
            server.forget()
        for client in self.clients:
            client.inject_after, client.cancel = _never, no_call

    def _patched(self) -> AbstractContextManager[None]:
        """Replace sockets, clocks and threads for code that brings its own connections."""
        for module in self.setting.libraries:
            patches.load(module)
        end = partial(end_client, self)
        nodes, sockets = self.nodes, self._sockets
        place = Place(self.world, self.network, nodes, self._fail, self.begin, end, sockets)
        return inside(place, self.schedule.at(0), self._stuck)

    def _fail(self, error: BaseException) -> None:
        self.failure = self.failure or error
        self.world.over = True

    def _stuck(self, frame: FrameType | None) -> BaseException:
        """End the run because the lock's code has run for seconds without a step."""
        where = where_now(self._folder, frame)
        self._fail(Stuck(f"the lock does not terminate{where}, at step {self.world.step}"))
        return GreenletExit()

    @property
    def _folder(self) -> str:
        """The folder of a user lock, or ""."""
        return "" if self.setting.own is None else self.setting.own.folder

    # Decisions.

    def _next(self) -> int:
        end = self.most_steps - (self.last_steps if self._last_ns is None else 0)
        return min(self._injections[0][0], end) if self._injections else end

    def inject_after(self, steps: int, action: int) -> None:
        """Schedule an action to be injected after this number of steps."""
        world = self.world
        step = world.step + 1 + steps
        heappush(self._injections, (step, action))
        world.decision = min(world.decision, step)

    def decide(self, event: Event | None) -> int:
        """Inject the actions due at this step; return the next step with an action."""
        step = self.world.step
        if step >= self.most_steps:
            self._fail(self._endless())
            raise GreenletExit  # a lock that catches every Exception does not catch this
        if step >= self.most_steps - self.last_steps and self._last_ns is None:
            self._last_ns = self.world.now
        if self._being_created:
            return step + 1
        if self._pending is not None:
            if self._no_more_faults:
                self.missed = True
            elif self._inject(self._pending, event) is False:
                return step + 1
            self._pending = None
        elif self._injections and self._injections[0][0] <= step:
            number = heappop(self._injections)[1]
            if not self._no_more_faults and number <= len(self._actions):
                self.injected.append((step, number))
                action = self._actions[number - 1]
                activities = [client.activity for client in self.clients]
                met = due.kind(event)
                self.seen[action.kind, action.way, met, *activities] = None
                if self._inject(action, event) is False:
                    self._pending = action
                    return step + 1
        return max(step + 1, self._next())

    def _inject(self, action: Action, event: Event | None) -> bool | None:
        """Inject an action, and note what it struck if it took effect."""
        rows = len(self.rows)
        took = action.inject(self, event)
        if len(self.rows) > rows:
            ops, met = due.struck(self.clients, action.client, event)
            self.struck[action.kind, action.way, met, *ops] = None
        return took

    def _endless(self) -> Exception:
        """Return the error for a run that has taken all its steps."""
        now = self.world.now
        stands, waits_s = now == self._last_ns, (now - max(row[0] for row in self.rows)) / 1e9
        return without_end(self.most_steps, where_now(self._folder), stands, waits_s)

    @property
    def _no_more_faults(self) -> bool:
        """Whether all clients have finished their work, and one checks that the lock recovers."""
        return self.working == 0

    @property
    def pending(self) -> Action | None:
        """The action that waits for a message."""
        return self._pending

    @property
    def exact_schedule(self) -> Schedule:
        """The schedule that reproduces this run, including the actions that waited for an op."""
        return Schedule(self.schedule.head, tuple(self.injected))

    # Clients.

    def _live(self, node: ClientNode) -> None:
        """Do a client's work."""
        setting = self.setting
        # A user lock may connect in its constructor; its servers are up then, as in a test.
        made = self._create_undisturbed(node) if setting.own else None
        self.world.sleep(begins_ns(setting, self.schedule, node.index))
        client = made or self.client(node, node.out)
        self.work(node, client)
        self.rest(node, client)

    def rest(self, node: ClientNode, client: Client) -> None:
        """Close a client that has done its work; the last one checks that the lock recovers."""
        node.activity = "rest"
        self.working -= 1
        if self.working:
            client.close()
        else:
            self.finish(node, client)

    def work(self, node: ClientNode, client: Client) -> None:
        """Let a client do its work."""
        plan = Plan.of(self.setting, self.schedule, node.index)
        work = reigns if self.setting.elector else sections
        work(client, plan, self.setting, self.world, node)

    def _create_undisturbed(self, node: ClientNode) -> Client:
        """Create a client; no fault is injected until all clients exist."""
        try:
            return self.client(node, node.out)
        finally:
            self._being_created -= 1

    def gone(self, node: ClientNode) -> None:
        """Continue after the kill of this client: it does not return. After the kill of the last
        working client, another one checks that the lock recovers."""
        if node is self._finishing:  # its lock has ended its process
            if self.checks_end:
                self.came_back, self.world.over = False, True
                return
            self.checks_end = True
            self._begin_end()
        if node.activity == "rest":
            return  # it had done its work
        self.working -= 1
        if self.working == 0:
            self._begin_end()

    def _begin_end(self) -> None:
        alive = next(client for client in self.clients if client.up)
        process = alive.out.process + len(self.clients) * 1000
        alive.out = Outbox(self.world, self.rows, process, alive.name)
        self.begin(alive, lambda: self.finish(alive, self.client(alive, alive.out)))

    def finish(self, node: ClientNode, client: Client) -> None:
        world, setting = self.world, self.setting
        self._finishing = node
        self.worked_ns, self.worked_step = world.now, world.step
        # No fault is injected from here on; wait for those that end by themselves.
        world.sleep(max(0, self.faults.until - world.now) + MS)
        if setting.promises("minority") and self._lacks_a_minority(node):
            self.denied = not final_acquire(client, setting, world)
        self.healed_ns = world.now
        self.faults.heal()
        self.network.recover()
        world.sleep(2 * BOOT)
        self.came_back = final_acquire(client, setting, world) and not self.denied
        client.close()
        self.world.over = True

    def _lacks_a_minority(self, node: ClientNode) -> bool:
        """Whether faults that last until the end keep a minority of the servers from this client:
        they are down or cut off from it."""
        cut = self.network.requests_cut | self.network.replies_cut
        away = [one for one in self.servers if not one.up or (node.index, one.index) in cut]
        return 0 < 2 * len(away) < len(self.servers)

    def client(self, node: ClientNode, out: Outbox) -> Client:
        setting = self.setting
        forget(setting.modules)
        machine = simulated(self, node, out)
        setup = setting.setup(node.index)
        steps = None if self._watch is None else Steps(self._watch(node.name))
        if steps is not None:
            self._sockets[node] = Sockets(steps)
        client = Client(setup, out, Failpoints(self.world), machine, steps)
        self.in_loop = client.in_loop
        assert self.world.running is not None, "a client is made in its own task"
        node.cancel = partial(_cancel, client, self.world.running)
        return client

    def begin(self, node: Node, work: Callable[[], None], at: int | None = None) -> Task:
        """Start a task on a node, at once or at a time; an error in it ends the run."""

        def run() -> None:
            try:
                work()
            except GreenletExit:
                raise
            except BaseException as error:
                self._fail(error)

        return self.world.start(node, run, self.world.now if at is None else at)


def _cancel(client: Client, task: Task, then: Callable[[], None]) -> None:
    """Cancel the running call of a client's lock, and call `then` if there is one. A call that does
    not run in an event loop gets an exception where it waits, as from a signal's handler."""
    if client.in_loop:
        client.cancel(then)
    elif client.calls:
        client.calls = False
        then()
        task.throw(Interrupt())


def _never(steps: int, action: int) -> None:
    """Ignore the injection: the run has ended."""
