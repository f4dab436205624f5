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


def test_a_cas_of_a_key_is_refused_without_keyed_though_no_key_is_read(tmp_path, capsys):
    text = WRITES.replace("TAG", "")
    code, said = check(tmp_path, capsys, text, "--model", "cas-register")
    assert code == 254 and "[key, [old, new]]" in said and said.endswith("add --keyed\n")
    assert check(tmp_path, capsys, text, "--model", "cas-register", "--keyed")[0] == 0


def test_a_keyword_can_be_the_value_at_the_start(tmp_path, capsys):
    text = """
{:process 0, :type :invoke, :f :read, :value nil}
{:process 0, :type :ok, :f :read, :value :a}
"""
    for init, code in ((":a", 0), (":b", 1), ('"a"', 1)):
        assert check(tmp_path, capsys, text, "--model", "register", "--init", init)[0] == code


def test_two_equal_keys_of_a_map_and_a_ratio_to_zero_are_refused(tmp_path, capsys):
    for wrong, why in (('{:a 1 "a" 2}', "two keys of a map are equal"), ("1/0", "divides by zero")):
        text = f"{{:process 0, :type :invoke, :f :write, :value {wrong}}}"
        code, said = check(tmp_path, capsys, text, "--model", "register")
        assert code == 254 and why in said


@pytest.mark.parametrize("digits", ["12345678901234567890.2", "0.1"])
def test_numbers_of_jsonl_are_exact(tmp_path, capsys, digits):
    file = tmp_path / "history.jsonl"
    lines = [("invoke", "write", "12345678901234567890.1"), ("ok", "write", "null")]
    lines += [("invoke", "read", "null"), ("ok", "read", digits)]
    file.write_text(
        "".join(
            f'{{"process": 0, "type": "{type}", "f": "{f}", "value": {value}}}\n'
            for type, f, value in lines
        )
    )
    assert main([str(file), "--model", "register"]) == 1


MUTEX = """
{:process 0, :type :invoke, :f :acquire}
{:process 0, :type :ok, :f :acquire}
{:process 0, :type :invoke, :f :release}
{:process 0, :type :fail, :f :release, :error ERROR}
{:process PROCESS, :type :invoke, :f :acquire}
{:process PROCESS, :type :ok, :f :acquire}
"""


@pytest.mark.parametrize("model", ["mutex", "owner-mutex", "fenced-mutex", "lease-mutex"])
@pytest.mark.parametrize(
    ("error", "code"), [(":unreachable", 1), ('["unreachable" "no route"]', 1), (":timeout", 0)]
)
def test_a_release_that_reached_no_server_ends_no_hold(tmp_path, capsys, model, error, code):
    text = MUTEX.replace("ERROR", error).replace("PROCESS", "1")
    arguments = ("--model", model, "--failed-release", "ended")
    assert check(tmp_path, capsys, text, *arguments)[0] == code


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
        ("{:a 1}", '{"a" 1}', False),
        ("#{1}", "[1]", False),
        ("#{1 true}", "#{1}", False),
        (":a", '"a"', False),
        (":a", "a", False),
        (":a", '":a"', False),
        (":a", ":a", True),
        (r"\a", '"a"', False),
        ("2/3", '"2/3"', False),
        ("2/3", "4/6", True),
        ("2/3", "3/4", False),
        ("12345678901234567890.1", "12345678901234567890.2", False),
        ("1e400", "1e500", False),
        ("0.10", "0.1", True),
        ("true", "1", False),
        ("true", ":true", False),
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
