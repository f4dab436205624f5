"""`agent`: runs a node's commands for the harness: requests in, results out, one JSON line each.

One process serves the whole run, because starting a process in a container from outside takes some
70 ms, and a fault must take effect at once. It ends when its standard input closes.
"""

from __future__ import annotations

import base64
import contextlib
import io
import json
import os
import select
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable
from typing import Any, NoReturn

from fencepost.node import processes
from fencepost.node.command import Verb, to_text, verb
from fencepost.node.image import Refused
from fencepost.node.places import PROGRAM, PROGRAM_PATH

Request = dict[str, Any]
Answer = dict[str, Any]

# fencepost's verbs that are faster to call than to start.
_CALLED = ("clocks", "vdso", "health", "leads", "identity", "log", "process", "threads", "http")
# Verbs that may take long, or that need orphaned children: each runs in a fork of the agent.
_FORKED = ("start", "wipe", "version")


def run(request: Request) -> Answer:
    command = request["run"]
    if command[0] == PROGRAM and command[1] in _CALLED:
        return _call(verb(command[1]), command[2:])
    if command[0] == PROGRAM and command[1] in _FORKED:
        return _fork(verb(command[1]), command[2:], request["timeout_s"])
    if command[0] == PROGRAM:
        command = [PROGRAM_PATH, *command[1:]]  # on a host it is not in the PATH
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=request["timeout_s"],
            check=False,
        )
    except subprocess.TimeoutExpired:
        return {"error": f"still running after {request['timeout_s']} s"}
    return {
        "code": done.returncode,
        "out": done.stdout.decode(errors="replace"),
        "err": done.stderr.decode(errors="replace"),
    }


def _call(act: Verb, words: list[str]) -> Answer:
    complaint = io.StringIO()
    try:
        with contextlib.redirect_stderr(complaint):
            answer = act(words)
    except SystemExit as refused:  # argparse exits on unknown arguments
        return {"code": refused.code, "out": "", "err": complaint.getvalue()}
    except (OSError, Refused) as error:
        return {"code": 1, "out": "", "err": str(error)}
    return {"code": 1 if answer is False else 0, "out": to_text(answer), "err": ""}


def _fork(act: Verb, words: list[str], timeout_s: float) -> Answer:
    """Call a verb in a forked process, which is killed if it takes too long."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        _apart(act, words, write)
    os.close(write)
    end, output = time.monotonic() + timeout_s, b""
    try:
        while select.select([read], [], [], max(0.0, end - time.monotonic()))[0]:
            if not (chunk := os.read(read, 1 << 16)):
                break
            output += chunk
        else:
            os.kill(child, signal.SIGKILL)
            return {"error": f"still running after {timeout_s} s"}
    finally:
        os.close(read)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    answer: Answer = (
        json.loads(output) if output else {"code": code or 1, "out": "", "err": "killed"}
    )
    return answer


def _apart(act: Verb, words: list[str], write: int) -> NoReturn:
    """Run the forked process to its end; never return to the caller's code."""
    try:
        # The agent's own output is the protocol of the harness.
        nowhere = os.open(os.devnull, os.O_RDWR)
        for stream in range(3):
            os.dup2(nowhere, stream)
        try:
            answer = _call(act, words)
        except BaseException:
            answer = {"code": 1, "out": "", "err": traceback.format_exc()}
        with open(write, "wb") as file:
            file.write(json.dumps(answer).encode())
    finally:
        os._exit(0)


def put(request: Request) -> Answer:
    path = request["put"]
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path + ".new", "wb") as file:
        file.write(base64.b64decode(request["content"]))
    os.replace(path + ".new", path)
    return {}


def get(request: Request) -> Answer:
    with open(request["get"], "rb") as file:
        return {"content": base64.b64encode(file.read()).decode()}


def send_signal(request: Request) -> Answer:
    there = processes.send(request["signal"], request["number"], request.get("started"))
    return {"there": there}


def state(request: Request) -> Answer:
    """Return the state letter of a process; None once every thread of it has ended.

    With `started`, also None if another process has its number now.

    A dead process that was not waited for counts as gone, because it runs no instruction. But its
    first thread is a zombie as soon as that thread has ended, while another one may still keep the
    files and the port: Redis has such threads.
    """
    since = request.get("started")
    if since is not None and processes.started(request["state"]) != since:
        return {"state": None}
    letters = []
    try:
        for task in os.listdir(f"/proc/{request['state']}/task"):
            letters.append(processes.status(f"{request['state']}/task/{task}")[0])
    except (FileNotFoundError, ProcessLookupError):
        # A thread ended during the check; without any left, the process is gone.
        if not os.path.exists(f"/proc/{request['state']}"):
            return {"state": None}
        return state(request)
    alive = [letter for letter in letters if letter not in ("Z", "X")]
    if not alive:
        return {"state": None}
    return {"state": "T" if set(alive) == {"T"} else alive[0]}


_REQUESTS: dict[str, Callable[[Request], Answer]] = {
    "run": run,
    "put": put,
    "get": get,
    "signal": send_signal,
    "state": state,
}


def command(words: list[str]) -> None:
    for line in sys.stdin:
        request = json.loads(line)
        act = next(_REQUESTS[name] for name in _REQUESTS if name in request)
        try:
            answer = act(request)
        except OSError as error:
            answer = {"error": str(error)}
        print(json.dumps(answer), flush=True)
