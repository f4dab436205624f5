"""Stories and assertions that the tests of causes share."""

from __future__ import annotations

from tests.histories import MS

TEST = {"servers": ["redis-1", "redis-2", "redis-3"], "failed_release": "ended"}


def links(checker, story, test=TEST):
    """Return the kinds of the first piece of evidence, its sentence and the summary."""
    verdict = checker(story.history(), test)
    assert verdict.valid is False, verdict
    piece = verdict.evidence[0]
    found = piece["cause"]
    assert all(f" {link['what']}." in piece["what"] for link in found)
    return [link["sort"] for link in found], found, verdict.summary


def granted_by(story, process, hold, at, until, servers):
    story.call(
        process, "acquire", at, at, {"lock": "orders", "ttl": 1000 * MS},
        {"hold": hold, "token": None, "deadline": until * MS, "granted_by": servers},
    )  # fmt: skip
