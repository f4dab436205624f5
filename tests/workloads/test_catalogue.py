"""How the catalogue of lock defects is read: files of the folder, and those of packages.

tests/workloads/defects checks the files themselves.
"""

from __future__ import annotations

import sys

import pytest

from fencepost.workloads.contract import catalogue as catalogues
from fencepost.workloads.contract.catalogue import catalogue
from tests.packages import installed

FILE = """
from fencepost.workloads.contract.defect import Defect
import a_library_that_nobody_has

class Sound: ...
class Lock(Sound): ...

DEFECT = Defect(name="toy", family="lease", what="It ends.", seen="by construction",
                breaks="It lasts.", checker="lease_exclusion", faults=("pause",))
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(catalogues, "FOLDER", tmp_path)
    (tmp_path / "lease_toy.py").write_text(FILE)
    (tmp_path / "_shared.py").write_text("")
    return tmp_path


def test_a_file_is_read_and_not_imported_and_shared_modules_are_left_out(folder):
    (one,) = catalogue().values()
    assert (one.defect.name, one.classes) == ("toy", ("Lock", "Sound"))
    assert one.lock("Lock") == f"{folder / 'lease_toy.py'}:Lock"


def test_a_package_adds_a_file(folder, tmp_path, monkeypatch):
    site = tmp_path / "site"
    other = FILE.replace('"toy"', '"other"')
    installed(site, "box", {"fencepost.defects": "other = box_other:DEFECT"}, {"box_other": other})
    monkeypatch.syspath_prepend(site)
    assert list(catalogue()) == ["other", "toy"]
    assert "box_other" not in sys.modules


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("DEFECT =", "OTHER =", r"lease_toy\.py has no DEFECT = Defect"),
        ('"lease"', '"boat"', r"lease_toy\.py: defect toy: family 'boat' is none of release"),
        ('("pause",)', "FAULTS", r"lease_toy\.py: malformed node"),
        ("class Lock(Sound)", "class Luck(Sound)", r"lease_toy\.py has no class Lock"),
        ("class Sound", "class Sonnd", r"lease_toy\.py has no class Sound"),
    ],
)
def test_a_malformed_file_is_refused_with_its_name(folder, old, new, why):
    (folder / "lease_toy.py").write_text(FILE.replace(old, new))
    with pytest.raises(ValueError, match=why):
        catalogue()


def test_two_defects_of_one_name_are_refused(folder):
    (folder / "lease_other.py").write_text(FILE)
    with pytest.raises(ValueError, match="the name toy is taken"):
        catalogue()
