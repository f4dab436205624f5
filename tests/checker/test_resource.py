"""Damage to the data is found, each kind by each proof, and no sound run is blamed."""

from __future__ import annotations

from random import Random

import pytest
from histories import Story
from hypothesis import given, settings
from hypothesis import strategies as st

from checker.resource import resource


@pytest.fixture
def story():
    return Story()


def kinds(story):
    """Which writes were damaged, and how."""
    history = story.history()
    verdict = resource(history, {})
    assert verdict.valid is (not verdict.evidence)
    return [(row["kind"], history.ops[row["ops"][0]].value["value"]) for row in verdict.evidence]


def test_writes_that_each_follow_what_their_writer_read_are_fine(story):
    story.read(1, 10, None, 0)
    story.write(1, 20, "a", 0, 1)
    story.read(2, 30, "a", 1)
    story.write(2, 40, "b", 1, 2)
    story.read(1, 50, "b", 2)
    assert kinds(story) == []


def test_a_resource_that_accepted_nothing_is_unknown(story):
    story.write(1, 10, "a", 0, type="fail")
    story.write(2, 20, "b", 0, type="info")
    verdict = resource(story.history(), {})
    assert verdict.valid == "unknown"
    assert verdict.details == {"accepted": 0, "refused": 1}


def test_a_refused_write_damages_nothing(story):
    story.write(1, 10, "a", 0, 1)
    story.write(2, 20, "b", 0, type="fail")
    story.read(3, 30, "a", 1)
    assert kinds(story) == []


def test_a_lost_update_shows_in_the_version_that_the_resource_gave(story):
    story.write(1, 10, "a", 0, 1)
    story.write(2, 20, "b", 0, 2)
    assert kinds(story) == [("lost_update", "b")]
    what = resource(story.history(), {}).evidence[0]["what"]
    assert what.startswith(
        "'b', written by client-2 (process 2) and accepted by 0.020 s, built on version 0, but "
        "the resource stored it as version 2, on top of 1."
    )


def test_two_writes_on_one_version_prove_a_lost_update_without_numbers(story):
    story.write(1, 10, "a", 0)
    story.write(2, 20, "b", 0)
    assert kinds(story) == [("lost_update", "b")]


def test_a_read_that_shows_another_value_in_its_place_proves_a_lost_update(story):
    """Whoever wrote x is unknown; b should have been version 1 and is not."""
    story.write(2, 20, "b", 0)
    story.read(1, 30, "x", 1)
    assert kinds(story) == [("lost_update", "b")]


def test_a_later_version_read_before_the_write_was_sent_proves_a_lost_update(story):
    story.read(1, 10, "x", 5)
    story.write(2, 20, "b", 3)
    story.read(1, 30, "y", 6)
    assert kinds(story) == [("lost_update", "b")]


def test_a_later_version_read_while_the_write_was_under_way_proves_nothing(story):
    story.write(2, 20, "b", 3, done=40)
    story.read(1, 30, "x", 5)
    assert kinds(story) == []


def test_a_write_of_unknown_outcome_counts_once_somebody_read_it(story):
    story.write(1, 10, "a", 0, 1)
    story.write(2, 20, "b", 0, type="info")
    assert kinds(story) == []
    story.read(3, 30, "b", 2)
    assert kinds(story) == [("lost_update", "b")]


def test_a_write_that_never_completed_counts_once_somebody_read_it(story):
    story.write(1, 10, "a", 0, 1)
    story.call(2, "write", 20, None, {"resource": "account", "value": "b", "version": 0})
    story.read(3, 30, "b", 2)
    assert kinds(story) == [("lost_update", "b")]


def test_an_acknowledged_write_that_is_not_there_later_is_missing(story):
    story.write(1, 10, "a", 0, 1)
    story.read(2, 20, None, 0)
    assert kinds(story) == [("missing", "a")]
    assert "client-1" in resource(story.history(), {}).evidence[0]["what"]
    assert (
        "process 2 read version 0, None, at 0.020 s"
        in (resource(story.history(), {}).evidence[0]["what"])
    )


def test_a_write_is_missing_also_where_only_its_base_is_known(story):
    story.write(1, 10, "a", 4)
    story.read(2, 20, "x", 4)
    assert kinds(story) == [("missing", "a")]


def test_a_write_is_missing_though_others_were_read_in_between(story):
    story.write(1, 10, "a", 0, 1)
    story.read(2, 20, "a", 1)
    story.read(3, 30, None, 0)
    story.write(4, 40, "b", 0, 1)
    story.read(5, 50, "b", 1)
    assert ("missing", "a") in kinds(story)


def test_a_version_that_is_given_twice_means_that_the_first_write_is_gone(story):
    story.read(1, 5, None, 0)
    story.write(1, 10, "a", 0, 1)
    story.write(2, 20, "b", 0, 1)
    assert kinds(story) == [("missing", "a")]


def test_a_read_that_had_begun_before_the_acknowledgement_may_miss_the_write(story):
    story.write(1, 10, "a", 0, 1, done=20)
    story.read(2, 15, None, 0, done=30)
    assert kinds(story) == []


def test_a_write_of_unknown_outcome_is_not_missed(story):
    story.write(1, 10, "a", 0, type="info")
    story.write(2, 20, "b", 0, 1)
    story.read(3, 30, "b", 1)
    assert kinds(story) == []


def test_a_write_that_was_never_acknowledged_may_go_again_though_it_was_seen(story):
    story.write(1, 10, "a", 0, type="info")
    story.read(2, 20, "a", 1)
    story.read(3, 30, None, 0)
    assert kinds(story) == []


def two_holds(story):
    story.grant(1, "h1", at=0, until=1000)
    story.grant(2, "h2", at=2000, until=3000)


def test_a_write_of_an_earlier_hold_after_a_later_holder_s_write_is_stale(story):
    """It is stale also where its writer had read the newest version."""
    two_holds(story)
    story.write(2, 2010, "b", 0, 1, hold="h2")
    story.write(1, 2020, "a", 1, 2, hold="h1")
    assert kinds(story) == [("stale", "a")]


def test_a_late_write_before_the_later_holder_wrote_is_not_stale(story):
    two_holds(story)
    story.write(1, 2010, "a", 0, 1, hold="h1")
    story.write(2, 2020, "b", 1, 2, hold="h2")
    assert kinds(story) == []


def test_a_stale_write_that_is_refused_damages_nothing(story):
    two_holds(story)
    story.write(2, 2010, "b", 0, 1, hold="h2")
    story.write(1, 2020, "a", 1, hold="h1", type="fail")
    assert kinds(story) == []


def test_overlapping_writes_without_numbers_are_not_called_stale(story):
    two_holds(story)
    story.write(2, 2010, "b", 0, done=2030, hold="h2")
    story.write(1, 2020, "a", 1, done=2040, hold="h1")
    assert kinds(story) == []


def test_the_damage_of_each_kind_is_counted(story):
    two_holds(story)
    story.write(2, 2010, "b", 0, 1, hold="h2")
    story.write(1, 2020, "a", 0, 2, hold="h1")
    verdict = resource(story.history(), {})
    assert verdict.details == {
        "accepted": 2,
        "refused": 0,
        "lost_update": 1,
        "missing": 0,
        "stale": 1,
    }


class Simulated:
    """Clients that read, modify and write a register, interleaved at random, and the truth.

    Each op takes three moments: it is sent, it takes effect, it is answered; another client's
    may come between any two. `unsure` answers are lost: the op may have taken effect or not.
    """

    def __init__(self, seed: int, locked: bool, numbered: bool, unsure: float) -> None:
        self.story = Story()
        # The writes that took effect on another version than the one that their writer had read.
        self.lost: set[str] = set()
        self.answered: set[str] = set()
        self._random = Random(seed)
        self._numbered, self._unsure, self._locked = numbered, unsure, locked
        self._value: str | None = None
        self._version = 0
        self._holder: int | None = None
        self._at = 0
        self._processes = 0
        clients = [self._client() for _ in range(3)]
        for _ in range(60):
            next(self._random.choice(clients))

    def _tick(self) -> int:
        self._at += 1
        return self._at

    def _client(self):
        while True:
            self._processes += 1
            yield from self._process(self._processes)

    def _process(self, me: int):
        """One process' life: it ends with its first op of unknown outcome."""
        count = 0
        while True:
            count += 1
            hold = f"{me}-{count}"
            if self._locked:
                while self._holder is not None:
                    yield
                self._holder = me
                self.story.grant(me, hold, self._tick(), until=None)
            version = yield from self._read(me)
            sure = yield from self._write(me, f"{me}.{count}", version, hold)
            if self._locked:
                if sure:
                    self.story.release(me, hold, self._tick())
                self._holder = None
            if not sure:
                return

    def _read(self, me: int):
        sent = self._tick()
        yield
        value, version = self._value, self._version
        yield
        self.story.read(me, sent, value, version, done=self._tick())
        return version

    def _write(self, me: int, value: str, version: int, hold: str):
        asked = {"resource": "account", "value": value, "version": version}
        asked |= {"hold": hold} if self._locked else {}
        self.story.op(self._tick(), me, "invoke", "write", asked)
        unsure = self._random.random() < self._unsure
        answer: dict[str, int] = {}
        yield
        if not unsure or self._random.random() < 0.5:
            if self._version != version:
                self.lost.add(value)
            self._value, self._version = value, self._version + 1
            answer = {"stored": self._version} if self._numbered and not unsure else {}
        yield
        if not unsure:
            self.answered.add(value)
        self.story.op(self._tick(), me, "info" if unsure else "ok", "write", asked | answer)
        return not unsure


SEEDS = st.integers(0, 2**32)


@given(SEEDS, st.booleans(), st.sampled_from([0, 0.4]))
@settings(deadline=None, max_examples=60)
def test_clients_that_a_correct_lock_keeps_apart_are_never_blamed(seed, numbered, unsure):
    run = Simulated(seed, locked=True, numbered=numbered, unsure=unsure)
    assert run.lost == set()
    assert kinds_or_unknown(run) == set()


@given(SEEDS, st.sampled_from([0, 0.4]))
@settings(deadline=None, max_examples=60)
def test_with_the_resource_s_numbers_every_lost_update_is_found_and_no_other(seed, unsure):
    run = Simulated(seed, locked=False, numbered=True, unsure=unsure)
    found = kinds_or_unknown(run)
    assert run.lost & run.answered <= found <= run.lost


@given(SEEDS, st.sampled_from([0, 0.4]))
@settings(deadline=None, max_examples=60)
def test_without_the_resource_s_numbers_no_update_is_called_lost_that_was_not(seed, unsure):
    """Of two on one version the one sent later is named, and either may be the one to blame."""
    run = Simulated(seed, locked=False, numbered=False, unsure=unsure)
    found = kinds_or_unknown(run)
    assert len(found) <= len(run.lost)


def test_the_simulation_loses_updates_without_a_lock():
    assert any(Simulated(seed, False, True, 0).lost for seed in range(5))


def kinds_or_unknown(run) -> set[str]:
    """The writes that were called lost; nothing else may be wrong with the register."""
    history = run.story.history()
    verdict = resource(history, {})
    assert {row["kind"] for row in verdict.evidence} <= {"lost_update"}
    return {history.ops[row["ops"][0]].value["value"] for row in verdict.evidence}
