"""Validation of a test, before anything is started for it."""

from __future__ import annotations

from collections.abc import Mapping

from fencepost.harness.errors import BadArguments, choose
from fencepost.harness.results.results import must_name_a_folder
from fencepost.harness.servers.kinds import KINDS, chosen, independent, roles
from fencepost.harness.spec.early_stop import check_until
from fencepost.harness.spec.models import passes_a_gate
from fencepost.harness.spec.spec import Spec, layout_of, restart_s, work_of
from fencepost.harness.userlock.servers import Servers
from fencepost.nemesis.families import check
from fencepost.nemesis.restart import NEVER_S
from fencepost.nemesis.triggers import must_fit, must_make_sense
from fencepost.settings import SETTINGS
from fencepost.workloads.contract.guard import served
from fencepost.workloads.locks.registry import LOCKS
from fencepost.workloads.resources.registry import GUARDS, STORES, keepers

# The highest values of the clients' generator settings.
_WORK = {"extend": 1, "trusting": 1}


def validate(spec: Spec) -> Spec:
    """Return the spec if it is valid.

    Raises:
        BadArguments: naming the wrong setting, and the valid values.
    """
    must_name_a_folder(spec.name)
    if spec.own is None:
        choose("lock", spec.lock, LOCKS)
    elif spec.foreign is None:
        Servers.read(str(spec.own.servers))
    choose("guard", spec.guard, GUARDS)
    for role, version in spec.server.items():
        chosen(role, version)
    try:
        for name, setting in SETTINGS.items():
            if name == "time_s" and spec.scenario is not None:
                continue  # it takes as long as its steps
            setting.check(getattr(spec, name))
    except ValueError as error:
        raise BadArguments(str(error)) from error
    _must_work(spec.work)
    work_of(spec)
    if restart_s(spec, 0) > NEVER_S:
        raise BadArguments(f"restart {spec.restart} is out of range (up to {NEVER_S / 3600:.0f} h)")
    if spec.shared and not spec.lock_type.shared:
        modes = [lock.name for lock in LOCKS.values() if lock.shared]
        raise BadArguments(
            f"{spec.lock} has no shared mode; these have: {', '.join(modes) or 'none'}"
        )
    _must_have_servers(spec)
    _must_suit(spec)
    _must_have_a_lease(spec)
    _guarded(spec)
    if spec.own and spec.own.image and {"clock", "kill"} <= set(spec.families):
        raise BadArguments(
            "a client in a custom image restarts with the right clock after a kill: use either "
            "clock or kill, not both"
        )
    _must_reach_steps(spec)
    check_until(spec.until, spec.checkers)
    _must_have_faults_that_fit(spec)
    return spec


def _must_have_a_lease(spec: Spec) -> None:
    """Check that the servers give such a lease, and that the requests for it fit into it."""
    lock = spec.lock_type
    if spec.ttl_ms < lock.least_ttl_ms:
        raise BadArguments(
            f"TTL {spec.ttl_ms} ms is too short: the servers of {lock.name} give no lease or "
            f"session of less than {lock.least_ttl_ms} ms"
        )
    if lock.whole_seconds and spec.ttl_ms % 1000:
        raise BadArguments(
            f"TTL {spec.ttl_ms} ms is not possible: leases of {lock.name} are whole seconds (for "
            "example: 2s)"
        )
    # Redlock asks each server in turn; a client of a cluster asks one.
    servers = spec.lock_type.servers if independent(spec.lock_type.kind) else 1
    timeouts_ms = 0 if spec.own else spec.options.get("node_timeout_ms", 0) * servers
    if timeouts_ms >= spec.ttl_ms:
        raise BadArguments(
            f"node_timeout_ms {spec.options['node_timeout_ms']} on {servers} server(s) can use up "
            f"the whole TTL of {spec.ttl_ms} ms: set it far lower"
        )


def _must_have_faults_that_fit(spec: Spec) -> None:
    try:
        check(spec.nemesis, layout_of(spec))
        if spec.aim:
            must_fit(spec.nemesis, layout_of(spec))
            must_make_sense(spec.plays, layout_of(spec))
    except ValueError as error:
        raise BadArguments(str(error)) from error


def _must_have_servers(spec: Spec) -> None:
    """Raise BadArguments if the options for external servers are inconsistent."""
    if spec.services and not spec.compose:
        raise BadArguments(
            f"--servers {','.join(spec.services)} needs a Compose file: name it with --compose, "
            "or name running containers with --containers"
        )
    if spec.compose and not spec.services:
        raise BadArguments(
            f"--compose {spec.compose} needs --servers: name the services that are the lock's "
            "servers"
        )
    if spec.compose and spec.containers:
        raise BadArguments("--compose and --containers exclude one another")
    if spec.foreign is None:
        return
    given = {"--server": spec.server, "--persistence": spec.persistence != "none"}
    if wrong := [option for option, value in given.items() if value]:
        raise BadArguments(
            f"{wrong[0]} applies only to servers that fencepost starts: leave it out"
        )
    lock, count = spec.lock_type, len(spec.servers)
    if lock.servers == 1 and count > 1:
        raise BadArguments(f"{lock.name} runs on one server, but {count} are named")
    kind = spec.foreign.kind
    if spec.own is None and kind and kind.name in KINDS and kind.role != lock.kind:
        raise BadArguments(f"{lock.name} runs on {lock.kind}, but the servers are {kind.name}")


def _must_reach_steps(spec: Spec) -> None:
    """Raise BadArguments if a scenario stops a program at its messages where no gate sees them
    (workloads/client/gate.py)."""
    lock = spec.lock_type
    if not lock.program or not (spec.scenario or {}).get("counted"):
        return
    if spec.own and spec.own.image:
        raise BadArguments(
            "--schedule: it stops clients at their messages, which is not possible in an image: "
            "leave --client-image out, and ship the program with --ship"
        )
    if not passes_a_gate(lock.kind):
        gated = ", ".join(role for role in roles() if passes_a_gate(role))
        raise BadArguments(
            f"--schedule: it stops clients at their messages, which is possible for programs on "
            f"{gated} only, and {lock.name} runs on {lock.kind}"
        )


def _must_suit(spec: Spec) -> None:
    """Raise BadArguments if the lock needs another kind of servers than the chosen one."""
    lock = spec.lock_type
    kind = chosen(lock.kind, spec.server_version)[0] if lock.kind in KINDS else None
    if lock.server and kind and kind.name != lock.server:
        raise BadArguments(f"{lock.name} needs {lock.kind}={lock.server}: leave --server out")
    if kind and kind.serves and kind.elects and kind.name != lock.server:
        able = [one.name for one in LOCKS.values() if one.server == kind.name]
        raise BadArguments(
            f"--server {lock.kind}={kind.name}: {lock.name} does not ask {kind.name} for the "
            f"primary; these locks do: {', '.join(able)}"
        )


def _must_work(work: Mapping[str, float]) -> None:
    """Raise BadArguments if a setting of the clients' generator is unknown or invalid."""
    for name, value in work.items():
        most = _WORK[choose("setting of work", name, _WORK)]
        if not isinstance(value, int | float) or not 0 <= value <= most:
            raise BadArguments(f"work {name} {value!r} is out of range (0 to {most})")


def _guarded(spec: Spec) -> None:
    """Raise BadArguments if the guard cannot work with this lock's tokens, or with the store."""
    guard, lock = GUARDS[spec.guard], spec.lock_type
    if not guard.serves(lock, spec.options):
        raise BadArguments(
            f"guard {guard.name} needs {guard.needs.what}, and {lock.name} gives none with these "
            f"options. Locks that do: {', '.join(served(guard, LOCKS.values()))}"
        )
    able = keepers(guard)
    if not able:
        raise BadArguments(f"no store can keep guard {guard.name}: install one that has its rule")
    if spec.store and spec.store not in able:
        raise BadArguments(
            f"guard {guard.name} cannot be kept in store {spec.store!r}; choose one of: "
            f"{', '.join(able)}"
        )
    beside = STORES[spec.stored_in].beside
    if beside not in ("", lock.server or lock.kind):
        able = [one.name for one in LOCKS.values() if beside == (one.server or one.kind)]
        raise BadArguments(
            f"store {spec.stored_in} is a store of the lock's servers, and {lock.name} runs on "
            f"other servers; locks that run on them: {', '.join(able)}"
        )
    if lock.program and spec.stored_in != "redis":
        raise BadArguments(
            f"the client of {lock.name} writes to a store in redis, not in {spec.stored_in}: "
            "leave --store out"
        )
