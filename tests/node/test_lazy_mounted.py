"""A mounted lazy disk is a file system like another, and loses data without a sync."""

from __future__ import annotations

import json
import os
import socket
import struct
import subprocess
import time

import pytest

from tests.node_program import node_program

# Debian's python3-pyfuse3 is for the system's Python.
PYTHON = "/usr/bin/python3"


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
