"""Deciding objects in several processes: the assignment, limits and crashes."""

import multiprocessing
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool

import pytest

from fencepost.checker.lincheck import processes
from fencepost.checker.lincheck.budget import UNLIMITED, Budget, Exhausted
from fencepost.checker.lincheck.models import named
from fencepost.checker.lincheck.operation import objects
from fencepost.checker.lincheck.processes import in_processes

MODEL = named("owner-mutex")


def parts(*specified):
    """Return {lock: operations} from (lock, rounds of one process, whether two hold it at once)."""
    events = []

    def op(process, f, lock):
        value = {"lock": lock}
        events.extend(
            {"process": process, "type": kind, "f": f, "value": value} for kind in ("invoke", "ok")
        )

    for number, (lock, rounds, broken) in enumerate(specified):
        for _ in range(rounds):
            op(number, "acquire", lock)
            op(number, "release", lock)
        if broken:
            op(number, "acquire", lock)
            op(number + 100, "acquire", lock)
    return objects(enumerate(events, 1), MODEL).parts


def decided(found, budget=UNLIMITED):
    return in_processes(found, list(found), MODEL, budget, False)


@pytest.fixture
def two_cpus(monkeypatch):
    monkeypatch.setattr("fencepost.processors.count", lambda: 2)


@pytest.fixture
def pool(monkeypatch):
    """An executor that runs each task at once instead of in a process, and records the calls."""
    done = []

    class Worker:
        def terminate(self):
            done.append("terminated")

    class Pool:
        def __init__(self, workers, mp_context, initializer, initargs):
            done.append((workers, mp_context.get_start_method()))
            initializer(*initargs)
            self._processes = {1: Worker()}

        def __enter__(self):
            return self

        def __exit__(self, *_):
            processes._work = None

        def submit(self, decide, index):
            done.append(index)
            future = Future()
            try:
                future.set_result(decide(index))
            except BaseException as error:
                future.set_exception(error)
            return future

        def shutdown(self, **how):
            done.append(how)

    monkeypatch.setattr(processes, "ProcessPoolExecutor", Pool)
    return done


def test_processes_find_the_object_that_fails_and_nothing_where_none_does(two_cpus):
    sound = [("a", 3, False), ("b", 1, False), ("c", 2, False)]
    assert decided(parts(*sound)) == (None, None)
    (key,), failure = decided(parts(*sound, ("d", 1, True)))
    assert key == "d"
    assert (failure.operation.process, failure.first) == (103, True)


def test_the_longest_object_is_first_and_the_rest_are_cancelled_on_a_failure(two_cpus, pool):
    found = parts(("a", 1, False), ("b", 3, False), ("c", 2, False))
    assert decided(found) == (None, None)
    assert pool == [(2, "fork"), 1, 2, 0]
    pool.clear()
    (key,), _ = decided(parts(("a", 5, False), ("b", 1, True)))
    assert key == "b"
    assert pool[-2:] == [{"wait": False, "cancel_futures": True}, "terminated"]


@pytest.mark.parametrize(("cpus", "workers"), [(2, 2), (3, 3), (8, 3)])
def test_there_are_as_many_processes_as_cpus_and_objects_allow(monkeypatch, pool, cpus, workers):
    monkeypatch.setattr("fencepost.processors.count", lambda: cpus)
    decided(parts(("a", 1, False), ("b", 1, False), ("c", 1, False)))
    assert pool[0] == (workers, "fork")


@pytest.mark.parametrize("cpus", [1])
def test_one_process_is_not_worth_starting(monkeypatch, pool, cpus):
    two = parts(("a", 1, False), ("b", 1, False))
    monkeypatch.setattr("fencepost.processors.count", lambda: cpus)
    assert decided(two) is None
    monkeypatch.setattr("fencepost.processors.count", lambda: 4)
    assert decided(parts(("a", 1, False))) is None
    assert pool == []
    assert decided(two) == (None, None)


def test_no_processes_are_started_but_by_fork_from_one_that_may_have_children(
    monkeypatch, two_cpus, pool
):
    two = parts(("a", 1, False), ("b", 1, False))
    with monkeypatch.context() as patched:
        patched.setattr("sys.platform", "darwin")
        assert decided(two) is None
    with monkeypatch.context() as patched:
        patched.setattr(processes, "_work", processes._Work([], MODEL, UNLIMITED, False))
        assert decided(two) is None  # a check within a check
    with monkeypatch.context() as patched:
        patched.setitem(multiprocessing.current_process()._config, "daemon", True)
        assert decided(two) is None
    assert pool == []
    assert decided(two) == (None, None)
    assert decided(two) == (None, None)


def test_a_limit_makes_it_unknown_unless_another_object_fails(two_cpus, pool, monkeypatch):
    def decide(operations, model, budget, fast):
        assert (model, budget, fast) == (MODEL, UNLIMITED, False)
        if operations[0].action.owner == 0:
            raise Exhausted("a limit")
        return verdict(operations, model, budget, fast)

    verdict = processes.decide
    monkeypatch.setattr(processes, "decide", decide)
    with pytest.raises(Exhausted, match=r"^a limit$"):
        decided(parts(("a", 1, False), ("b", 1, False)))
    (key,), _ = decided(parts(("a", 2, False), ("b", 1, True)))
    assert key == "b"


def test_a_timeout_in_one_process_ends_all(two_cpus):
    with pytest.raises(Exhausted, match="time limit of 7 s reached"):
        decided(parts(("a", 1, True), ("b", 1, True)), Budget(0.0, None, 7.0))


def test_a_process_that_dies_makes_it_unknown(two_cpus, pool, monkeypatch):
    def killed(*_):
        raise BrokenProcessPool

    monkeypatch.setattr(processes, "decide", killed)
    with pytest.raises(Exhausted, match="a process that checked some of the objects was killed"):
        decided(parts(("a", 1, False), ("b", 1, False)))
