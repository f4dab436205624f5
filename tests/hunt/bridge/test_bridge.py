"""A counterexample becomes a scenario for real servers: one claim for each kind of injection."""

from __future__ import annotations

import json

import pytest

from fencepost.checker.history.history import NEMESIS
from fencepost.harness.execute import scripted
from fencepost.harness.spec import from_arguments
from fencepost.hunt.bridge.bridge import bridge
from fencepost.hunt.bridge.events import unseen
from fencepost.hunt.bridge.trace import Trace
from fencepost.hunt.faults.registry import table
from fencepost.hunt.run import Run
from fencepost.hunt.search.hunt import Counterexample, hunt
from fencepost.hunt.search.judge import violations
from fencepost.hunt.search.search import search
from fencepost.hunt.sim.schedule import Schedule
from fencepost.hunt.story.story import Teller, tell
from fencepost.strictjson import decode
from fencepost.workloads.scenarios import file
from fencepost.workloads.scenarios.scenario import (
    Begin,
    Do,
    Finish,
    Heal,
    Inject,
    Reach,
    SyncDue,
    plain,
)

pytestmark = pytest.mark.slow


@pytest.fixture
def made(setting):
    """Hunt with a seed, and return the bridge and its steps."""

    def make(lock, *given, seed, **more):
        asked = setting(lock, *given, **more)
        _, find = hunt(asked, seed, 300, 1)
        assert find is not None
        found = bridge(asked, find)
        return found, [plain(step) for step in found.scenario.steps]

    return make


def injected(steps, family):
    return [step for step in steps if isinstance(step, Inject) and step.family == family]


def place(steps, kind, **fields):
    """Return the position of the first step that has these fields."""
    for number, step in enumerate(steps):
        if isinstance(step, kind) and all(getattr(step, k) == v for k, v in fields.items()):
            return number
    raise AssertionError(f"no {kind.__name__} with {fields} in {steps}")


def test_a_clock_jumps_by_as_much_of_the_longer_lease(made):
    found, steps = made("redlock", "clock,partition", seed=3)
    assert found.scenario.ttl_ms == 8000
    assert found.scenario.expected == {"lease_exclusion": False}
    jumps = injected(steps, "clock")
    assert {jump.targets for jump in jumps} == {("redis-1",), ("redis-2",), ("redis-3",)}
    assert {jump.arguments["offset_s"] for jump in jumps} == {8.8}
    granted = place(steps, Do, client="client-1", f="acquire", expect="ok")
    again = place(steps, Finish, client="client-2", expect="ok")
    assert granted < place(steps, Inject, family="clock") < again
    assert not found.notes
    assert not found.cannot


def test_a_client_is_waited_for_at_its_steps_in_their_order(made):
    """Requests that meet a cut are sent after those before them, which arrive later than that."""
    _, steps = made("redlock-npm", "pause,partition,delay,packet", seed=2)
    at = {}
    for step in steps:
        if isinstance(step, Begin):
            at[step.client] = 0
        if isinstance(step, Reach):
            number = int(step.point.split("-")[1])
            assert number > at[step.client], steps
            at[step.client] = number
    assert at


def test_a_client_that_waits_for_others_during_an_op_stops_at_a_step_of_it(made):
    _, steps = made("redlock", "clock,partition", seed=2)
    begin = steps[place(steps, Begin, client="client-1", f="acquire")]
    assert begin.stops
    reach = place(steps, Reach, client="client-1", point=begin.stops[0])
    hold = steps[reach + 1]
    assert (hold.family, hold.arguments["point"]) == ("pause", begin.stops[0])
    other = place(steps, Do, client="client-2", f="acquire", expect="ok")
    assert reach < other < place(steps, Heal, name=hold.name)
    cut = injected(steps, "partition")[0]
    # It was cut off before its message to redis-4, at which it has to stop then.
    assert cut.arguments["links"] == [["client-1", "redis-4"]]
    assert steps[reach].words == "until its SET to redis-4"


def test_a_server_crashes_and_restarts_after_every_client_that_met_it_down(made):
    _, steps = made("redlock", "kill,partition,pause,delay,packet", seed=2)
    down = [step.targets[0] for step in injected(steps, "kill")]
    assert len(down) == 3
    granted = place(steps, Do, client="client-1", f="acquire")
    for number, fault in enumerate(injected(steps, "kill")[:2]):
        assert steps[number] == fault
        assert granted < place(steps, Heal, name=fault.name)


def test_a_lost_reply_is_lost_on_its_own_connection_and_reported(made):
    found, steps = made("redlock", "kill,partition,pause,delay,packet", seed=1)
    (lost,) = injected(steps, "delay")
    assert lost.targets == ("client-1", "redis-2")
    way = {"source": "redis-2", "to": "client-1", "connection": True, "lost": True}
    assert {**lost.arguments, "words": ""} == way | {"words": ""}
    point = steps[place(steps, Reach)].point
    assert point.endswith("-connected")
    # The client may use the link again: nothing has to be healed before.
    assert not any(isinstance(step, Heal) and step.name == lost.name for step in steps)
    assert found.notes == (
        "the reply of redis-2 to client-1 is lost: so are all packets of its connection in "
        "the same direction, until the run ends",
    )


def test_messages_sent_into_a_cut_are_lost_as_in_the_simulation(made):
    _, steps = made("redlock", "clock,partition", seed=5)
    assert [cut.arguments["sent"] for cut in injected(steps, "partition")] == ["lost"]


def test_a_paused_client_is_paused_at_the_step_where_it_was(made):
    found, steps = made(
        "redlock", "pause,partition,delay,packet", options={"clock_check": "false"}, seed=2
    )
    (pause,) = [p for p in injected(steps, "pause") if not p.name.startswith("hold")]
    assert pause.arguments["point"].startswith("step-")
    healed = place(steps, Heal, name=pause.name)
    assert place(steps, Inject, name=pause.name) < healed
    # Until the lease expires: the time of the simulation, stretched.
    late = found.scenario.steps[healed]
    early = found.scenario.steps[place(steps, Inject, name=pause.name)]
    assert late.at_s - early.at_s > 8


def test_a_delayed_write_is_delivered_at_its_simulated_time(made):
    found, steps = made("redlock", "delay,packet,partition", guard="none", seed=1)
    (delay,) = injected(steps, "delay")
    assert delay.arguments["source"] == "client-1"
    assert delay.arguments["to"] == "storage"
    other = place(steps, Do, client="client-2", f="write")
    assert other < place(steps, Heal, name=delay.name) < place(steps, Finish, client="client-1")
    assert delay.arguments["connection"] is True and "lost" not in delay.arguments
    assert "all packets of its connection in the same direction" in found.notes[0]


def test_a_client_is_killed_in_the_middle_of_its_op(made):
    _, steps = made("broken-no-ttl", "kill", "liveness", seed=1)
    (kill,) = injected(steps, "kill")
    assert kill.targets == ("client-1",)
    begun = place(steps, Begin, client="client-1", f="acquire")
    assert begun < place(steps, Inject, family="kill")
    assert not any(isinstance(step, Finish) and step.client == "client-1" for step in steps)


def test_power_is_lost_before_the_next_sync(made):
    found, steps = made("redlock", "power,partition,pause,delay", persistence="everysec", seed=1)
    assert found.scenario.settings["persistence"] == "everysec"
    synced = place(steps, SyncDue)
    assert synced < place(steps, Do, client="client-1", f="acquire", expect="ok") + 3
    assert any("syncs the first write" in note for note in found.notes)


def test_a_write_lost_in_a_failover_is_cut_off_from_the_replica_before(made):
    found, steps = made("redis-replicated", "failover,partition", seed=1)
    (failover,) = injected(steps, "failover")
    (cut,) = injected(steps, "partition")
    assert cut.arguments["links"] == [["redis-1", "redis-2"]]
    assert place(steps, Inject, name=cut.name) < place(steps, Inject, name=failover.name)
    assert "the replica is cut off before the write" in found.notes[0]


def test_a_fault_hits_a_library_between_two_of_its_own_messages(made):
    found, steps = made("redis-py", "packet", "liveness", seed=1)
    (first, second) = injected(steps, "delay")
    # One is about the library's own greeting, after it connected; the other about a request.
    for lost in (first, second):
        assert lost.arguments["source"] == "redis-1" and lost.arguments["lost"] is True
    reached = [
        step.words for step in steps if isinstance(step, Reach) and step.client == "client-2"
    ]
    assert reached.count("until it connects to redis-1") == 2
    assert "until its SET to redis-1" in reached
    assert steps[-1] == Finish("client-2", "fail")
    assert found.cannot == ()


@pytest.mark.parametrize(("library", "seen"), [("redis-py", True), ("pottery", False)])
def test_a_lock_whose_threads_send_has_no_certain_place_for_a_fault(setting, library, seen):
    pytest.importorskip(library.removesuffix("-py"))
    asked = setting(library, "clock,pause,partition")
    trace = Trace()
    trace.play(asked, Schedule(), table(asked))
    assert unseen(asked, trace) == (set() if seen else {"client-1", "client-2"})


def test_a_request_that_was_lost_is_not_taken_for_the_same_one_sent_later(setting):
    asked = setting("redlock-npm", "pause,partition,delay,packet")
    _, find = hunt(asked, 3, 300, 1)
    trace = Trace()
    run = trace.play(asked, find.schedule, table(asked))
    cut = next(row[0] for row in run.rows if row[1] == NEMESIS)
    healed = next(row[0] for row in run.rows if row[1] == NEMESIS and row[4]["phase"] == "end")
    sent = {moment.call: moment.call for moment in trace.moments if moment.call.sends}
    into = [call for call in sent if call.client == "client-1" and cut < call.begun_ns < healed]
    assert into and all(call.handled_ns is None for call in into)
    after = [call for call in sent if call.client == "client-1" and call.begun_ns > healed]
    assert after and all(call.handled_ns is not None for call in after)


def test_an_op_that_had_just_started_is_replayed_where_its_effect_is_invisible(made):
    _, steps = made("etcd-lock-api", "pause", seed=7, server=["etcd=3.4"])
    begun = place(steps, Begin, client="client-2", f="release")
    assert begun < place(steps, Finish, client="client-1", expect="ok")


def test_a_client_that_asks_in_vain_next_to_a_dead_server_asks_on_real_servers_too(made):
    pytest.importorskip("redlock")
    _, steps = made("redlock-py", "kill", restart="never", seed=2)
    vain = [step for step in steps if isinstance(step, Do | Begin) and step.f == "acquire"]
    assert len(vain) > 6
    assert not any(isinstance(step, Heal) and step.name == "kill-1" for step in steps)


def test_a_lock_that_outlasts_a_lease_has_more_retries_in_proportion_to_the_lease(made):
    found, steps = made("redlock", "delay,packet,partition", guard="none", seed=5)
    usual = from_arguments.spec("redlock", {}, {}).options
    longer = found.scenario.ttl_ms / 2000
    assert found.scenario.options == {**usual, "retries": usual["retries"] * longer}
    place(steps, Begin, client="client-2", f="acquire")


def test_a_lock_that_outlasts_no_lease_keeps_its_retries(made):
    found, _ = made("redlock", "clock,partition", seed=5)
    assert found.scenario.options == from_arguments.spec("redlock", {}, {}).options


def test_a_waiting_client_is_faulted_during_its_wait_and_not_at_a_later_step(setting):
    asked = setting("etcd-lock-api", "pause", server=["etcd=3.4"])
    found = bridge(asked, told_of(asked, Schedule((0, 0, 3, 1), ((35, 2),))))
    steps = [plain(step) for step in found.scenario.steps]
    begun = place(steps, Begin, client="client-2", f="acquire", stops=())
    struck = place(steps, Inject, family="pause", targets=("client-2",))
    ended = place(steps, Finish, client="client-2", expect="ok")
    healed = place(steps, Heal, name=steps[struck].name)
    # A client that is granted the lock asks first. The lease of the other ends in its pause, of
    # which its own thread learns before the lock is free.
    assert place(steps, Do, client="client-1", f="acquire") < begun < struck < healed
    assert healed < place(steps, Do, client="client-1", f="release") < ended
    assert "point" not in steps[struck].arguments
    assert not any(isinstance(step, Reach) for step in steps)
    # It continues to wait for as many leases.
    longer = 10_000 * found.scenario.ttl_ms / 2000
    assert found.scenario.options["wait_ms"] == longer
    hunted = from_arguments.spec("etcd-lock-api", {}, {"server": ["etcd=3.4"]})
    assert scripted.of_hunt(hunted, found.scenario, 1).options["wait_ms"] == longer
    # Time passes until it waits.
    assert found.scenario.steps[struck].waits and found.scenario.steps[struck].at_s > 1


def test_a_duplicated_message_cannot_be_replayed_and_is_reported(setting):
    asked = setting("redlock", "packet/duplicate,clock")
    actions = table(asked)
    _, met = hunt(asked, 3, 300, 1)
    twice = next(number for number, one in enumerate(actions, 1) if one.kind == "packet/duplicate")
    schedule = Schedule(met.schedule.head, ((3, twice), *met.schedule.injections))
    found = bridge(asked, told_of(asked, schedule))
    assert len(found.cannot) == 1
    assert "arrives a second time" in found.cannot[0]


def told_of(asked, schedule):
    """Return the counterexample of a schedule, unshrunk."""
    teller = Teller()
    run = Run(asked, schedule, table(asked), teller).execute()
    broken = violations(run, asked.goals, surely=True)
    assert broken
    return Counterexample(schedule, schedule, run, broken, tell(run, teller, broken), 1)


@pytest.mark.parametrize(
    ("lock", "faults", "guard"),
    [
        ("redlock", None, None),
        ("redlock", "delay,packet,partition", "none"),
        ("redlock", "packet/duplicate,clock,kill", None),
        ("redis-replicated", None, None),
        ("broken-check-then-delete", None, None),
        ("etcd", "delay,pause", None),
    ],
)
def test_every_injection_of_an_unshrunk_schedule_is_replayed_or_reported(
    setting, lock, faults, guard
):
    until = "mutual_exclusion" if lock == "etcd" else None
    asked = setting(lock, faults, until, guard=guard)
    for seed in (101, 102):
        found = search(asked, seed, 300, 1).found
        assert found is not None
        find = told_of(asked, found[0])
        made = bridge(asked, find)
        names = [s.name for s in map(plain, made.scenario.steps) if isinstance(s, Inject)]
        said = " ".join((*made.notes, *made.cannot))
        until_ns = min(find.story[-1].time_ns, find.run.worked_ns)
        for row in find.run.rows:
            if row[0] <= until_ns and row[1:3] == (NEMESIS, "ok") and row[4]["phase"] == "start":
                fault, words = row[4]["fault"], row[4]["arguments"]["words"]
                played = any(name == fault or name.startswith(f"{fault}-") for name in names)
                assert played or words in said


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_file_gives_the_same_scenario_and_so_does_the_python(made, seed):
    found, _ = made("redlock", "clock,partition", seed=seed)
    text = file.to_text(found.scenario, found.notes, found.cannot)
    scenario, _ = file.read(decode(text.encode()))
    assert scenario == found.scenario
    space: dict[str, object] = {}
    exec(file.python(found.scenario), space)
    assert space["SCENARIO"] == found.scenario


SOUND = {
    "scenario": 1, "name": "n", "lock": "redis", "guard": "none", "ttl_ms": 1000, "clients": 2,
    "steps": [{"do": "do", "client": "client-1", "f": "acquire"}],
}  # fmt: skip


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"scenario": 2}, "its scenario is version 2, but this version of fencepost reads 1"),
        ({"steps": []}, "steps"),
        ({"ttl_ms": 0}, "ttl_ms"),
        ({"colour": "red"}, "colour"),
        ({"steps": [{"do": "jump"}]}, "step 1: do 'jump': choose one of"),
        ({"steps": [{"do": "do", "client": "client-1"}]}, "step 1: Object missing required"),
        ({"steps": [{"do": "heal", "name": "a", "of": 1}]}, "step 1: heal has no field 'of'"),
        ({"steps": [{"do": "do", "client": "c", "f": "jump"}]}, "f 'jump': choose one of"),
        ({"steps": [{"do": "pass", "seconds": -1}]}, "seconds -1"),
        ({"steps": [{"do": "pass", "seconds": 1, "at_s": -1}]}, "at_s -1"),
        ({"steps": [{"do": "finish", "client": "c", "expect": "?"}]}, "expect '?'"),
    ],
)
def test_a_file_that_is_wrong_is_refused_with_the_step_and_why(change, said):
    decoded = json.loads(json.dumps(SOUND | change))
    with pytest.raises(ValueError) as told:
        file.read(decoded)
    assert said in str(told.value)
