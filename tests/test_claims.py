"""docs/claims.md defines every claim that a suite prints, and names the scenarios that test it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from fencepost.workloads.scenarios.registry import SUITES

ID = re.compile(r"[PACL]\d+|etcd \d+|control|exploration")
PAGE = Path(__file__).parent.parent / "docs" / "claims.md"


def ids(claim: str) -> set[str]:
    """A scenario may test several claims, as in "C4, C5 and A4"."""
    return set(re.split(r", | and ", claim))


def rows() -> dict[str, list[str]]:
    """Return the cells of each row of the page's tables by id, the first cell.

    Skip the last table, which is generated from runs.
    """
    found: dict[str, list[str]] = {}
    defined, made, _ = PAGE.read_text(encoding="utf-8").partition("<!-- table: outcomes")
    assert made
    for line in defined.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("|") and ID.fullmatch(cells[0]):
            assert cells[0] not in found, f"{cells[0]} stands twice"
            found[cells[0]] = cells[1:]
    return found


def played(cell: str) -> set[tuple[str, str]]:
    """Return the scenarios that a row names, as (suite, scenario): "redis: `a`, `b`; etcd: `c`"."""
    return {
        (part.partition(":")[0].strip(), name)
        for part in cell.split(";")
        if part.partition(":")[0].strip() in SUITES
        for name in re.findall(r"`([^`]+)`", part)
    }


PRINTED = sorted(
    {id for suite in SUITES.values() for entry in suite.entries for id in ids(entry.claim)}
)


@pytest.mark.parametrize("claim", PRINTED)
def test_every_claim_that_a_suite_prints_is_defined(claim):
    assert claim in rows(), f"add a row for {claim} to docs/claims.md"


@pytest.mark.parametrize("claim", [id for id in PRINTED if id not in ("control", "exploration")])
def test_a_claim_names_its_source_and_the_scenarios_that_test_it(claim):
    *_, source, names = rows()[claim]
    plays = {
        (suite, entry.name)
        for suite, found in SUITES.items()
        for entry in found.entries
        if claim in ids(entry.claim)
    }
    assert source
    assert played(names) == plays


def test_a_claim_without_scenarios_in_suites_names_no_scenario():
    others = {id: cells for id, cells in rows().items() if id not in PRINTED}
    assert {id for id, cells in others.items() if played(cells[-1])} == set()
