"""The page of a matrix is one offline file: findings, a letter in each cell, links to its runs."""

from __future__ import annotations

import csv
import json
import re
from html.parser import HTMLParser

import pytest

from fencepost.report.pages import heatmap
from fencepost.report.pages.matrix import render, with_sums
from fencepost.report.stored import ReportError
from fencepost.report.words.cells import STATES
from fencepost.report.words.findings import findings, headline
from tests.report.matrices import COLUMNS, cell, led, run, stored, violated

CELLS = (
    cell(run(1000)),
    cell(violated("clients", 30), violated("clients", 10), fault="pause:client"),
    cell(violated("service", 12, run="../../matrix-redis/2/"), fault="kill"),
    cell(fault="power"),
    cell(run(2000), guard="fenced"),
    cell(violated("clients", 4), fault="pause:client", guard="fenced"),
    cell(violated("data", 3), fault="kill", guard="fenced"),
    cell(reason="it cannot <be>", fault="power", guard="fenced"),
)


class Page(HTMLParser):
    """The parts of a page: its text, ids, targets of links, classes of its tiles."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.text, self.ids, self.links, self.outside = "", [], [], []
        self.tiles: list[str] = []
        self._cell = ""
        self._style = 0
        self.feed(html)
        self.text = " ".join(self.text.split())

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        self._style += tag == "style"
        self.ids += [found["id"]] if "id" in found else []
        self.links += [found["href"]] if tag == "a" else []
        self.outside += [value for name, value in attrs if name in ("src", "srcset")]
        if tag == "td":
            self._cell = found.get("class") or ""
        if "tile" in (found.get("class") or "").split():
            self.tiles.append(self._cell)

    def handle_endtag(self, tag):
        self._style -= tag == "style"

    def handle_data(self, data):
        if not self._style:
            self.text += f"{data} "


@pytest.fixture
def page(tmp_path):
    def made(*cells):
        (tmp_path / "matrix.json").write_text(json.dumps(stored(*cells)))
        return Page(render(tmp_path).read_text(encoding="utf-8"))

    return made


def texts(*cells):
    return [one["text"] for sort in findings(with_sums(cells), COLUMNS) for one in sort]


def test_the_page_starts_with_the_results(page):
    found = page(*CELLS)
    words = "Of 6 cells, the service broke its promise in 1 and data was damaged in 1."
    assert words in found.text
    place = found.text.index
    assert place("What was found") < place("Every lock under every fault") < place("How to read it")


def test_a_cell_has_its_colour_and_its_letter(page):
    found = page(*CELLS)
    assert found.tiles == [
        "kept", "believed", "broken", "untested", "kept", "believed", "damaged", "untested",
    ]  # fmt: skip
    assert [STATES[name].sign for name in found.tiles] == list("KCB–KCD–")
    assert len({one.sign for one in STATES.values()}) == len(STATES)


def test_a_click_opens_the_cell_with_links_to_the_reports_of_its_runs(page):
    found = page(*CELLS)
    opened = [link[1:] for link in found.links if link.startswith("#cell-")]
    assert len(opened) == 6 and set(opened) <= set(found.ids)
    reports = [link for link in found.links if link.endswith("report.html")]
    assert reports.count("../../matrix-redis/20260102T030405.000000Z/report.html") == 6
    assert "../../matrix-redis/2/report.html" in reports


@pytest.mark.parametrize("place", ["javascript:alert(1)", "/etc", "https://elsewhere/x"])
def test_a_link_that_would_lead_elsewhere_is_left_out(page, place):
    found = page(cell(run(run=place)))
    assert {link for link in found.links if not link.startswith("#")} == {
        "matrix.json", "matrix.csv",
    }  # fmt: skip


def test_the_page_needs_nothing_from_elsewhere_and_escapes_its_data(page):
    found = page(*({**one, "lock": "<script>x</script>"} for one in CELLS))
    assert found.outside == []
    assert "<script>x</script>" in found.text


def test_the_findings_name_violations_with_their_rates_and_bounds():
    said = texts(*CELLS)
    assert said[0] == (
        "Under crashes, the service granted a lease twice with 1 of 1 lock: redis 6 per 1,000 "
        "holds (3.1 to 10)."
    )
    assert said[1] == (
        "Under crashes, guard fenced, data was damaged with 1 of 1 lock, though the service kept "
        "its promise: redis 3 per 1,000 holds (0.62 to 8.7)."
    )
    assert (
        "Under client pauses, guard none, a second client believed in 40 holds of redis; no damage "
        "was seen in 2,000 holds (95 %: at most 1.5 per 1,000, by the rule of three)."
    ) in said


def test_an_unobserved_violation_is_reported_as_that_and_with_its_bound():
    assert texts(cell(run(2000)), cell(run(1000), lock="etcd")) == [
        "Without faults, guard none, no violation was seen in 3,000 holds (95 %: at most 1 per "
        "1,000, by the rule of three): redis and etcd."
    ]


def test_a_lock_that_was_not_granted_again_or_hardly_is_a_finding():
    late = run(100, checkers={"liveness": False}, longest_s=6.5)
    said = texts(cell(run(1000)), cell(late, fault="kill"))
    assert said[0] == (
        "Under crashes, the lock was not granted again in time in 1 of 1 run of redis."
    )
    assert said[1] == (
        "Under crashes, redis gave less than half of the usual holds a second, redis 10 %; the "
        "longest time without a grant was 6.5 s."
    )


def test_a_service_that_broke_another_promise_is_named_by_its_checker():
    stolen = run(checkers={"ownership": False}, service={"ownership": False},
                 questions={"service": False})  # fmt: skip
    assert texts(cell(stolen, fault="kill")) == ["Under crashes, ownership says no of redis."]


def test_of_many_locks_the_most_and_the_least_are_named():
    rows = [cell(violated("data", n, holds=1000), lock=f"lock-{n}") for n in (1, 2, 3, 4)]
    assert texts(*rows) == [
        "Without faults, guard none, data was damaged with 4 of 4 locks, though no service broke "
        "its promise: from lock-1 1 per 1,000 holds (0.025 to 5.6) to lock-4 4 per 1,000 holds "
        "(1.1 to 10)."
    ]


def test_a_lock_that_was_never_granted_is_reported_as_that():
    assert texts(cell(run(0, granted=0))) == ["Without faults, the lock was never granted: redis."]


def test_each_sort_of_finding_has_some_at_the_top_and_the_rest_below(page):
    faults = ("kill", "power", "clock", "disk")
    broken = [cell(violated("service", 1), fault=fault) for fault in faults]
    found = page(*broken, cell(run()))
    top, rest = found.text.split("2 more")
    assert top.count("granted a lease twice with") == rest.count("granted a lease twice with") == 2
    assert "Without faults, guard none, no violation was seen" in top


def test_a_matrix_of_which_nothing_was_run_says_so(page):
    assert headline(with_sums([cell()])) == "Nothing was run yet."
    assert "Nothing was run yet." in page(cell()).text


def test_a_matrix_whose_faults_waited_for_their_moment_says_so(tmp_path):
    content = stored(*CELLS)
    for aim in (False, True):
        content["plan"]["aim"] = aim
        (tmp_path / "matrix.json").write_text(json.dumps(content))
        said = Page(render(tmp_path).read_text()).text
        assert ("Faults were triggered during a hold" in said) == aim


def test_a_row_that_cannot_be_says_why_once(page):
    reason = "guard fenced needs a fencing token"
    row = [cell(reason=reason, fault=fault, guard="fenced") for fault in ("none", "kill")]
    found = page(cell(run()), cell(run(), fault="kill"), *row)
    assert found.text.count(reason) == 1
    assert len(found.tiles) == 2


def test_the_table_next_to_it_has_a_row_a_cell(page, tmp_path):
    page(*CELLS)
    rows = list(csv.DictReader((tmp_path / "matrix.csv").open()))
    assert [row["state"] for row in rows][:4] == ["kept", "believed", "broken", "untested"]
    kill = rows[2]
    assert (kill["lock"], kill["fault"], kill["service"]) == ("redis", "kill", "false")
    assert (kill["service_count"], kill["service_per_1000"]) == ("12", "12.0")
    assert (rows[0]["service_at_most"], rows[7]["reason"]) == ("3.0", "it cannot <be>")


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"cells": [{}]}'])
def test_a_file_that_is_no_matrix_is_refused_with_its_name(tmp_path, content):
    (tmp_path / "matrix.json").write_text(content)
    with pytest.raises(ReportError, match=r"matrix.json cannot be read \("):
        render(tmp_path)


def test_the_colours_of_tiles_carry_dark_letters_legibly(page, tmp_path):
    page(*CELLS)
    html = (tmp_path / "report.html").read_text()
    colours = re.findall(r"--tile: #(\w{6});", html)
    assert len(colours) == 6

    def light(colour):
        parts = [int(colour[n : n + 2], 16) / 255 for n in (0, 2, 4)]
        linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
        return sum(w * p for w, p in zip((0.2126, 0.7152, 0.0722), linear, strict=True))

    ink = light("111111")
    # WCAG 2.2, 1.4.3: normal text needs a contrast of 4.5.
    assert all((light(one) + 0.05) / (ink + 0.05) >= 4.5 for one in colours)


def test_text_that_a_spreadsheet_takes_for_a_formula_begins_with_an_apostrophe():
    rows = [{"lock": "=HYPERLINK(1)", "holds": -3}, {"lock": "redlock", "holds": 2}]
    assert heatmap.csv_of(rows) == "lock,holds\n'=HYPERLINK(1),-3\nredlock,2\n"


BOTH = led(overlaps=2, overlap_longest_s=4.8, overlap_total_s=6.5, took_s={"cut": [2.0, 3.0]})
ELECTORS = (
    cell(run(30, leaders=led()), lock="kubernetes-client"),
    cell(
        violated("clients", 2, holds=30, leaders=BOTH), lock="kubernetes-client", fault="partition"
    ),
    cell(run(), lock="redis"),
    cell(run(), lock="redis", fault="partition"),
)


def test_electors_have_a_table_of_overlaps_and_take_overs(page):
    found = page(*ELECTORS)
    assert "Of 4 cells, two leaders worked at once in 1." in found.text
    assert (
        "Under partitions, guard none, two leaders worked at once with 1 of 1 elector: "
        "kubernetes-client after 2 of 8 changes of leader (3.2 % to 65 %), for at most 4.80 s."
    ) in found.text
    assert "take-over: resign take-over: cut" in found.text
    assert "kubernetes-client, partition, guard none 2 of 8 (3.2 % to 65 %) 4.80 s 6.50 s" in (
        found.text
    )
    assert "2.50 s, longest 3.00, of 2" in found.text
    assert "redis, partition, guard none 0 of" not in found.text
    # The tiles of electors have their own figures, and those of locks the holds per second.
    assert "overlap 4.80 s no leader" in found.text and "no overlap no leader" in found.text
    assert found.text.count("no leader") == 2


def test_a_matrix_of_locks_has_no_table_of_leaders(page):
    assert "Two leaders" not in page(*CELLS).text


def test_the_table_next_to_it_has_the_figures_of_electors(page, tmp_path):
    page(*ELECTORS)
    calm, cut, lock, _ = csv.DictReader((tmp_path / "matrix.csv").open())
    assert (cut["leader_overlap_longest_s_longest"], cut["take_over_cut_s_count"]) == ("4.8", "2")
    assert (calm["leader_overlaps_count"], lock["leader_overlaps_count"]) == ("0", "")
