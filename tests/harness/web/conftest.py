"""A results folder with runs in it, and a browser's requests to it without a server."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from fencepost.harness.results import results
from fencepost.harness.web.site import site

HERE = "http://127.0.0.1:8080"


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    place = tmp_path / "results"
    place.mkdir()
    monkeypatch.setenv("FENCEPOST_RESULTS", str(place))
    return place


@pytest.fixture
def browser(root: Path) -> TestClient:
    return TestClient(site(), base_url=HERE, follow_redirects=False)


Made = Callable[..., Path]


@pytest.fixture
def made(root: Path) -> Made:
    """Make a run: `made("one", True, lock="etcd")`; without a verdict it was never judged."""

    def make(test: str, valid: Any = None, **about: Any) -> Path:
        run = results.create(test)
        (run / "history.jsonl").write_text("{}\n")
        stats = {"holds": about.pop("holds", 12), "ops": 60, "duration_s": 3.0, "by_f": {}}
        lock = {"name": about.pop("lock", "redis"), "options": {}}
        told = {"name": test, "lock": lock, "seed": 5, "nemesis": [], "guard": "none"} | about
        results.write(run / "test.json", told)
        if valid is not None:
            (run / "report.html").write_text("<p>the report</p>")
            fine = {"valid": True, "summary": "None.", "evidence": []}
            said = {"valid": valid, "summary": "As it is.", "evidence": []}
            checkers = {"faults": fine, "resource": said}
            results.write(
                run / "results.json",
                {
                    "schema": 1, "test": test, "valid": valid, "seed": 5, "faults": [],
                    "checkers": checkers, "first_violation": None, "stats": stats, "notes": [],
                    "run_notes": [], "live": False,
                },
            )  # fmt: skip
        return run

    return make


def name_of(run: Path) -> str:
    return f"{run.parent.name}/{run.name}"
