"""`fencepost hunt --seeds N`: hunts from many seeds, here or on Dask's workers, on one page."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from typing import Any

from fencepost.harness.campaigns import campaigns
from fencepost.harness.campaigns.campaigns import Campaign
from fencepost.harness.campaigns.executors import Engine
from fencepost.harness.command import screen
from fencepost.harness.command.exits import EXIT
from fencepost.harness.errors import BadArguments, Crashed
from fencepost.harness.hunting.hunts import Hunt, described
from fencepost.harness.locked import locked
from fencepost.hunt.search.campaign import Group, Item, Merged, merged
from fencepost.hunt.search.hunt import again
from fencepost.hunt.search.search import Tried
from fencepost.hunt.sim.schedule import Schedule
from fencepost.hunt.story.story import drawn
from fencepost.report.pages import campaign as page


def begin(lock: str, asked: Mapping[str, Any], seeds: int, engine: Engine) -> int:
    """Hunt from so many seeds, the one that is asked for and those that follow it."""
    hunt = described(lock, **asked)
    first = hunt.spec.seed
    made = campaigns.begun(hunt.spec.name, lock, tuple(range(first, first + seeds)), asked)
    return _carry_out(made, hunt, engine)


def resume(lock: str, run: str, engine: Engine) -> int:
    """Go on with the seeds of a campaign that are left."""
    made = campaigns.resumed(lock, run)
    return _carry_out(made, described(made.lock, **made.asked), engine)


def _carry_out(made: Campaign, hunt: Hunt, engine: Engine) -> int:
    left = made.left
    done = f", {len(made.done)} done" if made.done else ""
    screen.say(f"Hunting {made.lock} from {len(made.seeds)} seeds{done}: {made.folder}")
    items = [Item(hunt.setting, seed, hunt.budget_s, hunt.depth) for seed in left]
    try:
        if items:
            with locked(made.folder):
                for outcome in engine(items):
                    made.keep(outcome)
                    found = f"found: {outcome.broken[0]}" if outcome.broken else "nothing found"
                    words = outcome.failure or found
                    screen.say(f"seed {outcome.seed}: {words}, {outcome.schedules:,} schedules")
    finally:
        total = merged(made.done.values())
        path = _written(made, hunt, total)
        if made.left:
            screen.say(f"go on with: fencepost hunt {made.lock} --resume {made.folder.name}")
    _told(total)
    screen.write(f"report: {path}")
    if total.failures and not total.found:
        seed, words = total.failures[0]
        raise Crashed(f"{made.lock}, in the simulation, from seed {seed}: {words}")
    return EXIT[not total.found]


def _told(total: Merged) -> None:
    screen.write(
        f"{total.found} of {total.seeds} seeds found something, {len(total.groups)} minimal "
        f"schedules; {total.schedules:,} schedules, {total.rate:,.0f} a second in each hunt; "
        f"{total.states:,} different histories, {total.covered:,} pairs of a fault and what the "
        "clients were doing"
    )
    for group in total.groups:
        named = ", ".join(map(str, group.seeds))
        screen.write(f"  {group.broken[0]}, {_strikes(group)}, from seed {named}")
        for number, words in enumerate(group.story, 1):
            screen.write(f"    {number}. {words}")


def _strikes(group: Group) -> str:
    return f"{group.strikes} strike" + ("s" if group.strikes != 1 else "")


def _written(made: Campaign, hunt: Hunt, total: Merged) -> Any:
    """One page for all; each minimal schedule is played once more, and has a run of its own."""
    command = shlex.join(["fencepost", "hunt", made.lock, "--resume", made.folder.name])
    groups = []
    for group in total.groups:
        numbers = list(group.schedule)
        find = again(hunt.setting, Schedule.of(numbers, len(hunt.setting.clients)))
        outcome, _ = hunt.store(Tried(schedules=total.schedules), find, command)
        groups.append(
            {
                "broken": list(group.broken),
                "strikes": group.strikes,
                "seeds": list(group.seeds),
                "story": list(group.story),
                "drawing": drawn(find.story, find.run),
                "report": os.path.relpath(outcome.folder / "report.html", made.folder),
            }
        )
    values = {
        "lock": made.lock,
        "command": command,
        "seeds": total.seeds,
        "left": len(made.left),
        "found": total.found,
        "schedules": total.schedules,
        "seconds": total.seconds,
        "rate": total.rate,
        "states": total.states,
        "covered": total.covered,
        "new": total.new,
        "struck": total.struck,
        "failures": total.failures,
        "groups": groups,
    }
    return page.render(made.folder, values)


def must_be_left_out(**given: object) -> None:
    """Raise BadArguments where something is given that a campaign has said already."""
    for name, value in given.items():
        if value:
            raise BadArguments(f"--resume takes all from the campaign that it names: not --{name}")
