"""Faults of HTTP: their draws, and receipts by real probes through a real proxy on loopback."""

from __future__ import annotations

import json
import subprocess
from dataclasses import replace
from itertools import islice
from random import Random

import pytest

from fencepost.harness.servers.kinds import KINDS as SERVER_KINDS
from fencepost.nemesis import http
from fencepost.nemesis.families import check, describe, validate
from fencepost.nemesis.fault_spec import Asked
from fencepost.nemesis.http import KINDS, Http, draw
from fencepost.nemesis.nemesis import Fault
from fencepost.nemesis.targets import HOLDER, Layout
from fencepost.nemesis.trigger_draws import draws
from tests.http_server import Recording, proxy, serving
from tests.nemesis.site_in_memory import Result

SERVERS, CLIENTS = ["kubernetes-1", "kubernetes-2"], ["client-1", "client-2", "client-3"]
AT = Layout(SERVERS, CLIENTS, ttl_s=2.0, restart_s=0.0, kind=SERVER_KINDS["kubernetes"])
LINK = [["client-1", "kubernetes-1"]]


class Loopback:
    """One server and one client on loopback. `disabled`: "redirect" (requests go to the server),
    "off" (the proxy stays), "rules" (the node shows none)."""

    def __init__(self, folder):
        self.server = Recording()
        self.file = folder / "http.json"
        self.disabled = set()
        self.proxy = None
        self.to = self.server.server_address[1]

    def remote(self, node):
        return self

    def address(self, node):
        return "127.0.0.1"

    def port(self, node):
        return self.to

    def run(self, argv, *, timeout_s=10.0, check=True):
        if argv[0] == "bash":
            return Result(subprocess.run(argv, capture_output=True, text=True, check=True).stdout)
        assert argv[:2] == ["fencepost-node", "http"]
        verbs = {"on": self.turn_on, "show": self.show, "off": self.turn_off}
        return Result(json.dumps(verbs[argv[2]](*argv[3:])))

    def turn_on(self, kind, port, time_s, client):
        self.proxy = serving(proxy(kind, int(port), self.file, [client], float(time_s)))
        to = self.proxy.__enter__()
        if "redirect" not in self.disabled:
            self.to = to
        return {"rules": 0 if "rules" in self.disabled else 1}

    def show(self):
        return json.loads(self.file.read_text()) if self.file.exists() else {"met": {}}

    def turn_off(self):
        found = self.show()
        if "off" in self.disabled:
            return {"met": found["met"], "left": True}
        self.close()
        self.to = self.server.server_address[1]
        return {"met": found["met"], "left": False}

    def close(self):
        if self.proxy:
            self.proxy.__exit__(None, None, None)
            self.proxy = None


@pytest.fixture
def site(tmp_path, monkeypatch):
    # On a busy machine a probe takes a while; only silence takes it all.
    monkeypatch.setattr(http, "PROBE_S", 1.0)
    found = Loopback(tmp_path)
    with serving(found.server):
        yield found
        found.close()


def fault(kind="503", **changed):
    arguments = {"links": LINK, "kind": kind, "time_s": 5.0} | changed
    return Fault("h", "http", ["client-1", "kubernetes-1"], arguments)


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_is_proved_by_a_probe_that_meets_it_and_by_one_that_the_server_answers(
    site, kind
):
    nemesis, one = Http(site), fault(kind)
    begun = nemesis.inject(one)
    assert begun.proved, begun.how
    counted = begun.data["requests"]["client-1 to kubernetes-1"]
    assert counted["probes"] == counted["faulted"] > 0
    ended = nemesis.heal(one)
    assert ended.proved, ended.how
    assert "1 of 1 probes got the server's answer: client-1 to kubernetes-1 201" in ended.how


def test_the_receipt_of_the_end_counts_the_clients_own_requests_apart_from_probes(site):
    nemesis, one = Http(site), fault("503")
    nemesis.inject(one)
    send = "printf 'GET / HTTP/1.0\\r\\n\\r\\n' >&3; cat <&3"
    own = f"exec 3<>/dev/tcp/127.0.0.1/{site.to}; {send}"
    assert "503" in subprocess.run(["bash", "-c", own], capture_output=True, text=True).stdout
    ended = nemesis.heal(one)
    counted = ended.data["requests"]["client-1 to kubernetes-1"]
    assert counted["requests"] - counted["probes"] == 1
    assert f"of {counted['requests']} requests from client-1 to kubernetes-1" in ended.how


@pytest.mark.parametrize("kind", KINDS)
def test_a_proxy_that_no_request_reaches_proves_nothing(site, kind):
    site.disabled.add("redirect")
    receipt = Http(site).inject(fault(kind))
    assert not receipt.proved
    assert "and the proxy met no probe" in receipt.how


@pytest.mark.parametrize("kind", ["hang", "slow"])
def test_silence_without_a_counted_request_is_not_proved(site, kind, monkeypatch):
    """A server that is down, or a cut, is silent too."""
    monkeypatch.setattr(http, "PROBE_S", 0.1)
    monkeypatch.setattr(site, "show", lambda: {"met": {}})
    receipt = Http(site).inject(fault(kind))
    assert receipt.data["probes"] == {
        "client-1 to kubernetes-1": "silent, and the proxy met no probe"
    }
    assert not receipt.proved


def test_a_node_without_the_rules_is_not_proved(site):
    site.disabled.add("rules")
    receipt = Http(site).inject(fault())
    assert not receipt.proved
    assert receipt.how.startswith("a proxy on 0 of 1 servers; 1 of 1 probes met it")


def test_a_proxy_that_stays_is_not_called_healed(site):
    nemesis, one = Http(site), fault()
    nemesis.inject(one)
    site.disabled.add("off")
    receipt = nemesis.heal(one)
    assert not receipt.proved
    assert "the proxy is still on kubernetes-1" in receipt.how


def test_a_fault_that_was_never_injected_counts_as_healed(site):
    assert Http(site).heal(fault()).proved


@pytest.mark.parametrize(
    "role", sorted(name for name, kind in SERVER_KINDS.items() if not kind.http)
)
def test_servers_that_do_not_speak_plain_http_cannot_have_it(role):
    at = replace(AT, kind=SERVER_KINDS[role])
    with pytest.raises(ValueError, match=r"needs servers that speak plain HTTP, and"):
        check(["http"], at)
    with pytest.raises(ValueError, match=f"and these are {role}"):
        validate("http", ["client-1", "kubernetes-1"], fault().arguments, at)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("where", "links"),
    [
        ("client-2", [["client-2", "kubernetes-1"], ["client-2", "kubernetes-2"]]),
        ("holder", [["holder", "kubernetes-1"], ["holder", "kubernetes-2"]]),
        ("kubernetes-2", [[client, "kubernetes-2"] for client in CLIENTS]),
        ("clients", [[client, server] for server in SERVERS for client in CLIENTS]),
    ],
)
def test_an_entry_names_a_client_all_of_them_or_a_server(kind, where, links):
    (asked,) = check([f"http:{where}/{kind}"], AT)
    (drawn,) = draw(Random(7), AT, asked)
    assert (drawn.arguments["links"], drawn.arguments["kind"]) == (links, kind)
    validate("http", drawn.targets, drawn.arguments, AT)


def test_without_words_each_kind_and_each_target_is_drawn():
    found = [draw(Random(seed), AT, Asked("http"))[0] for seed in range(200)]
    assert {one.arguments["kind"] for one in found} == set(KINDS) - set(http.WATCHES)
    assert {len(one.targets) - len(SERVERS) for one in found} == {1, 3}
    assert any(HOLDER in one.targets for one in found)


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"kind": "teapot"}, "choose one of hang, reset, 409, 429, 500, 503, slow, lost, watch"),
        ({"kind": "slow", "time_s": 0.1}, "slow answers take 0.5 s or more"),
        ({"time_s": -1}, "out of range"),
        ({"time_s": float("nan")}, "out of range"),
        ({"links": []}, "it needs links"),
        ({"links": [["client-1"]]}, "it needs links"),
        ({"links": [["kubernetes-1", "client-1"]]}, "a link is from a client to a server"),
    ],
)
def test_a_fault_written_by_hand_is_checked(changed, why):
    arguments = fault().arguments | changed
    with pytest.raises(ValueError, match=why):
        validate("http", ["client-1", "kubernetes-1"], arguments, AT)


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("hang", "requests of client-1 to kubernetes-1 hang"),
        ("429", "requests of client-1 to kubernetes-1 are answered with 429"),
        ("slow", "requests of client-1 to kubernetes-1 are answered late (5.0 s)"),
        (
            "lost",
            "requests of client-1 to kubernetes-1 are carried out, and their answers are lost",
        ),
    ],
)
def test_a_fault_is_described_by_what_becomes_of_requests(kind, words):
    assert describe("http", ["client-1", "kubernetes-1"], fault(kind).arguments) == words


def test_aim_hits_the_holder_whatever_the_kind_and_outlasts_a_lease_at_times():
    drawn = [*islice(draws(["http/hang"], 7, AT), 59)]
    aimed = [one for one in drawn if one.kind in ("hold", "edge")]
    assert len(aimed) > 30
    for one in aimed:
        (strike,) = one.strike
        assert HOLDER in strike.targets
        assert strike.at("client-3").arguments["links"] == [
            ["client-3", server] for server in SERVERS
        ]
    assert min(one.lasts_s for one in aimed) < AT.ttl_s < 2.5 * AT.ttl_s < max(
        one.lasts_s for one in aimed
    )  # fmt: skip
