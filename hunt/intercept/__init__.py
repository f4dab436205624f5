"""Replacements of Python's sockets, clocks, sleep, threads and random numbers, through which code
that brings its own connections runs in the simulated world."""
