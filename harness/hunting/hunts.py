"""Hunts as the command line and Python run them: validated, run, and their counterexamples stored.

A hunt simulates its servers (hunt/), so it needs no cluster, no Docker and no root.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from fencepost import runfiles
from fencepost.checker.checker import Checker
from fencepost.checker.checkers import CHECKERS
from fencepost.commandline import command, lock_options, option
from fencepost.harness.errors import BadArguments, Crashed, choose
from fencepost.harness.execute import scripted
from fencepost.harness.hunting import reference
from fencepost.harness.judge.judge import Outcome, judge
from fencepost.harness.results import results
from fencepost.harness.results.run_facts import learn, now
from fencepost.harness.servers.kinds import KINDS, chosen
from fencepost.harness.spec import from_arguments
from fencepost.harness.spec.spec import Spec, restart_s, seconds
from fencepost.harness.userlock.hunt_support import installed, outside_of_reach
from fencepost.harness.userlock.resolve import LockRequest
from fencepost.harness.userlock.resolve import resolve as given_lock
from fencepost.hunt.bridge.bridge import Bridge, bridge
from fencepost.hunt.faults import registry as simulated
from fencepost.hunt.models.model import Model
from fencepost.hunt.models.registry import MODELS, stores
from fencepost.hunt.run import LockError, Run
from fencepost.hunt.search.hunt import Counterexample
from fencepost.hunt.search.hunt import hunt as carry_out
from fencepost.hunt.search.search import Tried
from fencepost.hunt.sim import record
from fencepost.hunt.sim.schedule import Schedule
from fencepost.hunt.sim.setting import Setting
from fencepost.hunt.sim.unknown import Unknown
from fencepost.hunt.story.story import drawn, numbered
from fencepost.nemesis.restart import NEVER_S
from fencepost.settings import SETTINGS
from fencepost.workloads.client import wire
from fencepost.workloads.locks.user_lock import modules as own_modules
from fencepost.workloads.scenarios import file
from fencepost.workloads.scenarios.scenario import Scenario

SEARCHES = ("random", "exhaustive")
SETTINGS_OF_A_HUNT = ("guard", "ttl_ms", "persistence", "restart", "seed", "server")
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
    inherent to the servers, too.
    """

    spec: Spec
    setting: Setting
    budget_s: float
    lock: str = ""
    user_lock: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    depth: int | None = None
    inherent: bool = False

    def again(self, *more: str) -> str:
        """Return the command that repeats this hunt with its seed, and with these words too."""
        return command("hunt", self.lock, self.words, more)

    def on_real_servers(self, schedule: Path) -> str:
        """Return the command that replays the scenario in this file on real servers."""
        return command("test", self.lock, option("schedule", schedule), self.user_lock)

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
            return carry_out(
                self.setting, self.spec.seed, self.budget_s, processes, tell, self.depth,
                inherent=self.inherent,
            )  # fmt: skip
        except Unknown as error:
            raise BadArguments(f"{lock}: {error}") from error
        except LockError as error:
            raise Crashed(f"{lock}, in the simulation: {error}") from error

    def compared(self, tried: Tried, find: Counterexample | None) -> list[str]:
        """Return the comparisons with the reference lock, a sentence each: first those of the
        counterexamples that did not end the hunt."""
        last = [find.compared] if find is not None and find.compared is not None else []
        where = reference.servers(self.spec)
        return [one.sentence(where) for one in (*tried.inherent, *last)]

    def store(self, tried: Tried, find: Counterexample, command: str) -> tuple[Outcome, Bridge]:
        """Write a run's folder with the counterexample, and the scenario that replays it on real
        servers. `command` finds it again."""
        folder = results.create(f"hunt-{self.spec.name}")
        test: dict[str, Any] = {
            **self.setting.test,
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
                "schedules": tried.schedules,
                "compared": self.compared(tried, find),
            },
        }
        if self.spec.own is not None:
            self.spec.own.kept(folder)
        results.write(folder / runfiles.TEST, test)
        learn(folder, started=now())
        record.write(folder / "history.jsonl", find.run.rows)
        made = bridge(self.setting, find)
        text = file.to_text(made.scenario, made.notes, made.cannot)
        (folder / "schedule.json").write_text(text, encoding="utf-8")
        (folder / "schedule.py").write_text(file.python(made.scenario), encoding="utf-8")
        return judge(folder, []), made

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
) -> Hunt:
    """Return the hunt for these arguments. `settings` are those of a test that a hunt has too;
    `servers`, `ends_with` and `promises` are for a user lock.

    Raises:
        BadArguments: this lock cannot be simulated with these arguments; nothing was tried.
    """
    choose("search", search, SEARCHES)
    if depth is not None and search != "exhaustive":
        raise BadArguments("--depth is for --search exhaustive")
    if search == "exhaustive":
        depth = depth or DEPTH
    name, own = given_lock(lock, LockRequest(servers, ends_with, promises=promises))
    budget_s = seconds("budget", budget)
    if budget_s > _LONGEST_S:
        raise BadArguments(f"budget {budget} is out of range (up to a week)")
    given = {word: value for word, value in settings.items() if value is not None}
    spec = from_arguments.spec(name, options, given | {"concurrency": clients}, own)
    setting = setting_of(spec, faults, goal, "guard" in given)
    named = promises if isinstance(promises, str) else ",".join(promises)
    user_lock = (
        *option("servers", servers),
        *option("ends-with", ends_with),
        *option("promises", named),
    )
    versions = [word for one in spec.server.items() for word in option("server", "=".join(one))]
    words = (
        *lock_options(options),
        *user_lock,
        *option("faults", faults),
        *option("goal", goal),
        *(word for name in OWN_WORDS for word in option(name, given.get(name))),
        *option("budget", budget),
        *option("clients", clients),
        *(option("search", search) if search != SEARCHES[0] else ()),
        *option("depth", depth),
        *option("inherent", inherent),
        *option("seed", spec.seed),
        *versions,
    )
    return Hunt(spec, setting, budget_s, lock, user_lock, words, depth, inherent)


def setting_of(spec: Spec, faults: str | None, goal: str | None, guarded: bool) -> Setting:
    """Return the simulation's setting. Raise BadArguments if this lock cannot be simulated."""
    lock = spec.lock_type
    model, version = _model(spec)
    if lock.make is None:
        hunted = ""
        if lock.port:
            hunted = f"`fencepost hunt {lock.port}` hunts fencepost's port of its algorithm, and "
        raise BadArguments(
            f"{spec.lock} cannot be simulated: its client is another program, not in this Python. "
            f"{hunted}`fencepost test {spec.lock}` runs it on real servers"
        )
    outside = bool(lock.library) or spec.own is not None
    if outside:
        _must_be_simulated(spec, model)
    if not guarded and spec.own is None and lock.has_token(spec.options):
        # The data are no goal then, and tokens meet a resource that checks them.
        spec = replace(spec, guard="fenced")
    goals = _goals(spec, goal, guarded)
    if spec.stored_in not in stores():
        raise BadArguments(
            f"guard {spec.guard} is kept in {spec.stored_in}, for which there is no model"
        )
    away_s = restart_s(spec, spec.ttl_ms / 1000)
    setting = Setting(
        test=_description(spec),
        lock=spec.lock,
        options=spec.options,
        servers=tuple(spec.servers),
        clients=tuple(spec.clients),
        faults=(),
        goals=goals,
        guard=spec.guard,
        store=spec.stored_in,
        ttl_ns=spec.ttl_ms * 1_000_000,
        persistence=spec.persistence,
        restart_ns=None if away_s == NEVER_S else round(away_s * 1e9),
        bound_ns=round(spec.liveness_bound_s * 1e9),
        replicated=lock.replicated,
        kind=lock.kind,
        model=model.name,
        version=version,
        extends=lock.extends,
        ends_with=lock.ends_with,
        outside=outside,
        library=lock.imported,
        **_own(spec),
    )
    setting = replace(setting, faults=_faults(faults, setting))
    setting = replace(setting, slow=simulated.slow(setting))
    if spec.own is not None and not guarded and spec.guard == "none" and _hands_tokens(setting):
        return setting_of(replace(spec, guard="fenced"), faults, goal, guarded)
    compared = reference.of(spec)
    if compared is None:
        return setting
    other = setting_of(compared, ",".join(setting.faults), goal, guarded)
    # The reference runs on the user's number of servers.
    test = {**other.test, "servers": setting.test["servers"]}
    return replace(setting, reference=replace(other, servers=setting.servers, test=test))


def _hands_tokens(setting: Setting) -> bool:
    """Return whether every grant of an undisturbed run has a token."""
    try:
        run = Run(setting, Schedule(), simulated.table(setting)).execute()
    except (LockError, Unknown):
        return False  # the hunt reports it
    granted = [row[4] for row in run.rows if row[2:4] == ("ok", "acquire")]
    return bool(granted) and all(value.get("token") is not None for value in granted)


def _must_be_simulated(spec: Spec, model: Model) -> None:
    """Raise BadArguments if a lock that opens its own connections cannot have simulated ones."""
    lock = spec.lock_type
    why = ""
    if not model.sockets:
        able = ", ".join(one.name for one in MODELS.values() if one.sockets)
        why = (
            f"it opens its own connections to {lock.kind}, which hunt can only simulate for {able}"
        )
    elif lock.library and not installed(lock.imported):
        why = f"{lock.library} is not installed here: pip install {lock.distribution}"
    elif spec.own is not None and (found := outside_of_reach(spec.own.files)):
        why = found
    if why:
        raise BadArguments(
            f"{spec.lock} cannot be simulated: {why}. `fencepost test` runs it on real servers"
        )


def _model(spec: Spec) -> tuple[Model, str]:
    """Return the model of the lock's servers, and their version, '' for the usual one.

    Raises:
        BadArguments: there is no model of them.
    """
    asked, role = spec.server_version, spec.lock_type.kind
    if role not in KINDS:
        raise BadArguments(f"{spec.lock} cannot be simulated: fencepost does not know its servers")
    kind, version = chosen(role, asked)
    if kind.model not in MODELS:
        raise BadArguments(
            f"{spec.lock} cannot be simulated: there is no model of {kind.name}, only of "
            f"{', '.join(MODELS)}. `fencepost test {spec.lock}` runs it on real servers"
        )
    return MODELS[kind.model], version if asked else ""


def _own(spec: Spec) -> dict[str, Any]:
    """Return the facts that a hunt needs about a user lock."""
    if spec.own is None or not spec.own.python:
        return {}
    file = Path(spec.own.python.rpartition(":")[0])
    folder = spec.own.files[file.as_posix()].parents[len(file.parts) - 1]
    names = own_modules(folder, list(spec.own.files), spec.own.python)
    return {"own": wire.Own(str(folder), spec.own.python), "modules": tuple(names)}


def _description(spec: Spec) -> dict[str, Any]:
    """Return test.json of a simulated run: it has no servers that could have logs."""
    test = replace(spec, time_s=0.0).to_json() | {"nemesis": [], "simulated": True}
    test["checkers"] = [name for name in test["checkers"] if name != "server-log"]
    test["not_checked"]["server-log"] = "simulated servers have no logs"
    return test


def _faults(asked: str | None, setting: Setting) -> tuple[str, ...]:
    """Return the faults, in the table's order: those requested, or all that apply."""
    if asked is None:
        return simulated.usual(setting)
    names = [name.strip() for name in asked.split(",") if name.strip()]
    try:
        return simulated.asked(names, setting)
    except ValueError as error:
        raise BadArguments(str(error)) from error


def renamed(asked: str | None) -> list[str]:
    """Return a warning for each requested fault that has a name of 0.1.0."""
    names = [name.strip() for name in (asked or "").split(",")]
    return [
        f"--faults {name} is called {simulated.BEFORE[name]} now; the next version will refuse it"
        for name in names
        if name in simulated.BEFORE
    ]


def goals() -> list[Checker]:
    """Return the checkers that can be a hunt's goal, in the order in which a counterexample is
    shrunk."""
    return sorted((one for one in CHECKERS.values() if one.goal), key=lambda one: one.goal_rank)


def _goals(spec: Spec, asked: str | None, guarded: bool) -> tuple[str, ...]:
    """Return the checkers whose violation is a counterexample."""
    applies = spec.checkers
    fit = [goal for goal in goals() if applies[goal.name] is None]
    if asked is None:
        return tuple(
            goal.name for goal in fit if "service" in goal.about or (guarded and _is_of_data(goal))
        )
    names = [name.strip() for name in asked.split(",") if name.strip()]
    known = [goal.name for goal in fit]
    for name in names:
        if why := applies.get(name):
            raise BadArguments(f"goal {name}: it has nothing to check here ({why})")
        choose("checker", name, known)
    if not names:
        raise BadArguments(f"which goal? Choose from: {', '.join(known)}")
    return tuple(name for name in known if name in names)


def _is_of_data(goal: Checker) -> bool:
    return "resource" in goal.about
