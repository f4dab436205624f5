"""Runs `python -m fencepost.checker.lincheck` as `fencepost lincheck`."""

import sys

from fencepost.checker.lincheck.command import main

sys.exit(main(sys.argv[1:]))
