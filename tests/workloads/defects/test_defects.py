"""The catalogue of lock defects: each file is whole, valid, and a user lock as users write them."""

from __future__ import annotations

import importlib.util
import inspect
import sys

import pytest

from fencepost.checker.checkers import CHECKERS
from fencepost.harness.campaigns.defect_plays import of_servers
from fencepost.harness.spec.spec import layout_of
from fencepost.nemesis.families import check
from fencepost.workloads.contract.catalogue import FOLDER, LOCK, catalogue
from fencepost.workloads.contract.defect import FAMILIES
from fencepost.workloads.contract.locktype import PROMISES, LockType

FILES = sorted(path for path in FOLDER.glob("*.py") if not path.name.startswith("_"))
SIBLINGS = {path.stem for path in FOLDER.glob("*.py")}
CATALOGUE = catalogue()
FIRST_WORDS = {
    "release": "release", "lease": "lease", "renewal": "renewal", "quorum": "quorum",
    "tokens": "token", "waiting": "wait", "modes": "mode", "answers": "answer",
    "cancellation": "cancel",
}  # fmt: skip


@pytest.fixture(params=CATALOGUE.values(), ids=CATALOGUE)
def listed(request):
    return request.param


@pytest.fixture
def module(listed, monkeypatch):
    """The file's module, imported as on a client's node: next to its siblings."""
    monkeypatch.syspath_prepend(str(FOLDER))
    for name in SIBLINGS & set(sys.modules):
        del sys.modules[name]
    spec = importlib.util.spec_from_file_location(f"defect_{listed.file.stem}", listed.file)
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    yield made
    for name in SIBLINGS & set(sys.modules):
        del sys.modules[name]


def test_each_file_has_a_defect_of_its_own_name():
    assert [one.file.stem for one in sorted(CATALOGUE.values(), key=lambda one: one.file)] == [
        path.stem for path in FILES
    ]
    assert {one.file.stem.replace("_", "-"): one.defect for one in CATALOGUE.values()} == {
        one.defect.name: one.defect for one in CATALOGUE.values()
    }


def test_each_family_has_defects():
    assert {one.defect.family for one in CATALOGUE.values()} == set(FAMILIES) == set(FIRST_WORDS)


def test_its_name_begins_with_its_family(listed):
    assert listed.defect.name.split("-")[0] == FIRST_WORDS[listed.defect.family]


def test_no_two_defects_describe_the_same_mistake():
    assert len({one.defect.what for one in CATALOGUE.values()}) == len(CATALOGUE)


def test_its_texts_are_sentences_and_say_where_it_was_seen(listed):
    defect = listed.defect
    for text in filter(None, (defect.what, defect.breaks, defect.hidden)):
        assert text[0].isupper() and text.endswith(".")
    assert defect.seen and not defect.seen.endswith(".")


def test_its_literals_are_those_of_its_module(listed, module):
    assert listed.defect == module.DEFECT


def test_its_locks_keep_the_plain_contract_or_are_lock_types(listed, module):
    for name in listed.classes:
        lock = getattr(module, name)
        if isinstance(lock, LockType):
            continue
        assert list(inspect.signature(lock.acquire).parameters) == ["self", "name", "ttl"]
        assert list(inspect.signature(lock.release).parameters) == ["self", "name"]
        if hasattr(lock, "extend"):
            assert list(inspect.signature(lock.extend).parameters) == ["self", "name", "ttl"]
        if hasattr(lock, "close"):
            assert list(inspect.signature(lock.close).parameters) == ["self"]
        first, *options = list(inspect.signature(lock).parameters)
        assert first == "servers" and set(options) >= set(listed.defect.options)


def test_its_twin_is_another_lock(listed, module):
    if listed.defect.twin:
        assert module.Lock is not module.Sound


def test_its_checkers_exist_and_the_named_one_is_not_repeated(listed):
    defect = listed.defect
    named = [*filter(None, [defect.checker]), *defect.also]
    assert set(named) <= set(CHECKERS) and len(set(named)) == len(named)
    assert not (defect.hidden and defect.also)


def test_its_promises_are_known_and_those_that_only_a_promise_shows_are_of_liveness(listed):
    assert set(listed.defect.promises) <= set(PROMISES)
    if set(listed.defect.promises) - {"reentrant"}:
        assert listed.defect.checker in ("", "liveness")


def test_it_can_be_tested_with_its_faults_on_its_servers(listed):
    for name in listed.classes:
        spec = of_servers(listed, name, seed=1)
        check(listed.defect.faults, layout_of(spec))


def test_all_that_it_imports_is_shipped(listed, module):
    shipped = {FOLDER / path for path in of_servers(listed, LOCK, seed=1).own.files}
    siblings = {FOLDER / f"{name}.py" for name in sys.modules if name in SIBLINGS}
    assert shipped == {listed.file, *siblings}
