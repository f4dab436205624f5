"""A results folder of its own for each test, and commands on it."""

from __future__ import annotations

import sys

import pytest

from fencepost import output
from fencepost.harness.command import app


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("FENCEPOST_RESULTS", str(tmp_path / "results"))
    return tmp_path / "results"


@pytest.fixture
def call(folder, monkeypatch, capsys):
    def called(*words):
        monkeypatch.setattr(sys, "argv", ["fencepost", *words])
        output.guard_output()
        code = app.run()
        said = capsys.readouterr()
        return code, said.out + said.err

    return called
