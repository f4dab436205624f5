"""An op in one line, and the reason why the op that failed does not fit."""

import pytest

from fencepost.checker.lincheck import UNKNOWN
from fencepost.checker.lincheck.evidence import Evidence, described
from fencepost.checker.lincheck.model import Action
from fencepost.checker.lincheck.operation import Operation
from fencepost.checker.lincheck.partials import Blocked, Partial


@pytest.mark.parametrize(
    ("action", "line"),
    [
        (Action("read", result=3), "read -> 3"),
        (Action("read", result=None), "read -> null"),
        (Action("dequeue", result=None), "dequeue -> null"),
        (Action("dequeue", result=UNKNOWN), "dequeue"),
        (Action("write", "a"), "write 'a'"),
        (Action("cas", (1, 2), False), "cas (1, 2) -> False"),
        (Action("acquire", result=None), "acquire"),
        (Action("acquire", 5, result=7), "acquire 5 -> 7"),
        (Action("release"), "release"),
    ],
)
def test_an_op_is_described_with_its_argument_and_result(action, line):
    assert described(action) == line


def test_the_longest_way_says_why_the_op_that_failed_does_not_fit():
    failed, other = (Operation(i, 9, Action("read"), i, None, None, i + 1) for i in (1, 2))

    def way(*blocked):
        return Partial((), None, tuple(Blocked(*one) for one in blocked))

    def why(*ways):
        return Evidence(False, {}, failed=failed, partials=ways).why

    assert why(way((other, "no"), (failed, "it is 3")), way((failed, "it is 4"))) == "it is 3"
    assert why(way((other, "no")), way((failed, "it is 4"))) is None
    assert why(way((failed, None))) is None
    assert why() is None
