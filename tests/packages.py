"""Packages as pip leaves them in a folder of sys.path: modules, and metadata with entry points."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path


def installed(
    site: Path,
    name: str,
    points: Mapping[str, str],
    modules: Mapping[str, str],
    version: str = "1.2",
) -> None:
    """Install a package: `points` has the lines of each entry point group, `modules` their code."""
    site.mkdir(parents=True, exist_ok=True)
    for module, code in modules.items():
        (site / f"{module}.py").write_text(code)
    info = site / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    groups = (f"[{group}]\n{lines}\n" for group, lines in points.items())
    (info / "entry_points.txt").write_text("".join(groups))
