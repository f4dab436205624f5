"""A cluster is reserved for one command at a time, across users and environments."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from fencepost.harness.cluster import reservation
from fencepost.harness.cluster.reservation import HOSTS, Reservation
from fencepost.harness.errors import Crashed

NAME = "fencepost"


@pytest.fixture
def anothers(places, monkeypatch):
    """Make a reservation as another user, for whom root's own folder is not used."""

    def make():
        with monkeypatch.context() as patch:
            patch.setattr(reservation, "places", lambda: places[::-1])
            return Reservation(NAME)

    return make


def test_the_path_of_a_reservation_does_not_depend_on_the_environment(monkeypatch):
    monkeypatch.undo()
    before = reservation.places()
    monkeypatch.setenv("TMPDIR", "/var/tmp")
    assert reservation.places() == before
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    as_root = reservation.places()
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert as_root == [Path("/run/fencepost")]
    assert reservation.places()[1:] == as_root


@pytest.mark.parametrize("first", ["root", "another"])
def test_two_users_never_both_have_the_cluster(anothers, first):
    one = Reservation(NAME) if first == "root" else anothers()
    other = anothers()
    one.take()
    with pytest.raises(Crashed, match=f"pid {os.getpid()}. is using fencepost"):
        other.take()
    one.release()
    other.take()
    other.release()


def test_a_user_does_not_keep_root_out_and_does_not_keep_its_cluster_up(anothers):
    other, mine = anothers(), Reservation(NAME)
    other.take()
    other.set_keep(True)
    mine.take()
    assert mine.keep is False
    mine.release()
    other.release()


def test_no_other_user_can_lock_root_s_file(places, monkeypatch):
    """Who can open a file can lock it."""
    if os.geteuid() != 0:
        pytest.skip("no root")
    monkeypatch.setattr(reservation, "_ROOTS", places[0])
    (places[0] / f"{NAME}.lock").touch(0o644)
    mine = Reservation(NAME)
    mine.take()
    mine.release()
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in places[0].iterdir()}
    assert modes == {f"{NAME}.lock": 0o600, f"{NAME}.json": 0o644}


@pytest.mark.parametrize("pid", ['"7\\u001b]52;c;eA==\\u0007"', "[1]", "1e3"])
def test_only_a_number_is_shown_as_the_pid(places, anothers, pid):
    other = anothers()
    other.take()
    (places[1] / f"{NAME}.json").write_text(f'{{"pid": {pid}, "keep": true, "turn": 3}}')
    with pytest.raises(Crashed, match=r"command \(pid \?\) is using"):
        anothers().take()
    assert anothers().keep is False
    other.release()


def test_containers_and_hosts_are_reserved_apart():
    containers, hosts = Reservation(NAME), Reservation(HOSTS)
    containers.take()
    hosts.take()
    hosts.release()
    containers.release()


def test_a_symbolic_link_is_not_followed_and_its_target_stays(places, tmp_path):
    precious = tmp_path / "precious"
    precious.write_text("content")
    (places[0] / f"{NAME}.lock").symlink_to(precious)
    with pytest.raises(Crashed, match="is a symbolic link"):
        Reservation(NAME).take()
    assert precious.read_text() == "content"


@pytest.mark.parametrize("make", [os.mkfifo, lambda path: os.link(__file__, path)])
def test_a_path_that_is_not_a_file_of_its_own_is_not_written_to(places, tmp_path, make):
    try:
        make(places[0] / f"{NAME}.lock")
    except OSError:
        pytest.skip("no hard link from here to there")
    with pytest.raises(Crashed, match="is a hard link or not a regular file"):
        Reservation(NAME).take()


def test_a_failed_lock_keeps_no_other_command_out(places, anothers):
    mine = Reservation(NAME)
    mine.take()
    other = anothers()
    with pytest.raises(Crashed):
        other.take()
    mine.release()
    other.take()
    other.release()


def test_the_next_user_sees_that_a_cluster_is_kept_until_it_is_released(anothers):
    for keep in (True, False):
        one = Reservation(NAME)
        one.take()
        one.set_keep(keep)
        one.release()
        other = anothers()
        other.take()
        assert other.keep is keep
        other.release()


def test_root_s_folder_is_writable_for_root_only(tmp_path):
    folder = tmp_path / "run"
    folder.mkdir()
    folder.chmod(0o777)
    if os.geteuid() == 0:
        reservation._make_safe(folder)
        assert stat.S_IMODE(folder.stat().st_mode) == 0o755
    link = tmp_path / "link"
    link.symlink_to(folder)
    with pytest.raises(Crashed, match="is not a folder that only root can write to"):
        reservation._make_safe(link)
