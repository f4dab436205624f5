"""The simulated world: virtual time, network, clocks, the record of a run."""
