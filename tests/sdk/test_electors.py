"""The SDKs turn an elector into a client that conforms to docs/protocol.md."""

from __future__ import annotations

import itertools
import os
import shlex
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from fencepost.hunt.models.kubernetes import serve
from tests.sdk import page
from tests.sdk.conftest import PUMP, build

pytestmark = pytest.mark.slow

PAGE = Path(__file__).parents[2] / "docs" / "your-elector.md"
RESOURCES = (f"reign-{number}" for number in itertools.count())


LANGUAGES = ("python", "javascript", "go", "java")
RESTARTS = ("javascript", "java")


@pytest.fixture(scope="session", params=LANGUAGES)
def language(request):
    return request.param


@pytest.fixture(scope="session")
def built(language, tmp_path_factory):
    found = build(language, tmp_path_factory, "elector")
    return replace(found, command=(*PUMP, *found.command)) if language in RESTARTS else found


@pytest.fixture
def elector(start):
    def begin(stops="exit"):
        program = start(stops=stops)
        program.ready = program.hear()
        return program

    return begin


def short(lines):
    return [(line["process"], line["f"], line["type"]) for line in lines]


def beat(program, hold):
    program.say(f="read", value={"resource": next(RESOURCES), "hold": hold})
    line = program.hear()
    return line["control"] if "control" in line else program.hear()["type"]


LEFT = [(3, "close", "invoke"), (3, "close", "ok")]


def left(program):
    """Return the events of an end, and the pid of the successor if the program reports one."""
    lines = [program.hear(), program.hear()]
    told = [lines.pop()] if "control" in lines[1] else []
    pid = told[0]["pid"] if told else program.ready["pid"]
    return short([*lines, *(program.hear() for _ in told)]), pid


def test_it_reports_that_it_is_an_elector(elector, language):
    program = elector()
    restarts = language in RESTARTS
    pid = program.ready.pop("pid")
    assert (pid == program.program.pid) is not restarts and os.path.exists(f"/proc/{pid}")
    assert program.ready == {
        "control": "ready", "version": 1, "generates": False, "extends": False,
        "elector": True, "resigns": True, **({"restarts": True} if restarts else {}),
    }  # fmt: skip


def test_an_elector_that_cannot_be_made_yet_is_an_elector_all_the_same(start):
    program = start(stops="exit", process=8, options={"mute": True})
    ready = program.hear()
    assert (ready["elector"], ready["resigns"], ready["extends"]) == (True, True, False)
    refused = program.acquire("leads")
    assert (refused["type"], refused["error"][0]) == ("fail", "unreachable")


def test_a_campaign_is_granted_when_it_is_started_and_a_release_resigns(elector):
    program = elector()
    granted = program.acquire("leads")["value"]
    assert (granted["token"], granted["deadline"]) == (None, None)
    assert beat(program, granted["hold"]) == "ok"
    released = program.op("release", lock="leads", hold=granted["hold"])
    assert (released["type"], released["process"]) == ("ok", 3)
    assert program.acquire("leads")["type"] == "ok"


def test_a_later_deadline_is_reported(elector):
    program = elector()
    program.say(f="acquire", value={"lock": "renewed", "ttl": 10**12})
    _, granted, renewed = (program.hear() for _ in range(3))
    assert (granted["value"]["token"], renewed["f"]) == (7, "renewed")
    assert renewed["value"]["deadline"] - granted["value"]["deadline"] == pytest.approx(
        10**12, rel=0.1
    )


@pytest.mark.parametrize(("name", "why"), [("stops", "stopped was called"), ("raises", "reset")])
def test_stopped_and_the_end_of_run_end_the_work(elector, name, why):
    program = elector()
    program.say(f="acquire", value={"lock": name, "ttl": 10**9})
    _, granted, lost = (program.hear() for _ in range(3))
    assert lost["f"] == "lost" and why in lost["error"][1]
    assert beat(program, granted["value"]["hold"]) == "stopped"


@pytest.mark.parametrize(
    ("name", "stops", "works"),
    [
        ("over", "exit", "stopped"), ("over", "callback", "ok"), ("leads", "exit", "ok"),
        ("leads", "checked", "stopped"), ("raises", "callback", "ok"),
    ],
)  # fmt: skip
def test_what_ends_the_work_is_for_the_test_to_say(elector, name, stops, works):
    program = elector(stops)
    assert beat(program, program.hold(name)) == works


def test_a_process_that_leaves_is_replaced_by_another_one(elector, language):
    program = elector()
    hold = program.hold("stuck")
    program.say(control="arm", point="before-write")
    program.say(control="leave")
    program.say(control="clock")
    events, pid = left(program)
    assert events == LEFT
    assert (pid == program.ready["pid"]) is (language not in RESTARTS)
    assert program.hear()["control"] == "clock" and os.path.exists(f"/proc/{pid}")
    assert beat(program, hold) == "ok"  # this process has no such hold
    next_hold = program.hold("leads")
    assert next_hold.startswith("8-") and program.program.poll() is None
    program.say(f="write", value={"resource": "r", "version": 0, "hold": next_hold})
    assert [program.hear()["f"], program.hear()["point"]] == ["write", "before-write"]


def test_a_campaign_without_an_end_ends_the_process(elector):
    program = elector()
    unknown = program.acquire("never", ttl_ms=10)
    assert (unknown["type"], unknown["error"][0]) == ("info", "timeout")
    assert left(program)[0] == LEFT
    assert program.acquire("leads")["process"] == 8


def test_a_run_that_ends_before_it_leads_is_a_refusal(elector):
    program = elector()
    refused = program.acquire("refused")
    assert (refused["type"], refused["error"][0]) == ("fail", "not-granted")
    assert "no server answers" in refused["error"][1]


def test_a_leader_that_does_not_resign_in_time_ends_its_process(elector):
    program = elector()
    hold = program.hold("stuck", ttl_ms=10)
    assert program.op("release", lock="stuck", hold=hold)["type"] == "info"
    assert left(program)[0] == LEFT


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("twice", "twice in one run"), ("stops-first", "called before"),
        ("returns", "returned while it leads"),
    ],
)  # fmt: skip
def test_a_mistake_of_an_elector_is_told(elector, name, why):
    program = elector()
    program.say(f="acquire", value={"lock": name, "ttl": 10**9})
    (broken,) = [line for line in program.hear_all() if line.get("control") == "broken"]
    assert why in broken["why"]


@pytest.fixture
def kubernetes(tmp_path):
    """Serve the model of Kubernetes' API; return its address."""
    api = serve.server("127.0.0.1", 0, serve.source_of(str(tmp_path / "objects.json")))
    threading.Thread(target=api.serve_forever, daemon=True).start()
    yield ("127.0.0.1", api.server_address[1])
    api.shutdown()


@pytest.mark.parametrize("language", [one for one in LANGUAGES if one != "python"])
def test_the_elector_of_the_page_leads_alone_and_hands_over(
    language, tmp_path, monkeypatch, start_command, kubernetes, redis
):
    (tmp_path / "page").mkdir()
    options = page.build(language, tmp_path / "page", monkeypatch, PAGE)
    monkeypatch.chdir(tmp_path / "page" / options["--ship"])
    at = kubernetes if options["--servers"].startswith("kubernetes") else redis.server_address
    words = [*PUMP, *shlex.split(options["--program"])]
    first, second = (start_command(words, at, stops="exit", process=process) for process in (3, 4))
    first.hear(), second.hear()
    ttl_ms = 60_000  # a request may take an eighth of it
    held = first.acquire("page", ttl_ms)
    assert held["type"] == "ok"
    second.say(f="acquire", value={"lock": "page", "ttl": ttl_ms * 1_000_000})
    assert second.hear()["type"] == "invoke"
    resigned = first.op("release", lock="page", hold=held["value"]["hold"])
    led = second.hear()
    assert (resigned["type"], led["type"]) == ("ok", "ok")
    assert led["time"] + second.setup["origin_ns"] > held["time"] + first.setup["origin_ns"]
