"""Bundles of other packages are found by entry points, and errors name the package to blame."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from fencepost.registry import BadPlugin, Registry


@dataclass(frozen=True)
class Thing:
    name: str


OURS = (Thing("one"), Thing("two"))


def installed(site: Path, name: str, points: str, code: str) -> None:
    """Lay out a package as pip does: its module and its metadata in a folder on sys.path."""
    (site / f"{name}_module.py").write_text(code)
    info = site / f"{name}-1.2.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.2\n")
    (info / "entry_points.txt").write_text(f"[fencepost.things]\n{points}\n")


@pytest.fixture
def site(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path
    for name in [name for name in sys.modules if name.endswith("_module")]:
        del sys.modules[name]


def registry() -> Registry[Thing]:
    return Registry("fencepost.things", Thing, OURS)


THREE = "from test_registry import Thing\nTHING = Thing('three')\n"


@pytest.fixture(autouse=True)
def as_module(monkeypatch):
    monkeypatch.setitem(sys.modules, "test_registry", sys.modules[__name__])


def test_bundled_entries_come_first_in_the_order_of_the_list_and_then_those_of_packages(site):
    installed(site, "guest", "three = guest_module:THING", THREE)
    assert list(registry()) == ["one", "two", "three"]
    assert registry()["three"] == Thing("three")
    assert "three" in registry() and "four" not in registry() and len(registry()) == 3


def test_bundled_entries_resolve_without_loading_any_package(site):
    installed(site, "guest", "three = guest_module:THING", "raise RuntimeError('loaded')")
    assert registry()["one"] == OURS[0]
    assert "two" in registry()
    assert "guest_module" not in sys.modules


@pytest.mark.parametrize(
    ("code", "why"),
    [
        ("import no_such_module_at_all", "ModuleNotFoundError: No module named"),
        ("", "AttributeError"),
        ("raise SystemError('odd')", "SystemError: odd"),
        ("THING = 7", "it is a int, but fencepost.things needs a Thing"),
        ("from test_registry import Thing\nTHING = Thing('two')", "the name 'two' is taken"),
    ],
)
def test_a_package_that_cannot_be_used_is_blamed_by_name(site, code, why):
    installed(site, "guest", "three = guest_module:THING", code)
    with pytest.raises(BadPlugin, match=why) as error:
        list(registry())
    assert "package guest 1.2: entry point three = guest_module:THING" in str(error.value)


def test_an_unknown_name_is_a_key_error(site):
    with pytest.raises(KeyError):
        registry()["four"]


def test_sound_packages_resolve_next_to_broken_ones(site):
    installed(site, "guest", "three = guest_module:THING", THREE)
    installed(site, "rival", "four = rival_module:THING", "raise RuntimeError('no')")
    sound, bad = registry().sound()
    assert [thing.name for thing in sound] == ["one", "two", "three"]
    (error,) = bad
    assert "package rival 1.2" in str(error)
