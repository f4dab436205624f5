"""A disk that loses power keeps synced writes, and nothing else."""

from __future__ import annotations

import errno
import json
import os
import socket
import stat
import struct
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fencepost.node.lazy import answer, ask
from fencepost.node.lazydisk import COMMIT_S, JOURNAL, ROOT, Disk
from fencepost.node.pages import PAGE, Content
from tests.node_program import node_program

FILE, FOLDER = stat.S_IFREG | 0o644, stat.S_IFDIR | 0o755
# Debian's python3-pyfuse3 is for the system's Python.
PYTHON = "/usr/bin/python3"


class Clock:
    s = 0.0

    def __call__(self):
        return self.s


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def disk(tmp_path, clock):
    return Disk(str(tmp_path / "backing"), clock)


def put(disk, name, data, folder=ROOT, sync=False):
    names = disk.node(folder).entries
    node = disk.find(folder, name) if name in names else disk.make(folder, name, FILE)
    disk.write(node.number, 0, data)
    if sync:
        disk.sync(node.number)
    return node.number


def content(disk, name, folder=ROOT):
    found = disk.content(disk.find(folder, name).number)
    return found.read(0, found.size)


def there(disk, folder=ROOT):
    return sorted(disk.node(folder).entries)


def test_synced_writes_survive_and_later_ones_do_not(disk):
    number = put(disk, "log", b"synced", sync=True)
    disk.write(number, 6, b" and not")
    assert content(disk, "log") == b"synced and not"
    assert disk.lose() == {"bytes": 8, "files": 1, "names": 0}
    assert content(disk, "log") == b"synced"


def test_a_file_that_was_never_synced_is_absent_after_a_power_loss(disk):
    put(disk, "log", b"x")
    assert disk.lose() == {"bytes": 1, "files": 1, "names": 1}
    assert there(disk) == []


def test_without_unsynced_writes_nothing_is_lost(disk):
    put(disk, "log", b"x", sync=True)
    assert disk.lose() == {"bytes": 0, "files": 0, "names": 0}
    assert content(disk, "log") == b"x"


def test_a_sync_makes_the_names_before_it_durable_and_those_after_it_not(disk):
    disk.make(ROOT, "before", FILE)
    number = put(disk, "log", b"x")
    disk.sync(number)
    disk.make(ROOT, "after", FILE)
    disk.lose()
    assert there(disk) == ["before", "log"]


def test_a_sync_of_a_folder_makes_its_entries_durable_and_not_their_content(disk):
    put(disk, "log", b"x")
    disk.sync(ROOT)
    disk.lose()
    assert content(disk, "log") == b""


def test_names_are_durable_by_themselves_some_seconds_later(disk, clock):
    put(disk, "old", b"x")
    clock.s += COMMIT_S
    put(disk, "new", b"x")
    disk.lose()
    assert there(disk) == ["old"]
    assert content(disk, "old") == b""


def test_a_settled_disk_loses_no_earlier_write(disk):
    number = put(disk, "log", b"old")
    assert disk.settle() == {"bytes": 3, "files": 1, "names": 1}
    disk.write(number, 3, b"new")
    disk.lose()
    assert content(disk, "log") == b"old"


def test_a_removal_that_was_not_synced_is_undone(disk):
    put(disk, "log", b"x", sync=True)
    disk.unlink(ROOT, "log")
    assert there(disk) == []
    disk.lose()
    assert content(disk, "log") == b"x"


def test_a_rename_over_a_file_takes_its_content_along_when_it_is_durable(disk):
    """As with ext4's auto_da_alloc: a file is replaced by a whole one or not at all."""
    put(disk, "conf", b"old", sync=True)
    put(disk, "conf.new", b"new")
    disk.rename(ROOT, "conf.new", ROOT, "conf")
    disk.lose()
    assert content(disk, "conf") == b"old"

    put(disk, "conf.new", b"new")
    disk.rename(ROOT, "conf.new", ROOT, "conf")
    disk.sync(ROOT)
    disk.lose()
    assert content(disk, "conf") == b"new"


def test_a_truncation_that_was_not_synced_is_undone(disk):
    number = put(disk, "log", b"abcdef", sync=True)
    disk.truncate(number, 2)
    assert content(disk, "log") == b"ab"
    disk.lose()
    assert content(disk, "log") == b"abcdef"


def test_a_restarted_daemon_has_the_durable_content(disk, tmp_path):
    folder = disk.make(ROOT, "data", FOLDER).number
    put(disk, "log", b"x", folder, sync=True)
    put(disk, "lost", b"y", folder)
    again = Disk(str(tmp_path / "backing"))
    found = again.find(ROOT, "data").number
    assert there(again, found) == ["log"]
    assert content(again, "log", found) == b"x"
    assert len(os.listdir(tmp_path / "backing" / "objects")) == 1


def test_a_torn_last_line_of_the_journal_is_cut_off(disk, tmp_path):
    for name in ("first", "second"):
        put(disk, name, b"x", sync=True)
    log = tmp_path / "backing" / "log"
    os.truncate(log, log.stat().st_size - 5)
    again = Disk(str(tmp_path / "backing"))
    assert there(again) == ["first"]
    put(again, "third", b"y", sync=True)
    assert there(Disk(str(tmp_path / "backing"))) == ["first", "third"]


def test_a_file_that_was_open_when_the_power_failed_can_be_closed(disk):
    number = put(disk, "log", b"x", sync=True)
    disk.opened(number)
    disk.lose()
    disk.closed(number)
    assert content(disk, "log") == b"x"


def test_a_request_that_cannot_be_done_is_answered_with_the_reason(disk):
    def full():
        raise OSError(errno.ENOSPC, "no space left")

    verbs = {"unsynced": disk.unsynced, "settle": full}
    nothing = {"bytes": 0, "files": 0, "names": 0}
    assert json.loads(answer(verbs, b"unsynced\n")) == nothing
    assert json.loads(answer(verbs, b"\xff\n")) == {"error": "no such verb: \\xff"}
    said = json.loads(answer(verbs, b"settle\n"))["error"]
    assert said == "settle: [Errno 28] no space left"


def test_an_answer_with_an_error_is_an_error_of_the_caller(tmp_path):
    control = str(tmp_path / "control")
    with socket.socket(socket.AF_UNIX) as listening, ThreadPoolExecutor(1) as pool:
        listening.bind(control)
        listening.listen()

        def serve():
            with listening.accept()[0] as one:
                one.sendall(answer({}, one.recv(100)))

        served = pool.submit(serve)
        with pytest.raises(OSError, match="no such verb: settle"):
            ask(control, "settle")
        served.result()


def test_a_removed_file_gives_its_space_back_before_the_disk_is_full(disk, monkeypatch):
    put(disk, "big", b"x" * PAGE, sync=True)
    disk.unlink(ROOT, "big")
    objects = Path(disk._backing) / "objects"
    monkeypatch.setattr(disk, "free", lambda: 0 if list(objects.iterdir()) else PAGE)
    put(disk, "new", b"y")
    monkeypatch.setattr(disk, "free", lambda: 0)
    with pytest.raises(OSError) as error:
        put(disk, "more", b"z")
    assert error.value.errno == errno.ENOSPC


def test_a_part_of_a_full_disk_is_the_journal_s_alone(disk, monkeypatch):
    left = [JOURNAL + PAGE]
    blocks = os.statvfs("/")[:3]

    def statvfs(path):
        free = left[0] // blocks[1]
        return os.statvfs_result((*blocks, free, free, 0, 0, 0, 0, 255))

    monkeypatch.setattr(os, "statvfs", statvfs)
    assert disk.space().f_bavail * blocks[1] == disk.free() == PAGE
    put(disk, "filler", b"x")
    left[0] = JOURNAL
    assert disk.space().f_bfree == disk.space().f_bavail == disk.free() == 0
    with pytest.raises(OSError) as error:
        put(disk, "more", b"y")
    assert error.value.errno == errno.ENOSPC
    disk.unlink(ROOT, "filler")
    disk.sync(ROOT)
    assert os.listdir(f"{disk._backing}/objects") == []


def test_writes_that_do_not_fit_the_journal_are_not_in_it_and_are_retried_once(disk, tmp_path):
    class Full:
        """Accepts some bytes, and then no more."""

        def __init__(self, log, room):
            self.log, self.room = log, room
            self.fileno = log.fileno

        def write(self, data):
            if not self.room:
                raise OSError(errno.ENOSPC, "no space left")
            taken = self.log.write(data[: self.room])
            self.room -= taken
            return taken

    disk.make(ROOT, "first", FOLDER)
    disk.sync(ROOT)
    log, whole = disk._log, (tmp_path / "backing" / "log").read_bytes()
    disk._log = Full(log, 20)
    disk.make(ROOT, "second", FOLDER)
    with pytest.raises(OSError):
        disk.sync(ROOT)
    assert (tmp_path / "backing" / "log").read_bytes() == whole
    disk._log = Full(log, 10_000)
    disk.sync(ROOT)
    assert there(Disk(str(tmp_path / "backing"))) == ["first", "second"]
    assert len((tmp_path / "backing" / "log").read_bytes().splitlines()) == 2


WRITES = st.tuples(st.integers(0, 3 * PAGE), st.binary(min_size=1, max_size=2 * PAGE))
STEPS = st.lists(
    st.one_of(
        WRITES.map(lambda at: ("write", at)),
        st.integers(0, 4 * PAGE).map(lambda size: ("truncate", size)),
        st.just(("sync", None)),
        st.just(("lose", None)),
    ),
    max_size=12,
)


@given(STEPS)
@settings(max_examples=150)
def test_a_file_equals_a_plain_one_and_loses_writes_after_its_last_sync(tmp_path_factory, steps):
    found = Content(str(tmp_path_factory.mktemp("pages") / "object"))
    now, synced = bytearray(), bytearray()
    for what, value in steps:
        if what == "write":
            at, data = value
            now.extend(bytes(max(0, at - len(now))))
            now[at : at + len(data)] = data
            found.write(at, data)
        elif what == "truncate":
            now = now[:value] + bytes(max(0, value - len(now)))
            found.truncate(value)
        elif what == "sync":
            synced = bytearray(now)
            found.sync()
        else:
            now = bytearray(synced)
            found.lose()
        assert found.size == len(now)
        assert found.read(0, found.size + PAGE) == bytes(now)
    found.close()


def _usable():
    look = [PYTHON, "-c", "import pyfuse3, trio"]
    return os.path.exists("/dev/fuse") and os.geteuid() == 0 and not subprocess.call(
        look, stderr=subprocess.DEVNULL
    )  # fmt: skip


@pytest.fixture
def mounted(tmp_path):
    """Mount a lazy disk; return it with a way to send it commands."""
    if not _usable():
        pytest.skip("no /dev/fuse, no root, or no python3-pyfuse3: apt-get install python3-pyfuse3")
    mount, control = tmp_path / "mount", tmp_path / "control"
    mount.mkdir()
    command = [*node_program(PYTHON, "-IS"), "lazy", "--control", str(control)]
    daemon = subprocess.Popen([*command, "serve", str(tmp_path / "backing"), str(mount)])
    end = time.monotonic() + 120
    while not (os.path.ismount(mount) and control.exists()) and time.monotonic() < end:
        assert daemon.poll() is None
        time.sleep(0.01)

    def ask(*words):
        return json.loads(subprocess.check_output([*command, *words]))

    ask.control = str(control)
    yield mount, ask
    subprocess.run(["umount", "-l", str(mount)], check=True)
    assert daemon.wait(120) == 0


def test_a_mounted_disk_is_a_file_system_like_another(mounted):
    mount, _ = mounted
    (mount / "a").mkdir()
    (mount / "a" / "log").write_bytes(b"x" * 300_000)
    os.link(mount / "a" / "log", mount / "link")
    os.symlink("a/log", mount / "symlink")
    assert (mount / "link").read_bytes() == (mount / "symlink").read_bytes() == b"x" * 300_000
    assert os.stat(mount / "link").st_nlink == 2
    with open(mount / "a" / "log", "r+b") as file:
        file.truncate(10)
        file.seek(5)
        file.write(b"yy")
    assert (mount / "link").read_bytes() == b"xxxxxyyxxx"
    os.rename(mount / "a" / "log", mount / "b")
    os.unlink(mount / "link")
    os.rmdir(mount / "a")
    assert sorted(os.listdir(mount)) == ["b", "symlink"]
    assert os.statvfs(mount).f_bavail > 0


def test_a_folder_lists_every_name_also_those_of_one_file_and_while_names_go(mounted):
    mount, _ = mounted
    # More than one answer to the kernel holds.
    names = [f"{n:04}" + "x" * 200 for n in range(300)]
    (mount / names[0]).touch()
    for name in names[1:]:
        os.link(mount / names[0], mount / name)
    assert sorted(os.listdir(mount)) == names

    with os.scandir(mount) as entries:
        seen = []
        for entry in entries:
            seen.append(entry.name)
            os.unlink(entry.path)
    assert sorted(seen) == names
    assert os.listdir(mount) == []


def test_the_witness_of_a_loss_of_power_sees_it_and_sees_a_mere_crash(mounted):
    mount, ask = mounted
    assert ask("witness", str(mount), "first") == {"synced": True, "unsynced": True}
    # A crashed process takes nothing with it: the kernel has its writes.
    assert ask("witnessed", str(mount), "first") == {"synced": True, "unsynced": True}

    ask("witness", str(mount), "second")
    assert ask("lose")["bytes"] == len("second")
    assert ask("witnessed", str(mount), "second") == {"synced": True, "unsynced": False}


def test_a_write_with_o_dsync_is_durable_at_once(mounted):
    mount, ask = mounted
    fd = os.open(mount / "log", os.O_WRONLY | os.O_CREAT | os.O_DSYNC)
    os.write(fd, b"x")
    os.close(fd)
    ask("lose")
    assert (mount / "log").read_bytes() == b"x"


def test_a_caller_that_hangs_up_leaves_the_disk_mounted(mounted):
    mount, ask = mounted
    (mount / "log").write_bytes(b"x")
    for request in (b"\xff\n", b"unsynced\n", b""):
        with socket.socket(socket.AF_UNIX) as caller:
            # Closing resets the connection, instead of waiting for the answer.
            caller.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            caller.connect(ask.control)
            caller.sendall(request)
    assert ask("unsynced")["bytes"] == 1
    assert (mount / "log").read_bytes() == b"x"
