"""A user lock by FILE.py:CLASS: the lock in the file, and the files that are sent with it."""

from __future__ import annotations

import io
import signal
import tarfile
from importlib import import_module

import pytest

from fencepost.harness.errors import BadArguments
from fencepost.harness.userlock import files, python
from fencepost.harness.userlock.resolve import LockRequest, resolve
from fencepost.harness.userlock.servers import Servers
from fencepost.harness.userlock.user_lock import UserLock

LOCK = """
import client_of_the_nodes_alone
from beside import key
if True:
    class MyLock:
        def __init__(self, servers): ...
def helper(): ...
"""


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mylock.py").write_text(LOCK)
    (tmp_path / "beside.py").write_text("import further\nkey = 'k'\n")
    (tmp_path / "further.py").write_text("def late():\n    import package.part\n")
    (tmp_path / "unused.py").write_text("")
    (tmp_path / "package" / "__pycache__").mkdir(parents=True)
    (tmp_path / "package" / "__init__.py").write_text("")
    (tmp_path / "package" / "part.py").write_text("from .script import LUA\n")
    (tmp_path / "package" / "script.py").write_text("LUA = ''\n")
    (tmp_path / "package" / "release.lua").write_text("return 0\n")
    (tmp_path / "package" / "__pycache__" / "part.pyc").write_text("")
    return tmp_path


def own(lock="mylock.py:MyLock", servers="redis:1", ends_with=""):
    name, found = resolve(lock, LockRequest(servers, ends_with))
    assert isinstance(found, UserLock)
    return name, found


def test_its_file_is_read_and_not_imported():
    name, found = own()
    assert (name, found.python, found.program) == ("MyLock", "mylock.py:MyLock", ())
    assert found.servers == Servers("redis", 1)


def test_its_imports_from_its_own_folder_are_sent_with_it_and_nothing_else():
    _, found = own()
    assert list(found.files) == [
        "beside.py",
        "further.py",
        "mylock.py",
        "package/__init__.py",
        "package/part.py",
        "package/release.lua",
        "package/script.py",
    ]


def test_all_files_of_a_package_are_sent_and_it_is_imported_by_its_path(here):
    (here / "service" / "locks").mkdir(parents=True)
    for name in ("service/__init__.py", "service/locks/__init__.py"):
        (here / name).write_text("")
    (here / "service" / "locks" / "mine.py").write_text("class Mine: ...\n")
    (here / "service" / "data.json").write_text("{}")
    _, found = own("service/locks/mine.py:Mine")
    assert found.python == "service/locks/mine.py:Mine"
    assert "service/data.json" in found.files
    assert "mylock.py" not in found.files


def test_grants_end_as_usual_on_its_servers_or_as_given():
    ends = {kind: own(servers=kind)[1].ends_with for kind in ("redis", "etcd", "postgres")}
    assert ends == {"redis": "lease", "etcd": "close", "postgres": "connection"}
    assert own(servers="zookeeper:3", ends_with="lease")[1].ends_with == "lease"


def test_a_class_is_its_file_and_its_name(here, monkeypatch):
    (here / "of_a_class.py").write_text("class Mine:\n    class Inner: ...\n")
    monkeypatch.syspath_prepend(here)
    mine = import_module("of_a_class").Mine
    assert own(mine)[1].python == "of_a_class.py:Mine"
    with pytest.raises(BadArguments, match="so define it at the top level"):
        resolve(mine.Inner, LockRequest("redis:1"))
    with pytest.raises(BadArguments, match="has no source file to send to the nodes"):
        resolve(int, LockRequest("redis:1"))


BUNDLE = """
from fencepost.workloads.locks.broken import NoLock
from fencepost.workloads.contract.locktype import LockType
from fencepost.workloads.contract.option import Option

def make(env, nodes, options):
    return NoLock(env, token=1)

LOCK = LockType(name="bundled", what="x", make=make, servers=3, kind="etcd", ends_with="close",
                options={"token": Option("one", ("one", "none"))})
"""


def test_a_bundle_in_a_file_is_used_unchanged(here):
    (here / "bundled.py").write_text(BUNDLE)
    name, found = own("bundled.py:LOCK", servers="")
    assert (name, found.servers, found.ends_with) == ("bundled", Servers("etcd", 3), "close")
    assert found.lock_type("bundled", {}).tokens() == ["one"]
    with pytest.raises(BadArguments, match="which defines its servers and how grants end"):
        resolve("bundled.py:LOCK", LockRequest("etcd:3"))
    (here / "torn.py").write_text(BUNDLE.replace("import Option", "import Opt"))
    with pytest.raises(
        BadArguments, match="so it must be importable here, but the import failed: ImportError"
    ):
        resolve("torn.py:LOCK", LockRequest())
    (here / "exits.py").write_text(f"raise SystemExit(1)\n{BUNDLE}")
    with pytest.raises(BadArguments, match="the import failed: SystemExit: 1"):
        resolve("exits.py:LOCK", LockRequest())


@pytest.mark.parametrize("waits", ["while True:\n    pass", "import time\ntime.sleep(999)"])
def test_a_bundle_whose_import_does_not_end_is_refused_with_the_line_where_it_is(
    here, monkeypatch, waits
):
    monkeypatch.setattr(python, "_IMPORT_S", 0.2)
    before = signal.getsignal(signal.SIGALRM)
    left_s, _ = signal.getitimer(signal.ITIMER_REAL)  # pytest-timeout's
    (here / "endless.py").write_text(f"{BUNDLE}{waits}\n")
    line = len(BUNDLE.splitlines()) + 2
    with pytest.raises(
        BadArguments, match=rf"does not end: after .*endless\.py, line ({line - 1}|{line})\b"
    ):
        resolve("endless.py:LOCK", LockRequest())
    assert signal.getsignal(signal.SIGALRM) == before
    now_s, _ = signal.getitimer(signal.ITIMER_REAL)
    assert left_s / 2 <= now_s <= left_s


@pytest.mark.parametrize(
    ("lock", "servers", "ends_with", "why"),
    [
        ("nowhere.py:MyLock", "redis:1", "", "there is no file nowhere.py; name the lock as FILE"),
        ("mylock.py:Mylock", "redis:1", "", "mylock.py has no 'Mylock' at its top level; it has M"),
        ("further.py:X", "redis:1", "", "further.py has no 'X' at its top level; it has no class"),
        ("mylock.py", "redis:1", "", "mylock.py does not name a class: write mylock.py:CLASS"),
        ("mylock.py:", "redis:1", "", "has no '' at its top level"),
        (
            "mylock.py:MyLock",
            "",
            "",
            "mylock.py:MyLock needs servers: add for example --servers redis",
        ),
        ("mylock.py:MyLock", "redid:1", "", "there is no server 'redid'; choose one of: redis, zo"),
        ("mylock.py:MyLock", "valkey:1", "", "there is no server 'valkey'"),
        ("mylock.py:MyLock", "redis:0", "", "write redis:N, with N from 1 to 5"),
        ("mylock.py:MyLock", "redis:6", "", "write redis:N, with N from 1 to 5"),
        ("mylock.py:MyLock", "redis:", "", "write redis:N"),
        ("mylock.py:MyLock", "redis:two", "", "write redis:N"),
        ("mylock.py:MyLock", "redis:1", "time", "no ends-with 'time'; choose one of: lease, close"),
        (
            "redis",
            "redis:1",
            "",
            "--servers is for user locks .*, but redis is a lock of the registry",
        ),
        ("redis", "", "lease", "--ends-with is for user locks"),
    ],
)
def test_an_invalid_lock_is_reported_before_anything_starts(lock, servers, ends_with, why):
    with pytest.raises(BadArguments, match=why):
        resolve(lock, LockRequest(servers, ends_with))


def test_a_file_that_is_no_python_is_named_with_its_line(here):
    (here / "mylock.py").write_text("class MyLock:\n    def acquire(self\n")
    with pytest.raises(
        BadArguments, match=r"mylock\.py, line 2, is not valid Python: '\(' was never"
    ):
        own()
    (here / "mylock.py").write_bytes(b"x\0y")
    with pytest.raises(BadArguments, match="null bytes"):
        own()


def test_a_star_import_may_define_the_name(here):
    (here / "mylock.py").write_text("from elsewhere import *\n")
    assert own()[0] == "MyLock"


def test_a_folder_that_is_too_large_for_a_node_is_refused(here, monkeypatch):
    monkeypatch.setattr(files, "MOST_BYTES", 10)
    (here / "package" / "data.bin").write_bytes(b"x" * 11)
    with pytest.raises(BadArguments, match=r"package has more than .* MB or 20000 files"):
        own()


def test_rights_go_with_the_files_and_owners_do_not(here):
    program = here / "worker"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    with tarfile.open(fileobj=io.BytesIO(files.archive({"bin/worker": program}))) as tar:
        member = tar.getmember("bin/worker")
    assert (member.mode & 0o777, member.uid, member.uname) == (0o755, 0, "")
