"""The text of an issue for the maintainers of a row's software."""

from __future__ import annotations

from fencepost.workloads.scenarios.register.row import IMPACTS, Row

_NOTATION = (
    "A and B are clients. `>x` is a message that is lost, `>..` one that is held up, which arrives "
    "at `..>`; `...` is a wait, and `!` the defect."
)


def text(row: Row, script: str) -> str:
    """Return the issue as Markdown: versions, story, expectation, cause, a fix. `script` is the
    name of the file that shows the defect."""
    shown = f"{row.package} {', '.join(row.versions)}"
    mended = f" It does not show in {row.mended}." if row.mended else ""
    known = f"\nRelated thread: {row.thread}\n" if row.thread else ""
    steps = "\n".join(row.steps)
    if steps:
        steps = f"\n## Step by step\n{_NOTATION}\n\n```text\n{steps}\n```\n"
    runs = f"{row.runs.shown} of {row.runs.of} runs, last on {row.runs.last}"
    return f"""# {row.title}

- **Versions**: shown in {shown}.{mended} The head of the script names the servers.
- **Impact**: {row.impact} ({IMPACTS[row.impact]}).
- **Shown in** {runs}, by `python {script}`: it exits with 1 and an AssertionError.
{known}
## Observed
{row.happens}
{steps}
## Expected
{row.expected}

## Why
{row.why}

## A fix to consider
{row.fix}
"""
