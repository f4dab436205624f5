"""The fuzzer detects planted defects, and produces the same file for the same number."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from random import Random

import pytest

from fencepost.hunt.search import shrink
from tests.fuzz import doors as fuzzed
from tests.fuzz import run, spoil
from tests.fuzz.door import REFUSED, Door
from tests.fuzz.doors import SHRINKING, doors

SOUND = json.dumps({"a": [1, 2, {"b": "c"}], "d": None}).encode()


def door(hand):
    return Door("a door", SOUND, spoil.json_text, hand)


def test_a_reader_that_raises_has_a_defect():
    found = [
        run.tried(door(lambda content: json.loads(content)["a"] and ""), "1", n) for n in range(40)
    ]
    defects = [defect for defect in found if defect is not None]
    assert defects
    assert all(defect.door == "a door" and "Error" in defect.what for defect in defects)


def test_a_reader_that_accepts_everything_has_no_defect():
    assert not any(run.tried(door(lambda content: ""), "1", n) for n in range(20))


def test_a_reader_s_answer_to_a_file_is_classified_as_its_defect():
    defect = run.tried(door(lambda content: "exit code 1"), "1", 3)
    assert str(defect) == "a door, number 3: exit code 1"


def test_a_reader_that_takes_far_too_much_memory_has_a_defect_and_only_a_file_is_limited():
    before = resource.getrlimit(resource.RLIMIT_DATA)
    fine = door(lambda content: str(bytearray(run.A_FILE // 2)[:0], "ascii"))
    assert run.tried(fine, "1", 3) is None
    defect = run.tried(
        door(lambda content: str(bytearray(run.A_FILE + (64 << 20))[:0], "ascii")), "1", 3
    )
    assert defect is not None and "MemoryError" in defect.what
    assert resource.getrlimit(resource.RLIMIT_DATA) == before


def test_a_child_of_a_reader_has_the_limit_of_memory_too():
    # The limit counts from this process, which is larger than its child.
    code = f"bytearray({4 * run.A_FILE})"

    def hand(content):
        return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stderr

    defect = run.tried(door(hand), "1", 3)
    assert defect is not None and "MemoryError" in defect.what


def test_the_hunts_of_the_fuzzer_shrink_little_and_others_fully(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    before = shrink._MOST
    monkeypatch.setattr(fuzzed, "command", lambda *a, **k: f"exit code {shrink._MOST}")
    (one,) = (each for each in doors() if each.name == "hunt lock.py")
    assert one.hand(one.sound) == f"exit code {SHRINKING}"
    assert shrink._MOST == before > SHRINKING


def test_a_number_always_gives_the_same_file():
    files = []
    for n in (5, 5, 6):
        run.tried(door(lambda content: files.append(content) or ""), "seed", n)
    assert files[0] == files[1] != files[2]


@pytest.mark.parametrize("number", range(30))
def test_a_corrupted_file_differs_from_the_sound_one(number):
    random = Random(number)
    assert spoil.json_text(SOUND.decode(), random).encode() != SOUND
    assert spoil.lines(SOUND.decode() + "\n" + SOUND.decode(), random)


SEEDED = ("odd files and names", "odd files given", "odd files to write", "compose services")
"""Doors that draw what they do from the content: its file is only a seed."""


@pytest.mark.slow
def test_every_reader_accepts_its_sound_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for number, each in enumerate(doors()):
        (tmp_path / str(number)).mkdir()
        monkeypatch.chdir(tmp_path / str(number))
        REFUSED.clear()
        assert each.hand(each.sound) == "", each.name
        if each.name not in SEEDED:
            assert not REFUSED, each.name
