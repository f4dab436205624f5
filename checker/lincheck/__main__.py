"""Runs `python -m fencepost.checker.lincheck` as `fencepost lincheck`."""

import sys

from fencepost.checker.lincheck.command import main
from fencepost.output import guard_output

guard_output()
sys.exit(main(sys.argv[1:]))
