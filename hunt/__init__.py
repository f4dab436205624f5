"""The simulated world: the same locks on virtual time, and the search for what breaks them."""

if __name__ == "hunt":
    raise ImportError("hunt is fencepost.hunt: import fencepost.hunt.run, not hunt.run")
