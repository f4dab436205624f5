"""The command `fencepost`.

`fencepost lincheck` is the checker's own program and is called before anything else is
imported, so that it works where only the standard library is installed.
"""

from __future__ import annotations

import sys


def main() -> None:
    if sys.argv[1:2] == ["lincheck"]:
        from fencepost.checker.lincheck.command import main as lincheck

        sys.exit(lincheck(sys.argv[2:]))
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


if __name__ == "__main__":
    main()
