"""`fencepost hunt --seeds N`: hunt from many seeds, locally or on Dask workers, on one page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from functools import partial
from typing import Any

from fencepost.harness.campaigns import hunts
from fencepost.harness.campaigns.campaign import Campaign, Line
from fencepost.harness.campaigns.executors import Executor, Processes, scheduler_of
from fencepost.harness.command import screen
from fencepost.harness.command.campaign import How, View, carry_out, workers
from fencepost.harness.command.exits import CRASHED, EXIT
from fencepost.hunt.search.campaign import Group, covered
from fencepost.report.exports.batches import Collected

SEEDS = 16
"""The default number of seeds of a campaign."""
_AHEAD = 8
"""Seeds submitted per thread of Dask's workers, so that workers that join later get some too."""


def run(
    lock: str,
    asked: Mapping[str, Any],
    given: Mapping[str, Any],
    seeds: int | None,
    how: How,
    processes: int | None,
) -> int:
    """Hunt from many seeds, or from the remaining seeds of a campaign, which names the lock.

    `asked`: the arguments of the hunt; `given`: the options of the command line, by name.
    """
    found = how.resumed("campaign", partial(hunts.from_json, lock), given)
    if found is None:
        plan = hunts.plan(lock, asked, seeds or SEEDS)
        found = Campaign(plan, f"campaign-{plan.hunt.spec.name}")
    assert isinstance(found.plan, hunts.Plan)
    with _executor(how, processes, len(found.left(1))) as executor:
        found.begin()
        done = len(found.rows) - len(found.left(1))
        said = f", {done} done" if done else ""
        screen.say(f"Hunting {found.plan.lock} from {len(found.rows)} seeds{said}: {found.folder}")
        return carry_out([found], how, _VIEW, executor)


@contextmanager
def _executor(how: How, processes: int | None, left: int) -> Iterator[Executor]:
    address = scheduler_of(how.engine, how.scheduler)
    made = workers(address, _AHEAD) if address else Processes(processes, left)
    with closing(made):
        yield made


def _finished(found: Campaign, line: Line) -> None:
    came = f"found: {line['broken'][0]}" if line.get("broken") else "nothing found"
    words = line.get("crashed") or line["failure"] or came
    screen.say(f"seed {line['seed']}: {words}, {line.get('schedules', 0):,} schedules")


def _ended(found: Campaign) -> None:
    total = hunts.total(found)
    screen.write(
        f"{total.found} of {total.seeds} seeds found something, {len(total.groups)} minimal "
        f"schedules; {total.schedules:,} schedules, {total.rate:,.0f} a second in each hunt; "
        f"{total.states:,} distinct histories, {total.covered:,} pairs of a fault and the "
        "clients' state"
    )
    if not total.found and total.schedules:
        assert isinstance(found.plan, hunts.Plan)
        for words in covered(found.plan.hunt.setting, total).sentences:
            screen.write(f"  {words}")
    for group in total.groups:
        named = ", ".join(map(str, group.seeds))
        screen.write(f"  {group.broken[0]}, {_injections(group)}, from seed {named}")
        for number, words in enumerate(group.story, 1):
            screen.write(f"    {number}. {words}")
    for words, seeds in total.inherent.items():
        screen.write(f"  inherent to the servers: {words}, from {seeds} of {total.seeds} seeds")
    for seed, words in total.failures[:1]:
        screen.write(f"  from seed {seed}: {words}")


def _injections(group: Group) -> str:
    return f"{group.strikes} injection" + ("s" if group.strikes != 1 else "")


def _exit_code(found: Collected) -> int:
    if found.any("failure"):
        return EXIT[False]
    return CRASHED if found.any("error") else EXIT[True]


_VIEW = View(_finished, _ended, hunts.render, _exit_code)
