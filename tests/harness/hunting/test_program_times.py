"""The default lease of a hunted program: long where time jumps."""

from __future__ import annotations

import shutil
import sys

import pytest

from fencepost.harness.hunting import interrupt, programs
from fencepost.harness.hunting.hunts import described

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs Linux")


def times(folder, program, servers="redis:1", **settings):
    hunt = described("", {}, {"seed": 1, **settings}, servers=servers, program=program, ship=folder)
    return hunt.setting.ttl_ns // 10**6, hunt.setting.bound_ns // 10**6


@pytest.mark.skipif(not shutil.which("node"), reason="needs node")
def test_a_program_of_node_gets_a_lease_that_outlasts_its_time_outs(tmp_path):
    (tmp_path / "lock.js").write_text("")
    assert times(tmp_path, "node lock.js") == (2000, 5000)
    assert times(tmp_path, "node lock.js", ttl="200ms")[0] == 200


@pytest.mark.skipif(not shutil.which("node"), reason="needs node")
def test_a_library_of_node_gets_it_as_well(tmp_path, monkeypatch):
    (tmp_path / "node_modules" / "redlock").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    setting = described("node-redlock", {}, {"seed": 1}).setting
    assert (setting.ttl_ns, setting.bound_ns) == (2_000_000_000, 5_000_000_000)
    monkeypatch.setattr(programs, "_jumps", lambda word, folder: False)
    setting = described("node-redlock", {}, {"seed": 1}).setting
    assert (setting.ttl_ns, setting.bound_ns) == (300_000_000, 1_500_000_000)


@pytest.mark.skipif(not (shutil.which("java") and interrupt.CAN), reason="needs java, and x86-64")
def test_a_program_of_the_jvm_gets_it_as_well(tmp_path):
    (tmp_path / "Lock.class").write_text("")
    assert times(tmp_path, "java -cp . Lock") == (2000, 5000)


def test_other_programs_get_a_short_one_because_real_time_passes(tmp_path):
    (tmp_path / "lock.sh").write_text("")
    (tmp_path / "worker").write_bytes(b"\x7fELF\x02\x01")
    (tmp_path / "worker").chmod(0o755)
    assert times(tmp_path, "sh lock.sh") == (150, 1500)
    assert times(tmp_path, "./worker") == (150, 1500)
    assert times(tmp_path, "no-such-word") == (150, 1500)
    # A lease of etcd has whole seconds.
    assert times(tmp_path, "sh lock.sh", "etcd:1") == (1000, 1500)
