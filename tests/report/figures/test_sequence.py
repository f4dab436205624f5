"""The sequence diagram has an arrow for each message that matters, and nothing else."""

from __future__ import annotations

import json
import re
from html import unescape
from random import Random
from xml.etree import ElementTree

import pytest

from fencepost.report.figures.sequence import LANES, MOST
from fencepost.report.pages.run import render
from fencepost.runfiles import Message
from tests.report.conftest import MS

SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = "</text></svg><script>alert(1)</script>\u202e&\"'"


def exchange(call, at, source, to, words, reply, f="acquire", op=0.0, **fields):
    """Return a request and its reply, half a millisecond each."""
    begun, turn, end = (round((at + part) * MS) for part in (0, 0.5, 1))
    denied = reply in ("nil", "0")
    return [
        Message(source, to, words, begun, turn, "", call, False, f, round(op * MS)),
        Message(to, source, reply, turn, end, "", call, True, f, round(op * MS), denied),
    ]


@pytest.fixture
def jump(story):
    """A clock jumps, so that a second client is granted the lock, and an update is lost."""
    first = story.acquire(100, 0, took=3)
    read = story.read(104, 0)
    story.fault(200, 900, "clock", ["redis-1"], words="the clock of redis-1 jumps ahead by 2.2 s")
    second = story.acquire(300, 1, took=3)
    stale = story.read(304, 1)
    story.write(500, 0, first, read, token=None)
    story.write(700, 1, second, stale, token=None)
    story.release(690, 0, first)
    story.release(810, 1, second)
    messages = [
        *exchange(0, 100, "client-1", "redis-1", "SET k1 NX PX 1000", "OK", op=100),
        *exchange(1, 101, "client-1", "redis-2", "SET k1 NX PX 1000", "OK", op=100),
        *exchange(2, 300, "client-2", "redis-1", "SET k1 NX PX 1000", "OK", op=300),
        *exchange(3, 301, "client-2", "redis-2", "SET k1 NX PX 1000", "nil", op=300),
        *exchange(4, 500, "client-1", "storage", "write, token 33", "version 1", "write", 500),
        *exchange(5, 700, "client-2", "storage", "write, token 34", "version 2", "write", 700),
        *exchange(6, 690, "client-1", "redis-1", "EVAL get·del k1", "1", "release", 690),
    ]
    return story, messages


@pytest.fixture
def page(store, tmp_path):
    """Write a simulated run with these messages, and return its page."""

    def made(story, messages, **test):
        hunt = {"story": ["1. it breaks"], "broken": ["lease_exclusion"]}
        folder = store(story, simulated=True, hunt=hunt, **test)
        rows = [
            {name: getattr(one, name) for name in Message.__struct_fields__} for one in messages
        ]
        (folder / "messages.json").write_text(json.dumps({"messages": rows}))
        return render(folder).read_text()

    made.folder = tmp_path
    return made


class Picture:
    """The drawing of a page, as the facts in its SVG."""

    def __init__(self, page: str) -> None:
        text = re.search(r'<svg class="messages".*?</svg>\n</div>', page, re.S).group(0)[:-7]
        text = text.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1)
        self.root = ElementTree.fromstring(text)
        names = re.search(r'<div class="names[^>]*>.*?</div>', page, re.S).group(0)
        found = re.findall(r'left:([\d.]+)%">(.*?)</b>', names)
        self.lanes = {x: unescape(re.sub("<[^>]*>", "", name)) for x, name in found}

    def at(self, x: str) -> str:
        return self.lanes.get(x.rstrip("%"), "between")

    @property
    def arrows(self) -> list[tuple[str, str, str]]:
        lines = [one for one in self.root.iter(f"{SVG}line") if "arrow" in one.get("class")]
        return [
            (self.at(one.get("x1")), self.at(one.get("x2")), one.get("class")[6:]) for one in lines
        ]

    @property
    def texts(self) -> list[str]:
        return ["".join(one.itertext()).strip() for one in self.root.iter(f"{SVG}text")]

    def count(self, tag: str, what: str) -> int:
        return sum(what in (one.get("class") or "") for one in self.root.iter(f"{SVG}{tag}"))


def test_each_message_of_the_violation_is_an_arrow_from_its_sender_to_its_receiver(jump, page):
    found = Picture(page(*jump))
    assert list(found.lanes.values()) == ["client-1", "client-2", "redis-1", "redis-2", "storage"]
    assert [one for one in found.arrows if one[2] == ""] == [
        ("client-1", "redis-1", ""),
        ("client-1", "redis-2", ""),
        ("client-2", "redis-1", ""),
        ("client-2", "redis-2", ""),
        ("client-1", "storage", ""),
        ("client-2", "storage", ""),
    ]
    assert [one for one in found.arrows if one[2] == "denied"] == [
        ("redis-2", "client-2", "denied")
    ]
    assert "SET k1 NX PX 1000 → OK" in found.texts
    assert "SET k1 NX PX 1000 → nil" in found.texts
    assert "write, token 33 → version 1" in found.texts


def test_the_holds_the_fault_and_the_moment_of_the_violation_are_marked(jump, page):
    found = Picture(page(*jump))
    assert [found.count("rect", f"hold {which}") for which in ("one", "two")] == [1, 1]
    assert (found.count("path", "mark"), found.count("rect", "bar fault")) == (1, 1)
    assert "the clock of redis-1 jumps ahead" in " ".join(found.texts)
    assert "lease_exclusion is broken: two holders" in found.texts
    assert "resource is broken: lost update" in found.texts
    assert [text for text in found.texts if text.startswith("granted")] == [
        "granted: hold h1, token 1", "granted: hold h2, token 2",
    ]  # fmt: skip


def test_places_down_follow_time_and_a_long_wait_is_cut_short(jump, page):
    found = Picture(page(*jump))
    places = [float(one.get("y1")) for one in found.root.iter(f"{SVG}line")
              if one.get("class") == "arrow "]  # fmt: skip
    assert places == sorted(places)
    assert "97 ms later" in found.texts
    assert float(found.root.get("height")) < 700


def test_a_release_after_the_violation_and_earlier_rounds_are_counted_not_drawn(jump, page):
    story, messages = jump
    earlier = exchange(9, 295, "client-2", "redis-2", "SET k1 NX PX 1000", "nil", op=300)
    text = page(story, [*messages, *earlier])
    assert "EVAL get·del k1" not in Picture(text).texts
    assert "4 more messages of this time are not drawn" in text


@pytest.mark.parametrize("fate", ["lost", "dead", "refused"])
def test_a_message_that_is_lost_ends_in_a_cross_before_its_lane(jump, page, fate):
    story, messages = jump
    arrived = None if fate == "lost" else 102 * MS
    gone = Message("client-1", "redis-2", "SET k1", 102 * MS, arrived, fate, 20, False, "acquire")
    found = Picture(page(story, [*messages, gone]))
    assert ("client-1", "between", fate) in found.arrows
    assert found.count("path", "cross") == 1


def test_a_message_that_is_held_back_is_one_long_arrow(jump, page):
    story, messages = jump
    late = Message(
        "client-1", "storage", "write", 105 * MS, 650 * MS, "late", 20, False, "write", 0
    )
    found = Picture(page(story, [*messages, late]))
    assert ("client-1", "storage", "late") in found.arrows
    line = next(one for one in found.root.iter(f"{SVG}line") if "late" in one.get("class"))
    others = [float(one.get("y1")) for one in found.root.iter(f"{SVG}line")
              if one.get("class") == "arrow "]  # fmt: skip
    assert sum(float(line.get("y1")) < y < float(line.get("y2")) for y in others) == 3


def test_a_pause_between_a_request_and_its_answer_is_drawn_between_them(story, page):
    first = story.acquire(100, 0, took=400)
    story.fault(100.7, 450, "pause", ["client-1"], words="client-1 is paused")
    story.acquire(300, 1)
    story.release(700, 0, first)
    text = page(story, exchange(0, 100, "client-1", "redis-1", "SET k1", "OK", op=100))
    found = Picture(text)
    assert ("client-1", "redis-1", "") in found.arrows
    assert found.texts.index("SET k1") < found.texts.index("client-1 is paused")
    assert found.count("rect", "bar stop") == 1


def test_texts_of_others_stay_text(jump, page):
    story, messages = jump
    bad = exchange(30, 103, HOSTILE, HOSTILE + "2", HOSTILE, HOSTILE, HOSTILE)
    odd = Message(HOSTILE, "redis-1", HOSTILE, 104 * MS, None, HOSTILE, 31, False, HOSTILE)
    text = page(story, [*messages, *bad, odd])
    assert "<script>alert" not in text
    assert any("<script>alert" in words for words in Picture(text).texts)


def test_the_picture_has_a_text_alternative(jump, page):
    text = page(*jump)
    root = Picture(text).root
    assert root.get("role") == "img"
    names = root.get("aria-labelledby").split()
    assert [root.find(f"{SVG}{tag}").get("id") for tag in ("title", "desc")] == names
    said = re.search(r"<summary>The picture in words</summary>.*?</ol>", text, re.S).group(0)
    assert "client-1 to redis-1: SET k1 NX PX 1000; answered: OK" in said
    assert "storage" in root.find(f"{SVG}desc").text


def test_the_picture_is_bounded_whatever_the_run(jump, page):
    story, messages = jump
    many = [
        one
        for n in range(3000)
        for one in exchange(
            100 + n, 110 + n * 0.15, f"client-{n % 40}", f"redis-{n % 50}", f"GET {n}", "OK", "x"
        )
    ]
    text = page(story, [*messages, *many])
    found = Picture(text)
    assert len(found.arrows) <= MOST
    assert len(found.lanes) <= LANES
    assert float(found.root.get("height")) < 60 * 70
    assert "more messages of this time are not drawn" in text


def test_any_messages_give_a_picture_or_none(jump, page):
    random, story = Random(7), jump[0]
    names = ["client-1", "client-2", "redis-1", "storage", "", HOSTILE]
    times = [0, -1, 1, 100 * MS, 300 * MS, 303 * MS, 704 * MS, 1e18, -1e18]
    fates = ["", "late", "lost", "dead", "again", "unread", "refused", "unknown", "odd"]
    folder, drawn = None, 0
    for _ in range(60):
        many = [
            Message(
                random.choice(names), random.choice(names), random.choice(names),
                random.choice(times), random.choice([None, *times]), random.choice(fates),
                random.randrange(4), random.random() < 0.5, random.choice(["acquire", "write", ""]),
                random.choice(times), random.random() < 0.3,
            )
            for _ in range(random.randrange(30))
        ]  # fmt: skip
        if folder is None:
            page(story, many)
            folder = next(path.parent for path in page.folder.rglob("messages.json"))
        rows = [{n: getattr(m, n) for n in Message.__struct_fields__} for m in many]
        (folder / "messages.json").write_text(json.dumps({"messages": rows}))
        text = render(folder).read_text()
        if 'class="sequence"' in text:
            drawn += 1
            assert len(Picture(text).arrows) <= MOST
    assert drawn > 10


def test_a_counterexample_without_messages_has_a_page_without_the_picture(jump, store):
    story, _ = jump
    text = render(store(story, simulated=True, hunt={"story": ["1. it breaks"], "drawing": ["x"]}))
    assert "figure class" in text.read_text() and 'class="sequence"' not in text.read_text()
    assert '<pre class="story"' in text.read_text()


@pytest.mark.parametrize("messages", [[], [Message("a", "b", "x", 10**15)]])
def test_messages_of_another_time_or_none_give_no_picture(jump, page, messages):
    assert 'class="sequence"' not in page(jump[0], messages)


def test_a_run_without_a_violation_has_no_picture(calm, page):
    assert 'class="sequence"' not in page(calm, exchange(0, 1, "client-1", "redis-1", "SET", "OK"))


def test_damaged_messages_are_named_and_the_page_is_there(jump, store):
    story, _ = jump
    folder = store(story, simulated=True, hunt={"story": ["1. it breaks"]})
    (folder / "messages.json").write_text('{"messages": [{"source": 1}]}')
    text = render(folder).read_text()
    assert "The messages are not drawn: messages.json cannot be read" in text


def test_a_real_run_is_drawn_from_its_ops(clash, store):
    text = render(store(clash)).read_text()
    found = Picture(text)
    assert "when the service handled it is not known" in text
    assert {"client-1", "client-2", "redlock"} <= {*found.lanes.values()}
    assert ("client-1", "redlock", "") in found.arrows
    assert any(words.startswith("acquire orders, TTL 1 s") for words in found.texts)


def test_an_op_of_unknown_outcome_is_an_arrow_without_an_answer(clash, store):
    clash.op(3150, 0, "invoke", "extend", value={"lock": "orders", "hold": "h4", "ttl": 1000 * MS})
    clash.op(3160, 0, "info", "extend", value={"lock": "orders", "hold": "h4", "ttl": 1000 * MS})
    found = Picture(render(store(clash, checkers=["lease_exclusion"])).read_text())
    assert ("client-1", "between", "unknown") in found.arrows
