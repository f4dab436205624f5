"""Verdicts on random runs agree with the oracle, or with the true ops of the run."""

from __future__ import annotations

from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from fencepost.checker.history.history import History
from fencepost.checker.resource import resource
from tests.histories import Story
from tests.oracles.resource import draw, verdict


class Simulated:
    """Clients that read, modify and write a register, interleaved at random, and the truth.

    Each op has three moments: it is sent, it takes effect, it is answered; another client's may
    come between any two. `unsure` answers are lost: the op may have taken effect or not.
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
        """Run one process' life: it ends with its first op of unknown outcome."""
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


@given(SEEDS)
@settings(max_examples=400)
def test_the_verdict_is_that_of_looking_at_every_pair(seed):
    ops, test = draw(Random(seed))
    assert resource(History(ops), test).valid in verdict(ops, test)


@given(SEEDS, st.booleans(), st.sampled_from([0, 0.4]))
@settings(max_examples=60)
def test_clients_that_a_correct_lock_keeps_apart_are_never_blamed(seed, numbered, unsure):
    run = Simulated(seed, locked=True, numbered=numbered, unsure=unsure)
    assert run.lost == set()
    assert kinds_or_unknown(run) == set()


@given(SEEDS, st.sampled_from([0, 0.4]))
@settings(max_examples=60)
def test_with_the_resource_s_numbers_every_lost_update_is_found_and_no_other(seed, unsure):
    run = Simulated(seed, locked=False, numbered=True, unsure=unsure)
    found = kinds_or_unknown(run)
    assert run.lost & run.answered <= found <= run.lost


@given(SEEDS, st.sampled_from([0, 0.4]))
@settings(max_examples=60)
def test_without_the_resource_s_numbers_no_update_is_called_lost_that_was_not(seed, unsure):
    """Of two writes on one version the verdict names the later; either may be to blame."""
    run = Simulated(seed, locked=False, numbered=False, unsure=unsure)
    found = kinds_or_unknown(run)
    assert len(found) <= len(run.lost)


def test_the_simulation_loses_updates_without_a_lock():
    assert any(Simulated(seed, False, True, 0).lost for seed in range(5))


def kinds_or_unknown(run) -> set[str]:
    """Return the writes reported as lost; no other error may be reported."""
    history = run.story.history()
    found = resource(history, {})
    assert {row["kind"] for row in found.evidence} <= {"lost_update"}
    return {history.ops[row["ops"][0]].value["value"] for row in found.evidence}
