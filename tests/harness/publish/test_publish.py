"""The results folder as a static site: every link leads to a page, and its size is bounded."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from urllib.parse import unquote

import pytest

from fencepost.harness.command import app
from fencepost.harness.errors import BadArguments, Crashed
from fencepost.harness.publish import documents, publish, register
from fencepost.harness.results import results
from fencepost.workloads.scenarios.register.rows import NOT_SHOWN, ROWS
from tests.report.matrices import cell, violated
from tests.report.matrices import run as counted
from tests.report.matrices import stored as matrix_of

ROOT = Path(__file__).parents[3]
BOUND = 3_750_000


@pytest.fixture(autouse=True)
def root(monkeypatch, tmp_path):
    monkeypatch.setenv("FENCEPOST_RESULTS", str(tmp_path / "results"))
    (tmp_path / "results").mkdir()
    return tmp_path / "results"


def stored_run(test, valid=True, size=1000):
    folder = results.create(test)
    results.write(folder / "test.json", {"name": test, "lock": {"name": "redis"}, "seed": 3})
    checkers = {"resource": {"valid": valid, "summary": "<b>said</b>"}}
    (folder / "results.json").write_text(
        json.dumps({"valid": valid, "checkers": checkers, "stats": {"holds": 4}})
    )
    (folder / "report.html").write_text("<p>whole</p>" + " " * size)
    return folder


def matrix_with(*runs):
    folder = results.create("matrix")
    rows = [counted(10) | {"run": f"../../{one.parent.name}/{one.name}"} for one in runs]
    results.write(
        folder / "matrix.json", matrix_of(cell(*rows), cell(violated("data", 1), fault="kill"))
    )
    links = "".join(f'<a href="{row["run"]}/report.html">x</a>' for row in rows)
    (folder / "report.html").write_text(links + '<a href="matrix.json">x</a>')
    return folder


def build(to, docs=ROOT / "none", most=BOUND):
    publish.build(to, docs, most, lambda words: None)
    return to


def dead_links(site):
    found = []
    for page in site.rglob("*.html"):
        for href in re.findall(r'(?:href|src)="([^"#][^"]*)"', page.read_text(encoding="utf-8")):
            if href.startswith(("http:", "https:", "data:")):
                continue
            target = (page.parent / unquote(href.split("#")[0])).resolve()
            if not target.is_file() or not target.is_relative_to(site.resolve()):
                found.append(f"{page.relative_to(site)}: {href}")
    return found


def test_every_link_leads_to_a_page_of_the_site(tmp_path):
    matrix_with(stored_run("one"), stored_run("two words & more", False))
    site = build(tmp_path / "site", ROOT / "docs", 10_000_000)
    assert dead_links(site) == []
    assert (site / "docs" / "findings.html").exists()
    assert len(list(site.glob("runs/*/*/report.html"))) == 3
    assert not any('href="/' in page.read_text() for page in site.rglob("*.html"))


def test_a_run_that_does_not_fit_has_a_summary_and_its_place_is_kept(tmp_path):
    kept = stored_run("broken", False, size=1_200_000)
    left = stored_run("fine", True, size=1_200_000)
    matrix_with(kept, left)
    site = build(tmp_path / "site")
    assert "whole" in (site / "runs" / "broken" / kept.name / "report.html").read_text()
    summary = (site / "runs" / "fine" / left.name / "report.html").read_text()
    assert "A summary. The full report" in summary and "&lt;b&gt;said" in summary
    assert "1 of 2 runs have their full report" in (site / "index.html").read_text()
    assert dead_links(site) == []
    assert sum(path.stat().st_size for path in site.rglob("*") if path.is_file()) <= BOUND


def test_a_run_that_does_not_fit_at_all_is_omitted_and_named(tmp_path):
    for number in range(3):
        stored_run(f"run-{number}")
    register.write(tmp_path / "register", ROWS, NOT_SHOWN)
    room = publish._ROOM + publish._size_of(tmp_path / "register")
    site = build(tmp_path / "site", most=room + 2 * publish._SUMMARY_BYTES)
    assert len(list(site.glob("runs/*/*"))) == 2
    assert "1 older ones" in " ".join((site / "index.html").read_text().split())


def test_a_bound_that_the_documents_break_is_refused_and_nothing_is_written(tmp_path):
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "long.md").write_text("word " * 600_000)
    with pytest.raises(BadArguments, match="raise --most"):
        build(tmp_path / "site", docs, 2_000_000)
    assert not (tmp_path / "site").exists() and not list(tmp_path.glob(".site*"))


def test_a_report_that_is_a_link_out_of_the_folder_is_not_published(tmp_path):
    (tmp_path / "secret").write_text("secret")
    folder = stored_run("linked")
    (folder / "report.html").unlink()
    (folder / "report.html").symlink_to(tmp_path / "secret")
    site = build(tmp_path / "site")
    assert "secret" not in (site / "runs" / "linked" / folder.name / "report.html").read_text()


def test_a_site_is_replaced_and_nothing_else_is(tmp_path):
    stored_run("one")
    site = build(tmp_path / "site")
    (site / "runs" / "old").mkdir()
    build(site)
    assert not (site / "runs" / "old").exists()
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "thesis").write_text("years")
    with pytest.raises(BadArguments, match=r"has files and is not a fencepost site"):
        build(mine)
    (tmp_path / "link").symlink_to(site)
    with pytest.raises(BadArguments, match="is not a folder"):
        build(tmp_path / "link")
    with pytest.raises(BadArguments, match="contains the results folder"):
        build(tmp_path / "results")
    assert [path.name for path in mine.iterdir()] == ["thesis"]


def test_a_site_that_cannot_be_put_in_its_place_leaves_the_one_of_before(tmp_path, monkeypatch):
    stored_run("one")
    site = build(tmp_path / "site")
    (site / "runs" / "old").mkdir()
    rename = Path.rename

    def full(self, to):
        if to == site and (self / "runs" / "one").exists() and not (self / "runs" / "old").exists():
            raise OSError(28, "No space left on device")
        return rename(self, to)

    monkeypatch.setattr(publish, "exchange", lambda one, other: False)
    monkeypatch.setattr(Path, "rename", full)
    with pytest.raises(Crashed, match="No space left"):
        build(site)
    assert (site / "runs" / "old").exists() and (site / "index.html").exists()
    assert [one.name for one in tmp_path.iterdir() if one.name.startswith(".")] == []


# It ends before the rename of this number.
ENDS = """
import os, signal, sys
from pathlib import Path
from fencepost.harness.publish import publish

left = int(sys.argv[3])

def end(event, arguments):
    global left
    left -= event == "os.rename"
    if left < 0:
        os.kill(os.getpid(), signal.SIGKILL)

sys.addaudithook(end)
publish._put(*map(Path, sys.argv[1:3]))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux exchanges folders")
@pytest.mark.parametrize("renames", [0, 1, 2])
def test_a_site_is_in_its_place_whenever_its_writer_is_killed(tmp_path, renames):
    made, site = tmp_path / "made", tmp_path / "site"
    for folder in (made, site):
        folder.mkdir()
        (folder / "index.html").write_text(folder.name)
    subprocess.run([sys.executable, "-c", ENDS, made, site, str(renames)], check=False)
    assert (site / "index.html").read_text() in ("made", "site")


def test_a_folder_that_cannot_be_made_is_one_sentence(tmp_path, monkeypatch, capsys):
    (tmp_path / "file").write_text("")
    with pytest.raises(Crashed, match=r"cannot write the site .*: Not a directory"):
        build(tmp_path / "file" / "site")
    monkeypatch.setattr(
        sys, "argv", ["fencepost", "site", str(tmp_path / "s"), "--results", "none"]
    )
    assert app.run() == 254
    assert "the results folder none does not exist" in capsys.readouterr().err


def test_a_document_keeps_its_links_and_shows_html_as_text():
    title, body = documents.rendered(
        "# A title\n<!-- table: x -->\n[b](b.md#c-d) [code](../x.py) [out](https://e.org)\n"
        "[j](javascript:x)\n\n"
        "## C d\n\n<script>x</script>\n\n| a |\n| --- |\n| 1 |\n",
        {"b"},
    )
    assert title == "A title" and 'id="c-d"' in body
    assert 'href="b.html#c-d"' in body and 'href="https://e.org"' in body
    assert "x.py" not in body and 'href="javascript' not in body
    assert "<script>" not in body and "table: x" not in body
    assert '<div class="wide"><table>' in body
