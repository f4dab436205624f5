"""The charts and the timeline show the history's values."""

from __future__ import annotations

import random

import pandas as pd
import pytest

from fencepost.checker.facts.faults import faults
from fencepost.report.figures.charts import has_tokens, latencies
from fencepost.report.figures.lanes import struck
from fencepost.report.figures.measures import Answers, quantiles, summary, windows
from fencepost.report.figures.recorded import recorded
from fencepost.report.figures.sampling import drawn
from fencepost.report.figures.timeline import timeline

SECOND, MS = 10**9, 10**6


def test_latencies_are_separated_by_outcome(calm):
    rows = summary(recorded(calm.history()).answers)
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
    slow = answers((second, 100 if second < 5 else 10) for second in list(range(10)) * 20)
    found = windows(slow, 10 * SECOND)
    assert [time for time, _ in found] == [(n + 0.5) * SECOND for n in range(10)]
    assert found[0][1][2] == 100 * MS
    assert found[9][1][0] == 10 * MS


def test_few_acquires_have_no_quantiles(calm):
    assert windows(recorded(calm.history()).answers, 8 * SECOND) == []


def test_a_window_in_which_nothing_was_granted_has_no_quantiles():
    found = windows(answers((second, 10) for second in (0, 2) * 40), 4 * SECOND)
    assert [time for time, _ in found] == [0.5 * SECOND, 2.5 * SECOND]


def test_tokens_are_those_of_grants_and_of_the_writes_that_carry_them(story):
    late, early = story.acquire(100, 0), story.acquire(1200, 1)
    story.write(1210, 1, early, story.read(1206, 1))
    story.write(1300, 0, late, 0, refused=True)
    picture = timeline(drawn(story.history(), {}), {})
    assert column(picture["holds"], "token") == ["1", "2"]
    assert column(picture["writes"], "token") == ["2", "1"]
    assert column(picture["writes"], "state") == ["accepted", "refused"]
    assert has_tokens(picture)


def test_a_run_without_tokens_says_so(story):
    story.op(100, 0, "invoke", "acquire", value={"lock": "orders"})
    story.op(110, 0, "ok", "acquire", value={"lock": "orders", "hold": "h1"})
    assert not has_tokens(timeline(drawn(story.history(), {}), {}))


def test_a_write_without_answer_counts_once_a_client_read_it(story):
    hold = story.acquire(100, 0)
    for number, at in ((1, 110), (2, 130)):
        value = {"resource": "register", "value": f"v{number}", "version": 0, "hold": hold}
        story.op(at, 0, "invoke", "write", value=value)
        story.op(at + 1, 0, "info", "write", value=value, error=["timeout", "no answer"])
    story.versions = 1
    story.read(150, 1)
    picture = timeline(drawn(story.history(), {}), {})["writes"]
    states = [row[picture["columns"].index("state")] for row in picture["rows"]]
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
    picture = timeline(drawn(story.history(), {}), {})
    assert [row[picture["holds"]["columns"].index("row")] for row in picture["holds"]["rows"]] == [
        0,
        1,
    ]
    assert picture["lanes"]["rows"] == [["client-1", "client", 2]]


def test_the_latency_chart_has_a_dot_for_each_acquire_that_was_answered(calm):
    drawn = latencies(recorded(calm.history()).answers, 8 * SECOND)["acquires"]
    assert column(drawn, "what") == ["ok"] * 20 + ["fail"]
    assert column(drawn, "latency") == [5000] * 20 + [50_000]


def answers(granted):
    """Return acquires that were granted in the middle of these seconds, after this number of ms."""
    found = Answers()
    for second, took_ms in granted:
        found.add(second * SECOND + SECOND // 2, took_ms * MS, "ok")
    return found


def column(table, name):
    return [row[table["columns"].index(name)] for row in table["rows"]]
