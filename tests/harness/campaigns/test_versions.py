"""Rows on several versions of their package: outcomes, environments, and errors.

The installer is replaced.
"""

from __future__ import annotations

import dataclasses
import json
import os
import sys

import pytest

from fencepost.harness.campaigns import environments, versions
from fencepost.harness.campaigns.environments import Environment
from fencepost.harness.command import app
from fencepost.harness.errors import BadArguments, Crashed
from fencepost.workloads.scenarios.register import row as register_row
from fencepost.workloads.scenarios.register.rows import ROWS
from fencepost.workloads.scenarios.register.versions import Packages

SCRIPT = '''"""Lockling.

Needs: pip install lockling==2.0; no server.
"""
import os
try:
    import lockling
    version = lockling.VERSION
except ImportError:
    version = os.environ["LOCKLING"]
assert version[0] not in "12", f"shown in {version}"
if version.startswith("4"):
    raise OSError("no server")
'''
ROW = dataclasses.replace(
    ROWS[0], name="lockling-stuck", software="Lockling, Lock", package="lockling",
    versions=("2.0",), mended="3.0", modules=(), programs=(), track_record="",
)  # fmt: skip
SCRIPTS = register_row.SCRIPTS
NEWEST = {"1.*": "1.5", "2.*": "2.1", "3.*": "3.0", "4.*": "4.0"}


@pytest.fixture(autouse=True)
def lockling(monkeypatch, tmp_path):
    (tmp_path / "lockling_stuck.py").write_text(SCRIPT)
    monkeypatch.setattr(register_row, "SCRIPTS", tmp_path)
    monkeypatch.setattr(versions, "ROWS", (ROW,))
    monkeypatch.setenv("FENCEPOST_RESULTS", str(tmp_path / "results"))
    environments._made.cache_clear()
    yield
    environments._made.cache_clear()


@pytest.fixture
def installed(monkeypatch):
    """Replace pip. Return the list of requirements that it was given."""
    asked = []

    def pip(folder, packages):
        (one,) = packages.wanted
        asked.append(one)
        version = one.partition("==")[2]
        if version not in NEWEST:
            raise Crashed(f"pip cannot install {one}: no index that answered has this package")
        found = NEWEST[version]
        return Environment(sys.executable, {**os.environ, "LOCKLING": found}, {"lockling": found})

    monkeypatch.setattr(environments, "pip", pip)
    return asked


@pytest.fixture
def call(monkeypatch, capsys):
    def called(*words):
        monkeypatch.setattr(sys, "argv", ["fencepost", "track-record", *map(str, words)])
        code = app.run()
        said = capsys.readouterr()
        return code or 0, said.out, said.err

    return called


def lines(said):
    return [json.loads(line) for line in said.splitlines()]


def test_a_table_has_a_column_for_each_version_that_was_installed(installed, call):
    code, said, _ = call("--versions", "lockling=1..3")
    assert installed == ["lockling==1.*", "lockling==2.*", "lockling==3.*"]
    heads, row = said.splitlines()[-3:-1]
    assert heads.split() == ["row", *["lockling", "1.5", "lockling", "2.1", "lockling", "3.0"]]
    assert row.split() == ["lockling-stuck", "seen", "seen", "not", "seen"]
    assert code == 0  # the register has 3.0 as mended, and nothing about 1.5


def test_an_outcome_that_the_register_denies_fails(installed, call, monkeypatch):
    for changed in ({"mended": ""}, {"mended": "2.1"}):
        monkeypatch.setattr(versions, "ROWS", (dataclasses.replace(ROW, **changed),))
        assert call("--versions", "Lockling=2..3")[0] == 1


def test_a_version_that_cannot_be_played_is_unknown_and_says_why(installed, call):
    code, said, _ = call("--versions", "lockling=3,4,99", "--json")
    *_, mended, broken, missing, result = lines(said)
    assert mended["outcome"] == "not seen" and mended["versions"] == {"lockling": "3.0"}
    assert "on lockling 4.0 the script ends without an answer: OSError" in broken["crashed"]
    assert missing["crashed"].endswith("no index that answered has this package")
    assert code == 2 and result["words"] == "3 defects: 1 not seen, 2 not played"


def test_a_campaign_resumes_with_what_is_left(installed, call, tmp_path):
    call("--versions", "lockling=1..3", "--json")
    (file,) = (tmp_path / "results" / "track-record").glob("2*/campaign.jsonl")
    file.write_bytes(file.read_bytes().splitlines(keepends=True)[0])
    installed.clear()
    environments._made.cache_clear()
    code, said, _ = call("--resume", file.parent, "--json")
    assert code == 0 and installed == ["lockling==2.*", "lockling==3.*"]
    assert len(lines(said)[-1]["rows"]) == 3


def test_an_environment_is_made_once_and_a_failure_is_not_repeated(installed):
    for _ in range(2):
        environments.environment(Packages("pypi", ("lockling==1.*",), ("lockling",)))
        with pytest.raises(Crashed, match="no index"):
            environments.environment(Packages("pypi", ("lockling==9.*",), ("lockling",)))
    assert installed == ["lockling==1.*", "lockling==9.*"]


def test_a_program_that_is_not_on_this_machine_is_named_before_anything_is_installed(
    installed, call, monkeypatch
):
    row = dataclasses.replace(ROW, programs=("no-such-server",))
    monkeypatch.setattr(versions, "ROWS", (row,))
    code, said, _ = call("--versions", "lockling=1", "--json")
    assert code == 2 and not installed
    assert "its script needs no-such-server, which this machine lacks" in said


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--versions", "lockling"), "'lockling' names no versions (for example: redis-py=5..8)"),
        (("--versions", "lockling=a..b"), "'a..b' is not a version"),
        (("--versions", "locklin=5"), "there is no software 'locklin'"),
        (("--versions", "kazoo=2"), "kazoo-timeout, kazoo-no-deadline: it runs on nodes"),
        (("--versions", "lockling=5", "--only", "x"), "no row begins with x"),
        (("--versions", "lockling=5", "--simulated"), "--simulated cannot be combined"),
        (("--versions", "lockling=5", "--seed", "3"), "--seed cannot be combined"),
        (("--versions", "lockling=5", "--resume", "latest"), "--versions cannot be combined"),
    ],
)
def test_wrong_words_are_refused_in_one_sentence(installed, call, words, told):
    code, _, err = call(*words)
    assert code == 254 and told in err.replace("\n", " ") and not installed


def test_rows_of_a_server_and_of_go_say_together_that_no_registry_has_their_version(monkeypatch):
    monkeypatch.setattr(versions, "ROWS", ROWS)
    monkeypatch.setattr(register_row, "SCRIPTS", SCRIPTS)
    with pytest.raises(BadArguments) as refused:
        assert versions.Plan(("etcd=3",)).cells
    told = str(refused.value)
    assert "etcd-expired-waiter" in told and "etcd-go-mutex-expired" in told
    assert told.count("no package of PyPI or npm") == 1


def test_a_row_of_a_server_says_that_no_registry_has_its_version(monkeypatch):
    monkeypatch.setattr(versions, "ROWS", (dataclasses.replace(ROW, ecosystem=""),))
    with pytest.raises(BadArguments, match="its script needs a server, and no package"):
        assert versions.Plan(("lockling=1",)).cells


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        (
            "ERROR: Could not find a version that satisfies the requirement a==9.* (from versions: "
            "1.0, 2.1)\nERROR: No matching distribution found for a==9.*",
            "no index that answered has this release (the newest is 2.1)",
        ),
        (
            "WARNING: Retrying\nERROR: Could not find a version that satisfies the requirement a "
            "(from versions: none)\n",
            "no index that answered has this package",
        ),
        (
            "npm error code ETARGET\nnpm error notarget No matching version found for a@9.\n",
            "No matching version found for a@9.",
        ),
        ("npm ERR! errno 1\nnpm ERR! request failed\n", "request failed"),
        ("a\nb c\n", "b c"),
        ("", "it said nothing"),
    ],
)
def test_the_error_of_an_installer_becomes_one_sentence(said, reason):
    assert environments.reason(said) == reason
