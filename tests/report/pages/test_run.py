"""The report of a run shows the checkers' verdicts in full, separately and escaped."""

from __future__ import annotations

import json
import re
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from fencepost.report.pages.run import _hunt, render
from fencepost.report.stored import ReportError

pytestmark = pytest.mark.slow


def page(folder: Path) -> str:
    return render(folder).read_text(encoding="utf-8")


def headline(html: str) -> str:
    found = re.search(r"<h1>(.*?)</h1>", html, re.S)
    assert found
    return unescape(found.group(1))


def card(html: str, title: str) -> str:
    """Return one of the three questions' cards, as text."""
    found = re.search(rf"<h3>{re.escape(title)}</h3>(.*?)</div>", html, re.S)
    assert found
    return unescape(re.sub(r"<[^>]+>", " ", found.group(1)))


def data(html: str) -> dict[str, Any]:
    found = re.search(r'<script type="application/json"[^>]*>(.*?)</script>', html, re.S)
    assert found
    value: dict[str, Any] = json.loads(found.group(1))
    return value


def test_a_valid_run_answers_all_three_questions(store, calm):
    html = page(store(calm))
    assert headline(html) == (
        "Valid: the lock service kept its promise, no two clients believed at once that they "
        "held the lock, and the resource was not damaged."
    )
    assert "<h2>Why</h2>" not in html


def test_a_client_paused_past_its_lease_is_not_counted_as_the_services_failure(store, clash):
    clash.ops = [op for op in clash.ops if op.time < 2_800_000_000]
    html = page(store(clash, checkers=["lease_exclusion", "mutual_exclusion", "resource"]))
    assert headline(html) == (
        "Invalid: the lock service kept its promise, two clients believed at once that they "
        "held the lock, and the resource was damaged."
    )
    assert "not a failure of the service" in card(html, "Did two clients believe at once?")
    assert "broken" not in card(html, "Did the lock service keep its promise?")


def test_rising_tokens_and_a_stale_write_are_two_answers(store, clash):
    clash.ops = [op for op in clash.ops if op.time < 2_800_000_000]
    html = page(store(clash, checkers=["fencing"]))
    assert "3 tokens were unique and rising" in card(html, "Did the lock service keep its promise?")
    assert "after one with a higher token" in card(html, "Was the resource damaged?")
    assert headline(html).startswith("Invalid: the lock service kept its promise, and the resource")


def test_evidence_names_clients_and_times_and_links_to_the_moment(store, clash):
    html = page(store(clash))
    shown = unescape(html)
    assert "client-2 (process 1) was granted hold h5 at 3.205 s" in shown
    moments = [json.loads(unescape(text)) for text in re.findall(r'data-moment="(.*?)"', html)]
    assert {"from": 3205000, "until": 3400000, "holds": ["h4", "h5"]} in moments


def test_the_timeline_shows_the_overlaps_that_the_checkers_found(store, clash):
    drawn = data(page(store(clash)))
    columns = drawn["overlaps"]["columns"]
    found = [dict(zip(columns, row, strict=True)) for row in drawn["overlaps"]["rows"]]
    believed = [row for row in found if row["believed"]]
    strict = [row for row in found if not row["believed"]]
    assert [(row["start"], row["until"]) for row in believed] == [(3205000, 3400000)]
    assert [(row["start"], row["until"]) for row in strict] == [
        (2205000, 2212000),
        (3205000, 3400000),
    ]


def test_a_fault_without_receipt_makes_the_page_say_unknown(store, calm):
    calm.fault(5010, 5100, "partition", ["redis-2"], proved=False)
    html = page(store(calm))
    assert headline(html).startswith("Unknown: as far as it was tested, the lock service kept")
    assert '<div class="card holds">' not in html
    assert "Not everything was tested as planned: 1 of 2 faults lack a receipt" in html


def test_a_run_that_did_not_go_as_scheduled_is_no_fault_of_the_service(store, calm):
    folder = store(calm)
    results = json.loads((folder / "results.json").read_text())
    why = "The schedule was not carried out: acquire was refused."
    results["checkers"]["run"] = {"valid": "unknown", "summary": why, "evidence": []}
    results |= {"valid": "unknown", "notes": [why]}
    (folder / "results.json").write_text(json.dumps(results))
    html = page(folder)
    assert headline(html).startswith("Unknown: as far as it was tested, the lock service kept")
    assert why not in card(html, "Did the lock service keep its promise?")
    assert html.count(f'<p class="warning">Not everything was tested as planned: {why}') == 1
    assert f'<p class="warning">{why}' not in html


def test_faults_that_nodes_cannot_have_are_named_once(store, calm):
    folder = store(calm)
    lacks = {"packet/delay": ["redis-1", "client-1"], "packet/reorder": ["redis-1", "client-1"]}
    facts = json.loads((folder / "test.json").read_text()) | {"lacks": lacks}
    (folder / "test.json").write_text(json.dumps(facts))
    words = (
        "These faults cannot be injected on redis-1, client-1, whose kernel does not support "
        "them: packet/delay, packet/reorder. They are drawn only on request."
    )
    assert page(folder).count(words) == 1


def test_a_token_too_long_for_a_browsers_numbers_keeps_its_digits(store, story):
    story.holds = 2**80
    story.turn(100, 0)
    drawn = data(page(store(story)))
    assert dict(zip(drawn["holds"]["columns"], drawn["holds"]["rows"][0], strict=True))[
        "token"
    ] == ("1208925819614629174706177")


def test_a_killed_run_shows_its_recorded_part_and_no_verdict(store, clash):
    folder = store(clash, checked=False)
    with (folder / "history.jsonl").open("a") as file:
        file.write('{"index": 99, "time": 40000')
    html = page(folder)
    assert headline(html).startswith("No verdict")
    assert "it has no results.json" in html
    assert "is torn and was dropped" in html
    assert "was not judged" not in html
    assert len(data(html)["holds"]["rows"]) == 6


def test_results_that_are_known_are_not_read_again(store, calm):
    folder = store(calm)
    known = json.loads((folder / "results.json").read_text())
    (folder / "results.json").write_text("spoilt")
    html = render(folder, results=known).read_text()
    assert headline(html).startswith("Valid: ")
    assert "results.json cannot be read" not in html


def test_a_history_that_cannot_be_read_is_reported(store, calm):
    folder = store(calm)
    (folder / "history.jsonl").write_text("not json\n")
    html = unescape(page(folder))
    assert "The picture could not be drawn, because the history cannot be read" in html
    assert "Valid: " in html


def test_a_folder_without_test_json_is_refused_with_a_remedy(tmp_path):
    with pytest.raises(ReportError, match=r"test\.json cannot .* name the folder of a run"):
        render(tmp_path)


def test_a_test_whose_lock_ends_in_no_known_way_is_refused_with_the_ways(store, calm):
    folder = store(calm, checked=False, lock={"name": "mine", "ends_with": "luck"})
    with pytest.raises(ReportError, match="choose one of lease, close, connection"):
        render(folder)


def test_an_expectation_that_is_no_verdict_is_shown_as_unknown(store, calm):
    found = {"name": "odd", "claim": "C1", "steps": [], "expected": {"store": "nemesis"}}
    assert "The outcome is not as predicted." in page(store(calm, scenario=found))


def test_an_empty_description_and_history_still_give_a_page(tmp_path):
    (tmp_path / "test.json").write_text("{}")
    (tmp_path / "results.json").write_text('{"valid": "unknown", "checkers": {}}')
    (tmp_path / "history.jsonl").write_text("")
    html = page(tmp_path)
    assert headline(html) == "Unknown: no checker ran."
    assert "No acquire was answered" in html


EVIL = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\"'&"


def test_no_value_of_the_run_becomes_markup(store, clash):
    hold = clash.acquire(5000, 0)
    clash.write(5010, 0, hold, clash.read(5006, 0), value=EVIL)
    clash.fault(6000, 6100, "pause", [EVIL], words=EVIL)
    folder = store(
        clash,
        name=EVIL,
        guard=EVIL,
        notes=[EVIL],
        lock={"name": EVIL, "options": {EVIL: EVIL}},
        not_checked={EVIL: EVIL},
        scenario={"name": EVIL, "claim": EVIL, "source": EVIL, "what": EVIL, "steps": [EVIL]},
        schedule=[{"at_s": 1, "family": EVIL, "targets": [EVIL], "arguments": {EVIL: EVIL}}],
    )
    html = page(folder)
    assert html.count("<script") == html.count("</script>") == 2
    assert "<img" not in html
    written = data(html)["writes"]
    assert EVIL in [
        dict(zip(written["columns"], row, strict=True))["value"] for row in written["rows"]
    ]


def test_the_page_loads_nothing(store, clash):
    html = page(store(clash))
    assert not re.search(r"""(?:https?:)?//[\w.-]+\.\w+[^\s"'<)]*""", html)
    assert not re.search(r"<(?:link|iframe|object|embed|base)\b|\ssrc=|@import|url\((?!#)", html)


def test_a_scenario_names_its_author_claim_and_steps(store, clash):
    html = page(
        store(
            clash,
            scenario={
                "name": "client-pause",
                "claim": "C4",
                "source": "Martin Kleppmann, How to do distributed locking, 2016",
                "what": "A client pauses past its lease.",
                "steps": ["client-1 takes the lock", "client-1 is stopped"],
            },
        )
    )
    assert "Claim C4, predicted by Martin Kleppmann, How to do distributed locking, 2016." in html
    assert "<li>client-1 takes the lock</li>" in html
    assert "fencepost test" not in html


def test_a_scenario_says_which_servers_its_letters_mean(store, clash):
    what = "Client 1 is granted the lock by A and B; the clock of C jumps."
    html = page(store(clash, scenario={"name": "clock-jump", "what": what}))
    assert "A is redis-1, B is redis-2, C is redis-3." in html


def test_a_run_without_scenario_says_how_to_repeat_it(store, calm):
    html = page(store(calm))
    found = re.search(r"<pre>(fencepost test .*?)</pre>", html)
    assert found
    assert found.group(1) == (
        "fencepost test redlock --nemesis pause --guard none --time 10s --seed 7 --clients 2 "
        "--ttl 1000ms --failed-release ended -o check_clock=true"
    )


def test_a_run_whose_faults_were_given_is_repeated_from_its_folder(store, calm):
    folder = store(calm, scheduled=True)
    found = re.search(r"<pre>(fencepost test .*?)</pre>", page(folder))
    assert found.group(1) == f"fencepost test --replay {folder.parent.name}/{folder.name}"


@pytest.mark.parametrize(
    ("stored", "words"),
    [
        ({"until": ["any"]}, " --until any -o "),
        ({"until": ["ownership", "store"], "locks": 3}, " --until ownership,store -o "),
        ({"until_violation": True}, " --until-violation -o "),
    ],
)
def test_a_run_that_was_to_end_at_a_violation_says_at_which(store, calm, stored, words):
    html = page(store(calm, **stored))
    assert words in html
    assert (" --locks 3 " in html) is ("locks" in stored)


def test_the_charts_are_drawn_from_the_pages_own_data(store, clash):
    html = page(store(clash))
    charts = re.findall(r'<canvas class="chart" data-chart="(\w+)"', html)
    assert charts == ["tokens", "latency", "rates"]
    assert len(data(html)["acquires"]["rows"]) == 6


def test_a_run_without_tokens_has_no_chart_of_them(store, story):
    story.op(100, 0, "invoke", "acquire", value={"lock": "orders"})
    story.op(110, 0, "ok", "acquire", value={"lock": "orders", "hold": "h1"})
    html = page(store(story, checked=False))
    assert "No grant carried a token" in html
    assert re.findall(r'data-chart="(\w+)"', html.partition("<script")[0]) == ["latency", "rates"]


def test_receipts_are_readable(store, calm):
    html = page(store(calm))
    assert re.search(
        r"<dt>states</dt><dd>\s*<dl class=\"tree\"><dt>redis-1</dt><dd>\s*T\s*</dd>", html
    )


def test_the_report_of_twenty_thousand_ops_stays_small(store, story):
    for turn in range(2500):
        story.turn(turn * 20, turn % 2)
    assert len(story.ops) == 20_000
    folder = store(story, checked=False)
    assert render(folder).stat().st_size < 2_000_000


def test_each_family_that_occurred_has_its_given_colour(store, calm):
    calm.fault(100, 200, "pause", ["redis-1"])
    calm.fault(300, 400, "quake", ["redis-1"])
    html = render(
        store(calm), {"pause": ("#010203", "#fdfcfb"), "kill": ("red", "pink")}.get
    ).read_text()
    assert html.count("--fault-pause: #010203;") == html.count("--fault-pause: #fdfcfb;") == 1
    assert "--fault-quake:" not in html and "--fault-kill:" not in html


@pytest.mark.parametrize(
    ("came", "words"),
    [
        ([3, 10], "It came again 3 of 10 times."),
        (None, ""),
        ([3], ""),
        ("3/10", ""),
        ([3, "10"], ""),
    ],
)
def test_the_story_of_real_clients_says_how_often_it_came_again(came, words):
    found = _hunt({"simulated": True, "hunt": {"story": ["1. a"], "came": came}})
    assert (found["story"], found["came"]) == (["a"], words)
