"""Write runs as the store does: op by op, judged by the real checkers."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from fencepost.checker.checker import Run
from fencepost.checker.checkers import CHECKERS, check, valid
from fencepost.checker.facts.faults import faults
from fencepost.checker.history.history import History, Op, write
from fencepost.nemesis.families import facts

MS = 1_000_000
TTL = 1000 * MS

TEST: dict[str, Any] = {
    "name": "redlock-pause",
    "lock": {"name": "redlock", "options": {"check_clock": True}},
    "guard": "none",
    "nemesis": ["pause"],
    "time_s": 10,
    "seed": 7,
    "concurrency": 2,
    "ttl_ms": 1000,
    "servers": ["redis-1", "redis-2", "redis-3"],
    "clients": ["client-1", "client-2"],
    "failed_release": "ended",
    "checkers": sorted(set(CHECKERS) - {"server-log", "jobs"}),
    "versions": {"fencepost": "0.1.0", "redis": "7.0.15"},
    "started": "2026-01-02T03:04:05Z",
}


@dataclass
class Story:
    """Ops in the given order; `at` is in ms since the test's start."""

    ops: list[Op] = field(default_factory=list)
    versions: int = 0
    holds: int = 0

    def op(self, at: float, process: int | str, kind: str, f: str, **more: Any) -> None:
        node = None if process == "nemesis" else f"client-{int(process) + 1}"
        more.setdefault("value", {})
        self.ops.append(Op(0, round(at * MS), process, kind, f, node=node, **more))  # type: ignore[arg-type]

    def acquire(self, at: float, process: int, took: float = 5) -> str:
        self.holds += 1
        name = f"h{self.holds}"
        asked = {"lock": "orders", "ttl": TTL}
        deadline = round(at * MS) + TTL
        granted = asked | {"token": self.holds, "deadline": deadline, "hold": name}
        self.op(at, process, "invoke", "acquire", value=asked)
        self.op(at + took, process, "ok", "acquire", value=granted)
        return name

    def denied(self, at: float, process: int) -> None:
        self.op(at, process, "invoke", "acquire", value={"lock": "orders", "ttl": TTL})
        self.op(at + 50, process, "fail", "acquire", error=["timeout", "no quorum"])

    def release(self, at: float, process: int, hold: str) -> None:
        value = {"lock": "orders", "hold": hold}
        self.op(at, process, "invoke", "release", value=value)
        self.op(at + 2, process, "ok", "release", value=value)

    def read(self, at: float, process: int, name: str = "register") -> int:
        self.op(at, process, "invoke", "read", value={"resource": name})
        seen = {
            "resource": name,
            "value": f"v{self.versions}" if self.versions else None,
            "version": self.versions,
        }
        self.op(at + 1, process, "ok", "read", value=seen)
        return self.versions

    def write(
        self, at: float, process: int, hold: str, version: int, refused: bool = False, **more: Any
    ) -> None:
        value = {
            "resource": "register",
            "value": f"v{self.versions + 1}",
            "version": version,
            "token": int(hold[1:]),
            "hold": hold,
        } | more
        self.op(at, process, "invoke", "write", value=value)
        if refused:
            error = ["stale-token", "a higher one was seen"]
            self.op(at + 1, process, "fail", "write", value=value, error=error)
            return
        self.versions += 1
        self.op(at + 1, process, "ok", "write", value=value | {"stored": self.versions})

    def fault(
        self, start: float, end: float, f: str, targets: list[str], proved: bool = True, **how: Any
    ) -> None:
        name = f"{f}-{start}"
        for at, phase in ((start, "start"), (end, "end")):
            value = {"fault": name, "targets": targets, "arguments": how, "phase": phase}
            if phase == "start":
                value |= facts(f, targets, how)
            self.op(at, "nemesis", "invoke", f, value=value)
            receipt = {"proved": proved, "states": dict.fromkeys(targets, "T")}
            kind = "ok" if proved else "info"
            self.op(at + 1, "nemesis", kind, f, value=value | {"receipt": receipt})

    def turn(self, at: float, process: int) -> None:
        """Write one hold from start to end: acquire, read, write, release."""
        hold = self.acquire(at, process)
        self.write(at + 9, process, hold, self.read(at + 7, process))
        self.release(at + 12, process, hold)

    def history(self) -> History:
        ops = sorted(self.ops, key=lambda op: op.time)
        return History(
            [
                Op(i, o.time, o.process, o.type, o.f, o.value, o.error, o.node)
                for i, o in enumerate(ops)
            ]
        )


Store = Callable[..., Path]


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """Write a story as a run's folder; keywords overlay test.json; `checked` False: killed."""

    def save(story: Story, checked: bool = True, **test: Any) -> Path:
        described = TEST | test
        folder = tmp_path / "20260102T030405Z"
        folder.mkdir()
        history = story.history()
        (folder / "test.json").write_text(json.dumps(described))
        write(folder / "history.jsonl", history)
        if checked:
            verdicts = check(Run(history, described), described["checkers"])
            results = {
                "test": described["name"],
                "valid": valid(verdicts),
                "seed": described["seed"],
                "checkers": {name: verdict.to_json() for name, verdict in verdicts.items()},
                "faults": [fault.to_json() for fault in faults(history)],
                "stats": {"ops": len(history), "duration_s": history.end_ns / 1e9},
            }
            (folder / "results.json").write_text(json.dumps(results))
        return folder

    return save


@pytest.fixture
def story() -> Story:
    return Story()


@pytest.fixture
def calm() -> Story:
    """Two clients take turns; a server is paused, with its receipt, and nothing goes wrong."""
    story = Story()
    for turn in range(20):
        story.turn(turn * 400, turn % 2)
    story.denied(8010, 1)
    story.fault(2050, 2350, "pause", ["redis-1"])
    return story


@pytest.fixture
def clash() -> Story:
    """Kleppmann's schedule: one client is paused past its lease and then writes.

    A clock jump later makes the service itself grant a lock whose lease still runs.
    """
    story = Story()
    story.turn(100, 0)
    paused = story.acquire(1000, 0)
    stale = story.read(1010, 0)
    story.fault(1020, 2500, "pause", ["client-1"])
    story.turn(2200, 1)
    story.write(2510, 0, paused, stale)
    story.release(2520, 0, paused)
    first = story.acquire(3000, 0)
    story.fault(3100, 3500, "clock", ["redis-3"], words="clock of redis-3 jumped by 60 s")
    story.fault(
        3100, 3500, "partition", [], links=[["client-2", "redis-1"], ["client-2", "redis-2"]]
    )
    second = story.acquire(3200, 1)
    story.release(3400, 1, second)
    story.release(3450, 0, first)
    story.turn(3700, 1)
    return story
