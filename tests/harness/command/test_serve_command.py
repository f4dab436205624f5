"""`fencepost serve` reports why it cannot serve, and ends on a signal."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import threading
import urllib.request

import pytest
import uvicorn

from fencepost.harness.command import app, serve
from fencepost.harness.web import patience
from fencepost.harness.web.site import site


@pytest.fixture
def call(tmp_path, monkeypatch, capsys):
    (tmp_path / "results").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("FENCEPOST_RESULTS", raising=False)

    def called(*words):
        monkeypatch.setattr(sys, "argv", ["fencepost", "serve", *words])
        code = app.run()
        said = capsys.readouterr()
        return code, said.out + said.err

    return called


def test_a_port_that_is_in_use_is_a_sentence(call):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        code, said = call("--port", str(port))
    assert (code, said) == (
        255,
        f"fencepost: port {port} of 127.0.0.1 is in use: end its user, or name another with "
        "--port\n",
    )


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--host", "example.org"], "'example.org' is not an address to listen on"),
        (["--host", "192.0.2.1"], "192.0.2.1 is not an address of this machine"),
        (["--port", "70000"], "--port"),
        (["--results", "nowhere"], "the results folder nowhere does not exist"),
    ],
)
def test_an_error_of_serve_is_one_sentence(call, words, why, monkeypatch):
    monkeypatch.setenv("FENCEPOST_RESULTS", "results")
    code, said = call(*words)
    assert (code, why in said, "Traceback" in said) == (254, True, False)


def test_missing_packages_are_reported(call, monkeypatch):
    monkeypatch.setattr(serve, "find_spec", lambda name: None)
    code, said = call()
    assert code == 254
    assert "serve needs starlette and uvicorn: pip install 'fencepost[serve]'" in said


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_serves_until_it_is_ended_and_frees_its_port(tmp_path, number):
    command = [sys.executable, "-m", "fencepost", "serve", "--port", "0", "--results", tmp_path]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env=os.environ | {"PYTHONPATH": "src"}
    ) as server:
        assert server.stdout is not None
        address = re.search(r"http://127\.0\.0\.1:(\d+)", server.stdout.readline())
        assert address is not None
        with urllib.request.urlopen(address[0]) as answer:
            assert b"fencepost test redis" in answer.read()
        server.send_signal(number)
        assert server.wait(120) == 0
    with socket.create_server(("127.0.0.1", int(address[1]))):
        pass


HANGING = """
import sys, threading
from fencepost.harness.results import run_index
run_index.candidates = lambda test="": threading.Event().wait()
from fencepost.harness import __main__
sys.argv = ["fencepost", "serve", "--port", "0", "--results", "."]
__main__.main()
"""


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_one_signal_ends_it_while_a_page_waits_for_a_file_system_that_hangs(tmp_path, number):
    path = os.pathsep.join(map(os.path.abspath, ["src", "."]))
    with subprocess.Popen(
        [sys.executable, "-c", HANGING],
        stdout=subprocess.PIPE, text=True, cwd=tmp_path, env=os.environ | {"PYTHONPATH": path},
    ) as server:  # fmt: skip
        assert server.stdout is not None
        address = re.search(r"127\.0\.0\.1:(\d+)", server.stdout.readline())
        assert address is not None
        with socket.create_connection(("127.0.0.1", int(address[1]))) as asked:
            asked.sendall(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
            with urllib.request.urlopen(f"http://{address[0]}/style.css", timeout=120) as answer:
                assert answer.status == 200
            server.send_signal(number)
            try:
                assert server.wait(120) == 0
            finally:
                server.kill()


def test_a_client_that_sends_its_headers_slowly_is_cut_off(tmp_path, monkeypatch):
    monkeypatch.setenv("FENCEPOST_RESULTS", str(tmp_path))
    monkeypatch.setattr(patience, "PATIENCE_S", 0.3)
    server = uvicorn.Server(uvicorn.Config(site(), http=patience.Protocol, log_level="error"))
    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        port = listening.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port), 120) as slow:
            slow.sendall(b"GET /style.css HTTP/1.1\r\nHost: 127.0.0.1\r\n")
            assert slow.recv(99) == b""
        with socket.create_connection(("127.0.0.1", port), 120) as slow:
            slow.sendall(b"GET /style.css HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\nGET /st")
            with slow.makefile("rb") as answer:
                assert answer.read().startswith(b"HTTP/1.1 200 OK")  # until it is cut off
        server.should_exit = True
        thread.join(120)
        assert not thread.is_alive()
