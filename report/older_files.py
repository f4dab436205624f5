"""Readers of the files that earlier versions stored for campaigns, as tables of today.

Suites had suite.json, matrices matrix.json, sweeps sweep.json, track records track-record.json,
benches bench.json, and campaigns of hunts a campaign.json without a kind, with seeds.jsonl.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from fencepost import plainfile, runfiles
from fencepost.strictjson import decode

FILES = {
    "suite": "suite.json", "matrix": "matrix.json", "sweep": "sweep.json",
    "track-record": "track-record.json", "campaign": "campaign.json", "bench": "bench.json",
    "defects": "defects.json",
}  # fmt: skip
_SCHEMA = 1
_SEEDS = "seeds.jsonl"

Row = dict[str, Any]
Table = tuple[Mapping[str, Any], list[Row], dict[str, dict[str, str]]]
"""The plan, the rows with their runs, and the versions that were tested, by lock."""


def kind(folder: Path) -> str:
    """Return the kind of campaign that an earlier version stored in this folder, or ''."""
    return next((name for name, file in FILES.items() if plainfile.exists(folder / file)), "")


def read(folder: Path, kind: str) -> Table:
    """Read the table in this folder.

    Raises:
        OSError, ValueError, KeyError, TypeError: its file is missing or malformed.
    """
    content = decode(plainfile.read(folder / FILES[kind]))
    if isinstance(content, dict) and content.get("schema", _SCHEMA) != _SCHEMA:
        raise ValueError(f"its version is {content['schema']}, and this fencepost knows {_SCHEMA}")
    match kind:
        case "matrix":
            return _matrix(content)
        case "sweep":
            return _sweep(content)
        case "campaign":
            return _hunts(content, folder)
        case "bench":
            return _bench(content)
        case "suite":
            return {"suite": folder.resolve().parent.name.removeprefix("suite-"),
                    **_seed(folder, content)}, _entries(content, "test"), {}  # fmt: skip
        case _:
            return _seed(folder, content), _entries(content, "key"), {}


def _matrix(content: Row) -> Table:
    rows = [
        _row(f"{cell['lock']}/{cell['fault']}/{cell['guard']}", cell, cell["runs"])
        for cell in content["cells"]
    ]
    return content["plan"], rows, dict(content.get("versions") or {})


def _sweep(content: Row) -> Table:
    rows = [
        _row(f"{float(cell['x'])!r}/{float(cell['y'])!r}", cell, cell["runs"])
        for cell in content["cells"]
    ]
    return content["plan"], rows, {"": dict(content.get("versions") or {})}


def _hunts(content: Row, folder: Path) -> Table:
    path = folder / _SEEDS
    found = plainfile.read(path).split(b"\n")[:-1] if path.exists() else []
    by_seed: dict[int, list[Row]] = {int(seed): [] for seed in content["seeds"]}
    for line in map(decode, found):
        by_seed[line["seed"]].append(line)
    rows = [_row(str(seed), {"seed": seed}, runs) for seed, runs in by_seed.items()]
    asked = {"lock": content["lock"], "seeds": content["seeds"], "asked": content.get("asked", {})}
    return asked, rows, {}


def _bench(content: Row) -> Table:
    plan = {name: content[name] for name in ("baseline", "command", "versions")}
    return plan, [_row(one["lock"], {"lock": one["lock"]}, [one]) for one in content["locks"]], {}


def _entries(content: Any, key: str) -> list[Row]:
    """Return the rows of a list of objects, each with its only run; a rate has a list of runs."""
    if not isinstance(content, list) or not all(isinstance(one, dict) for one in content):
        raise ValueError("it is not a list of objects")
    return [
        _row(str(one.get(key, number)), one, (one.get("rate") or {}).get("runs") or [one])
        for number, one in enumerate(content)
    ]


def _row(key: str, row: Mapping[str, Any], runs: Sequence[Mapping[str, Any]]) -> Row:
    lines = [{"row": key, "number": number, **run} for number, run in enumerate(runs, 1)]
    return {**row, "key": key, "runs": lines}


def _seed(folder: Path, content: Any) -> dict[str, int]:
    """Return the seed of a suite or a track record, which only its runs have."""
    for one in content if isinstance(content, list) else ():
        try:
            test = runfiles.test(folder / one["run"] / "test.json")
            return {"seed": int(test["seed"])}
        except (OSError, ValueError, KeyError, TypeError):
            continue
    return {}
