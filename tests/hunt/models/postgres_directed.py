"""Dialogues about row locks with PostgreSQL: each step, and which sessions it answers."""

from __future__ import annotations

from typing import Any

_ROW = "SELECT n FROM t WHERE id = 2"
_ADD = "UPDATE t SET n = n + 1 WHERE id = 2"
Asked = tuple[int, str, str]
"""A session, its query, and the sessions that are answered then."""
ROW_LOCKS: dict[str, list[Asked]] = {
    "a key share lock stays on the row when another session updates it": [
        (0, "BEGIN", "0"), (0, f"{_ROW} FOR KEY SHARE", "0"), (1, _ADD, "1"),
        (2, f"{_ROW} FOR NO KEY UPDATE", "2"), (2, f"{_ROW} FOR UPDATE", ""), (0, "COMMIT", "02"),
    ],
    "a key share lock beside an update is one on the row's next version, too": [
        (0, "BEGIN", "0"), (0, _ADD, "0"), (1, "BEGIN", "1"), (1, f"{_ROW} FOR KEY SHARE", "1"),
        (0, "COMMIT", "0"), (2, "DELETE FROM t WHERE id = 2", ""), (1, "COMMIT", "12"),
    ],
    "a key share lock waits for a later version that is deleted": [
        (0, "BEGIN", "0"), (0, _ADD, "0"), (0, "DELETE FROM t WHERE id = 2", "0"),
        (1, f"{_ROW} FOR KEY SHARE", ""), (0, "COMMIT", "01"),
    ],
    "a key share lock does not wait behind an update that waits": [
        (0, "BEGIN", "0"), (0, f"{_ROW} FOR SHARE", "0"), (1, _ADD, ""),
        (2, f"{_ROW} FOR KEY SHARE", "2"), (2, f"{_ROW} FOR SHARE", "2"), (0, "COMMIT", "01"),
    ],
    "an update that leaves the key as it is does not wait for a key share lock": [
        (0, "BEGIN", "0"), (0, f"{_ROW} FOR KEY SHARE", "0"),
        (1, "UPDATE t SET id = 2, n = 5 WHERE id = 2", "1"),
        (1, "UPDATE t SET id = 9 WHERE id = 2", ""), (0, "COMMIT", "01"),
    ],
    "a session that waits again for a row stays before those that came later": [
        (0, "BEGIN", "0"), (0, f"{_ROW} FOR SHARE", "0"), (1, "BEGIN", "1"), (1, _ADD, ""),
        (2, "BEGIN", "2"), (2, f"{_ROW} FOR SHARE", "2"), (3, _ADD, ""), (0, "COMMIT", "0"),
        (2, "COMMIT", "12"), (1, "COMMIT", "13"),
    ],
    "a session that has a weaker lock does not wait behind one that waits for it": [
        (0, "BEGIN", "0"), (0, f"{_ROW} FOR KEY SHARE", "0"), (1, "BEGIN", "1"),
        (1, f"{_ROW} FOR SHARE", "1"), (2, f"{_ROW} FOR UPDATE", ""), (0, _ADD, ""),
        (1, "COMMIT", "01"), (0, "COMMIT", "02"),
    ],
}  # fmt: skip


def answered(side: Any, setup: tuple[str, ...], steps: list[Asked]) -> list[tuple[str, Any]]:
    """Return which sessions a side has answered after each step, and all of its answers."""
    for sql in setup:
        side.step([0, "query", sql])
    found = [side.step([number, "query", sql]) for number, sql, _ in steps]
    return [("".join(answers), answers) for answers in found]
