"""The recorded histories have the verdicts that were published for them."""

import csv

import pytest

from fencepost.checker.lincheck import named
from fencepost.checker.lincheck.budget import Budget
from fencepost.checker.lincheck.formats.files import read
from fencepost.checker.lincheck.verdict import check_numbered
from fencepost.checker.lincheck.verifier import verify

MODELS = {
    "porcupine-etcd": named("cas-register"),
    "porcupine-kv": named("kv"),
    "cas-register(initial 0)": named("cas-register", 0),
    "multi-register(initial {x 0, y 0})": named("multi-register", {"x": 0, "y": 0}),
}


@pytest.mark.parametrize("form", ["porcupine-etcd", "porcupine-kv", "knossos-edn"])
def test_every_recorded_history_has_its_published_verdict_and_evidence_for_it(recorded, form):
    with open(recorded / "verdicts.csv", newline="") as lines:
        rows = [row for row in csv.DictReader(lines) if row["format"] == form]
    assert rows
    for row in rows:
        model = MODELS.get(form) or MODELS[row["model"]]
        path = recorded / row["file"]
        verdict = check_numbered(read(path, None, pytest.fail), model, Budget.starting_now(10))
        assert str(verdict.valid).lower() == row["linearizable"], row["file"]
        evidence = verdict.evidence()
        assert evidence.complete, row["file"]
        if verdict.valid:
            for key, steps in evidence.linearizations.items():
                assert verify(verdict.parts[key], steps, model) is None
        else:
            assert len(evidence.small.operations) < 12, row["file"]


def test_one_object_or_many_the_verdict_is_the_same(recorded):
    for name, expected in (("c10-bad.txt", False), ("c10-ok.txt", True)):
        pairs = read(recorded / "porcupine-kv" / name, "porcupine-kv", pytest.fail)
        verdict = check_numbered(pairs, named("kv"), Budget.starting_now(10), partition=False)
        assert verdict.valid is expected
