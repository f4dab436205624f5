"""Two candidates for one Lease."""

import threading
import time

from kubernetes import client
from kubernetes.leaderelection import electionconfig, leaderelection
from kubernetes.leaderelection.resourcelock.leaselock import LeaseLock

from frame.kubernetes_api import Api, serve

LEASE_S, DEADLINE_S, RETRY_S = 3, 2, 1


def candidate(name, url):
    """Start a candidate in a thread of its own; return when it started and when it stopped."""
    started, stopped = threading.Event(), threading.Event()
    lock = LeaseLock("job", "default", name)
    configuration = client.Configuration(host=url)
    lock.api_instance = client.CoordinationV1Api(client.ApiClient(configuration))
    config = electionconfig.Config(
        lock,
        lease_duration=LEASE_S,
        renew_deadline=DEADLINE_S,
        retry_period=RETRY_S,
        onstarted_leading=started.set,
        onstopped_leading=stopped.set,
    )
    run = leaderelection.LeaderElection(config).run
    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return started, stopped, thread


def show_leaders(fault):
    """Run two candidates, of which the first meets the fault."""
    threading.excepthook = lambda ended: print(f"{ended.thread.name}: {ended.exc_value!r}"[:200])
    api = Api()
    a_started, a_stopped, thread = candidate("a", serve(api, fault))
    if not a_started.wait(300):
        raise RuntimeError("a was not elected")
    b_started, _, _ = candidate("b", serve(api))
    api.struck.set()
    if not b_started.wait(300):
        raise RuntimeError("b was not elected")
    time.sleep(2 * LEASE_S)  # time for a to notice
    assert a_stopped.is_set(), (
        f"b leads for {2 * LEASE_S} s, and onstopped_leading of a was not called "
        f"(the thread of a's run() is {'alive' if thread.is_alive() else 'dead'})"
    )
