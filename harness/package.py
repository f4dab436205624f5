"""Where the package's own files lie: Compose files, node programs, clients' code."""

from pathlib import Path

import fencepost

PACKAGE = Path(fencepost.__file__).parent
"""In a checkout its folders are links to those at the top of the repository."""
