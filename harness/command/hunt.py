"""`fencepost hunt`: search simulated runs of a lock for the schedule that breaks it.

No cluster, no Docker, no root and no network: the lock's own code runs on virtual time, against
models of its servers (hunt/).
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from fencepost import processors
from fencepost.commandline import option as line_option
from fencepost.harness.campaigns.executors import ENGINES, Place
from fencepost.harness.campaigns.item import Item, test
from fencepost.harness.command import hunt_campaign, screen
from fencepost.harness.command.campaign import How, tell, with_how
from fencepost.harness.command.exits import EXIT
from fencepost.harness.command.options import (
    Elector,
    EndsWith,
    LockOptions,
    OwnProgram,
    OwnServers,
    Promises,
    Ship,
    with_settings,
)
from fencepost.harness.errors import BadArguments
from fencepost.harness.hunting.confirm import TRIES
from fencepost.harness.hunting.confirm import confirm as confirm_
from fencepost.harness.hunting.hunts import (
    DEPTH,
    SEARCHES,
    SETTINGS_OF_A_HUNT,
    Hunt,
    described,
    renamed,
)
from fencepost.harness.judge.judge import Outcome
from fencepost.harness.spec import from_arguments
from fencepost.hunt.bridge.bridge import Bridge
from fencepost.hunt.faults.registry import SIMULATED
from fencepost.hunt.search.coverage import Coverage
from fencepost.hunt.search.hunt import Counterexample
from fencepost.hunt.search.search import Tried
from fencepost.hunt.story.story import drawn, numbered
from fencepost.report.exports.batches import Collected, hunted

_BUSY = 0.6
"""The part of the processor time below which a budget of real time means little."""


@with_how
@with_settings(
    SETTINGS_OF_A_HUNT,
    {"guard": "If a guard is given, damage to the data is a counterexample too."},
)
def hunt(
    how: How,
    lock: Annotated[
        str,
        typer.Argument(help="Lock to hunt: for example redlock, or your own as mylock.py:MyLock."),
    ] = "",
    option: LockOptions = None,
    servers: OwnServers = "",
    ends_with: EndsWith = "",
    promises: Promises = "",
    program: OwnProgram = "",
    ship: Ship = None,
    elector: Elector = False,
    faults: Annotated[
        str | None,
        typer.Option(
            metavar="FAMILY[/VARIANT],...",
            help=f"Faults to inject, named as for --nemesis: {', '.join(SIMULATED)}. [default: "
            "all that apply]",
        ),
    ] = None,
    budget: Annotated[str, typer.Option(help="Time to search.")] = "60s",
    goal: Annotated[
        str | None,
        typer.Option(
            metavar="CHECKER,...",
            help="Checkers whose violation is a counterexample. [default: all promises of the "
            "service]",
        ),
    ] = None,
    clients: Annotated[
        int, typer.Option("--clients", "--concurrency", help="Number of clients.", min=2, max=5)
    ] = 2,
    search: Annotated[
        str, typer.Option(help=f"How to choose schedules: {' or '.join(SEARCHES)}.")
    ] = SEARCHES[0],
    depth: Annotated[
        int | None,
        typer.Option(help=f"Maximum number of injections in an exhaustive search: {DEPTH}.", min=1),
    ] = None,
    inherent: Annotated[
        bool,
        typer.Option(
            "--inherent",
            help="Stop at a counterexample of a user lock that no client on such servers can "
            "prevent, too.",
        ),
    ] = False,
    parallel: Annotated[
        int | None,
        typer.Option(
            "--processes",
            "--parallel",
            help="Number of processes that search. [default: one per core]",
            min=1,
        ),
    ] = None,
    seeds: Annotated[
        int | None,
        typer.Option(help="Hunt from this many seeds, from --seed on, as a campaign.", min=1),
    ] = None,
    replay: Annotated[
        Path | None,
        typer.Option(
            metavar="schedule.json",
            help="Play only this schedule of a counterexample, with real clients, and say how "
            "often it shows the violation.",
        ),
    ] = None,
    confirm: Annotated[
        bool,
        typer.Option("--confirm", help="Replay the counterexample on real servers (needs Docker)."),
    ] = False,
    **settings: Any,
) -> int:
    for warning in renamed(faults):
        print(f"fencepost: warning: {warning}", file=sys.stderr)
    arguments: dict[str, Any] = {
        "options": from_arguments.pairs(option),
        "settings": settings,
        "servers": servers,
        "ends_with": ends_with,
        "promises": promises,
        "clients": clients,
        "faults": faults,
        "goal": goal,
        "budget": budget,
        "search": search,
        "depth": depth,
        "inherent": inherent,
        "program": program,
        "ship": ship,
        "elector": elector,
        "replay": replay,
    }
    if not confirm and (how.hosts is not None or how.remote != "docker"):
        raise BadArguments(
            "a hunt simulates its servers and needs no hosts: leave --hosts and --remote out, or "
            "add --confirm to replay the counterexample on them"
        )
    if seeds or how.resume or how.scheduler or how.engine != ENGINES[0]:
        if confirm:
            raise BadArguments("--confirm is for a hunt from one seed, not for a campaign")
        given = {"--seeds": seeds, **_given(settings), **_given(arguments)}
        return hunt_campaign.run(lock, arguments, given, seeds, how, parallel)
    asked = described(lock, **arguments)
    spec, setting = asked.spec, asked.setting
    if confirm:
        asked.must_have_servers()
    screen.say(
        f"Hunting {spec.lock}, seed {spec.seed}: {', '.join(setting.faults) or 'no faults'}; "
        f"until {', '.join(setting.goals)}"
    )
    tried, find = asked.carry_out(parallel, _print_progress)
    code, covered = EXIT[True], None
    if find is None and replay:
        screen.write(f"Not reproduced: {tried.schedules} tries of this schedule broke no promise.")
    elif find is None:
        covered = asked.covered(tried)
        _print_clean_hunt(asked, tried, covered)
        if setting.live:
            _print_late(tried)
            if not setting.elector:  # a candidate waits for its turn, too
                _print_patience(tried, asked.setting.lease_ns)
        else:
            _print_busy(tried, parallel or processors.count())
    else:
        made = _print_counterexample(asked, tried, find, asked.again(*_on_servers(confirm, how)))
        code = _confirmed(asked, made, how) if confirm and made else EXIT[False]
    _written_down(asked, tried, find, how, code, covered)
    return code


def _on_servers(confirm: bool, how: How) -> list[str]:
    """Return the options of a hunt that decide whether and where its counterexample is replayed."""
    remote = line_option("remote", how.remote) if how.remote != "docker" else []
    return [*line_option("confirm", confirm), *line_option("hosts", how.hosts), *remote]


def _given(arguments: dict[str, Any]) -> dict[str, Any]:
    """Return the options that differ from their defaults."""
    usual = {
        "clients": 2, "budget": "60s", "search": SEARCHES[0], "inherent": False, "elector": False,
    }  # fmt: skip
    return {
        f"--{name.replace('_', '-')}": one
        for name, one in arguments.items()
        if name != "settings" and one != usual.get(name)
    }


def _written_down(
    asked: Hunt,
    tried: Tried,
    find: Counterexample | None,
    how: How,
    code: int,
    covered: Coverage | None,
) -> None:
    """Write the JSON and the files of a hunt's result."""
    story = [*asked.compared(tried, find), *(step.words for step in (find.story if find else ()))]
    broken, injections = (list(find.broken), len(find.schedule.injections)) if find else ([], 0)
    line = hunted(broken, injections, tried.schedules, story)
    if code == EXIT["unknown"]:
        line = replace(line, state="skipped", outcome=f"not confirmed: {line.outcome}")
    seed, name = asked.spec.seed, f"hunt-{asked.spec.name}"
    lines = {f"seed {seed}": line}
    more = {} if covered is None else {"coverage": covered.to_json()}
    found = Collected("hunt", str(line), None, [asked.lock], lines, name=name)
    tell(how, seed, found, code, **more)


def _print_progress(tried: Tried) -> None:
    if tried.schedules and screen.console().is_terminal:
        screen.overwrite(_line(tried), style="cyan")


def _line(tried: Tried) -> str:
    rate = tried.schedules / tried.seconds if tried.seconds else 0.0
    return f"{tried.schedules:,} schedules, {rate:,.0f} a second, {tried.seconds:.1f} s "


def _print_clean_hunt(asked: Hunt, tried: Tried, covered: Coverage) -> None:
    """Print the schedules tried, and the limits of a clean hunt."""
    setting = asked.setting
    _written("", asked.compared(tried, None))
    other = "other " if tried.inherent else ""
    screen.write(f"No {other}counterexample in {_line(tried).rstrip()}.")
    screen.write(f"  tried: {tried.steps:,} steps, {tried.events:,} events")
    injected = ", ".join(f"{kind} {count:,}" for kind, count in sorted(tried.injected.items()))
    screen.write(f"  injected: {injected or 'nothing'}")
    _written("  ", covered.sentences)
    holds, chosen = f"up to {setting.holds} holds each", "schedules drawn at random"
    if tried.simple:
        chosen = f"{tried.simple:,} simple schedules and {tried.drawn:,} drawn at random"
    if asked.depth is not None:
        screen.write(_exhausted(tried, asked.depth))
        holds, chosen = "one hold each", "no schedule with more injections, or with another set-up"
    screen.write(
        f"This does not show that {setting.lock} is correct: the hunt ran {len(setting.clients)} "
        f"clients with {holds}, against models of servers (docs/hunt.md), and {chosen}."
    )


def _print_busy(tried: Tried, processes: int) -> None:
    """Say so if other processes took most of the processor time."""
    part = tried.cpu_s / (tried.seconds * processes) if tried.seconds else 1.0
    if part < _BUSY:
        screen.write(
            f"The machine was busy: the hunt had {part:.0%} of the processor time that it could "
            "use. Search again on an idle machine, or with a longer --budget."
        )


def _print_late(tried: Tried) -> None:
    """Tell how many schedules with real clients were not judged, or not in full."""
    if tried.late:
        screen.write(
            f"The machine was busy: {tried.late:,} schedules were late by half a lease, and "
            "liveness was not judged in them."
        )
    if tried.hung:
        screen.write(
            f"Not judged: {tried.hung:,} schedules in which an op did not end. Give requests a "
            "timeout."
        )
    if tried.unasked:
        screen.write(
            f"Not judged: {tried.unasked:,} schedules in which the program sent nothing after a "
            "`reset`. So each schedule had new processes from then on, which takes longer: make "
            "the lock again at each reset, with the addresses that it brings (docs/protocol.md)."
        )
    if tried.dropped:
        screen.write(
            f"Dropped: {tried.dropped:,} violations that did not come again. The machine may be "
            "busy, or the program may keep data from one schedule to the next."
        )


def _print_patience(tried: Tried, lease_ns: int) -> None:
    """Say so if the clients' time-outs are too long for their lease."""
    if tried.patience_ns * 2 > lease_ns:
        ms, lease_ms = tried.patience_ns // 1_000_000, lease_ns // 1_000_000
        screen.write(
            f"A client waits {ms:,} ms for an answer, and a lease takes {lease_ms:,} ms. So a "
            "time-out comes when little or nothing is left of its lease, and shows less. Search "
            f"again with a shorter time-out, or with --ttl {3 * ms}ms."
        )


def _exhausted(tried: Tried, depth: int) -> str:
    """Describe how far an exhaustive search got."""
    done = tried.depth or 0
    left_out = f"{tried.known:,} more led to known states"
    if done == depth:
        return f"  exhausted: every schedule with up to {_injections(depth)}; {left_out}"
    return f"  not exhausted: time ran out at {_injections(done + 1)}; {left_out}"


def _injections(count: int) -> str:
    return f"{count} injection" + ("s" if count > 1 else "")


def _print_counterexample(
    asked: Hunt, tried: Tried, find: Counterexample, command: str
) -> Bridge | None:
    """Store the counterexample as a run's folder, then print it; return the bridge to real
    servers, if there is one."""
    outcome, made = asked.store(tried, find, command)
    found_after = f"{tried.schedules:,} schedules, {tried.seconds:.2f} s"
    _written("", asked.compared(tried, None))
    if asked.replays is None:
        screen.write(f"Found after {found_after}; shrunk in {find.runs:,} more runs.")
    if find.came is not None:
        screen.write(find.repeats)
    _written("", asked.compared(tried, find)[len(tried.inherent) :])
    screen.write("")
    _written("", numbered(find.story))
    screen.write("")
    _written("  ", drawn(find.story, find.run))
    screen.write("")
    screen.write(f"again: {command}")
    if find.came is not None and asked.replays is None:
        screen.write(f"replay: {asked.again('--replay', str(outcome.folder / 'schedule.json'))}")
    if made is not None:
        schedule = asked.scenario_in(outcome.folder)
        screen.write(f"on real servers: {asked.on_real_servers(schedule)}")
    screen.verdict(outcome)
    return made


def _confirmed(asked: Hunt, made: Bridge, how: How) -> int:
    """Replay the counterexample on real servers, and print whether they violate the same
    promise."""
    scenario = made.scenario
    kind, servers = asked.spec.lock_type.kind, len(asked.spec.servers)
    screen.write(
        f"Replaying on real servers: {servers} {kind}, {scenario.clients} clients, a lease of "
        f"{scenario.ttl_ms / 1000:g} s, {len(scenario.steps)} steps; up to {TRIES} tries."
    )
    _written("  ", [f"{words}." for words in (*made.notes, *made.cannot)])
    if made.cannot:
        found = confirm_(made, _never, screen.write)
    else:
        specs = [asked.test_of(scenario, number) for number in range(1, TRIES + 1)]
        tries = [Item("", test, n, specs=(spec,), scenario=scenario, title=f"{spec.name}, try {n}")
                 for n, spec in enumerate(specs, 1)]  # fmt: skip
        with how.executor() as executor, Place(executor, tries) as place:

            def play(number: int) -> Outcome | str:
                place.come_up()
                outcome, why = place.run(tries[number - 1])
                if not why:
                    screen.say(f"try {number}: {outcome.folder / 'report.html'}")
                return why or outcome

            found = confirm_(made, play, screen.write)
    screen.write(found.sentence)
    return EXIT[False] if found.confirmed else EXIT["unknown"]


def _never(number: int) -> Outcome:
    raise AssertionError("a schedule that cannot be carried out is not replayed")


def _written(indent: str, lines: Sequence[str]) -> None:
    for line in lines:
        screen.write(f"{indent}{line}")
