"""The errors with which a run ends because of the lock's own code: it raises, or never ends."""

from __future__ import annotations

from fencepost.hunt.sim.code_location import where_in
from fencepost.hunt.sim.unknown import Unknown
from fencepost.workloads.contract.lock import BadAnswer, Interrupt

NEVER_ENDS = (
    "a call of the lock does not end, although no fault is injected. Limit the time for which it "
    "waits"
)


class LockError(Exception):
    """The lock's code raised an unexpected exception, or does not terminate."""


class Stuck(LockError):
    """The lock's code ran for seconds without a step. It takes as long again in each run."""


def of_failure(failure: BaseException, step: int) -> BaseException:
    """Return the error for an exception that has ended a run at this step."""
    if isinstance(failure, Unknown | LockError):
        return failure
    if isinstance(failure, KeyboardInterrupt) and not isinstance(failure, Interrupt):
        return failure  # the user's, for the command: it may arrive in the lock's code
    if isinstance(failure, BadAnswer):
        found = LockError(f"{failure} (at step {step})")
    else:
        where = where_in(failure)
        found = LockError(f"{type(failure).__name__}: {failure} ({where}), at step {step}")
    found.__cause__ = failure
    return found


def without_end(steps: int, where: str, time_stands: bool, waits_s: float) -> Exception:
    """Return the error for a run that has taken this many steps. `waits_s`: how long its op has
    waited."""
    if time_stands:
        return Unknown(
            f"it waits in a loop without a sleep{where}. Code takes no time in the simulation, "
            "so such a loop never ends: sleep in it, for example for 1 ms"
        )
    return LockError(
        f"the lock does not terminate within {steps:,} steps{where}: its op still "
        f"waits after {waits_s:.0f} s of simulated time. Limit the time that acquire waits, or "
        "give the lock a TTL, so that a dead holder does not keep it"
    )
