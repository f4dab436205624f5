"""Compare each checker with its oracle, on the same small random histories every time.

`make test-oracles` does it on 10,000 fresh ones a checker, `make soak-checkers` on a million.
"""

from __future__ import annotations

import pytest

from tests.oracles import causes, true_causes
from tests.oracles.soak import ORACLES, check

pytestmark = pytest.mark.oracle


@pytest.mark.parametrize("name", ORACLES)
def test_a_checker_s_verdict_is_one_that_its_oracle_allows(name):
    outcomes, wrong = check(name, "unit", 0, 1000)
    assert not wrong, "\n\n".join(wrong[:2])
    assert outcomes["True"] > 40 and outcomes["False"] > 40


SURE = ("lease-over", "expired-grant", "kept-by-fault", "kept-on", "granted-both")


def test_a_chain_of_causes_is_one_that_its_oracle_allows():
    outcomes, wrong = causes.check("unit", 0, 2500)
    assert not wrong, "\n\n".join(wrong[:2])
    assert all(outcomes[f"{sort} sure"] > 3 for sort in SURE)
    assert all(outcomes[f"{sort} likely"] > 5 for sort in ("kept-by-fault", "stolen", "forgot"))


def test_a_cause_that_is_stated_as_sure_is_true():
    outcomes, wrong = true_causes.check("unit", 0, 250)
    assert not wrong, "\n".join(wrong[:5])
    assert all(outcomes[sort] > 3 for sort in SURE if sort != "expired-grant")
