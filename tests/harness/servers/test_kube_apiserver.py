"""The command of an API server's node, which a real shell splits."""

from __future__ import annotations

import http.server
import subprocess
import sys
import threading

import pytest

from fencepost.harness.cluster import nodecode
from fencepost.harness.servers import kube_apiserver
from fencepost.harness.servers.kinds import KINDS
from fencepost.node.kind import Start

PROGRAMS = ("etcd", "setpriv")


@pytest.fixture
def start(tmp_path):
    """Run the command of a node with programs that only write their arguments down: those of etcd,
    and of each child."""
    for name in PROGRAMS:
        program = tmp_path / name
        program.write_text(
            f'#!/bin/sh\nfor word in "$@"; do echo "$word"; done > {program}.said.$$\n'
        )
        program.chmod(0o755)

    def run(**settings):
        command = kube_apiserver._command(Start("kubernetes-2", str(tmp_path), "1.20", settings))
        # All have ended when nothing holds their output any more.
        subprocess.run(command, env={"PATH": f"{tmp_path}:/bin"}, capture_output=True, check=True)
        return {
            name: sorted(one.read_text().splitlines() for one in tmp_path.glob(f"{name}.said.*"))
            for name in PROGRAMS
        }

    return run


@pytest.mark.parametrize("count", [1, 3])
def test_etcd_has_as_many_members_as_there_are_servers(start, count):
    [said] = start(SERVERS=str(count))["etcd"]
    members = said[said.index("--initial-cluster") + 1]
    assert members.split(",") == [
        f"kubernetes-{n}=http://kubernetes-{n}:2380" for n in range(1, count + 1)
    ]
    assert said[said.index("--name") + 1] == "kubernetes-2"


def test_the_api_server_is_started_again_and_dies_with_etcd(start):
    _, [*dies, shell, option, loop] = start()["setpriv"]
    assert (dies, shell, option) == (["--pdeathsig", "KILL"], "sh", "-c")
    assert loop.startswith("while :; do setpriv --pdeathsig KILL ")
    assert " launch " in loop and "--authorization-mode AlwaysAllow" in loop
    assert "--secure-port 6444 --bind-address 127.0.0.1" in loop


def test_its_front_speaks_plain_http_and_dies_with_etcd(start):
    [*dies, python, option, script, port, behind, token, address], _ = start()["setpriv"]
    assert (dies, python, option) == (["--pdeathsig", "KILL"], "python3", "-ISc")
    assert (port, behind, token) == ("6443", "6444", kube_apiserver.TOKEN)
    assert address == "0.0.0.0"
    assert "harness.servers.kube_front import main" in script


def test_its_front_runs_with_nothing_but_the_files_of_a_node(tmp_path):
    """Its command starts Python without site-packages, from the files that nodes get."""
    for path, content in nodecode.files([KINDS["kube-apiserver"]]).items():
        file = tmp_path / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
    script = kube_apiserver._FRONT.replace(kube_apiserver.HOME, str(tmp_path))
    # It ends at once, because it cannot listen there.
    words = [sys.executable, "-ISc", script, "0", "1", "token", "192.0.2.1"]
    ended = subprocess.run(words, capture_output=True, text=True, timeout=120)
    assert ended.stderr.splitlines()[-1].startswith("OSError: "), ended.stderr


def test_it_has_one_token_and_makes_its_own_certificates(start, tmp_path):
    start()
    assert (tmp_path / "tokens.csv").read_text() == f"{kube_apiserver.TOKEN},fencepost,1\n"


def test_a_token_that_the_server_refuses_is_an_error_with_its_words(monkeypatch):
    class Refuses(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            body = b'{"kind": "Status", "code": 401, "message": "Unauthorized"}'
            self.send_response(401)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    with http.server.HTTPServer(("127.0.0.1", 0), Refuses) as server:
        threading.Thread(target=server.handle_request, daemon=True).start()
        monkeypatch.setattr(kube_apiserver, "PORT", server.server_address[1])
        with pytest.raises(OSError, match=r"answered 401 to .*: Unauthorized"):
            kube_apiserver.KIND.health()


def test_a_server_that_was_never_started_does_not_answer(monkeypatch):
    monkeypatch.setattr(kube_apiserver, "PORT", 1)
    with pytest.raises(OSError):
        kube_apiserver.KIND.health()
