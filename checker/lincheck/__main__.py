"""`python -m checker.lincheck`."""

import sys

from checker.lincheck.command import main

sys.exit(main(sys.argv[1:]))
