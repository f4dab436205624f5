"""The command of an API server's node, which a real shell splits."""

from __future__ import annotations

import subprocess

import pytest

from fencepost.harness.servers import kube_apiserver
from fencepost.node.kind import Start

PROGRAMS = ("etcd", "setpriv")


@pytest.fixture
def start(tmp_path, monkeypatch):
    """Run the command of a node with programs that only write their arguments down."""
    monkeypatch.setattr(kube_apiserver, "_LISTENS", tmp_path / "address")
    for name in PROGRAMS:
        program = tmp_path / name
        program.write_text(f'#!/bin/sh\nfor word in "$@"; do echo "$word"; done > {program}.said\n')
        program.chmod(0o755)

    def run(**settings):
        command = kube_apiserver._command(Start("kubernetes-2", str(tmp_path), "1.20", settings))
        # Both have ended when nothing holds their output any more.
        subprocess.run(command, env={"PATH": f"{tmp_path}:/bin"}, capture_output=True, check=True)
        return [(tmp_path / f"{name}.said").read_text().splitlines() for name in PROGRAMS]

    return run


@pytest.mark.parametrize("count", [1, 3])
def test_etcd_has_as_many_members_as_there_are_servers(start, count):
    said, _ = start(SERVERS=str(count))
    members = said[said.index("--initial-cluster") + 1]
    assert members.split(",") == [
        f"kubernetes-{n}=http://kubernetes-{n}:2380" for n in range(1, count + 1)
    ]
    assert said[said.index("--name") + 1] == "kubernetes-2"


def test_the_api_server_is_started_again_and_dies_with_etcd(start):
    _, said = start()
    *dies, shell, option, loop = said
    assert (dies, shell, option) == (["--pdeathsig", "KILL"], "sh", "-c")
    assert loop.startswith("while :; do setpriv --pdeathsig KILL ")
    assert " launch " in loop and "--authorization-mode AlwaysAllow" in loop


def test_it_has_one_token_and_makes_its_own_certificates(start, tmp_path):
    start()
    assert (tmp_path / "tokens.csv").read_text() == f"{kube_apiserver.TOKEN},fencepost,1\n"


def test_a_server_that_was_never_started_does_not_answer(tmp_path, monkeypatch):
    monkeypatch.setattr(kube_apiserver, "_LISTENS", tmp_path / "address")
    with pytest.raises(OSError, match="was not started on this node"):
        kube_apiserver.KIND.health()
