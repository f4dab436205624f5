"""The files of a campaign are read as one table, also after a kill and from earlier versions."""

from __future__ import annotations

import json

import pytest

from fencepost.harness.campaigns.campaign import resumed
from fencepost.harness.errors import BadArguments
from fencepost.report import campaign_files
from fencepost.report.campaign_files import Stored, append, kind, lines, mend, read, write
from fencepost.report.pages import defects, page
from fencepost.report.stored import ReportError

ROWS = [{"key": "a", "lock": "redis", "runs": []}, {"key": "b", "lock": "etcd", "runs": []}]


@pytest.fixture
def folder(tmp_path):
    write(tmp_path, Stored("matrix", {"seed": 7}, ROWS))
    return tmp_path


def test_a_line_belongs_to_its_row_and_the_last_versions_of_a_lock_count(folder):
    append(folder, {"row": "b", "number": 1, "versions": {"etcd": "3.4"}})
    append(folder, {"row": "b", "number": 2, "versions": {"etcd": "3.5"}})
    found = read(folder, "matrix")
    assert [len(row["runs"]) for row in found.rows] == [0, 2]
    assert found.versions == {"etcd": {"etcd": "3.5"}} and found.older == ""
    assert [row["number"] for row in found.flat] == [2]
    assert found.plan == {"seed": 7} and len(found.lines) == 2


def test_an_unfinished_last_line_is_ignored_and_cut_off_before_the_next(folder):
    append(folder, {"row": "a", "number": 1})
    with (folder / campaign_files.LINES).open("a") as file:
        file.write('{"row": "b", "num')
    assert [line["row"] for line in read(folder, "matrix").lines] == ["a"]
    mend(folder)
    append(folder, {"row": "b", "number": 1})
    assert [line["row"] for line in lines(folder / campaign_files.LINES)] == ["a", "b"]


@pytest.mark.parametrize("name", [campaign_files.ASKED, campaign_files.LINES])
def test_a_campaign_with_a_symbolic_link_is_not_resumed_and_its_target_stays(
    folder, tmp_path_factory, name
):
    victim = tmp_path_factory.mktemp("elsewhere") / "notes.txt"
    victim.write_text("one\ntwo without an end")
    (folder / name).unlink()
    (folder / name).symlink_to(victim)
    if name == campaign_files.ASKED:
        victim.write_text('{"schema": 2, "kind": "matrix", "plan": {}, "rows": []}')
    before = victim.read_text()
    with pytest.raises(BadArguments, match="is a symbolic link or no regular file"):
        resumed(str(folder), "matrix", lambda plan: None, lambda words: None)
    assert victim.read_text() == before


def test_the_kind_is_read_without_the_rest_and_is_empty_elsewhere(folder, tmp_path):
    assert kind(folder) == "matrix"
    (tmp_path / "other").mkdir()
    assert kind(tmp_path / "other") == ""
    (tmp_path / "other" / "sweep.json").write_text("{}")
    assert kind(tmp_path / "other") == "sweep"


@pytest.mark.parametrize(
    ("changes", "line", "said"),
    [
        ({"schema": 9}, "", "its version is 9, and this fencepost knows 2"),
        ({"kind": "sweep"}, "", "it is of a sweep"),
        ({"rows": 7}, "", "cannot be read"),
        ({"rows": [{}]}, "", "cannot be read .'key'."),
        ({}, '{"row": "z", "number": 1}', "cannot be read .'z'."),
        ({}, '{"row": "a"}', "missing required field `number`"),
        ({}, '{"row": "a", "number": 1, "run": 5}', "Expected `str`, got `int`"),
        (
            {},
            '{"row": "a", "number": 1, "holds": "x"}',
            r"Expected `int`, got `str` - at `\$.holds",
        ),
        ({}, '{"row": "a", "number": 1, "observed": {"a": 7}}', "Expected"),
        ({"rows": [{"key": "a", "fault": []}]}, "", r"got `array` - at `\$.rows\[0\].fault"),
        ({"plan": {"x": {"values": [1], "shown": []}}}, "", "another number of values"),
        ({"plan": {"faults": 4}}, "", "`faults` is not a list"),
        ({}, "[]", "Expected `object`, got `array`"),
        ({}, "{", "cannot be read"),
    ],
)
def test_malformed_files_are_refused_with_the_reason(folder, changes, line, said):
    path = folder / campaign_files.ASKED
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))
    (folder / campaign_files.LINES).write_text(f"{line}\n" if line else "")
    with pytest.raises(ReportError, match=said):
        read(folder, "matrix")


def test_a_folder_without_a_campaign_is_refused(tmp_path):
    with pytest.raises(ReportError, match=r"campaign\.json cannot be read"):
        read(tmp_path, "matrix")


def test_a_missing_field_is_the_file_s_defect_and_another_error_is_ours(tmp_path):
    rows = [{"key": "a/hunt/Lock", "defect": "a", "way": "hunt", "class": "Lock", "runs": []}]
    write(tmp_path, Stored("defects", {"seed": 7}, rows))
    with pytest.raises(ReportError, match=r"the play cannot be shown .KeyError: 'family'.: its"):
        defects.render(tmp_path)
    with pytest.raises(TypeError), page.usable(tmp_path, "matrix"):
        raise TypeError
