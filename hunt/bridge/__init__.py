"""From a simulated run to a scenario that real clients and servers play."""
