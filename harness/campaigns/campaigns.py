"""The folder of a campaign: what was asked, a line for each seed that is done, and one page.

A seed is kept as soon as it is done, so that a campaign that was stopped goes on with those that
are left.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from fencepost.harness.errors import BadArguments
from fencepost.harness.results import results
from fencepost.hunt.search.campaign import Outcome
from fencepost.strictjson import decode

ASKED, SEEDS = "campaign.json", "seeds.jsonl"
SCHEMA = 1


@dataclass(frozen=True)
class Campaign:
    """`asked`: the arguments of the hunt, as `hunting.described` takes them; `done`: by seed."""

    folder: Path
    lock: str
    seeds: tuple[int, ...]
    asked: Mapping[str, Any]
    done: dict[int, Outcome]

    @property
    def left(self) -> list[int]:
        return [seed for seed in self.seeds if seed not in self.done]

    def keep(self, outcome: Outcome) -> None:
        """Write down a seed that is done."""
        line = json.dumps(outcome.to_json(), separators=(",", ":")) + "\n"
        with (self.folder / SEEDS).open("a", encoding="utf-8") as file:
            file.write(line)
        self.done[outcome.seed] = outcome


def begun(name: str, lock: str, seeds: tuple[int, ...], asked: Mapping[str, Any]) -> Campaign:
    """A campaign that has a folder, and nothing in it yet."""
    folder = results.create(f"campaign-{name}")
    words = {"schema": SCHEMA, "lock": lock, "seeds": list(seeds), "asked": dict(asked)}
    results.write(folder / ASKED, words)
    return Campaign(folder, lock, seeds, asked, {})


def resumed(lock: str, run: str) -> Campaign:
    """A campaign as it was left. `run`: its folder, or its name in the results, or `latest`.

    Raises:
        BadArguments: there is none of this lock, or its files cannot be used.
    """
    folder = _found(run)
    try:
        rows = decode((folder / ASKED).read_bytes())
        if rows["schema"] != SCHEMA:
            raise ValueError(f"its version is {rows['schema']}, and this fencepost knows {SCHEMA}")
        made = Campaign(folder, rows["lock"], tuple(rows["seeds"]), rows["asked"], {})
        for outcome in _outcomes(folder / SEEDS):
            made.done[outcome.seed] = outcome
    except OSError as error:
        raise BadArguments(f"{folder / ASKED} cannot be read: {error.strerror}") from error
    except (ValueError, KeyError, TypeError) as error:
        raise BadArguments(f"{folder} cannot be gone on with: {error}") from error
    if made.lock != lock:
        raise BadArguments(f"{folder} is a campaign on {made.lock}, and not on {lock}")
    return made


def _found(run: str) -> Path:
    if (Path(run) / ASKED).exists():
        return Path(run)
    under = sorted(results.root().glob(f"campaign-*/{run}/{ASKED}"))
    if not under:
        raise BadArguments(f"there is no campaign {run!r} in {results.root()}")
    return max(under, key=lambda path: path.resolve().parent.name).resolve().parent


def _outcomes(path: Path) -> list[Outcome]:
    if not path.exists():
        return []
    *lines, rest = path.read_bytes().split(b"\n")
    if rest:
        # It was being written when the campaign was killed, and is done once more.
        os.truncate(path, path.stat().st_size - len(rest))
    return [msgspec.convert(decode(line), Outcome) for line in lines]
