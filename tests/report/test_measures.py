"""What the charts and the timeline draw is what the history holds."""

from __future__ import annotations

import pandas as pd
import pytest

from fencepost.checker.faults import faults
from fencepost.report.charts import latency_chart
from fencepost.report.measures import acquires, quantiles, summary, thinned, tokens
from fencepost.report.timeline import struck, timeline


def test_latencies_are_told_apart_by_outcome(calm):
    rows = summary(acquires(calm.history()))
    assert [(row["what"], row["count"]) for row in rows] == [("ok", 20), ("fail", 1)]
    assert rows[0]["ms"] == pytest.approx([5, 5, 5, 5])
    assert rows[1]["ms"] == pytest.approx([50, 50, 50, 50])


def test_quantiles_follow_time():
    slow = [(second + 0.5, 100.0 if second < 5 else 10.0, "ok") for second in range(10)] * 20
    frame = pd.DataFrame(slow, columns=["time_s", "latency_ms", "what"])
    found = quantiles(frame, 10.0)
    assert len(found) == 10
    assert found.loc[0.5, 0.99] == 100.0
    assert found.loc[9.5, 0.5] == 10.0


def test_few_acquires_have_no_quantiles(calm):
    assert quantiles(acquires(calm.history()), 8.0).empty


def test_tokens_show_grants_and_what_became_of_the_writes(story):
    late, early = story.acquire(100, 0), story.acquire(1200, 1)
    story.write(1210, 1, early, story.read(1206, 1))
    story.write(1300, 0, late, 0, refused=True)
    frame = tokens(story.history(), {})
    assert sorted(zip(frame["token"], frame["what"], strict=True)) == [
        (1, "granted"),
        (1, "refused"),
        (2, "accepted"),
        (2, "granted"),
    ]


def test_a_write_without_answer_counts_once_somebody_read_it(story):
    hold = story.acquire(100, 0)
    for number, at in ((1, 110), (2, 130)):
        value = {"resource": "register", "value": f"v{number}", "version": 0, "hold": hold}
        story.op(at, 0, "invoke", "write", value=value)
        story.op(at + 1, 0, "info", "write", value=value, error=["timeout", "no answer"])
    story.versions = 1
    story.read(150, 1)
    drawn = timeline(story.history(), {})["writes"]
    states = [row[drawn["columns"].index("state")] for row in drawn["rows"]]
    assert states == ["accepted", "unknown"]


def test_thinning_keeps_one_point_of_each_kind_where_points_coincide():
    rows = [(1.0, 5.0, "ok")] * 50 + [(1.0, 5.0, "fail"), (9.0, 80.0, "ok")]
    frame = pd.DataFrame(rows, columns=["time_s", "latency_ms", "what"])
    assert list(thinned(frame, "latency_ms")["what"]) == ["ok", "fail", "ok"]


def test_a_node_cut_off_from_all_others_is_one_nodes_fault(story):
    story.fault(10, 20, "partition", [], links=[["redis-1", "redis-2"], ["client-1", "redis-1"]])
    story.fault(30, 40, "partition", [], links=[["client-1", "redis-1"], ["client-2", "redis-2"]])
    isolated, split = faults(story.history())
    assert struck(isolated) == ["redis-1"]
    assert struck(split) == ["client-1", "redis-1", "client-2", "redis-2"]


def test_each_hold_of_a_node_has_a_row_of_its_own_while_it_lasts(story):
    story.acquire(100, 0)
    story.acquire(200, 0)
    drawn = timeline(story.history(), {})
    assert [row[drawn["holds"]["columns"].index("row")] for row in drawn["holds"]["rows"]] == [0, 1]
    assert drawn["lanes"]["rows"] == [["client-1", "client", 2]]


def test_the_latency_chart_has_a_dot_for_each_acquire_and_no_script(calm):
    history = calm.history()
    drawn = str(latency_chart(acquires(history), faults(history), 8.1))
    assert drawn.count("<circle") == 21
    assert "<script" not in drawn
    assert "<style" not in drawn
