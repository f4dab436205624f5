"""Sets that keep the order of insertion are sets in every other respect."""

from __future__ import annotations

import copy
import pickle
from random import Random

from fencepost.hunt.intercept.sets import OrderedSet


def test_it_is_iterated_in_the_order_of_insertion_whatever_the_hashes():
    words = [f"word {number}" for number in range(50)]
    Random(1).shuffle(words)
    found = OrderedSet(words)
    assert list(found) == words == list(copy.copy(found)) == list(pickle.loads(pickle.dumps(found)))
    found.discard(words[3])
    found.add(words[3])
    found.add(words[0])
    assert list(found) == [*words[:3], *words[4:], words[3]]


def test_it_has_the_same_members_as_a_set_after_any_changes():
    random = Random(2)
    ordered, plain = OrderedSet(), set()
    for _ in range(2000):
        thing = random.randrange(20)
        match random.randrange(6):
            case 0 | 1:
                ordered.add(thing), plain.add(thing)
            case 2:
                ordered.discard(thing), plain.discard(thing)
            case 3 if thing in plain:
                ordered.remove(thing), plain.remove(thing)
            case 4 if plain and thing == 7:
                plain.remove(ordered.pop())
            case 5 if thing == 3:
                ordered.clear(), plain.clear()
            case _:
                ordered.update({thing}), plain.update({thing})
        assert ordered == plain and sorted(ordered) == sorted(plain)
        assert len(ordered) == len(plain) == len(list(ordered))
