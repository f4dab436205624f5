"""A client's program with a user lock, which it imports from a file."""

from __future__ import annotations

import ast
import json
import subprocess
import sys

import pytest

from fencepost.harness.clients.worker import Worker
from fencepost.harness.errors import Crashed
from fencepost.harness.execute import timed
from tests.harness.local import COMMAND, Local
from tests.harness.talk import ACQUIRE, PROGRAM, WORK, Talk, typed

pytestmark = pytest.mark.slow

LOCK = """
import fencepost
class MyLock:
    count = 0
    def __init__(self, servers, answer="True"):
        print("made for", servers)
        self.answer = eval(answer, {"fencepost": fencepost})
    def acquire(self, name, ttl):
        return self.answer
    def release(self, name):
        pass
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "own").mkdir()
    return tmp_path / "own"


@pytest.fixture
def mine(folder, setup):
    """Write the file of a user lock, and return the client's setup."""

    def told(text=LOCK, lock="mylock.py:MyLock", **more):
        file = folder / lock.partition(":")[0]
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)
        own = {"folder": str(folder), "lock": lock}
        return setup | {"lock": "MyLock", "options": {}, "own": own} | more

    return told


@pytest.fixture
def begun(spawn, mine):
    def begin(*given, **more):
        talk = Talk(spawn(PROGRAM))
        talk.say(control="setup", **mine(*given, **more))
        return talk

    return begin


def test_it_is_ready_reports_that_it_cannot_extend_and_its_prints_reach_no_protocol(begun):
    talk = begun()
    assert talk.hear() == {"control": "ready", "pid": talk.program.pid, "extends": False}
    talk.say(**ACQUIRE)
    granted = [talk.hear(), talk.hear()][1]
    assert (granted["type"], granted["value"]["token"]) == ("ok", None)
    lag = granted["value"]["deadline"] - 10**9 - granted["time"]
    assert -(10**9) < lag < 0
    talk.program.stdin.close()
    assert [line["f"] for line in talk.hear_all()] == ["close", "close"]
    assert talk.program.stderr.read() == b"made for [('127.0.0.1', 1)]\n"


def test_a_lock_that_can_extend_reports_nothing_about_it(begun):
    talk = begun(LOCK + "    def extend(self, name, ttl):\n        return True\n")
    assert talk.hear() == {"control": "ready", "pid": talk.program.pid}


def test_a_module_of_a_package_is_imported_as_one(begun, folder):
    (folder / "service").mkdir()
    (folder / "service" / "__init__.py").write_text("")
    (folder / "service" / "key.py").write_text("KEY = 7\n")
    text = LOCK.replace("import fencepost", "import fencepost\nfrom .key import KEY")
    assert begun(text, "service/mine.py:MyLock").hear()["control"] == "ready"


def test_a_file_called_as_a_library_is_not_taken_for_it(begun):
    text = "import redis\nassert redis.Redis\n" + LOCK
    assert begun(text, "redis.py:MyLock").hear()["control"] == "ready"


def test_the_token_of_a_grant_goes_with_its_writes(begun):
    talk = begun(options={"answer": "fencepost.Grant(token=41)"})
    talk.hear()
    talk.say(**ACQUIRE)
    hold = [talk.hear(), talk.hear()][1]["value"]["hold"]
    talk.say(f="write", value={"resource": "account", "version": 0, "hold": hold})
    assert talk.hear()["value"]["token"] == 41


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (LOCK.replace("MyLock", "Other"), "mylock.py has no 'MyLock' once it is imported on the"),
        ("import no_such_library\n" + LOCK,
         "mylock.py:MyLock cannot be made on client-1: ModuleNotFoundError: No module named "
         "'no_such_library', at mylock.py, line 1: import no_such_library. Name packages that"),
        (LOCK.replace("print(", "1 / 0 #"),
         "ZeroDivisionError: division by zero, at mylock.py, line 6: 1 / 0 #\"made for\", serv"),
        ("MyLock = 7\n", "mylock.py:MyLock is 7, and should be a class"),
        (LOCK.replace("servers, answer", "answer"), "TypeError: .* unexpected|multiple values"),
    ],
)  # fmt: skip
def test_a_lock_that_cannot_be_made_ends_the_run_with_its_reason(recorder, spawn, mine, text, why):
    told = mine(text, options={"answer": "True"})
    worker = Worker(Local(spawn), recorder, typed(told), COMMAND)
    with pytest.raises(Crashed, match=why):
        worker.wait_ready()
    worker.close()


def test_an_invalid_order_ends_the_client_and_is_not_blamed_on_its_lock(
    recorder, spawn, mine, eventually
):
    worker = Worker(Local(spawn), recorder, typed(mine(options={"answer": "'yes'"})), COMMAND)
    worker.wait_ready()
    worker.work(WORK["settings"], WORK["until_ns"])
    assert eventually(lambda: worker.gone)
    site = type("Site", (), {"workers": [worker]})()
    with pytest.raises(Crashed, match=r"MyLock: acquire answered 'yes' \(str\); it should be True"):
        timed.must_be_sound(site)
    worker.close()
    rows = [json.loads(line) for line in recorder.path.read_text().splitlines()]
    assert [(row["f"], row["type"]) for row in rows] == [("acquire", "invoke"), ("acquire", "info")]


def test_a_guard_that_needs_tokens_refuses_a_lock_that_gives_none(begun):
    talk = begun(guard="fenced")
    talk.hear()
    talk.say(**ACQUIRE)
    broken = talk.hear_until("broken")[-1]
    assert broken["why"] == (
        "mylock.py:MyLock: acquire granted without a fencing token, which guard fenced needs; it "
        "should answer fencepost.Grant(token=...)"
    )
    assert talk.program.wait(120) == 1


def test_a_lock_that_ends_its_process_is_named_and_not_waited_for(
    recorder, spawn, mine, eventually
):
    text = LOCK.replace("return self.answer", "import os; os._exit(3)")
    worker = Worker(Local(spawn), recorder, typed(mine(text)), COMMAND, "mylock.py:MyLock")
    worker.wait_ready()
    worker.work(WORK["settings"], WORK["until_ns"])
    why = eventually(lambda: worker.broken)
    assert why.startswith("mylock.py:MyLock on client-1 ended by itself: it ended with exit code 3")
    worker.close()


def test_a_client_loads_no_bundled_lock_before_it_is_asked_for_one():
    """Each client of each run would wait for all of them."""
    code = (
        "import sys; import fencepost.workloads.client.program; "
        "print([name for name in sys.modules if name.startswith('fencepost.workloads.locks.')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = {name.rpartition(".")[2] for name in ast.literal_eval(done.stdout)}
    assert "user_lock" in loaded and not {"registry", "zookeeper", "aetcd"} & loaded
