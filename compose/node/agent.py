"""What runs a node's commands for the harness: requests in, results out, a JSON line each.

One process stays for the whole run, because starting a process in a container from outside
takes some 70 ms, and a fault is to take hold at once. It ends with its standard input.
"""

import base64
import contextlib
import io
import json
import os
import subprocess
import sys

import clocks
import vdso

# Programs of our own that are quicker called than started: a fault is to take hold at once.
OWN = {"clocks": clocks.command, "vdso": vdso.command}


def run(request):
    name, *arguments = request["run"]
    if name in OWN:
        return call(OWN[name], arguments)
    try:
        done = subprocess.run(
            request["run"],
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


def call(command, arguments):
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said):
            return {"code": 0, "out": json.dumps(command(arguments)), "err": ""}
    except SystemExit as refused:  # argparse, of arguments that it does not know
        return {"code": refused.code, "out": "", "err": said.getvalue()}
    except (OSError, vdso.Refused) as error:
        return {"code": 1, "out": "", "err": str(error)}


def put(request):
    path = request["put"]
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path + ".new", "wb") as file:
        file.write(base64.b64decode(request["content"]))
    os.replace(path + ".new", path)
    return {}


def get(request):
    with open(request["get"], "rb") as file:
        return {"content": base64.b64encode(file.read()).decode()}


def send_signal(request):
    try:
        os.kill(request["signal"], request["number"])
    except ProcessLookupError:
        return {"there": False}
    return {"there": True}


def state(request):
    """The state letter of a process; None once every thread of it has ended.

    A dead process that nobody has waited for is gone, too: it runs no instruction. But its
    first thread is a zombie as soon as itself has ended, while another one still keeps the
    files and the port: Redis has such threads.
    """
    letters = []
    try:
        for task in os.listdir(f"/proc/{request['state']}/task"):
            with open(f"/proc/{request['state']}/task/{task}/stat") as file:
                letters.append(file.read().rpartition(")")[2].split()[0])
    except (FileNotFoundError, ProcessLookupError):
        # A thread ended while it was looked at; without any, the process is gone.
        if not os.path.exists(f"/proc/{request['state']}"):
            return {"state": None}
        return state(request)
    alive = [letter for letter in letters if letter not in ("Z", "X")]
    return {"state": "T" if alive and set(alive) == {"T"} else (alive or [None])[0]}


VERBS = {"run": run, "put": put, "get": get, "signal": send_signal, "state": state}


def main():
    for line in sys.stdin:
        request = json.loads(line)
        verb = next(name for name in VERBS if name in request)
        try:
            answer = VERBS[verb](request)
        except OSError as error:
            answer = {"error": str(error)}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
