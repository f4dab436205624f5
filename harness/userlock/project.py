"""Creates a project from templates: a lock, its fencepost.toml, a test and a workflow.

Existing files are not changed.
"""

from __future__ import annotations

from pathlib import Path

from fencepost.harness.errors import BadArguments

TEMPLATES = Path(__file__).parent / "templates"
PLACES = {
    "fencepost.toml": "fencepost.toml",
    "mylock.py": "mylock.py",
    "test_mylock.py": "test_mylock.py",
    "fencepost.yml": ".github/workflows/fencepost.yml",
}
"""The path of each template's file below the project's folder."""
_ASYNCIO = "mylock_asyncio.py"


def begin(folder: Path, coroutines: bool = False) -> tuple[list[Path], list[Path]]:
    """Write the missing files; return those that were written and those that existed already.
    `coroutines`: the example lock's verbs are coroutines.

    Raises:
        BadArguments: the folder cannot be written.
    """
    written, existing = [], []
    for template, place in PLACES.items():
        path = folder / place
        name = _ASYNCIO if coroutines and template == "mylock.py" else template
        text = (TEMPLATES / f"{name}.in").read_text(encoding="utf-8")
        if path.exists():
            existing.append(path)
            continue
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("x", encoding="utf-8") as file:
                file.write(text)
        except OSError as error:
            raise BadArguments(f"cannot write {path}: {error.strerror}") from error
        written.append(path)
    return written, existing
