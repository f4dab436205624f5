"""The clocks of real processes on this machine are skewed, and restored to the byte."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from fencepost.node import image, patch, processes, vdso, waits
from tests.targets import Target

SOURCE = Path(__file__).parents[2] / "src"
HOUR = 3600 * 10**9
CLOCKS = {"wall": ("wall", "gettimeofday", "time"), "monotonic": ("monotonic", "boot", "coarse")}


def possible() -> bool:
    try:
        patch.room(vdso.pristine())
    except (image.Refused, OSError):
        return False
    return True


pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not possible(), reason="this kernel's vDSO cannot be replaced"),
]


def state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def entries(clocks=("wall", "monotonic"), offset_ns=0, rate=1.0, period_ns=0):
    found = {}
    for clock in clocks:
        found |= patch.table(clock, offset_ns, rate, period_ns)
    return found


# A machine that has just booted has no 600 s of monotonic clock to subtract.
@pytest.mark.parametrize("offset_s", [3600, -10, 0.01])
@pytest.mark.parametrize("chosen", [("wall",), ("monotonic",), ("wall", "monotonic")])
def test_the_chosen_clocks_jump_and_no_other(target, chosen, offset_s):
    vdso.skew(target.pid, entries(chosen, round(offset_s * 1e9)))
    seen = target.seen()
    for clock, names in CLOCKS.items():
        wanted = offset_s if clock in chosen else 0
        for name in names:
            grain = 1.1 if name == "time" else 0.009
            assert seen[name] == pytest.approx(wanted, abs=grain), name
    assert 0 <= seen["cpu"] < 10


def test_undoing_restores_every_byte(target):
    before = image.image(target.pid)
    slots = waits.slots(target.pid)
    vdso.skew(target.pid, entries(offset_ns=HOUR))
    assert image.image(target.pid) != before
    assert vdso.undo(target.pid)["wall"] == HOUR
    assert image.image(target.pid) == before
    assert waits.slots(target.pid) == slots
    assert target.seen()["wall"] == pytest.approx(0, abs=20)
    assert vdso.undo(target.pid) == {}


def test_only_processes_forked_from_it_later_see_the_change(target):
    own, other = vdso.pristine(), Target()
    try:
        vdso.skew(target.pid, entries(offset_ns=HOUR))
        assert vdso.pristine() == own == image.image(other.pid).content
        assert other.seen()["wall"] == pytest.approx(0, abs=20)
        assert abs(time.time() - float(subprocess.check_output(["date", "+%s"]))) < 60
    finally:
        other.end()
    code = "import os, time; os.fork() or (print(time.time(), flush=True), os._exit(0)); os.wait()"
    wait = f"input(); {code}"
    with subprocess.Popen(
        [sys.executable, "-c", wait], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as parent:
        vdso.skew(parent.pid, entries(["wall"], HOUR))
        said, _ = parent.communicate("\n", 10)
    assert float(said) - time.time() == pytest.approx(3600, abs=5)


def test_a_server_of_several_processes_is_skewed_as_a_whole(target, here):
    """PostgreSQL is like this: it has one process for each client."""
    command = ("sh", "-c", '"$@"; true', "sh")
    with_parent = Target(command=command)
    try:
        vdso.command(["set", str(with_parent.pid), "--clocks", "wall", "--offset-ns", str(HOUR)])
        assert with_parent.seen()["wall"] == pytest.approx(3600, abs=20)
        vdso.command(["undo", str(with_parent.pid)])
        assert with_parent.seen()["wall"] == pytest.approx(0, abs=20)
    finally:
        for pid in processes.family(with_parent.pid):
            os.kill(pid, signal.SIGKILL)
        with_parent.end()


def test_a_drift_gains_at_its_rate(target):
    vdso.skew(target.pid, entries(["wall"], rate=3))
    before, first, began = time.monotonic(), target.seen()["wall"], time.monotonic()
    time.sleep(0.2)
    ended, gained = time.monotonic(), target.seen()["wall"] - first
    assert 1.9 * (ended - began) <= gained <= 2.1 * (time.monotonic() - before)


def test_a_strobe_alternates_between_skewed_and_right(target):
    vdso.skew(target.pid, entries(["wall"], HOUR, period_ns=10_000_000))
    end, seen = time.monotonic() + 120, set()
    while len(seen) < 2 and time.monotonic() < end:
        seen.add(round(target.seen()["wall"]))
    assert seen == {0, 3600}


def test_threads_in_the_middle_of_the_replaced_code_do_no_harm(busy):
    """They spend most of their time in it."""
    for _ in range(30):
        vdso.skew(busy.pid, entries(offset_ns=HOUR))
        vdso.skew(busy.pid, entries(offset_ns=2 * HOUR))
        assert vdso.undo(busy.pid)
    assert busy.seen()["monotonic"] == pytest.approx(0, abs=20)


def test_no_signal_is_lost(busy):
    for _ in range(30):
        os.kill(busy.pid, signal.SIGUSR1)
        vdso.skew(busy.pid, entries(offset_ns=HOUR))
        os.kill(busy.pid, signal.SIGURG)
        vdso.undo(busy.pid)
        # Python's handler has run before the answer is written; two at a time would count as one.
        busy.seen()
    assert busy.seen()["signals"] == 30


def test_a_paused_process_stays_paused_and_sees_the_skew_when_it_resumes(target):
    os.kill(target.pid, signal.SIGSTOP)
    while state(target.pid) != "T":
        time.sleep(0.001)
    vdso.skew(target.pid, entries(["wall"], HOUR))
    time.sleep(0.05)
    assert state(target.pid) == "T"
    os.kill(target.pid, signal.SIGCONT)
    assert target.seen()["wall"] == pytest.approx(3600, abs=20)


def test_a_timed_wait_takes_no_longer_by_a_clock_that_has_jumped(busy):
    """Python's threads pass each other the interpreter by pthread_cond_timedwait."""
    if not waits.slots(busy.pid):
        pytest.skip("this Python has its C library in itself")
    vdso.skew(busy.pid, entries(["monotonic"], HOUR))
    began = time.monotonic()
    busy.seen()
    assert time.monotonic() - began < 120


def test_a_monotonic_clock_at_rest_stays_ahead_and_a_wall_clock_does_not(target, here):
    vdso.command(["set", str(target.pid), "--clocks", "wall,monotonic", "--offset-ns", str(HOUR)])
    assert vdso.command(["show", str(target.pid)]) == {
        "offset_ns": {target.pid: {"wall": HOUR, "monotonic": HOUR}},
        "kept": True,
    }
    assert vdso.rest(target.pid) == {"monotonic": HOUR}
    seen = target.seen()
    assert seen["wall"] == pytest.approx(0, abs=20)
    assert seen["monotonic"] == pytest.approx(3600, abs=20)

    set_ = ["set", str(target.pid), "--offset-ns", str(HOUR), "--clocks"]
    assert vdso.command([*set_, "monotonic"]) == {"ahead_ns": HOUR}
    assert target.seen()["monotonic"] == pytest.approx(7200, abs=20)
    assert vdso.command([*set_, "wall"]) == {"ahead_ns": 2 * HOUR}
    assert target.seen()["monotonic"] == pytest.approx(7200, abs=20)
    assert list(vdso.command(["undo"])["offset_ns"]) == [target.pid]


def test_a_fast_clock_does_not_go_back_when_it_stops(target, here):
    vdso.skew(target.pid, entries(["monotonic"], rate=50))
    time.sleep(0.1)
    before = target.seen()["monotonic"]
    vdso.rest(target.pid)
    after = target.seen()["monotonic"]
    assert 0 < before < after
    time.sleep(0.5)
    assert target.seen()["monotonic"] == pytest.approx(after, abs=20)  # it would gain 25 s


def test_a_slow_clock_stops_with_every_byte_restored(target, here):
    before = image.image(target.pid)
    vdso.skew(target.pid, entries(["monotonic"], rate=0.5))
    assert vdso.rest(target.pid) == {}
    assert image.image(target.pid) == before


def test_code_changed_by_another_program_is_left_alone(target):
    found = image.image(target.pid)
    at = (
        found.start
        + image.functions(found.content)["__vdso_getcpu" if _x86() else "__kernel_rt_sigreturn"]
    )
    with open(f"/proc/{target.pid}/mem", "r+b", buffering=0) as memory:
        os.pwrite(memory.fileno(), b"\xc3\0\0\0", at)
    with pytest.raises(image.Refused, match="changed by another program"):
        vdso.skew(target.pid, entries(["wall"], HOUR))
    assert vdso.undo(target.pid) == {}


def _x86() -> bool:
    return os.uname().machine == "x86_64"


def test_an_impossible_skew_is_refused(target):
    with pytest.raises(OSError):
        vdso.skew(2**22 + 1, entries(["wall"], HOUR))
    with pytest.raises(image.Refused, match="below 0"):
        patch.table("monotonic", -(10**18), 1, 0)
    with pytest.raises(image.Refused, match="rate -1 is out of range"):
        patch.table("wall", 0, -1, 0)
    with pytest.raises(image.Refused, match="unknown clock 'cpu'"):
        patch.table("cpu", 0, 1, 0)


def test_a_vdso_without_room_is_refused(monkeypatch):
    with pytest.raises(image.Refused, match="are needed"):
        patch.room(b"x" * 8000)
    monkeypatch.setattr(patch, "_MACHINE", "sparc64")
    with pytest.raises(image.Refused, match="no clock code exists for this machine"):
        patch.room(bytes(8192))


# Restarts.


@pytest.fixture
def here(tmp_path, monkeypatch):
    """Put the file for later processes into a folder of the test's own."""
    monkeypatch.setattr(vdso, "FILE", str(tmp_path / "run" / "skew"))
    return vdso.FILE


def launcher(file: str) -> tuple[str, ...]:
    code = (
        f"import sys; sys.path.insert(0, {str(SOURCE)!r});"
        "from fencepost.node import launch, vdso;"
        f"vdso.FILE = {file!r}; launch.command(sys.argv[1:])"
    )
    return (sys.executable, "-c", code)


def test_a_process_started_later_is_skewed_from_its_first_instruction_on(target, here):
    vdso.command(["set", str(target.pid), "--clocks", "wall", "--offset-ns", str(HOUR)])
    # The dynamic loader's first program reads a clock before Python starts.
    shell = ("sh", "-c", 'exec "$@"', "sh")
    later = Target(command=(*launcher(here), *shell))
    try:
        assert later.seen()["wall"] == pytest.approx(3600, abs=20)
        assert later.pid in vdso.command(["undo"])["offset_ns"]
        assert later.seen()["wall"] == pytest.approx(0, abs=20)
        assert not os.path.exists(here)
    finally:
        later.end()


def test_a_launched_program_keeps_its_pid_and_has_no_child_that_it_does_not_know(target, here):
    vdso.command(["set", str(target.pid), "--clocks", "wall", "--offset-ns", str(HOUR)])
    later = Target(command=launcher(here))
    try:
        assert later.seen()["wall"] == pytest.approx(3600, abs=20)
        assert Path(f"/proc/{later.pid}/task/{later.pid}/children").read_text() == ""
    finally:
        later.end()


def test_without_a_skew_a_program_is_simply_started(here):
    later = Target(command=launcher(here))
    try:
        assert later.seen()["wall"] == pytest.approx(0, abs=20)
        assert image.image(later.pid).content == vdso.pristine()
    finally:
        later.end()


# Programs that libfaketime does not reach.

JAVA = """
public class Clock {
    public static void main(String[] arguments) throws Exception {
        while (System.in.read() >= 0) {
            Thread.sleep(100);
            System.out.println(System.currentTimeMillis() + " " + System.nanoTime() / 1000000);
        }
    }
}
"""


@pytest.mark.skipif(not shutil.which("javac"), reason="there is no Java compiler here")
def test_a_jvm_is_skewed_and_sleeps_as_long_as_it_did(tmp_path):
    (tmp_path / "Clock.java").write_text(JAVA)
    subprocess.run(["javac", "Clock.java"], cwd=tmp_path, check=True)
    with subprocess.Popen(
        ["java", "-cp", str(tmp_path), "Clock"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as java:

        def seen():
            java.stdin.write("x")
            java.stdin.flush()
            wall, monotonic = map(int, java.stdout.readline().split())
            return wall / 1000 - time.time(), monotonic / 1000 - time.monotonic()

        seen()
        for offset_s in (3600, -60):
            vdso.skew(java.pid, entries(offset_ns=offset_s * 10**9))
            began = time.monotonic()
            assert seen() == pytest.approx((offset_s, offset_s), abs=20)
            assert 0.09 < time.monotonic() - began < 120
            vdso.undo(java.pid)
        assert seen() == pytest.approx((0, 0), abs=20)
        java.kill()
