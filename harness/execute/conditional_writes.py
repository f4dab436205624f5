"""`fencepost check --s3`: can objects of an S3-like service be locks?

A client that creates an object with `If-None-Match: *` holds the lock, as long as the object
exists. A lease that can be taken over needs `If-Match`, too: the client that replaces the version
that it has read holds it next. A service that ignores these headers grants every client. One that
looks first and writes later grants several of those that ask at once.
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

from fencepost.harness.errors import BadArguments
from fencepost.harness.execute.contract_steps import Found
from fencepost.workloads.transport.s3_link import Answer, S3Link

CLIENTS, ROUNDS = 8, 20
"""How many clients ask at once, and how often."""
_REFUSALS = (409, 412)
"""A condition that does not hold, or a conflict with another request."""
_UNKNOWN = (400, 405, 501)
"""Of a service that does not have the header."""


class ConditionalWrites:
    """The steps, in order. `found` has the results so far."""

    def __init__(self, link: S3Link, say: Callable[[str], None] = lambda words: None) -> None:
        self._link, self._say = link, say
        self._name = f"fencepost-check-{uuid.uuid4().hex}"
        self._made: list[str] = []
        self.found: list[Found] = []

    def play(self) -> None:
        """Run the steps, and delete every object that they have made.

        Raises:
            BadArguments: no object can be created there.
        """
        try:
            self._create()
            self._refuse()
            self._create_again()
            self._create_at_once()
            self._replace()
            self._replace_at_once()
        except OSError as error:
            if not self.found:
                raise BadArguments(f"the service does not answer: {error}") from error
            self._note(False, "it answers every request", str(error))
        finally:
            self._clean()

    def _note(self, valid: bool | str, what: str, how: str) -> None:
        self.found.append(Found("unknown" if valid == "unknown" else bool(valid), what, how))

    def _put(self, key: str, body: str, **conditions: str) -> Answer:
        if key not in self._made:
            self._made.append(key)
        return self._link.ask("PUT", key, body.encode(), **conditions)

    def _key(self, step: str) -> str:
        return f"{self._name}-{step}"

    def _create(self) -> None:
        self._say("checking that an object can be created")
        made = self._put(self._key("lock"), "first", If_None_Match="*")
        if made.status in (401, 403, 404):
            raise BadArguments(
                f"no object can be created there: {_said(made)}. Name a bucket that exists, and "
                "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY to keys that may write to it"
            )
        self._note(made.ok, "the first client creates the object", _said(made))

    def _refuse(self) -> None:
        what = "If-None-Match: a second client is refused"
        second = self._put(self._key("lock"), "second", If_None_Match="*")
        left = self._link.ask("GET", self._key("lock")).body
        if second.ok:
            whose = "and the object is now its own" if left == b"second" else "and wrote nothing"
            self._note(False, what, f"it was granted, too ({second.status}), {whose}")
        elif second.status not in _REFUSALS:
            self._note(False, what, f"the service answers it with {_said(second)}")
        else:
            kept = left == b"first"
            how = _said(second) if kept else f"{_said(second)}, but the object was replaced"
            self._note(kept, what, how)

    def _create_again(self) -> None:
        self._link.ask("DELETE", self._key("lock"))
        again = self._put(self._key("lock"), "third", If_None_Match="*")
        self._note(again.ok, "after a delete the object can be created again", _said(again))

    def _create_at_once(self) -> None:
        self._say(f"checking {CLIENTS} clients at once, {ROUNDS} times")
        what = f"If-None-Match: of {CLIENTS} clients at once one is granted"

        def ask(turn: int, client: int) -> Answer:
            return self._put(self._key(f"many-{turn}"), f"client-{client}", If_None_Match="*")

        self._at_once(what, ask)

    def _replace(self) -> None:
        what = "If-Match: a version that was replaced is refused"
        etag = self._link.ask("GET", self._key("lock")).etag
        mine = self._put(self._key("lock"), "renewed", If_Match=etag)
        if not etag or mine.status in _UNKNOWN:
            how = "its objects have no ETag" if not etag else f"it answers {_said(mine)}"
            self._note("unknown", what, f"{how}, so a lease cannot be taken over")
            return
        late = self._put(self._key("lock"), "late", If_Match=etag)
        if not mine.ok:
            self._note(False, what, f"the current version is refused as well: {_said(mine)}")
        elif late.ok:
            self._note(False, what, f"it replaced the object of another client ({late.status})")
        else:
            self._note(late.status in _REFUSALS, what, _said(late))

    def _replace_at_once(self) -> None:
        if self.found[-1].valid is not True:
            return
        what = f"If-Match: of {CLIENTS} clients at once one is granted"
        etag = ""

        def ask(turn: int, client: int) -> Answer:
            return self._put(self._key("lock"), f"{turn}.{client}", If_Match=etag)

        def look() -> None:
            nonlocal etag
            etag = self._link.ask("GET", self._key("lock")).etag

        self._at_once(what, ask, look)

    def _at_once(
        self,
        what: str,
        ask: Callable[[int, int], Answer],
        before: Callable[[], None] = lambda: None,
    ) -> None:
        """Let all clients send a request at once, in each round."""
        none = 0
        with ThreadPoolExecutor(CLIENTS) as pool:
            for turn in range(ROUNDS):
                before()
                ready = threading.Barrier(CLIENTS)

                def one(client: int, turn: int = turn, ready: threading.Barrier = ready) -> Answer:
                    ready.wait()
                    return ask(turn, client)

                answers = list(pool.map(one, range(CLIENTS)))
                granted = sum(answer.ok for answer in answers)
                if granted > 1:
                    how = f"in round {turn + 1} of {ROUNDS}, {granted} of {CLIENTS} were granted"
                    self._note(False, what, how)
                    return
                none += granted == 0
        if none:
            how = f"in {none} of {ROUNDS} rounds none was granted: clients have to ask again"
            self._note("unknown", what, how)
        else:
            self._note(True, what, f"in {ROUNDS} of {ROUNDS} rounds")

    def _clean(self) -> None:
        for key in self._made:
            with suppress(OSError):
                self._link.ask("DELETE", key)


def _said(answer: Answer) -> str:
    """Return an answer in words: its status, and the code in its body if that has one."""
    _, _, rest = answer.body.decode("utf-8", "replace").partition("<Code>")
    code = rest.partition("</Code>")[0]
    return f"{answer.status} {code}".strip() if len(code) < 60 else str(answer.status)
