"""Readers of files that options name: lists of packages, kept results, schedules, services."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from random import Random
from typing import Any, cast
from unittest.mock import patch

from fencepost.harness.campaigns import kept
from fencepost.harness.cluster.project import Project
from fencepost.harness.errors import BadArguments, Crashed
from fencepost.harness.hunting import replays
from fencepost.harness.spec import from_arguments
from fencepost.harness.userlock import requirements
from tests.fuzz import odd, resumed, spoil
from tests.fuzz.door import Answer, Door, command, function

REQUIRED = b"""# packages
redis==8.1.0
tooz[zookeeper] >= 2 ; python_version > "3.8"
portalocker==2.7.0 --hash=sha256:0
redis-py \\
  ==5.0
"""
LOCKED = json.dumps({"name": "x", "lockfileVersion": 3, "packages": {
    "": {"name": "x"}, "node_modules/redlock": {"version": "4.2.0"},
    "node_modules/a/node_modules/redis": {"version": "4.6.1", "dev": True},
}}).encode()  # fmt: skip
TOML_LOCK = b"""version = 1
[[package]]
name = "redis"
version = "8.1.0"
dependencies = [{ name = "async-timeout", marker = "python_full_version < '3.11.3'" }]
"""
GO = b"""module example.org/x

go 1.21

require github.com/go-redsync/redsync/v4 v4.8.1
require (
\tgo.etcd.io/etcd/client/v3 v3.5.9 // indirect
)
"""
CELL = {"state": "found", "words": "ownership 5/5", "found": 5, "of": 5, "untrue": [],
        "accused": [], "twin": True, "run": ""}  # fmt: skip
DEFECTS = json.dumps([
    {"defect": "release-does-nothing", "cells": {"history": CELL, "hunt": CELL}},
    {"defect": "release-without-owner-check", "cells": {"hunt": CELL}},
]).encode()  # fmt: skip
RECORD = json.dumps([
    {"key": f"{name}/simulation", "defect": name, "software": "s", "where": "simulation",
     "versions": {"redis": "7"}, "outcome": "seen", "said": "w", "last_seen": "2026-01-01"}
    for name in ("redis-py-reacquire-zero", "etcd-expired-waiter")
]).encode()  # fmt: skip
SCHEDULE = b'{"hunt": "fencepost hunt x", "broken": ["lease_exclusion"], "schedule": [7, 0, 1, 2]}'
SERVICES = b"""redis=r1:6379,redis=r2
redis-1
db
"""


ASKED: tuple[tuple[str, ...], ...] = (
    ("register", "--check"), ("defects", "--resume", "latest", "--keep"),
    ("track-record", "--simulated", "--keep"), ("test", "redlock", "--schedule"),
    ("test", "redlock", "--hosts"), ("suite", "redlock", "--hosts"),
    ("hunt", "--program", "x", "--servers", "redis:1", "--ship"),
    ("test", "lock.py:L", "--servers", "redis:1", "--requirements"),
)  # fmt: skip
"""Commands without the file that their last option names. None of them starts a container."""

plans = cache(resumed.plans)


def _register(name: str, *more: str) -> Callable[[bytes], Answer]:
    def hand(content: bytes) -> Answer:
        Path(name).write_bytes(content)
        # 1: a row concerns a package; 255: the file cannot be read (docs/register.md).
        return command("register", "--check", name, *more, also=(1, 255))

    return hand


def _keep(kind: str, file: str) -> Callable[[bytes], Answer]:
    """Resume a campaign, of which nothing can run, and merge it into a kept file."""

    def hand(content: bytes) -> Answer:
        words, plan, results = plans()[kind]
        resumed.store(kind, resumed.sound(plan, results))
        Path(file).write_bytes(content)
        with resumed.nothing_runs():
            asked = (words, "--resume", "latest", "--results", "results", "--keep", file)
            answer = command(*asked, also=(255,))
        # Another play must be able to add to the kept file.
        return answer or function(lambda path: _again(path, content), BadArguments, content)

    def _again(path: Path, content: bytes) -> None:
        if Path(file).read_bytes() != content:
            kept.read(Path(file), "defect" if kind == "defects" else "key")

    return hand


def _services(content: bytes) -> Answer:
    """Read the services of `--servers`, and the answers of a Compose command."""
    text = content.decode(errors="replace").replace("\0", "")
    asked, _, listed = text.partition("\n")
    Path("listed").write_text(listed)
    Path("compose.yml").write_text("services: {}")
    random = Random(content)
    says = random.choice(("cat listed", "cat listed >&2; exit 1", "cat listed; exit 1", "exit 1"))

    def read(path: Path) -> None:
        named = from_arguments.beside(asked, {"compose": "compose.yml"})
        services = [one.node for one in named.servers] if named else ["redis-1", "db"]
        # The client is for containers, of which there are none.
        project = Project(("sh", "-c", says), Path("compose.yml"), "x", cast(Any, None))
        project._must_have(services)

    try:
        return function(read, BadArguments, b"")
    except Crashed as error:
        return "" if str(error).strip() else "an error without a word"


def _requirements(content: bytes) -> Answer:
    """Install from a spoilt file. pip has no index here, so it only reads the file."""

    def read(path: Path) -> None:
        try:
            requirements.installed(path)
        except BadArguments as error:
            if "No matching distribution" not in str(error):  # the file could be read
                raise

    with patch.dict(os.environ, PIP_NO_INDEX="1", PIP_CONFIG_FILE=os.devnull, PIP_RETRIES="0"):
        return function(read, BadArguments, content)


def _odd(content: bytes) -> Answer:
    """Give a file of an odd type to an option that names one."""
    random, path = Random(content), Path("given")
    # No class, so that requirements that can be installed start no container.
    Path("lock.py").write_text("")
    _, plan, results = plans()["defects"]
    resumed.store("defects", resumed.sound(plan, results))
    make = random.choice([one for one in odd.ODD if one != "a device" or os.geteuid() == 0])
    odd.ODD[make](path)
    words = random.choice(ASKED)
    with resumed.nothing_runs():
        answer = command(*words, "given", also=(255,))
    found = answer or next(filter(None, (
        function(lambda _: replays.read(path, 2), BadArguments, b""),
        function(lambda _: requirements.installed(path), BadArguments, b""),
    )), "")  # fmt: skip
    return f"{make}, {' '.join(words)}: {found}" if found else ""


def _written(content: bytes) -> Answer:
    """Give files of odd types and names to the options that write one, of a campaign whose items
    crash. Its own results stay."""
    random = Random(content)
    _, plan, results = plans()["defects"]
    resumed.store("defects", resumed.sound(plan, results))
    words = ["defects", "--resume", "latest", "--results", "results"]
    for option in random.sample(("--junit", "--summary"), random.choice((1, 2))):
        words += [option, random.choice((_odd_target, _named_target))(random, option[2:])]
    with resumed.nothing_runs():
        answer = command(*words, also=(255,))
    left = [*Path("results").glob("*/*/campaign.jsonl")]
    return f"{' '.join(words)}: {answer}" if answer else "" if left else "the results are gone"


def _odd_target(random: Random, name: str) -> str:
    make = random.choice([one for one in odd.ODD if one != "a device" or os.geteuid() == 0])
    odd.ODD[make](Path(name))
    return name


def _named_target(random: Random, name: str) -> str:
    there = ("/dev/null", "/dev/full", "/dev/zero", "/dev/stdin", "/proc/self/mem",
             "/dev/null/x", "results", "a/b/c", "")  # fmt: skip
    return random.choice((*there, *(os.fsdecode(one) for one in odd.NAMES)))


def doors() -> list[Door]:
    """Return the readers of files that options name."""
    return [
        Door(
            "register requirements.txt", REQUIRED, spoil.words,
            _register("requirements.txt"),
        ),
        Door(
            "register package-lock.json", LOCKED, spoil.json_text,
            _register("package-lock.json", "--json"),
        ),
        Door("register uv.lock", TOML_LOCK, spoil.words, _register("uv.lock")),
        Door("register go.mod", GO, spoil.words, _register("go.mod")),
        Door("defects --keep", DEFECTS, spoil.json_text, _keep("defects", "kept.json")),
        Door("track-record --keep", RECORD, spoil.json_text, _keep("track record", "kept.json")),
        Door(
            "hunt --replay", SCHEDULE, spoil.json_text,
            partial(function, lambda path: replays.read(path, 2), BadArguments),
        ),
        Door("odd files given", b"a seed", None, _odd),
        Door("odd files to write", b"a seed", None, _written),
        Door("compose services", SERVICES, spoil.words, _services),
        Door("requirements of a lock", REQUIRED, spoil.words, _requirements),
    ]  # fmt: skip
