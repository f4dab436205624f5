"""The API pages, from docstrings: what `import fencepost` gives, and what people extend.

    python tools/api.py [FOLDER]

Writes HTML by pdoc, into build/api where no folder is named.
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
    # pdoc looks into a module's dictionary, and these names are loaded when they are used.
    for name in fencepost.__all__:
        setattr(fencepost, name, getattr(fencepost, name))
    pdoc.render.configure(docformat="markdown", search=True)
    pdoc.pdoc(*MODULES, output_directory=folder)
    print(folder / "index.html")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "build/api"))
