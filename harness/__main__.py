"""Runs the command `fencepost`.

`fencepost lincheck` and `fencepost --version` need only the standard library, so they are handled
before anything else is imported.
"""

from __future__ import annotations

import os
import sys
import traceback

from fencepost.output import guard_output

INTERRUPTED, CRASHED = 130, 255


def main() -> None:
    guard_output()
    try:
        code = _run()
    except KeyboardInterrupt:
        code = INTERRUPTED
    except Exception:  # Python would exit with 1, which means "invalid" here
        traceback.print_exc()
        code = CRASHED
    guard_output()  # a user lock may have replaced the streams
    sys.stdout.flush()
    sys.stderr.flush()
    sys.exit(code)


def _run() -> int:
    if sys.argv[1:2] == ["lincheck"]:
        from fencepost.checker.lincheck.command import main as lincheck

        return lincheck(sys.argv[2:])
    if sys.argv[1:2] == ["--version"]:
        print(_version())
        return 0
    if not os.environ.get("DOCKER_HOST", "").startswith("ssh:"):
        # Docker's SDK works without this module, which is slower to import than the rest of it.
        sys.modules.setdefault("docker.transport.sshconn", None)  # type: ignore[arg-type]
    try:
        from fencepost.harness.command.app import run
    except ModuleNotFoundError as error:
        print(
            f"fencepost: {error.name} is not installed. Only `fencepost lincheck` works without "
            "it; for the rest: pip install 'fencepost[harness]', or `make install` in a checkout.",
            file=sys.stderr,
        )
        return CRASHED
    return run()


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return f"fencepost {version('fencepost')}"
    except PackageNotFoundError:
        return "fencepost (not installed: run from a checkout)"


if __name__ == "__main__":
    main()
