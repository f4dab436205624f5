"""Headless Chromium, controlled by its debugging pipe: no driver, no library.

Messages are JSON with a NUL behind each, Chromium reads them from descriptor 3 and writes to 4
(--remote-debugging-pipe, the DevTools protocol).
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome")
WIDTH, HEIGHT = 1280, 900
CTRL = 2
_DRAWN = "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"


class Browser:
    """One page at a time, in Chromium's first tab."""

    def __init__(self, into: int, out: int) -> None:
        self._into, self._out = into, os.fdopen(out, "rb")
        self._numbers, self._rest = count(1), b""
        self._events: list[str] = []
        self._session: str | None = None
        target = self._ask("Target.createTarget", url="about:blank")["targetId"]
        found = self._ask("Target.attachToTarget", targetId=target, flatten=True)
        self._session = found["sessionId"]
        for domain in ("Page", "Performance", "Runtime"):
            self._ask(f"{domain}.enable")

    def open(self, page: Path) -> float:
        """Open a page; return the seconds until it was loaded and drawn."""
        begun = time.monotonic()
        self._events.clear()
        self._ask("Page.navigate", url=page.resolve().as_uri())
        self._until("Page.loadEventFired")
        self.run(_DRAWN)
        return time.monotonic() - begun

    def run(self, script: str) -> Any:
        """Return the value of a script in the page, or of its promise."""
        found = self._ask(
            "Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True
        )
        if "exceptionDetails" in found:
            raise RuntimeError(f"the page's script failed: {found['exceptionDetails']}")
        return found["result"].get("value")

    def wheel(self, selector: str, steps: int, delta: float) -> float:
        """Turn the wheel over an element with Ctrl held, a step per frame; return the seconds of
        scripting."""
        middle = (
            f"(() => {{ const e = document.querySelector({json.dumps(selector)});"
            " e.scrollIntoView({block: 'center'}); const r = e.getBoundingClientRect();"
            " return [r.x + r.width * .6, r.y + r.height / 2]; })()"
        )
        x, y = self.run(middle)
        before = self.metric("ScriptDuration")
        for _ in range(steps):
            at = {"x": x, "y": y, "deltaX": 0, "deltaY": delta, "modifiers": CTRL}
            self._ask("Input.dispatchMouseEvent", type="mouseWheel", **at)
            self.run(_DRAWN)
        return self.metric("ScriptDuration") - before

    def metric(self, name: str) -> float:
        rows = self._ask("Performance.getMetrics")["metrics"]
        return float(next(row["value"] for row in rows if row["name"] == name))

    def look(self, into: Path, dark: bool = False, whole: bool = False) -> None:
        """Store a picture of the page as it is scrolled now, or of the whole page."""
        colours = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self._ask("Emulation.setEmulatedMedia", features=colours)
        self.run(_DRAWN)
        shot = self._ask("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        into.write_bytes(base64.b64decode(shot["data"]))

    def _ask(self, method: str, **about: Any) -> dict[str, Any]:
        number = next(self._numbers)
        message: dict[str, Any] = {"id": number, "method": method, "params": about}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._into, json.dumps(message).encode() + b"\0")
        while (message := self._hear()).get("id") != number:
            self._events.append(str(message.get("method")))
        if "error" in message:
            raise RuntimeError(f"{method}: {message['error']['message']}")
        return dict(message["result"])

    def _until(self, event: str) -> None:
        while event not in self._events:
            self._events.append(str(self._hear().get("method")))

    def _hear(self) -> Mapping[str, Any]:
        while b"\0" not in self._rest:
            more = os.read(self._out.fileno(), 1 << 20)
            if not more:
                raise RuntimeError("Chromium has ended")
            self._rest += more
        line, _, self._rest = self._rest.partition(b"\0")
        return dict(json.loads(line))


def program() -> str | None:
    """Return the path of Chromium, or None."""
    return next((found for name in NAMES if (found := shutil.which(name))), None)


@contextmanager
def chromium(path: str) -> Iterator[Browser]:
    """Start Chromium with its own profile, and stop it."""
    theirs, ours = os.pipe()
    mine, its = os.pipe()
    with tempfile.TemporaryDirectory(prefix="fencepost-chromium-") as profile:
        command = [
            *(path, "--headless=new", "--remote-debugging-pipe", f"--user-data-dir={profile}"),
            *("--no-sandbox", "--disable-gpu", "--no-first-run", "--hide-scrollbars"),
            *("--disable-dev-shm-usage", f"--window-size={WIDTH},{HEIGHT}"),
        ]
        # It takes the pipe at 3 and 4, where this process may have other files.
        handed = 'exec 3<&"$0" 4>&"$1"; shift 1; exec "$@"'
        process = subprocess.Popen(
            ["bash", "-c", handed, str(theirs), str(its), *command],
            pass_fds=(theirs, its),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        os.close(theirs)
        os.close(its)
        try:
            yield Browser(ours, mine)
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            os.close(ours)
