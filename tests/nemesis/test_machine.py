"""Faults of a server's machine: its power, its disk, its CPU; and those without effect."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest

from fencepost.nemesis.cpu import Cpu
from fencepost.nemesis.disk import Disk
from fencepost.nemesis.nemesis import Fault
from fencepost.nemesis.power import Power
from tests.nemesis.site_in_memory import Result

DATA = "/var/lib/fencepost/redis"


@dataclass
class Machine:
    """A node and its server, as far as these faults use them. `deaf`: disabled effects."""

    name: str
    deaf: set[str] = field(default_factory=set)
    pid_: int | None = 42
    small: bool = True
    files: dict[str, str] = field(default_factory=dict)
    synced: dict[str, str] = field(default_factory=dict)
    full: bool = False
    cgroup: str = "/docker/1"
    throttled: int = 0
    log: list[str] = field(default_factory=list)
    data: str = DATA

    def run(self, argv: Sequence[str], *, timeout_s: float = 10.0, check: bool = True) -> Result:
        if argv[0] == "fencepost-node":
            _, verb, *words = argv
            return Result(json.dumps(getattr(self, "_" + verb)(*words)))
        script = argv[2]
        if "dd if=/dev/zero" in script:
            self.full = "disk" not in self.deaf
            return Result(code=0 if self.small else 1)
        if script.startswith("rm -f"):
            self.full = self.full and "remove" in self.deaf
            return Result()
        return Result("no\n0 4096" if self.full else "yes\n100 4096")

    def _lazy(self, verb: str, folder: str = "", text: str = "") -> dict[str, object]:
        if verb == "witness":
            self.synced["synced"] = self.files["synced"] = self.files["unsynced"] = text
        if verb == "lose":
            assert self.pid_ is None, "the server must be dead before its disk forgets"
            lost = len(self.files) - len(self.synced)
            if "lose" not in self.deaf:
                self.files = {} if "all" in self.deaf else dict(self.synced)
            return {"bytes": 7, "files": lost, "names": 1}
        return {name: self.files.get(name) == text for name in ("synced", "unsynced")}

    def _cpu(self, verb: str, pid: str = "", share: str = "") -> dict[str, object]:
        if verb == "free":
            self.cgroup = self.cgroup if "free" in self.deaf else "/docker/1"
            return {"freed": 1}
        if verb == "limit":
            self.cgroup += "" if "group" in self.deaf else "/fencepost"
            self.throttled += 0 if "quota" in self.deaf else 5
            return {"throttled": self.throttled}
        inside = self.cgroup.endswith("/fencepost")
        return {"cgroup": self.cgroup, "share": 0.02 if inside else None, "throttled": 5}

    def state(self, pid: int) -> str | None:
        return "S" if pid == self.pid_ else None

    def pid(self) -> int | None:
        return self.pid_

    def kill(self) -> int | None:
        pid, self.pid_ = self.pid_, None
        return pid

    def start(self, **changed: str) -> None:
        self.log.append("start")
        self.pid_ = 43

    def wait_ready(self, timeout_s: float = 30.0) -> None:
        if "ready" in self.deaf:  # until it is started again
            self.deaf.remove("ready")
            raise RuntimeError(f"{self.name} did not get ready")
        self.log.append("ready")


class Site:
    clients = ()

    def __init__(self) -> None:
        self.machines = {name: Machine(name) for name in ("redis-1", "redis-2")}
        self.servers = list(self.machines)

    def remote(self, node):
        return self.machines[node]

    server = remote


@pytest.fixture
def site():
    return Site()


def fault(*targets, **arguments):
    return Fault("f", "x", list(targets or ("redis-1",)), arguments)


def test_a_power_loss_takes_unsynced_writes_and_the_servers_restart_together(site):
    nemesis = Power(site)
    receipt = nemesis.inject(fault("redis-1", "redis-2"))
    assert receipt.proved
    assert "the synced file exists, the unsynced one is gone" in receipt.how
    assert nemesis.heal(fault("redis-1", "redis-2")).proved
    assert [machine.log for machine in site.machines.values()] == [["start", "ready"]] * 2


@pytest.mark.parametrize(
    ("deaf", "why"),
    [
        ("lose", "the unsynced file is still there too"),
        ("all", "the synced file is gone too"),
    ],
)
def test_a_loss_of_power_that_loses_nothing_or_everything_is_not_proved(site, deaf, why):
    site.machines["redis-1"].deaf.add(deaf)
    receipt = Power(site).inject(fault())
    assert not receipt.proved
    assert why in receipt.how


def test_a_loss_of_power_without_a_server_is_not_proved(site):
    site.machines["redis-1"].pid_ = None
    assert not Power(site).inject(fault()).proved


def test_a_full_disk_is_one_on_which_nothing_can_be_written(site):
    nemesis = Disk(site)
    receipt = nemesis.inject(fault())
    assert receipt.proved
    assert receipt.data == {"left": 0, "writable": False}
    healed = nemesis.heal(fault())
    assert healed.proved
    assert site.machines["redis-1"].log == ["start", "ready"]


def test_a_server_that_hangs_after_its_disk_was_full_is_restarted(site):
    nemesis, machine = Disk(site), site.machines["redis-1"]
    nemesis.inject(fault())
    machine.deaf.add("ready")
    healed = nemesis.heal(fault())
    assert healed.proved
    assert healed.how.endswith("its server did not serve again before it was restarted")
    assert machine.log == ["start", "start", "ready"]


@pytest.mark.parametrize("deaf", ["disk", "remove"])
def test_a_disk_that_is_not_full_or_stays_full_is_not_proved(site, deaf):
    site.machines["redis-1"].deaf.add(deaf)
    nemesis = Disk(site)
    assert nemesis.inject(fault()).proved is (deaf == "remove")
    assert nemesis.heal(fault()).proved is (deaf == "disk")


def test_a_disk_shared_with_others_is_never_filled(site):
    site.machines["redis-1"].small = False
    receipt = Disk(site).inject(fault())
    assert not receipt.proved
    assert receipt.how == "the data of redis-1 is not on a separate disk"


def test_a_quota_is_proved_by_the_cgroup_and_its_throttling(site):
    nemesis = Cpu(site)
    receipt = nemesis.inject(fault(share=0.02))
    assert receipt.proved
    assert "/docker/1/fencepost, which has a quota of 2.0% of a CPU" in receipt.how
    assert nemesis.heal(fault()).proved


@pytest.mark.parametrize("deaf", ["group", "quota"])
def test_a_quota_without_a_process_or_without_throttling_is_not_proved(site, deaf):
    site.machines["redis-1"].deaf.add(deaf)
    assert not Cpu(site).inject(fault()).proved


def test_a_quota_that_stays_is_not_called_healed(site):
    nemesis = Cpu(site)
    nemesis.inject(fault())
    site.machines["redis-1"].deaf.add("free")
    assert not nemesis.heal(fault()).proved
