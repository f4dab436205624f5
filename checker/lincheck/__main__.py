"""`python -m checker.lincheck`."""

import sys

from fencepost.checker.lincheck.command import main

sys.exit(main(sys.argv[1:]))
