"""The simulated world: the same locks on virtual time, and the search for what breaks them."""
