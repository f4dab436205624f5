"""Histories of jepsen.independent, whose values are [key, value]."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fencepost.checker.lincheck.command import main
from fencepost.checker.lincheck.model import frozen

_CASES = Path(__file__).resolve().parents[4] / "shared" / "histories" / "lincheck-cases"

_CODES = {"true": 0, "false": 1, "254": 254}

REGISTERS = """
{:process 0, :type :invoke, :f :write, :value [1 3]}
{:process 0, :type :ok, :f :write, :value [1 3]}
{:process 1, :type :invoke, :f :write, :value [2 4]}
{:process 1, :type :ok, :f :write, :value [2 4]}
{:process 0, :type :invoke, :f :read, :value [1 nil]}
{:process 0, :type :ok, :f :read, :value [1 %d]}
{:process 0, :type :invoke, :f :read, :value [2 nil]}
{:process 0, :type :ok, :f :read, :value [2 nil]}
"""
TAG = "#jepsen.independent.Tuple "
WRITES = """
{:process 0, :type :invoke, :f :write, :value TAG[1 3]}
{:process 0, :type :ok, :f :write, :value TAG[1 3]}
{:process 0, :type :invoke, :f :cas, :value TAG[1 [3 4]]}
{:process 0, :type :ok, :f :cas, :value TAG[1 [3 4]]}
"""


def check(tmp_path, capsys, text, *argv):
    file = tmp_path / "history.edn"
    file.write_text(text)
    code = main([str(file), *argv])
    return code, "".join(capsys.readouterr())


def test_each_key_is_an_object_of_its_own(tmp_path, capsys):
    assert check(tmp_path, capsys, REGISTERS % 3, "--model", "register", "--keyed")[0] == 0
    code, said = check(tmp_path, capsys, REGISTERS % 4, "--model", "register", "--keyed")
    assert code == 1
    assert json.loads(said)["failed"]["line"] == 6


def test_without_keyed_a_read_of_a_key_is_refused(tmp_path, capsys):
    code, said = check(tmp_path, capsys, REGISTERS % 3, "--model", "register")
    assert code == 254
    assert ":6: read is invoked with [1, None]" in said and said.endswith("add --keyed\n")


def test_a_tagged_value_is_refused_without_keyed(tmp_path, capsys):
    text = WRITES.replace("TAG", TAG)
    code, said = check(tmp_path, capsys, text, "--model", "cas-register")
    assert (code, "add --keyed" in said) == (254, True)


def test_a_tagged_history_is_read_with_keyed(tmp_path, capsys):
    text = WRITES.replace("TAG", TAG)
    assert check(tmp_path, capsys, text, "--model", "cas-register", "--keyed")[0] == 0
    wrong = text.replace("[3 4]", "[2 4]")
    assert check(tmp_path, capsys, wrong, "--model", "cas-register", "--keyed")[0] == 1


def test_sets_and_queues_can_be_keyed_and_locks_cannot(tmp_path, capsys):
    sets = """
{:process 0, :type :invoke, :f :add, :value [:a 1]}
{:process 0, :type :ok, :f :add, :value [:a 1]}
{:process 0, :type :invoke, :f :read, :value [:b nil]}
{:process 0, :type :ok, :f :read, :value [:b [%s]]}
"""
    assert check(tmp_path, capsys, sets % "", "--model", "set", "--keyed")[0] == 0
    assert check(tmp_path, capsys, sets % 1, "--model", "set", "--keyed")[0] == 1
    assert check(tmp_path, capsys, sets % "", "--model", "set")[0] == 254
    queue = sets.replace(":add", ":enqueue").replace(":read", ":dequeue") % ""
    assert check(tmp_path, capsys, queue, "--model", "fifo-queue")[0] == 254
    code, said = check(tmp_path, capsys, sets % "", "--model", "mutex", "--keyed")
    assert code == 254 and "--keyed is for register, cas-register, set" in said


def test_with_keyed_a_value_without_a_key_is_refused(tmp_path, capsys):
    code, said = check(
        tmp_path, capsys, REGISTERS.replace("[1 3]", "3") % 3, "--model", "register", "--keyed"
    )
    assert code == 254 and "with --keyed, write needs [key, value], not 3" in said


def test_a_register_of_pairs_needs_no_option(tmp_path, capsys):
    text = (REGISTERS % 3).replace(":read, :value [1 nil]", ":read, :value nil")
    text = "".join(text.splitlines(keepends=True)[:3] + text.splitlines(keepends=True)[5:7])
    assert check(tmp_path, capsys, text, "--model", "register")[0] == 0


def test_a_map_equals_no_list_and_a_decimal_no_other():
    assert frozen({"a": 1}) != frozen(["map", ["a", 1]])
    assert frozen({}) != frozen(["map"]) and frozen({}) != frozen([])


@pytest.mark.parametrize(
    ("written", "read", "valid"),
    [
        ("12345678901234567890.1M", "12345678901234567890.2M", False),
        ("12345678901234567890.1M", "12345678901234567890.1M", True),
        ("123456789012345678901N", "123456789012345678902N", False),
        ("{:a 1}", '["map" ["a" 1]]', False),
        ("{:a 1}", "{:a 1}", True),
    ],
)
def test_values_that_differ_are_told_apart(tmp_path, capsys, written, read, valid):
    text = f"""
{{:process 1, :type :invoke, :f :write, :value {written}}}
{{:process 1, :type :ok, :f :write, :value {written}}}
{{:process 1, :type :invoke, :f :read, :value nil}}
{{:process 1, :type :ok, :f :read, :value {read}}}
"""
    assert check(tmp_path, capsys, text, "--model", "register")[0] == (0 if valid else 1)


def _cases():
    if not _CASES.is_dir():
        reason = "the cases are not beside the project"
        return [pytest.param(None, marks=pytest.mark.skip(reason=reason))]
    return [pytest.param(folder, id=folder.name) for folder in sorted(_CASES.iterdir())]


@pytest.mark.parametrize("folder", _cases())
def test_a_known_case_gets_its_known_verdict(folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    words = (folder / "command.txt").read_text().split()
    code = main(words[words.index("lincheck") + 1 :])
    expected = (folder / "expected.txt").read_text()
    assert code in [meant for word, meant in _CODES.items() if word in expected]
