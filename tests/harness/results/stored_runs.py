"""Folders of runs, and of many runs, as commands store them."""

from __future__ import annotations

import json

from fencepost.harness.results import results
from tests.report.matrices import run as ran
from tests.report.matrices import stored
from tests.report.pages.test_sweep import stored as swept


def made(test, valid=None, broken=(), lock="redis", **more):
    run = results.create(test)
    (run / "history.jsonl").write_text("{}\n")
    about = {"name": test, "lock": {"name": lock, "options": {}}, "seed": 5, "nemesis": []} | more
    results.write(run / "test.json", about)
    if valid is not None:
        fine = {"valid": True, "summary": "None.", "evidence": []}
        said = {"valid": False, "summary": "Two held it.", "evidence": []}
        found = {
            "schema": 1,
            "test": test,
            "valid": valid,
            "seed": 5,
            "faults": [],
            "checkers": dict.fromkeys(broken, said) | {"faults": fine},
            "first_violation": None,
            "stats": {"holds": 12, "ops": 60, "duration_s": 3.0, "by_f": {}},
            "notes": [],
            "run_notes": [],
            "live": False,
        }
        results.write(run / "results.json", found)
    return run


def name_of(run):
    return f"{run.parent.name}/{run.name}"


def suite(*good):
    folder = results.create("suite-redis")
    rows = [
        {
            "test": f"redis-{number}",
            "lock": "redis",
            "expected": {"resource": True},
            "observed": {"resource": came},
            "as_expected": came,
        }
        for number, came in enumerate(good)
    ]
    results.write(folder / "suite.json", rows)
    return folder


def campaign(*broken):
    folder = results.create("campaign-redlock")
    asked = {"schema": 1, "lock": "redlock", "seeds": [5, 6, 7], "asked": {}}
    results.write(folder / "campaign.json", asked)
    seeds = [
        {"seed": 5 + number, "schedules": 40, "broken": found, "strikes": len(found)}
        for number, found in enumerate(broken)
    ]
    (folder / "seeds.jsonl").write_text("".join(json.dumps(one) + "\n" for one in seeds))
    return folder


def matrix(*cells):
    folder = results.create("matrix")
    results.write(folder / "matrix.json", stored(*cells))
    return folder


def sweep(*holds):
    folder = results.create("sweep")
    results.write(folder / "sweep.json", swept({(1.0, 0.5): [ran(many) for many in holds]}))
    return folder


def track_record(*outcomes):
    folder = results.create("track-record")
    rows = [
        {"key": f"defect-{number}/real servers", "outcome": outcome, "said": "So it is."}
        for number, outcome in enumerate(outcomes)
    ]
    results.write(folder / "track-record.json", rows)
    return folder
