"""A register in NATS: a write is accepted only on top of the revision that its writer read."""

from __future__ import annotations

import pytest

from fencepost.workloads.contract.lock import Failed
from fencepost.workloads.contract.store import Opening
from fencepost.workloads.resources import nats_register
from fencepost.workloads.resources.registry import GUARDS
from fencepost.workloads.transport.nats_bucket import Entry, OtherRevision


class Keys:
    """The bucket in memory, which all registers share."""

    entries: dict[str, Entry]
    asked: list[list[tuple[str, int]]]
    count = 0

    def __init__(self, name, addresses, timeout_s):
        self.asked.append(addresses)

    def open(self, age_s=0.0):
        pass

    def get(self, key):
        return self.entries.get(key)

    def update(self, key, value, last):
        entry = self.entries.get(key)
        if (entry.revision if entry else 0) != last:
            raise OtherRevision("another")
        Keys.count += 10  # other keys of the bucket are written, too
        self.entries[key] = Entry(value, Keys.count)


@pytest.fixture(params=[nats_register.STORE, nats_register.BESIDE], ids=lambda store: store.name)
def store(request):
    return request.param


@pytest.fixture
def opened(store, world, monkeypatch):
    monkeypatch.setattr(Keys, "entries", {}, raising=False)
    monkeypatch.setattr(Keys, "asked", [], raising=False)
    monkeypatch.setattr(nats_register, "Bucket", Keys)
    guard = GUARDS["compare-and-set"]
    rule = store.rule(guard)
    assert rule is not None
    servers = ["server-1", "server-2"]

    def open_one():
        return store.open(Opening(world.env(), "storage", servers, guard, 1.0, rule))

    return open_one


def test_a_store_keeps_the_resource_on_its_own_server_or_on_the_lock_s(opened, store, world):
    opened()
    names = ["storage"] if store.kind == "nats" else ["server-1", "server-2"]
    assert Keys.asked == [[world.env().address(name) for name in names]]


def test_versions_count_the_writes_of_one_resource(opened):
    one = opened()
    assert one.read("account") == (None, 0)
    assert [one.write("account", f"v{n}", n, None) for n in range(3)] == [1, 2, 3]
    assert opened().read("account") == ("v2", 3)


def test_a_write_on_top_of_an_old_version_is_refused(opened):
    one, two = opened(), opened()
    one.read("account")
    two.read("account")
    one.write("account", "one", 0, None)
    with pytest.raises(Failed, match="another revision") as error:
        two.write("account", "two", 0, None)
    assert error.value.kind == "refused"
    assert two.read("account") == ("one", 1)


def test_a_write_whose_version_another_write_has_replaced_is_refused_without_a_read(opened):
    one = opened()
    one.write("account", "one", 0, None)
    with pytest.raises(Failed) as error:
        opened().write("account", "two", 0, None)
    assert error.value.kind == "refused"
