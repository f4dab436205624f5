"""A third-party package adds a lock with one file."""

from __future__ import annotations

import io
import os
import runpy
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from fencepost.harness.clients import shipped
from fencepost.harness.clients.zipped import zipped
from fencepost.harness.command import lists
from fencepost.harness.errors import BadArguments
from fencepost.harness.spec.respec import respec
from fencepost.harness.spec.spec import Spec
from fencepost.harness.spec.validation import validate
from fencepost.workloads.locks.registry import LOCKS
from tests.packages import installed

ROOT = Path(__file__).parents[1]

LEASED = '''
"""Leased: a lock that its own package describes."""

from typing import TYPE_CHECKING

from fencepost.workloads.transport.deferred import Deferred, load
from fencepost.workloads.contract.lock import Grant
from fencepost.workloads.contract.locktype import LockType
from fencepost.workloads.contract.option import WAITS, Option

if TYPE_CHECKING:
    import a_client_that_is_on_the_nodes_alone
else:
    a_client_that_is_on_the_nodes_alone = Deferred("a_client_that_is_on_the_nodes_alone")

class Leased:
    def __init__(self, env, nodes, options):
        load(a_client_that_is_on_the_nodes_alone)

LOCK = LockType(
    name="leased",
    what="a lock that comes from elsewhere",
    make=Leased,
    servers=3,
    kind="etcd",
    options={"token": Option("epoch", ("epoch", "none"), what="of the lease"), **WAITS},
    promises={"minority": True},
    least_ttl_ms=3000,
    ends_with="close",
)
'''


@pytest.fixture(autouse=True)
def leased(tmp_path, monkeypatch):
    points = {"fencepost.locks": "leased = leased_locks:LOCK"}
    installed(tmp_path / "site-packages", "leased-locks", points, {"leased_locks": LEASED})
    monkeypatch.syspath_prepend(tmp_path / "site-packages")
    LOCKS.forget()
    yield LOCKS["leased"]
    LOCKS.forget()
    sys.modules.pop("leased_locks", None)


def spec(**changed):
    options = LOCKS["leased"].read_options({})
    return Spec(**{"name": "t", "lock": "leased", "options": options, "ttl_ms": 3000} | changed)


def test_the_list_of_locks_shows_it_after_the_bundled_ones(capsys):
    lists.locks("")
    rows = [line for line in capsys.readouterr().out.splitlines() if line.strip()]
    (row,) = [line for line in rows if line.startswith("leased")]
    assert row.split()[:4] == ["leased", "etcd", "x3", "epoch"]
    assert list(LOCKS)[-1] == "leased"


def test_its_options_are_shown(capsys):
    lists.locks("leased")
    shown = capsys.readouterr().out
    assert "leased: a lock that comes from elsewhere" in shown
    assert "usable with a minority down" in shown
    (row,) = [line for line in shown.splitlines() if line.startswith("-o token=")]
    assert row.split() == ["-o", "token=", "epoch", "epoch,", "none", "of", "the", "lease"]


def test_a_test_of_it_is_valid_with_a_guard_that_needs_its_tokens():
    assert validate(spec(guard="fenced")).servers == ["etcd-1", "etcd-2", "etcd-3"]


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"ttl_ms": 2000}, "leased give"),
        ({"guard": "transaction"}, "guard transaction needs a hold that the lock service can be"),
        ({"lock": "leasd"}, "there is no lock 'leasd'; choose one of: redlock, .*, leased"),
    ],
)
def test_its_options_are_validated(changed, why):
    with pytest.raises(BadArguments, match=why):
        validate(spec(**changed))


def test_a_guard_that_is_not_served_names_it_among_those_that_would():
    redlock = LOCKS["redlock"].read_options({})
    with pytest.raises(BadArguments, match=r"Locks that do: .*leased -o token=epoch"):
        validate(Spec(name="t", lock="redlock", options=redlock, guard="fenced"))


def test_a_run_of_it_is_described_and_can_be_run_again():
    row = spec().to_json()
    assert row["lock"]["name"] == "leased"
    assert row["lock"]["ends_with"] == "close"
    assert respec(row).lock_type is LOCKS["leased"]


def test_its_client_library_is_needed_where_it_is_made_and_not_where_it_is_described(leased):
    with pytest.raises(ImportError, match="a_client_that_is_on_the_nodes_alone"):
        leased.make(None, [], {})


def test_the_docs_generator_knows_it():
    page = runpy.run_path(str(ROOT / "tools" / "docs.py"))["written"](
        "<!-- table: locks -->\n<!-- end -->\n"
    )
    assert (
        "| `leased` | 3 etcd | `epoch` | usable with a minority down | `close` | "
        "a lock that comes from elsewhere |"
    ) in page


ON_A_NODE = """
from fencepost.workloads.locks.registry import LOCKS
print(LOCKS["leased"].make.__module__)
"""


def test_a_node_imports_it_from_the_package_it_receives(tmp_path):
    node = tmp_path / "node"
    with tarfile.open(
        fileobj=io.BytesIO(shipped.archive_for("leased", "none", "redis"))
    ) as archive:
        archive.extractall(node, filter="data")
    ours = node / "fencepost.zip"
    ours.write_bytes(zipped())
    done = subprocess.run(
        [sys.executable, "-c", ON_A_NODE],
        capture_output=True, text=True, cwd=tmp_path, check=False,
        env=os.environ | {"PYTHONPATH": f"{ours}:{node}"},
    )  # fmt: skip
    assert (done.stdout.strip(), done.stderr) == ("leased_locks", "")


def test_a_node_that_tests_a_bundled_lock_receives_none_of_it():
    with tarfile.open(fileobj=io.BytesIO(shipped.archive_for("redis", "none", "redis"))) as archive:
        assert {name.partition("/")[0] for name in archive.getnames()} == {"fencepost"}
