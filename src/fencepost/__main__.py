"""Runs `python -m fencepost`: the command line."""

from fencepost.harness.__main__ import main

if __name__ == "__main__":
    main()
