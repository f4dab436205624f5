"""Pages in the system's Chromium, as a person has them open: light or dark, on a desk or a phone.

playwright drives the Chromium that is installed; it downloads none. Where either is missing the
tests here are skipped.
"""

from __future__ import annotations

import gzip
import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from fencepost.harness.judge.judge import judge

NAMES = ("chromium", "chromium-browser", "google-chrome")
DESK, PHONE = 1280, 390
"""Widths of a window in pixels."""
RECORDED = Path(__file__).parents[1] / "recorded"
CONTRAST = (Path(__file__).parent / "contrast.js").read_text(encoding="utf-8")


class Window:
    """A window with one page, and what went on in it.

    `page` is playwright's; `console` has what the page wrote there, and its errors; `requests` has
    every address that it asked for, except `data:`.
    """

    def __init__(self, page: Any) -> None:
        self.page = page
        self.console: list[str] = []
        self.requests: list[str] = []
        page.on("console", lambda said: self.console.append(f"{said.type}: {said.text}"))
        page.on("pageerror", lambda error: self.console.append(f"error: {error}"))
        page.on("request", lambda request: self._asked(request.url))

    def _asked(self, url: str) -> None:
        if not url.startswith("data:"):
            self.requests.append(url)

    def open(self, place: Path | str) -> Any:
        """Open a file or an address; returns playwright's page, once its charts are drawn: they are
        in the first frame after it has loaded."""
        self.page.goto(place.resolve().as_uri() if isinstance(place, Path) else place)
        self.page.evaluate("new Promise(requestAnimationFrame)")
        return self.page

    def too_faint(self) -> list[dict[str, Any]]:
        """The texts of the page, as it is now, of which the contrast is less than WCAG's AA asks
        for: 4.5, of large text 3. Each with `text`, `ratio`, `colour`, `ground`."""
        return list(self.page.evaluate(CONTRAST))

    def sideways(self) -> int:
        """By how many pixels the page is wider than the window: what has to be scrolled."""
        return int(
            self.page.evaluate(
                "document.documentElement.scrollWidth - document.documentElement.clientWidth"
            )
        )


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    """Chromium without a window, for the tests of a file. playwright has an event loop run in this
    thread for so long, beside which tests elsewhere could run none."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    program = next((found for name in NAMES if (found := shutil.which(name))), None)
    if program is None:
        pytest.skip("Chromium is not installed: apt-get install chromium")
    with playwright.sync_playwright() as started:
        # Its sandbox asks for rights that neither root nor a container has.
        browser = started.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def window(chromium: Any) -> Iterator[Callable[..., Window]]:
    """`window(width=DESK, dark=False)` opens a window, which is closed after the test."""
    contexts = []

    def opened(width: int = DESK, dark: bool = False) -> Window:
        context = chromium.new_context(
            viewport={"width": width, "height": 844 if width == PHONE else 900},
            color_scheme="dark" if dark else "light",
            device_scale_factor=1,
        )
        context.set_default_timeout(10_000)
        contexts.append(context)
        return Window(context.new_page())

    yield opened
    for context in contexts:
        context.close()


@pytest.fixture(params=["light", "dark"])
def dark(request: pytest.FixtureRequest) -> bool:
    return bool(request.param == "dark")


@pytest.fixture(scope="session")
def recorded() -> Callable[[Path, str], Path]:
    """`recorded(root, name)` puts a run of tests/recorded into a results folder, judged, with its
    report; returns its folder."""

    def made(root: Path, name: str) -> Path:
        kept = RECORDED / name
        test = json.loads((kept / "test.json").read_text(encoding="utf-8"))
        folder = root / test["name"] / test["started"].replace("-", "").replace(":", "")
        folder.mkdir(parents=True)
        packed = (kept / "history.jsonl.gz").read_bytes()
        (folder / "history.jsonl").write_bytes(gzip.decompress(packed))
        (folder / "test.json").write_bytes((kept / "test.json").read_bytes())
        judge(folder)
        return folder

    return made
