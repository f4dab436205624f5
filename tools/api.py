"""Write the API pages from docstrings: the public names of `import fencepost`, and extension
points.

    python tools/api.py [FOLDER]

Writes HTML by pdoc, into build/api by default.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pdoc

import fencepost

MODULES = (
    "fencepost",
    "fencepost.checker.lincheck",
    "fencepost.checker.history.history",
    "fencepost.checker.verdict",
    "fencepost.nemesis.nemesis",
    "fencepost.nemesis.site",
    "fencepost.plugins",
    "fencepost.registry",
    "fencepost.report.exports.frames",
    "fencepost.workloads.contract.lock",
    "fencepost.workloads.contract.locktype",
)


def main(folder: Path) -> None:
    # pdoc reads a module's dictionary, and these names are loaded on first use.
    for name in fencepost.__all__:
        setattr(fencepost, name, getattr(fencepost, name))
    pdoc.render.configure(docformat="markdown", search=True)
    pdoc.pdoc(*MODULES, output_directory=folder)
    print(folder / "index.html")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "build/api"))
