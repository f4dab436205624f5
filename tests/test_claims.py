"""Every claim that a suite tests is defined, and every claim has an entry that tests it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from fencepost.workloads.scenarios.claim import CONTROL, EXPLORATION, Claim, listed
from fencepost.workloads.scenarios.claims import CLAIMS
from fencepost.workloads.scenarios.registry import SUITES

PAGE = Path(__file__).parents[1] / "docs" / "claims.md"
ENTRIES = [(suite.name, entry) for suite in SUITES.values() for entry in suite.entries]
NAMED = {"property": "P", "algorithm": "A", "claim": "C", "defect": "L"}


@pytest.mark.parametrize("entry", [entry for _, entry in ENTRIES], ids=lambda entry: entry.name)
def test_an_entry_names_claims_that_are_defined(entry):
    assert entry.claims
    assert set(entry.claims) <= set(CLAIMS)
    assert len(set(entry.claims)) == len(entry.claims)


@pytest.mark.parametrize("claim", CLAIMS.values(), ids=lambda claim: claim.id)
def test_a_claim_has_an_entry_that_tests_it(claim):
    assert [name for name, entry in ENTRIES if claim.id in entry.claims]


def test_what_a_run_without_claim_names_is_no_other_claim_beside_it():
    assert [claim.id for claim in CLAIMS.values() if claim.kind == "run"] == [CONTROL, EXPLORATION]
    for _, entry in ENTRIES:
        assert len(entry.claims) == 1 or not {CONTROL, EXPLORATION} & set(entry.claims)


def test_the_ids_of_a_kind_begin_alike_and_stand_in_order():
    for kind, letter in NAMED.items():
        ids = [claim.id for claim in CLAIMS.values() if claim.kind == kind]
        numbers = [int(id[1:]) for id in ids if re.fullmatch(rf"{letter}\d+", id)]
        assert numbers == list(range(1, len(numbers) + 1))
        assert set(ids) - {f"{letter}{n}" for n in numbers} <= {"etcd 11456"}


def test_the_page_explains_each_short_name_of_a_source():
    text = PAGE.read_text(encoding="utf-8")
    short = [line.split("|")[1].strip() for line in text.splitlines() if line.startswith("| ")]
    for claim in CLAIMS.values():
        if claim.kind in ("property", "algorithm", "claim"):
            assert any(claim.source.startswith(name) for name in short if name), claim.id


def test_the_page_says_of_each_claim_its_words_its_source_and_its_entries():
    rows = {}
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        rows.setdefault(cells[0], cells[1:])
    assert rows["P1"] == [
        "Exclusive: at most one client holds the lock at a time.",
        "`lease_exclusion` T with `noeviction`; F where the server evicts the key, and for a lock "
        "that always says yes",
        "overview; redis.io",
        "redis: `evicted`, `out-of-memory`, `always-yes`",
    ]
    assert rows["L2"] == [
        "redlock-py 1.0.8: one dead server of five makes every acquire raise an error and leave "
        "four keys behind.",
        "the code of `Redlock.lock`",
        "libraries: `redlock-py-minority-down`",
    ]
    assert set(CLAIMS) <= set(rows)


@pytest.mark.parametrize(
    ("ids", "phrase"),
    [
        ((), ""),
        (("C4",), "C4"),
        (("C12", "A9"), "C12 and A9"),
        (("C4", "C5", "A4"), "C4, C5 and A4"),
    ],
)
def test_the_claims_of_an_entry_are_printed_as_a_phrase(ids, phrase):
    assert listed(ids) == phrase


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"id": ""}, "claim '': give it an id and words"),
        ({"words": ""}, "claim 'C1': give it an id and words"),
        ({"source": ""}, "claim C1: name its source"),
        ({"kind": "rumour"}, "claim C1: kind 'rumour' is none of property, algorithm, "),
    ],
)
def test_a_claim_that_lacks_something_is_refused(changed, words):
    with pytest.raises(ValueError) as error:
        Claim(**{"id": "C1", "words": "It locks.", "source": "overview", **changed})
    assert str(error.value).startswith(words)
