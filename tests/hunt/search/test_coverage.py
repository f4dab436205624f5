"""A clean hunt states its coverage, and claims no more than follows from it."""

from __future__ import annotations

from math import comb

import pytest

from fencepost.hunt.faults.registry import table
from fencepost.hunt.run import Run
from fencepost.hunt.search.batch import Batch
from fencepost.hunt.search.campaign import Outcome, covered, merged
from fencepost.hunt.search.coverage import cells, coverage, existing, of_hunt, one_in, words
from fencepost.hunt.search.search import Tried, search, search_all
from fencepost.hunt.sim.schedule import Schedule
from fencepost.hunt.story.story import acquires


@pytest.mark.parametrize("clean", [1, 2, 10, 59, 299, 2995, 12_000, 1_000_000])
def test_the_bound_is_the_rarest_error_that_is_found_with_95_percent(clean):
    found = one_in(clean)

    def seen(one_in_so_many):
        return 1 - (1 - 1 / one_in_so_many) ** clean

    assert seen(found) >= 0.95 > seen(found + 1)


def test_the_bound_is_the_rule_of_three():
    assert 4000 <= one_in(12_000) <= 4010
    assert one_in(0) is None


def test_a_mean_share_is_bounded_although_shares_differ_between_rounds():
    # Two rounds of draws, with other weights.
    shares = [0.0002] * 3000 + [0.0008] * 3000
    missed = 1.0
    for share in shares:
        missed *= 1 - share
    assert missed <= (1 - sum(shares) / len(shares)) ** len(shares)


def test_too_few_schedules_support_no_bound_worth_the_name():
    assert one_in(1) == 1


def test_a_fault_of_a_message_strikes_the_op_of_its_client(setting):
    one = setting("redis", "packet")
    run = Run(one, Schedule((), ((2, 1),)), table(one)).execute()
    assert cells(run.struck) == {("packet/loss", "acquire", "request")}
    assert words(("packet/loss", "acquire", "request")) == "packet/loss in acquire before a request"


def test_a_fault_of_a_client_strikes_its_own_op_alone(setting):
    one = setting("redis", "pause:client")
    whole = Run(one, Schedule(), table(one)).execute()
    begin, end = acquires(whole.rows)[0]
    run = Run(one, Schedule((), ((begin + 1, 1),)), table(one)).execute()
    assert {(fault, op) for fault, op, _ in cells(run.struck)} == {("pause:client", "acquire")}
    assert begin + 1 < end


def test_a_fault_that_had_no_effect_strikes_nothing(setting):
    one = setting("redis", "kill")
    client = next(n for n, action in enumerate(table(one), 1) if action.client == 1)
    twice = Run(one, Schedule((), ((2, client), (4, client))), table(one)).execute()
    once = Run(one, Schedule((), ((2, client),)), table(one)).execute()
    assert twice.struck == once.struck


def test_what_exists_is_all_that_one_injection_anywhere_strikes(setting):
    one = setting("redis", "packet,pause:client")
    actions, every = table(one), set()
    steps = Run(one, Schedule(), actions).execute().worked_step
    for step in range(1, steps):
        for number in range(1, len(actions) + 1):
            every |= cells(Run(one, Schedule((), ((step, number),)), actions).execute().struck)
    assert every and every <= existing(one)


def test_a_fault_that_is_left_out_does_not_exist(setting):
    one = setting("redis", "packet,pause:client")
    pauses = {n for n, action in enumerate(table(one), 1) if action.kind == "pause"}
    assert {fault for fault, _, _ in existing(one, pauses)} == {"packet/loss"}


def test_a_hunt_counts_histories_and_remembers_the_last_new_one(setting):
    one = setting("redis", "pause:client,packet")
    tried = search(one, 1, 60, processes=1, most=300)
    found = of_hunt(one, tried, drawn=True)
    assert sum(tried.states.values()) == tried.schedules == found.of == found.clean == 300
    assert 0 < found.once <= found.histories == len(tried.states)
    assert 0 < found.last_new <= 300 and 0 <= found.since_s <= tried.seconds
    assert 0 < found.struck <= found.existing
    assert found.existing == found.struck + len(found.missed)
    assert found.one_in == one_in(300)


def test_only_a_batch_with_a_new_history_moves_the_last_new_one():
    tried = Tried()
    for states, last in (({1: 50}, 50), ({1: 50}, 50), ({1: 49, 2: 1}, 150), ({2: 50}, 150)):
        tried.add(Batch(tried=50, states=states))
        assert tried.last_new == last
    assert tried.states == {1: 149, 2: 51}


def test_a_hunt_without_faults_covers_nothing_and_says_its_bound(setting):
    one = setting("redis", "")
    tried = search(one, 1, 60, processes=1, most=200)
    found = of_hunt(one, tried, drawn=True)
    assert (found.struck, found.existing, found.one_in) == (0, 0, one_in(200))
    assert not any("struck" in words for words in found.sentences)


def test_an_exhaustive_search_counts_states_and_claims_no_bound(setting):
    one = setting("redis", "packet")
    tried = search_all(one, 1, 60, processes=1)
    found = of_hunt(one, tried, drawn=False)
    assert (found.one_in, found.once) == (None, None)
    assert (found.states, found.known) == (tried.schedules, tried.known)
    assert found.known > 0
    assert not any("bound" in words for words in found.sentences)


def test_the_bound_rests_on_the_schedules_after_the_last_inherent_counterexample(setting):
    one = setting("redis", "pause:client")
    tried = search(one, 1, 60, processes=1, most=200)
    tried.clean_from = 150
    assert of_hunt(one, tried, drawn=True).one_in == one_in(50)


def test_missed_cells_are_named_and_the_rest_is_counted():
    exist = {("pause", f"op{number}", "reply") for number in range(comb(5, 2) + 1)}
    found = coverage(
        {("pause", "op0", "reply")}, exist, histories=3, last_new=5, of=9, once=1, one_in=3
    )
    text = "\n".join(found.sentences)
    assert "struck: 1 of 11 combinations" in text
    assert "pause in op1 before a reply" in text and "and 2 more" in text
    assert "the last new one by schedule 5 of 9" in text and "with about 11 %" in text


def test_no_sentence_calls_a_lock_safe_or_correct(setting):
    one = setting("redis", "pause:client")
    found = of_hunt(one, search(one, 1, 60, processes=1, most=100), drawn=True)
    text = " ".join(found.sentences).lower()
    assert not any(word in text for word in ("safe", "correct", "proves", "no error"))
    assert "a rarer one may exist" in text


def outcome(seed, states, found=False):
    return Outcome(
        seed, 100, 1.0, states=states, cells=[["packet/loss", "acquire", "reply"]],
        clean=0 if found else 100, schedule=[1] if found else None,
        broken=["liveness"] if found else [],
    )  # fmt: skip


def test_a_campaign_adds_up_its_seeds_and_says_which_showed_the_last_new_history(setting):
    one = setting("redis", "packet")
    total = covered(one, merged([outcome(1, [1, 2]), outcome(2, [2, 3]), outcome(3, [1, 3])]))
    assert (total.histories, total.last_new, total.of, total.unit) == (3, 2, 3, "seed")
    assert (total.clean, total.one_in) == (300, one_in(300))
    assert total.struck == 1 and total.missed


def test_a_campaign_that_found_something_supports_no_bound(setting):
    one = setting("redis", "packet")
    total = covered(one, merged([outcome(1, [1]), outcome(2, [2], found=True)]))
    assert total.one_in is None
