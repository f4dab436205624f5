"""A candidate of the official client's election, as its example has it: PORT IDENTITY.

It writes a line for each step: its time (s, CLOCK_MONOTONIC) and its name.
"""

from __future__ import annotations

import sys
import threading
import time

from kubernetes import client
from kubernetes.leaderelection import electionconfig, leaderelection
from kubernetes.leaderelection.resourcelock.leaselock import LeaseLock

from fencepost.harness.servers.kube_apiserver import TOKEN

LEASE_S, DEADLINE_S, RETRY_S = 6, 5, 1


def say(step: str) -> None:
    print(time.monotonic(), step, flush=True)


def work() -> None:
    while True:
        say("works")
        time.sleep(0.05)


def main() -> None:
    port, identity = sys.argv[1:]
    configuration = client.Configuration(host=f"https://127.0.0.1:{port}")
    configuration.verify_ssl = False
    configuration.api_key = {"authorization": f"Bearer {TOKEN}"}
    client.Configuration.set_default(configuration)
    config = electionconfig.Config(
        LeaseLock("election", "default", identity),
        lease_duration=LEASE_S, renew_deadline=DEADLINE_S, retry_period=RETRY_S,
        onstarted_leading=work, onstopped_leading=lambda: say("stopped"),
    )  # fmt: skip
    try:
        leaderelection.LeaderElection(config).run()
        say("returned")
    except Exception as error:  # the test asks for any exception of `run`
        say(f"raised {type(error).__name__}")
    threading.Event().wait()  # an application has more to do


if __name__ == "__main__":
    main()
