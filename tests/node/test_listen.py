"""On a host a server listens on the test's address alone, in a container on all addresses."""

from __future__ import annotations

import re

import pytest

from fencepost.harness.servers import etcd, mariadb, nats, postgres, redis, valkey, zookeeper
from fencepost.node import kind, listen


@pytest.fixture
def address(tmp_path, monkeypatch):
    """Write the address that the harness found for this host."""
    file = tmp_path / "address"
    monkeypatch.setattr(listen, "ADDRESS", str(file))
    return lambda text: file.write_text(f"{text}\n")


def test_a_container_s_server_listens_everywhere(address):
    assert listen.everywhere() == ("0.0.0.0",)
    assert listen.own() == "127.0.0.1"


def test_a_host_s_server_listens_on_the_test_s_address_and_on_loopback(address):
    address("127.0.0.7")
    assert listen.everywhere() == ("127.0.0.7", "127.0.0.1")
    assert listen.own() == "127.0.0.7"


def test_an_address_that_the_host_does_not_have_is_refused(address):
    address("192.0.2.1")  # one of the unused addresses for documentation
    with pytest.raises(OSError, match=r"192\.0\.2\.1 is not an address of this host"):
        listen.everywhere()


@pytest.mark.parametrize("module", [redis, valkey, postgres, mariadb, nats, etcd, zookeeper])
def test_no_kind_of_server_listens_anywhere_else(module, tmp_path, monkeypatch):
    found = module.KIND
    for name in ("RUN", "SOCKETS"):
        monkeypatch.setattr(module, name, str(tmp_path / name), raising=False)
        (tmp_path / name).mkdir(exist_ok=True)
    if module is postgres:
        monkeypatch.setattr(postgres.shutil, "chown", lambda *_: None)
    if module in (postgres, mariadb):
        monkeypatch.setattr(module.subprocess, "run", lambda *_, **__: None)
    node = f"{found.role}-1"
    start = kind.Start(
        node, str(tmp_path), found.versions[0], {"SERVERS": "3"}, ("10.0.0.7", "127.0.0.1")
    )
    said = " ".join(found.command(start))
    if module is zookeeper:
        said += (tmp_path / "RUN" / "zoo.cfg").read_text()
    if module is nats:
        said += (tmp_path / "nats.conf").read_text()
    assert "10.0.0.7" in said
    assert set(re.findall(r"\d+\.\d+\.\d+\.\d+", said)) <= {"10.0.0.7", "127.0.0.1"}
