"""The arguments of iptables, and how its output is parsed."""

from __future__ import annotations

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
