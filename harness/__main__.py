"""The command `fencepost`.

`fencepost lincheck` and `fencepost --version` work where only the standard library is installed:
they come before anything else is imported.
"""

from __future__ import annotations

import sys


def main() -> None:
    if sys.argv[1:2] == ["lincheck"]:
        from fencepost.checker.lincheck.command import main as lincheck

        sys.exit(lincheck(sys.argv[2:]))
    if sys.argv[1:2] == ["--version"]:
        print(_version())
        return
    try:
        from fencepost.harness.command.app import run
    except ModuleNotFoundError as error:
        print(
            f"fencepost: {error.name} is not installed. Only `fencepost lincheck` works without "
            "it; for the rest: pip install 'fencepost[harness]', or `make install` in a checkout.",
            file=sys.stderr,
        )
        sys.exit(255)
    sys.exit(run())


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return f"fencepost {version('fencepost')}"
    except PackageNotFoundError:
        return "fencepost, not installed: run from a checkout"


if __name__ == "__main__":
    main()
