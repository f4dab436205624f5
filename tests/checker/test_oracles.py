"""Compare each checker with its oracle, on the same small random histories every time.

`make test-oracles` does it on 20,000 fresh ones a checker, `make soak-checkers` on a million.
"""

from __future__ import annotations

import pytest

from tests.oracles.soak import ORACLES, check

pytestmark = pytest.mark.oracle


@pytest.mark.parametrize("name", ORACLES)
def test_a_checker_s_verdict_is_one_that_its_oracle_allows(name):
    outcomes, wrong = check(name, "unit", 0, 1000)
    assert not wrong, "\n\n".join(wrong[:2])
    assert outcomes["True"] > 40 and outcomes["False"] > 40
