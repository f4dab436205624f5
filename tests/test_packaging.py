"""The wheel contains the package's data files, such as Compose files and templates."""

from __future__ import annotations

import glob
import tomllib
from pathlib import Path

from fencepost.workloads.contract.catalogue import FOLDER, catalogue

ROOT = Path(__file__).parent.parent
SRC = ROOT / "src"
SETUP = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["setuptools"]


def files(folder: Path) -> set[Path]:
    """Return every file below the folder, through links, except those that Python caches."""
    found = (Path(name) for name in glob.glob(f"{folder}/**/*", recursive=True))
    return {path for path in found if path.is_file() and "__pycache__" not in path.parts}


def packages(folder: Path) -> list[Path]:
    """Return the folder and its subfolders whose names setuptools accepts for packages."""
    below = [folder, *(Path(name) for name in glob.glob(f"{folder}/**/", recursive=True))]
    return [one for one in below if all(map(str.isidentifier, one.relative_to(SRC).parts))]


def matched(package: Path) -> set[Path]:
    """Return the files that the globs of pyproject.toml add to a package."""
    data = SETUP["package-data"]
    patterns = data.get("*", []) + data.get(".".join(package.relative_to(SRC).parts), [])
    return {
        package / name
        for pattern in patterns
        for name in glob.glob(pattern, root_dir=package, recursive=True)
    }


def test_every_file_of_the_package_is_in_the_wheel():
    top = SRC / "fencepost"
    found = packages(top)
    modules = {path for package in found for path in package.glob("*.py")}
    data = {path for package in found for path in matched(package)}
    assert len(modules) > 100
    assert files(top) - modules - data == set()


def test_the_wheel_has_the_catalogue_of_defects():
    workloads = SRC / "fencepost" / "workloads"
    sent = {path.relative_to(workloads) for path in matched(workloads)}
    ours = {one.file.relative_to(FOLDER.parent) for one in catalogue().values()}
    assert ours and ours <= sent


def test_the_wheel_has_one_package():
    assert SETUP["packages"]["find"] == {"where": ["src"]}
    assert [path.name for path in SRC.iterdir() if not path.name.endswith(".egg-info")] == [
        "fencepost"
    ]


def test_no_file_of_the_cache_of_python_is_in_the_wheel():
    assert SETUP["exclude-package-data"]["*"] == ["__pycache__/*", "**/__pycache__/*"]
