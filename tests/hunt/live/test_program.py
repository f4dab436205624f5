"""How a client's program is started."""

from __future__ import annotations

import sys

import pytest

from fencepost.hunt.live.program import Command, Program

CODE = "import os, sys; print(os.environ['GOMAXPROCS'], file=sys.stderr)"


@pytest.mark.parametrize(("ours", "given", "seen"), [(None, {}, 1), (None, {"GOMAXPROCS": "3"}, 3),
                                                     ("2", {}, 2)])  # fmt: skip
def test_one_thread_of_go_works_at_a_time_unless_the_environment_sets_it(
    tmp_path, monkeypatch, ours, given, seen
):
    monkeypatch.delenv("GOMAXPROCS", raising=False)
    if ours is not None:
        monkeypatch.setenv("GOMAXPROCS", ours)
    program = Program(Command((sys.executable, "-c", CODE), tmp_path, given), print)
    assert program.exit_code() == 0
    assert program.last_words == f": {seen}"
    program.close()
