"""The model answers as a real API server did (kube-apiserver 1.20.2, kubernetes_real.py)."""

from __future__ import annotations

import json
from pathlib import Path

from tests.hunt.models.kubernetes_real import fresh

RECORD = Path(__file__).with_name("kubernetes_answers.json")


def test_the_model_answers_as_the_recorded_server_did():
    side = fresh()
    recorded = json.loads(RECORD.read_text())
    assert len(recorded) >= 500
    for number, asked in enumerate(recorded):
        expected = asked.pop("answer")
        assert list(side.ask(asked)) == expected, (number, asked)
