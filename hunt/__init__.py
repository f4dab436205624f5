"""Test locks in a simulated world with virtual time, and search for schedules that break them."""

if __name__ == "hunt":
    raise ImportError("hunt is fencepost.hunt: import fencepost.hunt.run, not hunt.run")
