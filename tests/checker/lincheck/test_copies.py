"""A copy of a search continues from its place under the rules of the original search."""

from fencepost.checker.lincheck.crashed import Crashed, faults
from fencepost.checker.lincheck.model import Action
from fencepost.checker.lincheck.models import named
from fencepost.checker.lincheck.search import Search

MODEL = named("cas-register")


def test_a_copy_keeps_as_many_configurations_as_its_search():
    for width in (None, 3):
        assert Search.begin(MODEL, width=width).copy().width == width


def test_the_steps_of_a_copy_are_not_counted_in_the_original():
    assert Search.begin(MODEL).copy().relaxed is False
    copy = Search.begin(MODEL, counted=frozenset()).copy()
    assert copy.relaxed is True
    assert not copy.exact


def test_a_crashed_op_after_the_copy_is_counted_only_if_requested():
    write = Action("write", 1)
    for counted, endless in ((None, False), (frozenset({write}), False), (frozenset(), True)):
        copy = Crashed(MODEL, counted).copy()
        copy.want(Action("read", result=1))
        copy.add(7, write)
        [(_, _, once)] = copy.moves(0, 0, False)
        more = [faults(once + unit) for _, _, unit in copy.moves(0, once, False)]
        assert more == ([1] if endless else [])


def test_a_copy_has_the_facts_that_no_observer_can_see():
    search = Search.begin(named("kv"))
    search.invoke(1, Action("put", "x"))
    search.pruning.hide([])
    copy = search.copy()
    assert copy.pruning.replacing(copy.slots) == search.pruning.replacing(search.slots) != 0
