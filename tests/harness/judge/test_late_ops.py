"""A stored history is judged again with what its first judgement had to put right."""

from __future__ import annotations

import json

from fencepost.harness.judge.judge import judge

LATE = "1 ops were recorded late and have been put in order of time"


def test_a_history_that_was_sorted_says_so_again(tmp_path):
    test = {"name": "x", "checkers": ["lease_exclusion"]}
    (tmp_path / "test.json").write_text(json.dumps(test))
    rows = [
        {"index": 0, "time": 5, "process": 0, "type": "invoke", "f": "acquire", "value": {}},
        {"index": 1, "time": 3, "process": 1, "type": "invoke", "f": "acquire", "value": {}},
    ]
    for row in rows:
        row["value"] = {"lock": "orders"}
    history = tmp_path / "history.jsonl"
    history.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert judge(tmp_path, []).results["notes"].count(LATE) == 1
    assert [json.loads(line)["time"] for line in history.read_text().splitlines()][:2] == [3, 5]
    for _ in range(2):
        again = judge(tmp_path).results
        assert (again["notes"].count(LATE), again["run_notes"]) == (1, [])
