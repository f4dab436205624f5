"""Open pages in the system's Chromium as a person does: light or dark, on a desk or a phone.

playwright drives the installed Chromium; it downloads none. If either is missing, the tests
here are skipped.
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
    """A window with one page, and a record of its console and requests.

    `page` is playwright's; `console` has the page's messages and errors; `requests` has every
    address that it requested, except `data:`.
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
        """Open a file or an address; return playwright's page once its charts are drawn.

        The first frame after loading draws them.
        """
        self.page.goto(place.resolve().as_uri() if isinstance(place, Path) else place)
        self.page.evaluate("new Promise(requestAnimationFrame)")
        return self.page

    def too_faint(self) -> list[dict[str, Any]]:
        """Return the page's texts with less contrast than WCAG's AA asks for: 4.5, large text 3."""
        return list(self.page.evaluate(CONTRAST))

    def sideways(self) -> int:
        """Return by how many pixels the page is wider than the window, and so scrolls."""
        return int(
            self.page.evaluate(
                "document.documentElement.scrollWidth - document.documentElement.clientWidth"
            )
        )


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    """Start Chromium without a window, for the tests of a file.

    playwright runs an event loop in this thread as long as it is open, so tests of other files
    cannot run one meanwhile.
    """
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    program = next((found for name in NAMES if (found := shutil.which(name))), None)
    if program is None:
        pytest.skip("Chromium is not installed: apt-get install chromium")
    with playwright.sync_playwright() as started:
        # Its sandbox needs rights that neither root nor a container has.
        browser = started.chromium.launch(
            executable_path=program, args=["--no-sandbox"], timeout=240_000
        )
        yield browser
        browser.close()


@pytest.fixture
def window(chromium: Any) -> Iterator[Callable[..., Window]]:
    """`window(width=DESK, dark=False)` opens a window; the test's end closes it."""
    contexts = []

    def opened(width: int = DESK, dark: bool = False) -> Window:
        context = chromium.new_context(
            viewport={"width": width, "height": 844 if width == PHONE else 900},
            color_scheme="dark" if dark else "light",
            device_scale_factor=1,
        )
        context.set_default_timeout(120_000)
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
    """`recorded(root, name)` puts a judged run of tests/recorded, with its report, into a folder.

    It returns the run's folder.
    """

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
