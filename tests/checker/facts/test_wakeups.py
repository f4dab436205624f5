"""The window with the most unexplained wakeups, found by a look at every window."""

from __future__ import annotations

from random import Random

from fencepost.checker.facts.wakeups import Entry, herd
from tests.histories import MS


def worst_windows(entries, apart):
    """Return the evidence that each of the worst windows gives: those whose wakeups exceed the
    entries that may have ended in them by the most."""
    waits = [one for one in entries if one.wakeups]
    found = {}
    for since in {one.begin for one in waits}:
        for until in {one.granted for one in waits if one.granted >= since}:
            inside = [one for one in waits if one.begin >= since and one.granted <= until]
            woken = sum(one.wakeups for one in inside)
            met = sum(one.begin <= until + apart and one.over >= since - apart for one in entries)
            row = (since, until, woken, met, woken / met if met else woken)
            found.setdefault(woken - met, []).append(row)
    most = max(found, default=0)
    if most <= 0:
        return []
    latest = max(since for since, *_ in found[most])
    return [row for row in found[most] if row[0] == latest]


def evidence(since, until, woken, met, each):
    return {
        "what": f"From {since / 1e9:.3f} s to {until / 1e9:.3f} s waiters were woken {woken} times "
        f"for {met} requests, {each:.1f} for each: the end of one hold or wait wakes a herd of "
        "waiters.",
        "time_ns": since,
        "valid": False,
    }


def drawn(random):
    for _ in range(random.randrange(1, 9)):
        begin = random.randrange(20)
        granted = begin + random.randrange(8)
        over = granted + random.choice((0, 1, 5, 20))
        served = random.random() < 0.7
        woken = random.choice((0, 0, 1, 2, 3, 6)) if served else 0
        yield Entry(begin * MS, over * MS, granted * MS if served else None, woken)


def test_the_window_is_one_of_the_worst_among_all():
    herds = 0
    for seed in range(1500):
        random = Random(seed)
        entries, apart = list(drawn(random)), random.choice((0, 0, 1, 3)) * MS
        rows = worst_windows(entries, apart)
        found = herd(entries, apart)
        assert found in [evidence(*row) for row in rows] or (found is None and not rows), seed
        herds += found is not None
    assert 300 < herds < 1400
