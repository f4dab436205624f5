"""A lock that starts processes, which is not simulated."""

import subprocess


class Starts:
    def __init__(self, servers):
        pass

    def acquire(self, name, ttl):
        return subprocess.run(["true"], check=False).returncode == 0

    def release(self, name):
        return True
