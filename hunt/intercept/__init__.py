"""What code that brings its own connections sees of the simulated world: stand-ins for Python's
sockets, clocks, sleep, threads and chance, put in their places from outside."""
