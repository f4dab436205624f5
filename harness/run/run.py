"""One run from start to end: servers, clients, faults, history, verdict, report."""

from __future__ import annotations

import platform
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from fencepost.checker.checkers import CHECKERS, check, valid
from fencepost.checker.ends import ends_with
from fencepost.checker.faults import faults
from fencepost.checker.history import History
from fencepost.checker.holds import holds
from fencepost.checker.verdict import Valid, Verdict
from fencepost.harness.cluster import libraries
from fencepost.harness.cluster.cluster import Cluster
from fencepost.harness.errors import BadArguments, Crashed
from fencepost.harness.run import store
from fencepost.harness.run.recorder import Recorder, finish
from fencepost.harness.run.site import RunSite
from fencepost.harness.run.spec import Spec, choose, layout_of
from fencepost.harness.run.stage import NotAsScheduled, Stage
from fencepost.harness.run.watch import Watch, first_violation, watched
from fencepost.harness.run.worker import Worker
from fencepost.nemesis.director import Director
from fencepost.nemesis.schedule import Scheduled, draw
from fencepost.report import run as report
from fencepost.workloads.scenarios.scenario import Scenario


@dataclass(frozen=True)
class Status:
    """What a run is doing, for the person who waits."""

    phase: str
    elapsed_s: float
    ops: int
    holds: int
    on: list[str]


Progress = Callable[[Status], None]


@dataclass(frozen=True)
class Outcome:
    """A finished run: its folder, its verdict, and each checker's."""

    run: Path
    valid: Valid
    verdicts: dict[str, Verdict]
    results: dict[str, Any]


def schedule_of(spec: Spec) -> list[Scheduled]:
    """The faults of a timed run, from its seed."""
    layout = layout_of(spec)
    return draw(spec.nemesis, spec.seed, spec.time_s, spec.interval_s, layout)


def run(
    spec: Spec,
    cluster: Cluster,
    progress: Progress,
    scenario: Scenario | None = None,
    schedule: list[Scheduled] | None = None,
) -> Outcome:
    """Carry out a test on a cluster that is up, and judge it; its faults are drawn from the seed
    where no schedule is given.

    The run's folder is complete whatever happens, as far as the run went: the history is put
    in order and judged also where the run was interrupted or crashed.
    """
    folder = store.create(spec.name)
    if schedule is None:
        schedule = [] if scenario else schedule_of(spec)
    test = _describe(spec, schedule, cluster.versions)
    store.write(folder / "test.json", test)
    recorder = Recorder(folder / "history.jsonl", [lock for lock, _ in spec.locked])
    site = RunSite(spec, cluster, recorder)
    notes: list[str] = []
    try:
        with _logging(folder / "harness.log", progress) as tell:
            live = _Live(recorder, tell)
            live.phase = "starting servers"
            with live:
                test["versions"] |= site.prepare()
                if clocks := site.clocks():
                    test["clocks"] = clocks
                store.write(folder / "test.json", test)
                recorder.origin_ns = time.monotonic_ns()
                live.phase = "starting clients"
                site.start_clients()
                _carry_out(spec, scenario, schedule, site, recorder, live, notes)
                notes += site.drifted()
    except NotAsScheduled as error:
        notes.append(f"The schedule was not carried out: {error}")
    except BaseException as error:
        notes.append(f"The run ended before it was over: {type(error).__name__} {error}".strip())
        raise
    finally:
        site.close_clients()
        _keep_logs(folder, site)
        recorder.close()
        if recorder.failure is not None:
            notes.append(f"The history is not complete: {recorder.failure.strerror}.")
        # An interrupted run is judged on its way out: what it saw must not be lost.
        outcome = judge(folder, notes)
    if recorder.failure is not None:
        raise Crashed(f"{recorder.path} could not be written: {recorder.failure.strerror}")
    return outcome


def _carry_out(
    spec: Spec,
    scenario: Scenario | None,
    schedule: list[Scheduled],
    site: RunSite,
    recorder: Recorder,
    live: _Live,
    notes: list[str],
) -> None:
    def record(type: str, f: str, value: dict[str, Any], error: list[str] | None) -> None:
        recorder.op("nemesis", type, f, value, error)

    director = Director(site, record)
    live.director = director
    try:
        if scenario is not None:
            stage = Stage(scenario, site, director, recorder, live.say)
            try:
                stage.play()
            finally:
                stage.recover()
        else:
            _timed(spec, schedule, site, director, recorder, live, notes)
    finally:
        director.heal_all()


def _timed(
    spec: Spec,
    schedule: list[Scheduled],
    site: RunSite,
    director: Director,
    recorder: Recorder,
    live: _Live,
    notes: list[str],
) -> None:
    """Clients work while the schedule runs; then, healed, until each lock was taken again."""
    settings = _settings(spec)
    bound_s = spec.ttl_ms / 1000 + spec.liveness_bound_s
    # Longer than the run: the clients are told to rest, this ends those who can not be told.
    until = recorder.now() + int((spec.time_s + bound_s + 60) * 1e9)
    live.phase = "running"
    for worker in site.workers:
        worker.work(settings, until)
    end = time.monotonic() + spec.time_s
    with _watched(spec, recorder) as watch:

        def over() -> bool:
            late = time.monotonic() > end or recorder.failure is not None
            return late or bool(watch and watch.seen)

        director.run(schedule, over)
        while not over():
            time.sleep(0.05)
    if watch and watch.seen:
        live.phase = f"{watch.seen} is violated; stopping"
    if recorder.failure is not None:
        raise recorder.failure
    live.phase = "healed; recovering"
    _await_grants(spec, recorder, bound_s + 0.5)
    live.phase = "stopping clients"
    for worker in site.workers:
        if not worker.rest(bound_s + 10):
            notes.append(f"{worker.node} did not come to rest: {worker.last_words()}")
    _read_all(spec, site.workers[-1])


def _settings(spec: Spec) -> dict[str, Any]:
    """What the clients' generators are told."""
    settings: dict[str, Any] = {
        "ttl_ns": spec.ttl_ms * 1_000_000,
        "shared": spec.shared,
        "locks": spec.locks,
    }
    if not spec.lock_type.extends:
        settings["extend"] = 0
    return settings | dict(spec.work)


def _await_grants(spec: Spec, recorder: Recorder, timeout_s: float) -> None:
    """Wait until every lock was granted once more, or the time is up."""
    before = {lock: recorder.grants_of(lock) for lock, _ in spec.locked}
    end = time.monotonic() + timeout_s
    while time.monotonic() < end and any(
        recorder.grants_of(lock) <= count for lock, count in before.items()
    ):
        time.sleep(0.05)


def _read_all(spec: Spec, worker: Worker) -> None:
    """Read every resource a last time, so that lost writes are seen."""
    for _, resource in spec.locked:
        worker.begin("read", {"resource": resource})
        if worker.finish(5) is None:
            return  # it does not answer, and takes no further op before it has


def _watched(spec: Spec, recorder: Recorder) -> AbstractContextManager[Watch | None]:
    if not spec.until:
        return nullcontext()
    return Watch(recorder.path, spec.to_json())


class _Live:
    """Tells how the run goes, twice a second, until it is over."""

    def __init__(self, recorder: Recorder, tell: Progress) -> None:
        self.phase = ""
        self.director: Director | None = None
        self._recorder = recorder
        self._tell = tell
        self._begun = time.monotonic()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._loop, daemon=True)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def say(self, phase: str) -> None:
        self.phase = phase

    def _loop(self) -> None:
        while not self._over.wait(0.5):
            on = self.director.on if self.director else []
            status = Status(
                self.phase,
                time.monotonic() - self._begun,
                self._recorder.written,
                self._recorder.counts["acquire", "ok"],
                [fault.arguments.get("words") or fault.name for fault in on],
            )
            try:
                self._tell(status)
            except OSError:
                return  # no room for the log: the history's own failure is what counts


@contextmanager
def _logging(path: Path, progress: Progress) -> Iterator[Progress]:
    """The progress, written to harness.log as well."""
    with path.open("a") as log:

        def tell(status: Status) -> None:
            on = "; ".join(status.on) or "none"
            log.write(
                f"{status.elapsed_s:8.3f} s  {status.phase}  ops {status.ops}  "
                f"holds {status.holds}  faults on: {on}\n"
            )
            log.flush()
            progress(status)

        yield tell


def _keep_logs(folder: Path, site: RunSite) -> None:
    for name, text in site.logs().items():
        place = folder / "nodes" / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)


def _describe(spec: Spec, schedule: list[Scheduled], cluster: dict[str, str]) -> dict[str, Any]:
    try:
        ours = version("fencepost")
    except PackageNotFoundError:
        ours = "not installed"
    versions = {
        "fencepost": ours,
        "python": sys.version.split()[0],
        "kernel": platform.release(),
        **cluster,
    }
    if spec.lock_type.library:
        versions[spec.lock_type.library] = libraries.version(spec.lock_type.library)
    return spec.to_json() | {
        "schedule": [fault.to_json() for fault in schedule],
        "versions": versions,
        "started": datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z"),
    }


def judge(folder: Path, notes: list[str] | None = None) -> Outcome:
    """Check a stored history, finished or not; writes results.json and report.html.

    Notes that a run made about itself are kept: a schedule that was not carried out stays so.
    """
    history = finish(folder / "history.jsonl")
    test = _description(folder, history)
    before = folder / "results.json"
    if notes is None:
        notes = store.read(before).get("run_notes", []) if before.is_file() else []
        if not before.is_file() and "started" in test:
            notes = ["The run was ended from outside before it was over."]
    verdicts = check(history, test, test["checkers"])
    broken = first_violation(verdicts)
    early = history.end_ns / 1e9 < test.get("time_s", 0)
    stops = watched(test)
    found = any(verdicts[name].valid is False for name in stops)
    if stops and early and not found and not notes:
        notes.append("It was stopped by what looked like a violation and was none.")
    if notes:
        verdicts["run"] = Verdict("unknown", " ".join(notes))
    results = {
        "test": test.get("name", folder.name),
        "valid": valid(verdicts),
        "seed": test.get("seed"),
        "checkers": {name: verdict.to_json() for name, verdict in verdicts.items()},
        "faults": [fault.to_json() for fault in faults(history)],
        "first_violation": broken,
        "stats": _stats(history),
        "notes": [*notes, *history.notes],
        "run_notes": notes,
    }
    store.write(before, results)
    report.render(folder)
    return Outcome(folder, results["valid"], verdicts, results)


def _description(folder: Path, history: History) -> dict[str, Any]:
    """The run's test.json; for a history from elsewhere one with what can be told from it.

    Raises:
        BadArguments: it can not be read, or names a checker that there is not.
    """
    path = folder / "test.json"
    test = store.read(path) if path.is_file() else {"name": folder.name}
    if not isinstance(test, dict):
        raise BadArguments(f"{path}: not a JSON object")
    if "checkers" not in test:
        ops = history.clients()
        absent = {
            "fencing": all(op.value.get("token") is None for op in ops),
            "linearizable": all(op.value.get("ttl") is None for op in ops),
            "store": all(op.value.get("stored") is None for op in ops),
            "resource": all(op.f != "write" for op in ops),
        }
        test["checkers"] = [name for name in CHECKERS if not absent.get(name)]
        test["not_checked"] = {
            name: "the history has nothing for it" for name, gone in absent.items() if gone
        }
        store.write(path, test)
    for name in test["checkers"]:
        choose("checker", name, CHECKERS)
    try:
        ends_with(test)
    except ValueError as error:
        raise BadArguments(f"{path}: {error}") from error
    return test


def _stats(history: History) -> dict[str, Any]:
    counts: dict[str, dict[str, int]] = {}
    for call in history.calls():
        by = counts.setdefault(call.begin.f, {"ok": 0, "fail": 0, "info": 0})
        by[call.type] += 1
    return {
        "ops": sum(sum(by.values()) for by in counts.values()),
        "holds": len(holds(history)),
        "duration_s": history.end_ns / 1e9,
        "by_f": counts,
    }
