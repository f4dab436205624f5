"""Hunts as the command line and Python run them: validated, run, and their counterexamples stored.

A hunt simulates its servers (hunt/), so it needs no cluster, no Docker and no root.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from fencepost import runfiles
from fencepost.atomic_write import replace
from fencepost.commandline import command, lock_options, option
from fencepost.harness.errors import BadArguments, Crashed, choose
from fencepost.harness.execute import scripted
from fencepost.harness.execute.program_promises import named_by
from fencepost.harness.hunting import replays
from fencepost.harness.hunting.examples import EXAMPLES, built
from fencepost.harness.hunting.programs import (
    conductor,
    looked_at,
    usual_times,
    usual_times_of_library,
)
from fencepost.harness.judge.judge import Outcome, judge
from fencepost.harness.results import results
from fencepost.harness.results.run_facts import learn, now
from fencepost.harness.spec import from_arguments, reference
from fencepost.harness.spec.models import model_of, passes_a_gate
from fencepost.harness.spec.simulation import CHECKS_TOKENS, setting_of
from fencepost.harness.spec.spec import Spec, seconds
from fencepost.harness.userlock.resolve import LockRequest
from fencepost.harness.userlock.resolve import resolve as given_lock
from fencepost.harness.userlock.user_lock import UserLock
from fencepost.hunt.bridge.bridge import Bridge, bridge
from fencepost.hunt.faults import registry as simulated
from fencepost.hunt.live.look import Look
from fencepost.hunt.live.search import hunt as play_out
from fencepost.hunt.live.witness import of_run
from fencepost.hunt.lock_error import LockError
from fencepost.hunt.search.coverage import Coverage, of_hunt
from fencepost.hunt.search.hunt import Counterexample
from fencepost.hunt.search.hunt import hunt as carry_out
from fencepost.hunt.search.search import Tried
from fencepost.hunt.sim import record
from fencepost.hunt.sim.schedule import Schedule
from fencepost.hunt.sim.setting import Setting
from fencepost.hunt.sim.unknown import Unknown
from fencepost.hunt.story.messages import messages, to_json
from fencepost.hunt.story.story import drawn, numbered
from fencepost.settings import SETTINGS
from fencepost.workloads.locks.registry import LOCKS
from fencepost.workloads.scenarios import file
from fencepost.workloads.scenarios.scenario import Scenario

SEARCHES = ("random", "exhaustive")
SETTINGS_OF_A_HUNT = (
    "guard", "ttl_ms", "persistence", "restart", "stops", "after_cancel", "seed", "server",
)  # fmt: skip
"""The settings of a test that a hunt has too."""
OWN_WORDS = tuple(
    SETTINGS[name].word for name in SETTINGS_OF_A_HUNT if name not in ("seed", "server")
)
"""The options of these without the seed and the servers' versions, which a hunt always names."""
DEPTH = 2
"""The default maximum number of injections of an exhaustive search."""
_LONGEST_S = 7 * 24 * 3600


@dataclass(frozen=True)
class Hunt:
    """A valid hunt: the lock's test, the simulation, and its time.

    `lock` is its name on a command line. `user_lock` has the options that a test of it needs too,
    and `words` all options of the hunt. `depth`: try every schedule with up to this many
    injections; None: draw schedules at random. `inherent`: stop at a counterexample that is
    inherent to the servers, too. `replays`: the only schedule that real clients play; `look`:
    one at their program.
    """

    spec: Spec
    setting: Setting
    budget_s: float
    lock: str = ""
    user_lock: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    depth: int | None = None
    inherent: bool = False
    replays: Schedule | None = None
    look: Look | None = None

    def again(self, *more: str) -> str:
        """Return the command that repeats this hunt with its seed, and with these words too."""
        return command("hunt", [self.lock] if self.lock else [], self.words, more)

    def on_real_servers(self, schedule: Path) -> str:
        """Return the command that replays the scenario in this file on real servers."""
        named = [self.lock] if self.lock else []
        return command("test", named, option("schedule", schedule), self.user_lock)

    def carry_out(
        self, processes: int | None = None, tell: Callable[[Tried], None] = lambda tried: None
    ) -> tuple[Tried, Counterexample | None]:
        """Search; `tell` receives the progress.

        Raises:
            BadArguments: the lock asks its servers for something that their models do not have.
            Crashed: the lock's own code failed; the text has its error.
        """
        lock = self.spec.lock
        try:
            if self.setting.live:
                return play_out(
                    self.setting, lambda: conductor(self.spec, self.setting, processes),
                    self.spec.seed, self.budget_s, tell, self.inherent, self.replays, self.look,
                )  # fmt: skip
            return carry_out(
                self.setting, self.spec.seed, self.budget_s, processes, tell, self.depth,
                inherent=self.inherent,
            )  # fmt: skip
        except Unknown as error:
            raise BadArguments(f"{lock}: {error}") from error
        except LockError as error:
            if self.setting.live:
                raise Crashed(f"{lock}: {error}") from error
            raise Crashed(f"{lock}, in the simulation: {error}") from error

    def compared(self, tried: Tried, find: Counterexample | None) -> list[str]:
        """Return the comparisons with the reference lock, a sentence each: first those of the
        counterexamples that did not end the hunt."""
        last = [find.compared] if find is not None and find.compared is not None else []
        where = reference.servers(self.spec)
        return [one.sentence(where) for one in (*tried.inherent, *last)]

    def covered(self, tried: Tried) -> Coverage:
        """Return the coverage of a hunt that found nothing."""
        return of_hunt(self.setting, tried, self.depth is None)

    def store(
        self, tried: Tried, find: Counterexample, command: str
    ) -> tuple[Outcome, Bridge | None]:
        """Write a run's folder with the counterexample, and the scenario that replays it on real
        servers; electors have none. `command` finds it again."""
        folder = results.create(f"hunt-{self.spec.name}")
        compared = self.compared(tried, find)
        test: dict[str, Any] = {
            **find.run.test,
            "compared": compared[-1] if find.compared else None,
            "name": folder.parent.name,
            "nemesis": list(find.run.faults.families),
            "scheduled": True,
            "until": list(self.setting.goals),
            "hunt": {
                "command": command,
                "schedule": find.schedule.numbers(len(self.setting.clients)),
                "strikes": [[step, action] for step, action in find.schedule.injections],
                "faults": list(self.setting.faults),
                "story": numbered(find.story),
                "drawing": drawn(find.story, find.run),
                "broken": list(find.broken),
                "schedules": tried.schedules,
                "compared": compared,
                **({} if find.came is None else {"came": list(find.came)}),
            },
        }
        if self.spec.own is not None:
            self.spec.own.kept(folder)
        results.write(folder / runfiles.TEST, test)
        learn(folder, started=now())
        record.write(folder / "history.jsonl", find.run.rows)
        told = find.messages if self.setting.live else messages(find.run, find.schedule)
        replace(folder / runfiles.MESSAGES, [msgspec.json.encode(to_json(told))])
        if self.setting.live:
            numbers = find.schedule.numbers(len(self.setting.clients))
            replays.write(folder / "schedule.json", command, list(find.broken), numbers)
        if self.setting.elector or not self._passes_a_gate or getattr(find.run, "unasked", False):
            return judge(folder, []), None
        made = bridge(self.setting, find, of_run(find.run) if self.setting.live else None)
        text = file.to_text(made.scenario, made.notes, made.cannot)
        replace(self.scenario_in(folder), [text.encode()])
        replace(folder / "schedule.py", [file.python(made.scenario).encode()])
        return judge(folder, []), made

    def scenario_in(self, folder: Path) -> Path:
        """Return the file of the scenario for real servers in a counterexample's folder. With real
        clients, schedule.json is for `--replay`."""
        return folder / ("scenario.json" if self.setting.live else "schedule.json")

    @property
    def _passes_a_gate(self) -> bool:
        """Whether a scenario can stop its clients at their messages, on nodes that have them."""
        if self.lock in EXAMPLES:
            return False
        return not self.setting.live or passes_a_gate(self.setting.kind)

    def must_have_servers(self) -> None:
        """Raise BadArguments if its counterexample cannot be replayed on real servers."""
        if self.setting.elector:
            raise BadArguments(
                f"{self.spec.lock} is an elector, and no schedule of an elector can be replayed on "
                "real servers: leave --confirm out, and use `fencepost test`"
            )
        if self.lock in EXAMPLES:
            raise BadArguments(
                f"{self.spec.lock} is a client of sdk/examples, and its library is not on the "
                "nodes: leave --confirm out"
            )
        if not self._passes_a_gate:
            raise BadArguments(
                f"{self.spec.lock} is a program on {self.setting.kind}, and the schedule of a "
                "program can be replayed on real servers of redis only: leave --confirm out, and "
                "use `fencepost test`"
            )

    def test_of(self, scenario: Scenario, number: int) -> Spec:
        """Return the test that runs a scenario on real servers, with the seed of its try."""
        return scripted.of_hunt(self.spec, scenario, self.spec.seed + number)


def described(
    lock: str,
    options: Mapping[str, Any],
    settings: Mapping[str, Any],
    *,
    servers: str = "",
    ends_with: str = "",
    promises: str | Sequence[str] = "",
    clients: int = 2,
    faults: str | None = None,
    goal: str | None = None,
    budget: str = "60s",
    search: str = SEARCHES[0],
    depth: int | None = None,
    inherent: bool = False,
    program: str = "",
    ship: Path | None = None,
    elector: bool = False,
    replay: Path | None = None,
) -> Hunt:
    """Return the hunt for these arguments. `settings` are those of a test that a hunt has too;
    `servers`, `ends_with` and `promises` are for a user lock, `elector` for its program.

    Raises:
        BadArguments: this lock cannot be simulated with these arguments; nothing was tried.
    """
    choose("search", search, SEARCHES)
    if depth is not None and search != "exhaustive":
        raise BadArguments("--depth is for --search exhaustive")
    if search == "exhaustive":
        depth = depth or DEPTH
    own_words = not program and lock in EXAMPLES
    if own_words:
        if servers or ends_with or ship or elector:
            raise BadArguments(
                f"{lock} has its own program and servers: leave --servers, --ends-with, --ship and "
                "--elector out"
            )
        example, ship = built(lock)
        program, servers, ends_with = example.program, example.servers, example.ends_with
    request = LockRequest(
        servers, ends_with, promises=promises, program=program, ship=ship, elector=elector
    )
    name, own = given_lock(lock, request)
    budget_s = seconds("budget", budget)
    if budget_s > _LONGEST_S:
        raise BadArguments(f"budget {budget} is out of range (up to a week)")
    given = {word: value for word, value in settings.items() if value is not None}
    live = (own is not None and bool(own.program)) or (own is None and _is_program(name))
    real: dict[str, Any] = {}
    if live:
        ttl_ms, bound_s = _usual_times(name, own)
        real = {"ttl": f"{ttl_ms}ms", "liveness_bound": bound_s}
    spec = from_arguments.spec(name, options, real | given | {"concurrency": clients}, own)
    if "stops" in given and not spec.lock_type.elector:
        raise BadArguments(f"--stops is for electors, and {spec.lock} is a lock: leave it out")
    if live and depth is not None:
        raise BadArguments(
            "--search exhaustive is for simulated clients: real ones repeat a schedule nearly "
            "always, and not always"
        )
    setting, look = setting_of(spec, faults, goal, "guard" in given), None
    if own is not None and live:
        look = looked_at(spec, setting)
        if look is not None:
            spec = named_by(spec, look.promises)
            if look.tokens and "guard" not in given:
                spec = dataclasses.replace(spec, guard=CHECKS_TOKENS)
            setting = setting_of(spec, faults, goal, "guard" in given, look.deadlines)
    if replay is not None and not live:
        raise BadArguments(
            f"--replay is for real clients: the hunt of {spec.lock} is simulated, and its seed "
            "repeats it. Leave --replay out"
        )
    replays_only = None if replay is None else replays.read(replay, clients)
    named = promises if isinstance(promises, str) else ",".join(promises)
    user_lock = (
        *option("program", program),
        *option("ship", ship),
        *option("elector", elector),
        *option("servers", servers),
        *option("ends-with", ends_with),
        *option("promises", named),
    )
    by_name = option("promises", named) if own_words else user_lock
    versions = [word for one in spec.server.items() for word in option("server", "=".join(one))]
    words = (
        *lock_options(options),
        *by_name,
        *option("faults", faults),
        *option("goal", goal),
        *(word for name in OWN_WORDS for word in option(name.replace("_", "-"), given.get(name))),
        *option("budget", budget),
        *option("clients", clients),
        *(option("search", search) if search != SEARCHES[0] else ()),
        *option("depth", depth),
        *option("inherent", inherent),
        *option("replay", replay),
        *option("seed", spec.seed),
        *versions,
    )
    return Hunt(
        spec, setting, budget_s, lock, user_lock, words, depth, inherent, replays_only, look
    )


def _usual_times(lock: str, own: UserLock | None) -> tuple[int, float]:
    """Return the default lease (ms) of a real client, and the bound of liveness (s)."""
    if own is None:
        return usual_times_of_library(LOCKS[lock])
    model = model_of(own.servers.kind)
    ttl_ms, bound_s = usual_times(own)
    return max(ttl_ms, 0 if model is None else model.least_ttl_ms), bound_s


def _is_program(lock: str) -> bool:
    return lock in LOCKS and LOCKS[lock].make is None


def renamed(asked: str | None) -> list[str]:
    """Return a warning for each requested fault that has a name of 0.1.0."""
    names = [name.strip() for name in (asked or "").split(",")]
    return [
        f"--faults {name} is called {simulated.BEFORE[name]} now; the next version will refuse it"
        for name in names
        if name in simulated.BEFORE
    ]
