"""Keep the figures of a sweep or a matrix, from which `make docs` makes tables in docs/.

    python tools/keep.py results/sweep/latest redlock-ttl-pause

writes docs/measured/redlock-ttl-pause.json: the plan, the versions and what each cell comes to. The
runs stay where they are.
"""

from __future__ import annotations

import json
import sys
from datetime import datetime
from pathlib import Path
from typing import Any

from fencepost.report import matrix, sweep
from fencepost.report.stored import ReportError

MEASURED = Path(__file__).parent.parent / "docs" / "measured"
_CELL = ("lock", "fault", "guard", "x", "y", "x_shown", "y_shown", "reason")
_SUM = ("state", "marks", "runs", "crashed", "holds", "violations", "availability")


def kept(folder: Path) -> dict[str, Any]:
    """What is kept of the sweep or the matrix in this folder. Raises ReportError if it is none."""
    found = sweep.read(folder) if (folder / sweep.FILE).is_file() else matrix.read(folder)
    began = datetime.strptime(folder.resolve().name, "%Y%m%dT%H%M%S.%fZ")
    return {
        "date": began.date().isoformat(),
        "plan": found["plan"],
        "versions": found.get("versions") or {},
        "cells": [
            {name: row[name] for name in _CELL if name in row}
            | {"sum": {name: row["sum"][name] for name in _SUM}}
            for row in found["cells"]
        ],
    }


def main(arguments: list[str]) -> int:
    if len(arguments) != 2:
        print(__doc__, file=sys.stderr)
        return 254
    folder, name = arguments
    try:
        text = json.dumps(kept(Path(folder)), indent=1)
    except ReportError as error:
        print(error, file=sys.stderr)
        return 254
    path = MEASURED / f"{name}.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(text + "\n", encoding="utf-8")
    print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
