"""An error in a thread that a client needs is a mistake of the run, not silence of the client."""

from __future__ import annotations

import pytest

from fencepost.harness.clients import rejected
from fencepost.harness.clients.driver import Driver, sections
from fencepost.harness.clients.worker import Worker
from tests.harness.talk import Fed, typed

pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")


@pytest.fixture
def piped():
    remote = Fed()
    yield remote
    remote.end()


def test_an_error_of_the_reader_breaks_its_client_and_the_verdict(
    piped, recorder, setup, monkeypatch
):
    worker = Worker(piped, recorder, typed(setup), [])

    def fails(lines):
        raise KeyError("hold")

    monkeypatch.setattr(worker._hearing, "take", fails)
    piped.feed(b"a line\n")
    worker.wait_gone(120)
    assert worker.gone
    assert worker.broken == (
        "the reader for the worker on client-1 ended by an error of fencepost: KeyError('hold'); "
        "please report it"
    )
    (lost,), _ = rejected.read_rejected(recorder.path.parent)
    assert lost.startswith("lost contact with client-1")


def test_an_error_of_the_generator_breaks_its_client(piped, recorder, setup, eventually):
    worker = Worker(piped, recorder, typed(setup), [])
    worker._generates = False
    worker.finish = None  # not callable: the generator's next step raises an error
    worker.work({}, 10**15)
    eventually(lambda: worker.broken)
    assert worker.broken.startswith("the generator for the worker on client-1 ended by an error")
    assert worker.rest(120)


class Terse:
    """A client that completes each op without its value, and ends after as many as the test asks
    for."""

    gone = False

    def __init__(self, *types):
        self.begun, self._types = [], list(types)

    def begin(self, f, value):
        self.begun.append((f, value.get("hold")))

    def finish(self, timeout_s):
        type = self._types.pop(0)
        self.gone = not self._types
        granted = self.begun[-1][0] == "acquire" and type == "ok"
        return {"type": type, "value": {"hold": "3-1"} if granted else None}


def test_the_generator_needs_no_value_of_an_op_that_failed(eventually):
    client = Terse("ok", "fail", "ok", "info", "fail")
    work = {"hold_ms": (0, 0), "think_ms": (0, 0), "extend": 0}
    driver = Driver(client, sections(work, "7"), 10**15, lambda: 0)
    eventually(lambda: client.gone)
    assert driver.rest(120)
    acquire = ("acquire", None)
    assert client.begun == [acquire, ("read", "3-1"), ("release", "3-1"), acquire, acquire]
