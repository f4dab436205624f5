"""What the charts and the timeline draw is what the history holds."""

from __future__ import annotations

import random

import pandas as pd
import pytest

from fencepost.checker.faults import faults
from fencepost.report.charts import has_tokens, latencies
from fencepost.report.measures import Answer, acquires, quantiles, summary, windows
from fencepost.report.timeline import struck, timeline


def test_latencies_are_told_apart_by_outcome(calm):
    rows = summary(acquires(calm.history()))
    assert [(row.what, row.count) for row in rows] == [("ok", 20), ("fail", 1)]
    assert [*rows[0].quantiles, rows[0].longest] == pytest.approx([5, 5, 5, 5])
    assert [*rows[1].quantiles, rows[1].longest] == pytest.approx([50, 50, 50, 50])


@pytest.mark.parametrize("count", [1, 2, 3, 100, 1001])
def test_quantiles_are_those_of_pandas(count):
    random.seed(count)
    values = [random.expovariate(1) for _ in range(count)]
    series = pd.Series(values)
    assert quantiles(values) == pytest.approx([series.quantile(q) for q in (0.5, 0.95, 0.99)])


def test_quantiles_follow_time():
    slow = [Answer(second + 0.5, 100.0 if second < 5 else 10.0, "ok") for second in range(10)] * 20
    found = windows(slow, 10.0)
    assert [time_s for time_s, _ in found] == [n + 0.5 for n in range(10)]
    assert found[0][1][2] == 100.0
    assert found[9][1][0] == 10.0


def test_few_acquires_have_no_quantiles(calm):
    assert windows(acquires(calm.history()), 8.0) == []


def test_a_window_in_which_nothing_was_granted_has_no_quantiles():
    answers = [Answer(second + 0.5, 10.0, "ok") for second in (0, 2)] * 40
    assert [time_s for time_s, _ in windows(answers, 4.0)] == [0.5, 2.5]


def test_tokens_are_those_of_grants_and_of_the_writes_that_came_with_them(story):
    late, early = story.acquire(100, 0), story.acquire(1200, 1)
    story.write(1210, 1, early, story.read(1206, 1))
    story.write(1300, 0, late, 0, refused=True)
    drawn = timeline(story.history(), {})
    assert column(drawn["holds"], "token") == ["1", "2"]
    assert column(drawn["writes"], "token") == ["2", "1"]
    assert column(drawn["writes"], "state") == ["accepted", "refused"]
    assert has_tokens(drawn)


def test_a_run_without_tokens_says_so(story):
    story.op(100, 0, "invoke", "acquire", value={"lock": "orders"})
    story.op(110, 0, "ok", "acquire", value={"lock": "orders", "hold": "h1"})
    assert not has_tokens(timeline(story.history(), {}))


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


def test_the_latency_chart_has_a_dot_for_each_acquire_that_was_answered(calm):
    drawn = latencies(acquires(calm.history()), 8.1)["acquires"]
    assert column(drawn, "what") == ["ok"] * 20 + ["fail"]
    assert column(drawn, "latency") == [5000] * 20 + [50_000]


def column(table, name):
    return [row[table["columns"].index(name)] for row in table["rows"]]
