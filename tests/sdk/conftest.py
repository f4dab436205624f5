"""Drive a program on each SDK over pipes, with its store on a Redis server in memory."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import signal
import socketserver
import subprocess
import sys
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest
from fakeredis import FakeRedis, TcpFakeServer

from fencepost.harness.clients.answer import decode
from fencepost.harness.clients.event import decode as decode_event
from fencepost.workloads.resources.redis_register import write_script
from fencepost.workloads.resources.registry import GUARDS
from tests.harness.talk import Talk

HERE = Path(__file__).parent
PUPPETS = HERE / "puppets"
SDK = HERE.parents[1] / "sdk"
LANGUAGES = ("python", "javascript", "go", "java", "rust", "csharp")
PUMP = (sys.executable, "-m", "fencepost.workloads.client.pump")
"""Starts a program again that cannot do that itself."""
_CLASSES = {"puppet": "Puppet", "elector": "ElectorPuppet"}


@dataclass(frozen=True)
class Built:
    """How a program is started, and its own environment variables."""

    command: tuple[str, ...]
    environment: dict[str, str]
    typed: bool = False


def _python(folder, name="puppet"):
    program = PUPPETS / f"{name}.py"
    return Built((sys.executable, str(program)), {"PYTHONPATH": str(SDK / "python")})


def _javascript(folder, name="puppet"):
    sdk = str(SDK / "javascript" / "fencepost")
    return Built(("node", str(PUPPETS / f"{name}.js")), {"FENCEPOST_SDK": sdk})


def _go(folder, name="puppet"):
    """Lay the files out as a user does who copies the SDK into a folder of their module."""
    (folder / "fencepost").mkdir()
    shutil.copy(SDK / "go" / "fencepost.go", folder / "fencepost")
    shutil.copy(PUPPETS / f"{name}.go", folder / "main.go")
    (folder / "go.mod").write_text("module puppet\n\ngo 1.18\n")
    main = (folder / "main.go").read_text().replace('"fencepost"', '"puppet/fencepost"')
    (folder / "main.go").write_text(main)
    _must(["go", "vet", "./..."], folder)
    _must(["go", "build", "-o", "puppet", "."], folder)
    return Built((str(folder / "puppet"),), {}, typed=True)


def _java(folder, name="puppet"):
    main = _CLASSES[name]
    files = [str(SDK / "java" / "Fencepost.java"), str(PUPPETS / f"{main}.java")]
    strict = ["-Xlint:all", "-Werror", "--release", "11"]
    _must(["javac", *strict, "-d", str(folder), *files], folder)
    quick = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
    return Built(("java", *quick, "-cp", str(folder), main), {}, typed=True)


def _rust(folder):
    shutil.copy(SDK / "rust" / "fencepost.rs", folder)
    shutil.copy(PUPPETS / "puppet.rs", folder / "main.rs")
    strict = ["--edition", "2021", "-D", "warnings"]
    _must(["rustc", *strict, "-o", "puppet", "main.rs"], folder)
    return Built((str(folder / "puppet"),), {}, typed=True)


def _csharp(folder):
    files = [str(SDK / "csharp" / "Fencepost.cs"), str(PUPPETS / "Puppet.cs")]
    strict = ["-langversion:6", "-warn:4", "-warnaserror+"]
    _must(["mcs", *strict, "-out:puppet.exe", *files], folder)
    return Built(("mono", str(folder / "puppet.exe")), {}, typed=True)


_BUILD = {
    "python": _python,
    "javascript": _javascript,
    "go": _go,
    "java": _java,
    "rust": _rust,
    "csharp": _csharp,
}
_NEEDS = {
    "python": "python3",
    "javascript": "node",
    "go": "go",
    "java": "javac",
    "rust": "rustc",
    "csharp": "mcs",
}


def _must(command, folder):
    done = subprocess.run(
        command,
        cwd=folder,
        capture_output=True,
        text=True,
        env=os.environ | {"GOFLAGS": "-mod=mod", "GO111MODULE": "on"},
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="session", params=LANGUAGES)
def built(request, tmp_path_factory):
    return build(request.param, tmp_path_factory)


def build(language, folders, *name):
    if shutil.which(_NEEDS[language]) is None:
        pytest.skip(f"{_NEEDS[language]} is not installed: the SDK for {language} is not tested")
    return _BUILD[language](folders.mktemp(language), *name)


@pytest.fixture(scope="session")
def store():
    """Start a Redis server in memory, with Lua, and return its port."""
    server = TcpFakeServer(("127.0.0.1", 0))
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server.server_address[1]
    server.shutdown()
    server.server_close()


class _Inline(socketserver.StreamRequestHandler):
    """A Redis in memory, with the inline commands that the programs of the pages use."""

    def handle(self):
        for line in self.rfile:
            reply = self.server.redis.execute_command(*shlex.split(line.decode()))
            said = "+OK" if reply is True else "$-1" if reply is None else f":{reply}"
            self.wfile.write(f"{said}\r\n".encode())


@pytest.fixture(scope="session")
def redis():
    server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), _Inline)
    server.daemon_threads = True
    server.redis = FakeRedis(decode_responses=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


class Program(Talk):
    """Speaks the protocol as the harness does, and keeps only events that it would record."""

    def __init__(self, program, setup, told):
        super().__init__(program)
        self.setup = setup
        if told:
            self.say(control="setup", **setup)

    def hear(self):
        line = super().hear()
        if line is not None:
            (decode if "control" in line else decode_event)(json.dumps(line).encode())
        return line

    def op(self, f, **value):
        """Return the completion of an op."""
        self.say(f=f, value=value)
        return self.hear_events()[-1]

    def hear_events(self):
        """Return every event until an op completes; skip `close` and a lock's own events."""
        lines = [self.hear()]
        while lines[-1]["type"] == "invoke" or lines[-1]["f"] in ("close", "lost", "renewed"):
            lines.append(self.hear())
        return lines

    def acquire(self, lock="orders", ttl_ms=1000):
        return self.op("acquire", lock=lock, ttl=ttl_ms * 1_000_000)

    def hold(self, lock="orders", **more):
        return self.acquire(lock, **more)["value"]["hold"]

    def end(self):
        """Return its output after its input has ended."""
        self.program.stdin.close()
        return self.hear_all()


@pytest.fixture
def start_command(store):
    """Start a command on a server of its own: `start_command(["./worker"], at=[host, port])`.

    The test's end stops it.
    """
    started = []

    def begin(command, at=("127.0.0.1", 1), environment=None, told=True, **more):
        program = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            env=os.environ | (environment or {}),
            start_new_session=True,
        )
        started.append(program)
        setup = {
            "versions": [1],
            "process": 3,
            "stride": 5,
            "node": "client-1",
            "lock": "own",
            "options": {},
            "servers": ["redis-1"],
            "addresses": {"redis-1": list(at), "storage": ["127.0.0.1", store]},
            "storage": "storage",
            "store": "redis",
            "guard": "none",
            "write_script": write_script(GUARDS[more.get("guard", "none")].rules["lua"]),
            "seed": "7",
            "origin_ns": time.monotonic_ns(),
        }
        return Program(program, setup | more, told)

    yield begin
    for program in started:
        # With the program that the pump started, which may be stopped at a failpoint.
        with suppress(ProcessLookupError):
            os.killpg(program.pid, signal.SIGKILL)
        for stream in (program.stdin, program.stdout, program.stderr):
            stream.close()
        program.wait()


@pytest.fixture
def start(built, start_command):
    """Start the program: `start(guard="fenced", options={...})`."""

    def begin(options=None, **more):
        options = {"retries": 7, "mute": False, **(options or {})}
        environment = built.environment
        return start_command(built.command, environment=environment, options=options, **more)

    return begin


@pytest.fixture
def program(start):
    """Return a started program."""
    program = start()
    program.ready = program.hear()
    return program
