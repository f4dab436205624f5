"""Cancelled calls: which clients they strike, how, and their receipt."""

from __future__ import annotations

import signal
from dataclasses import replace
from random import Random

import pytest

from fencepost.nemesis import cancel, failpoints
from fencepost.nemesis.families import check, facts
from fencepost.nemesis.fault_spec import Asked
from fencepost.nemesis.nemesis import Fault
from fencepost.workloads.client import cancelling
from tests.nemesis.test_facts import CLIENTS, LAYOUT


@pytest.fixture
def sent(site, monkeypatch):
    """The signals that a client receives, in order."""
    found, real = [], type(site.nodes["client-1"]).signal

    def signalled(node, pid, number, started=None):
        found.append(signal.Signals(number).name)
        return real(node, pid, number, started)

    monkeypatch.setattr(type(site.nodes["client-1"]), "signal", signalled)
    return found


def test_the_client_takes_the_signal_for_what_it_is():
    assert signal.SIGUSR1 == cancelling.SIGNAL


def test_a_client_is_struck_half_of_the_time_while_a_reply_is_under_way():
    drawn = [cancel.draw(Random(seed), LAYOUT, Asked("cancel"))[0] for seed in range(200)]
    assert {node for one in drawn for node in one.targets} == set(CLIENTS)
    points = [one.arguments["point"] for one in drawn]
    assert set(points) == {None, "replies-in-flight"}
    assert 60 < points.count(None) < 140


def test_its_receipt_is_the_clients_report(director, sent):
    receipt = director.inject(Fault("f", "cancel", ["client-1"], {"point": None}))
    assert receipt.proved and receipt.data["at"] == "wherever it was"
    assert sent == ["SIGUSR1"]
    assert director.heal("f").proved


def test_without_a_report_nothing_proves_it(director, site, monkeypatch):
    monkeypatch.setattr(type(site.nodes["client-1"]), "wait_cancelled", lambda *_: False)
    receipt = director.inject(Fault("f", "cancel", ["client-1"], {"point": None}))
    assert not receipt.proved and "had no call to cancel" in receipt.how


def test_a_client_at_its_failpoint_is_told_first_and_resumed_then(director, site, sent):
    site.nodes["client-1"].points = {"replies-in-flight"}
    receipt = director.inject(Fault("f", "cancel", ["client-1"], {"point": "replies-in-flight"}))
    assert receipt.proved and receipt.data["at"] == "at replies-in-flight"
    assert sent == ["SIGUSR1", "SIGCONT"]


def test_a_call_that_began_after_the_failpoint_was_not_cancelled_there(director, site):
    site.nodes["client-1"].points = {"replies-in-flight"}
    site.nodes["client-1"].cancelled_later = True
    receipt = director.inject(Fault("f", "cancel", ["client-1"], {"point": "replies-in-flight"}))
    assert receipt.proved and failpoints.missed(receipt.data)


def test_it_keeps_no_node_from_answering():
    said = facts("cancel", ["client-1"], {"point": None})
    assert (said["impairs"], said["links"], said["forgets"]) == ([], [], False)


def test_a_program_in_another_language_is_refused():
    with pytest.raises(ValueError, match="only calls of a lock in Python can be cancelled"):
        check(["cancel"], replace(LAYOUT, cancels=False))
