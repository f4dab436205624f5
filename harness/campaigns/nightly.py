"""A nightly run: suites, a matrix, hunts, known defects, the catalogue, within a time budget.

Each stage is a command in its own process (`fencepost suite ...`), so that the failure of one does
not affect the others. A stage gets a share of the remaining budget, and leaves unused time to later
stages. When its time is up it is interrupted, as by Ctrl-C: it cleans up and keeps its results.
Entries that did not fit are listed as `not run`. night.json is written after each stage.
"""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from random import Random

import msgspec

from fencepost import plainfile
from fencepost.commandline import command
from fencepost.harness.campaigns import baseline, defects, track_record
from fencepost.harness.campaigns import outcomes as entries
from fencepost.harness.campaigns.baseline import Known
from fencepost.harness.campaigns.matrix import usual_locks
from fencepost.harness.campaigns.outcomes import Entry, Figures
from fencepost.harness.campaigns.usable_suites import usable
from fencepost.harness.errors import BadArguments, Crashed
from fencepost.harness.hunting.hunts import described
from fencepost.harness.results import finder, results, run_index
from fencepost.report.campaign_files import kind
from fencepost.report.pages import nightly as page
from fencepost.strictjson import decode

SCHEMA = 1
FILE = "night.json"
SHARES = {"suites": 0.45, "matrix": 0.25, "hunts": 0.1, "track-record": 0.1, "defects": 0.1}
"""Shares of the budget, in the order of the stages."""
SHORTEST_S = 60.0
_LEAST_S = 10.0
"""With less time left, skip a stage: a cluster takes longer to start."""
_LONGEST_HUNT_S = 120.0
_COMMAND = (sys.executable, "-m", "fencepost")
_PATIENCE_S = 300.0
"""How long an interrupted stage may take to clean up."""


class Stage(msgspec.Struct):
    """A stage: one command of a nightly run. `share_s`: its time limit. `cut`: the budget ended it
    early, or prevented its start. `why`: the reason why it did not complete."""

    name: str
    command: str
    share_s: float
    took_s: float = 0.0
    code: int | None = None
    cut: bool = False
    why: str = ""
    folders: list[str] = []


class NightlyRun(msgspec.Struct):
    """night.json. Times in s; `began` is UTC, as ISO 8601; `only`: the requested stages, if not
    all; `options`: those that each stage gets, such as --parallel 2."""

    schema: int
    seed: int
    budget_s: float
    began: str
    only: list[str] = []
    options: list[str] = []
    took_s: float = 0.0
    over: bool = False
    parts: list[Stage] = []
    entries: list[Entry] = []
    figures: Figures = msgspec.field(default_factory=Figures)


Carry = Callable[[Sequence[str], float], tuple[int, bool]]
"""Runs `fencepost` with these words for at most this time (s); returns its exit code and whether
the time was up."""


def read(folder: Path) -> NightlyRun:
    """Read the nightly run in this folder.

    Raises:
        BadArguments: it holds none.
    """
    path = folder / FILE
    try:
        found = msgspec.convert(decode(plainfile.read(path)), NightlyRun)
        if found.schema != SCHEMA:
            raise ValueError(f"its schema is {found.schema}, and not {SCHEMA}")
    except OSError as error:
        raise BadArguments(
            f"{path} cannot be read: {error.strerror}; name a nightly run"
        ) from error
    except ValueError as error:
        raise BadArguments(f"{path} cannot be used: {error}") from error
    return found


def find(name: str) -> Path:
    """Find the folder of a nightly run by its path, TIME or `latest`. Raise BadArguments if there
    is none."""
    return finder.find(name, "night")


def outcomes(name: str) -> tuple[list[Entry], str, int | None]:
    """Return the entries of a nightly run, or of a single suite, matrix or track record; when it
    began; and its seed, if it has one.

    Raises:
        BadArguments: it is none of these.
    """
    with suppress(BadArguments):
        night = read(find(name))
        return night.entries, night.began, night.seed
    one = run_index.find(name)
    if one.came is None or one.kind not in _ENTRIES:
        raise BadArguments(f"{one.name} is not a nightly run, suite, matrix, track record or play")
    began = one.began.isoformat(timespec="seconds").replace("+00:00", "Z")
    try:
        return _ENTRIES[one.kind](one.folder), began, one.came.seed
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise BadArguments(
            f"the results of {one.folder} cannot be used ({type(error).__name__}: {error}): name "
            "another nightly run, suite, matrix, track record or play"
        ) from error


_ENTRIES = {
    "suite": entries.of_suite, "matrix": entries.of_matrix, "track-record": entries.of_record,
    "defects": entries.of_defects,
}  # fmt: skip


def every() -> list[Path]:
    """Return the folders of all nightly runs in the results folder, oldest first."""
    found = (path.parent for path in results.root().glob(f"nightly/*Z/{FILE}"))
    return sorted(found, key=lambda path: path.name)


def begin(
    seed: int, budget_s: float, only: Sequence[str] = (), options: Sequence[str] = ()
) -> tuple[Path, NightlyRun]:
    """Create a nightly run, with its folder, of which nothing has run yet.

    Raises:
        BadArguments: the budget is too short for anything.
    """
    if budget_s < SHORTEST_S:
        raise BadArguments(
            f"budget {budget_s:g} s is too short for a nightly run: give it a minute or more"
        )
    now = datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    made = NightlyRun(SCHEMA, seed, budget_s, now, list(only), list(options))
    return results.create("nightly"), made


def resumed(name: str) -> tuple[Path, NightlyRun]:
    """Return a nightly run that was interrupted, with the stages that it has completed.

    Raises:
        BadArguments: there is none of this name, or it has ended.
    """
    folder = find(name)
    night = read(folder)
    if night.over:
        raise BadArguments(f"{folder} has ended: begin another one with `fencepost nightly run`")
    return folder, night


def carry_out(
    folder: Path, night: NightlyRun, known: dict[str, Known], run: Carry, say: Callable[[str], None]
) -> None:
    """Run the stages that have no results yet, and write theirs."""
    start = time.monotonic() - night.took_s
    stages = _Stages(night, run, say)
    of = {"suites": stages.suites, "matrix": stages.matrix, "hunts": stages.hunts,
          "track-record": stages.record, "defects": stages.defects}  # fmt: skip
    chosen = {name: share for name, share in SHARES.items() if not night.only or name in night.only}
    while chosen:
        name = next(iter(chosen))
        if name != "hunts" and any(part.name == name for part in night.parts):
            chosen.pop(name)
            continue
        left_s = night.budget_s - (time.monotonic() - start)
        share_s = left_s * chosen.pop(name) / (SHARES[name] + sum(chosen.values()))
        for found in of[name](share_s):
            night.entries += found
            night.took_s = time.monotonic() - start
            _write(folder, night, known)
    night.over = True
    night.took_s = time.monotonic() - start
    _write(folder, night, known)


def _write(folder: Path, night: NightlyRun, known: dict[str, Known]) -> None:
    baseline.judge(night.entries, known)
    night.figures = entries.figures(night.entries)
    content = msgspec.to_builtins(night)
    results.write(folder / FILE, content)
    page.render(folder, content, results.root())


class _Stages:
    """The stages of a nightly run. Each yields its entries as it goes."""

    def __init__(self, night: NightlyRun, run: Carry, say: Callable[[str], None]) -> None:
        self._night, self._run, self._say = night, run, say

    def suites(self, share_s: float) -> Iterator[list[Entry]]:
        suites, bad = usable(self._night.seed)
        for why in bad:
            self._say(f"left out: {why}")
        names = list(suites)
        Random(self._night.seed).shuffle(names)  # the last ones may not fit
        keys = [f"suite/{one.spec.name}" for name in names for one in suites[name]]
        yield self._campaigns("suites", ["suite", *names], keys, share_s)

    def matrix(self, share_s: float) -> Iterator[list[Entry]]:
        # The matrix stays within its budget; runs that have started by then may end.
        words = ["matrix", "--quick", "--budget", f"{max(int(share_s * 0.9), 1)}s"]
        found = self._campaigns("matrix", words, [], share_s)
        stage = self._night.parts[-1]
        for one in found:
            if not one.marks and not one.crashed:
                one.said = stage.why or one.said
        yield found or _completed(stage, ["matrix"], [])

    def record(self, share_s: float) -> Iterator[list[Entry]]:
        keys = [f"track-record/{one.key}" for one in track_record.entries([], self._night.seed)]
        yield self._campaigns("track-record", ["track-record"], keys, share_s)

    def defects(self, share_s: float) -> Iterator[list[Entry]]:
        # The plays stay within their budget; those that have started by then may end.
        words = ["defects", "--play", "--seeds", "1", "--budget", f"{max(int(share_s * 0.9), 1)}s"]
        keys = [f"defects/{name}/{way}" for name in defects.chosen(()) for way in defects.WAYS]
        yield self._campaigns("defects", words, keys, share_s)

    def hunts(self, share_s: float) -> Iterator[list[Entry]]:
        done = {one.key for one in self._night.entries}
        locks = [one for one in _simulated() if f"hunt/{one}" not in done]
        end = time.monotonic() + share_s
        for number, lock in enumerate(locks):
            each_s = min((end - time.monotonic()) / (len(locks) - number), _LONGEST_HUNT_S)
            words = ["hunt", lock, "--budget", f"{max(int(each_s), 1)}s"]
            stage, made = self._stage("hunts", words, max(each_s, 0.0) * 1.5)
            if stage.cut or stage.code is None:
                yield [Entry(f"hunt/{lock}", lock, said=stage.why)]
            else:
                yield [entries.of_hunt(lock, stage.code, made[0] if made else None)]

    def _campaigns(
        self, name: str, words: list[str], keys: Sequence[str], share_s: float
    ) -> list[Entry]:
        """Run a stage that writes campaigns; return their entries, with one for each missing
        key."""
        stage, made = self._stage(name, words, share_s)
        kinds = ((folder, kind(folder)) for folder in made)
        found = [one for folder, of in kinds if of in _ENTRIES for one in _ENTRIES[of](folder)]
        return _completed(stage, keys, found)

    def _stage(self, name: str, words: list[str], share_s: float) -> tuple[Stage, list[Path]]:
        """Run a stage; return its record, and the result folders that it made."""
        words = [*words, "--seed", str(self._night.seed), *self._night.options]
        stage = Stage(name, command(*words), round(share_s, 1))
        self._night.parts.append(stage)
        if share_s < _LEAST_S:
            stage.cut, stage.why = True, "no budget was left"
            return stage, []
        self._say(f"{name}, for up to {share_s / 60:.1f} min: {stage.command}")
        before, start = set(_folders()), time.monotonic()
        stage.code, up = self._run(words, share_s)
        stage.took_s = round(time.monotonic() - start, 1)
        made = sorted(set(_folders()) - before, key=lambda path: path.name)
        stage.folders = [str(path.relative_to(results.root())) for path in made]
        if up:
            stage.cut, stage.why = True, "it used up its share of the budget"
        elif stage.code not in (0, 1, 2):
            stage.why = f"it ended with exit code {stage.code}"
        return stage, made


def _folders() -> list[Path]:
    return list(results.root().glob("*/*Z"))


def _completed(stage: Stage, keys: Sequence[str], found: list[Entry]) -> list[Entry]:
    """Return the entries found, and one for each missing key: not run if the stage was cut short,
    crashed if it ended by itself."""
    there = {one.key for one in found}
    why = stage.why or "its stage left no result for it"
    left = [Entry(key, crashed=not stage.cut, said=why) for key in keys if key not in there]
    return found + left


def _simulated() -> list[str]:
    """Return the sound locks that can be hunted."""
    found = []
    for name in usual_locks():
        with suppress(BadArguments):
            described(name, {}, {"seed": "1"})
            found.append(name)
    return found


def process(words: Sequence[str], limit_s: float) -> tuple[int, bool]:
    """Run `fencepost` with these words in a separate process; interrupt it when the time is up.

    Return its exit code, and whether the time was up.

    Raises:
        Crashed: the process ignored the interrupt and was killed.
    """
    environment = os.environ | {"FENCEPOST_RESULTS": str(results.root().resolve())}
    command = [*_COMMAND, *words]
    with subprocess.Popen(command, env=environment, preexec_fn=_interruptible) as program:
        try:
            return program.wait(limit_s), False
        except subprocess.TimeoutExpired:
            program.send_signal(signal.SIGINT)
            try:
                return program.wait(_PATIENCE_S), True
            except subprocess.TimeoutExpired:
                program.kill()
                raise Crashed(
                    f"`fencepost {shlex.join(words)}` did not end within {_PATIENCE_S:g} s of its "
                    "interrupt, and was killed: run `fencepost heal` to clean up"
                ) from None
        except BaseException:
            # A terminal, if there is one, has interrupted it too; a second interrupt does no harm.
            program.send_signal(signal.SIGINT)
            program.wait(_PATIENCE_S)
            raise


def _interruptible() -> None:
    """Shells make background jobs ignore SIGINT, and the child inherits that."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
