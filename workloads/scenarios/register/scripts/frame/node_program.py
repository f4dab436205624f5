"""A program of Node.js."""

import subprocess


def node(program, *words):
    """Run a program to its end; return its output."""
    command = ["node", "-e", program, *map(str, words)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=300)
    if ended.returncode:
        raise RuntimeError(ended.stderr)
    return ended.stdout.strip()
