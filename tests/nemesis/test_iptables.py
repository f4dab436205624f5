"""The arguments of iptables, how its output is parsed, and the effect of the rules."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

import pytest

from fencepost.nemesis import iptables, partition
from fencepost.nemesis.iptables import Rule, counted, table

RULES = [
    Rule("IN", "10.0.0.1"),
    Rule("OUT", "10.0.0.2", "REJECT"),
    Rule("IN", "10.0.0.3", ""),
    Rule("IN", "10.0.0.4", share=0.3),
]


def test_both_chains_are_emptied_and_written_in_one_step():
    assert table(RULES) == (
        "*filter\n"
        ":FENCEPOST-IN - [0:0]\n"
        ":FENCEPOST-OUT - [0:0]\n"
        "-A FENCEPOST-IN -s 10.0.0.1 -j DROP\n"
        "-A FENCEPOST-OUT -d 10.0.0.2 -p tcp -j REJECT --reject-with tcp-reset\n"
        "-A FENCEPOST-IN -s 10.0.0.3 -p udp --dport 9\n"
        "-A FENCEPOST-IN -s 10.0.0.4 -m statistic --mode random --probability 0.3 -j DROP\n"
        "COMMIT\n"
    )


def test_the_packets_that_each_rule_met_are_read_back():
    assert counted(
        "-N FENCEPOST-IN -c 0 0\n"
        "-A FENCEPOST-IN -s 10.0.0.1/32 -c 7 420 -j DROP\n"
        "-A FENCEPOST-IN -s 10.0.0.1/32 -c 2 120 -j DROP\n"
        "-A FENCEPOST-OUT -d 10.0.0.2/32 -p tcp -c 3 180 -j REJECT --reject-with tcp-reset\n"
        "-A FENCEPOST-IN -s 10.0.0.3/32 -p udp -m udp --dport 9 -c 1 38\n"
        "-A FENCEPOST-IN -s 10.0.0.4/32 -m statistic --mode random --probability 0.29999999981 "
        "-c 5 300 -j DROP\n"
    ) == {RULES[0]: 9, RULES[1]: 3, RULES[2]: 1, RULES[3]: 5}


# In a network of its own, whose only device is loopback: both ends have addresses there.
PROBE = """
import socket, subprocess, sys, threading
for address in ("10.9.9.1", "10.9.9.2"):
    subprocess.run(["ip", "address", "add", f"{address}/32", "dev", "lo"], check=True)
subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
subprocess.run(["bash", "-c", sys.argv[1]], check=True)
server = socket.create_server(("10.9.9.1", 9999))
def connected():
    end = socket.socket()
    end.bind(("10.9.9.2", 0))
    end.settimeout(0.5)
    end.connect(("10.9.9.1", 9999))
    return end
opened = connected()
subprocess.run(["iptables-restore", "--noflush"], input=sys.argv[2], text=True, check=True)
def told(act):
    try:
        act()
    except OSError as error:
        return type(error).__name__
print(told(lambda: (opened.send(b"x"), opened.recv(1))), told(connected))
"""


@pytest.mark.skipif(
    os.geteuid() != 0 or not all(map(shutil.which, ("unshare", "iptables", "ip"))),
    reason="needs root, unshare, iptables and ip",
)
@pytest.mark.parametrize(
    ("how", "told"),
    [("reject", "ConnectionResetError ConnectionRefusedError"), ("drop", "TimeoutError " * 2)],
)
def test_the_kernel_resets_what_is_rejected_and_does_not_answer_what_is_dropped(how, told):
    hooks = Scripts()
    iptables.hook(hooks)
    rules = table(partition._both("10.9.9.1", how))
    words = ["unshare", "-n", sys.executable, "-c", PROBE, hooks.ran[0], rules]
    said = subprocess.run(words, capture_output=True, text=True, timeout=120)
    assert (said.stdout.strip(), said.stderr) == (told.strip(), "")


class Scripts:
    """A remote that keeps the scripts which it is to run."""

    def __init__(self):
        self.ran = []

    def run(self, argv, **options):
        self.ran.append(argv[-1])
