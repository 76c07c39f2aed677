"""Pages in Chromium, driven by Playwright. Whatever a page loads or complains of fails its test."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("playwright")
from playwright.sync_api import BrowserContext, Page

from plugrad_viewer.page import page as page_of
from tests.browser import PATIENCE, chromium


class Viewer:
    """An open page, with the queries that tests need."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.complaints: list[str] = []
        self.loaded: list[str] = []
        page.on("console", lambda message: self.complaints.append(message.text))
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("request", lambda request: self.loaded.append(request.url))

    def open(self, file: Path) -> None:
        self.page.goto(file.as_uri())
        self.wait("performance.getEntriesByName('shown').length > 0")

    @property
    def at(self) -> int:
        """The number of events after which the replay has stopped."""
        return int(self.page.get_by_test_id("page").get_attribute("data-at") or "-1")

    @property
    def playing(self) -> bool:
        return self.page.get_by_test_id("page").get_attribute("data-playing") == "true"

    @property
    def sentence(self) -> str:
        return self.page.get_by_test_id("sentence").inner_text()

    def press(self, *keys: str) -> None:
        for key in keys:
            self.page.keyboard.press(key)
        self.settle()

    def seek(self, at: int) -> None:
        self.page.get_by_label("Event", exact=True).fill(str(at))
        self.settle()

    def settle(self) -> None:
        """Wait until the requested state is on the screen."""
        self.page.evaluate(
            "() => new Promise(done => requestAnimationFrame(() => setTimeout(done, 0)))"
        )

    def wait(self, condition: str) -> None:
        """Wait until this is so. Playwright's own way evaluates text, which the page forbids."""
        came = self.page.evaluate(f"""async () => {{
            const end = performance.now() + {PATIENCE};
            while (!({condition})) {{
                if (performance.now() > end) return false;
                await new Promise(done => setTimeout(done, 20));
            }}
            return true;
        }}""")
        assert came, condition

    def graph(self, question: str) -> Any:
        """Read from Cytoscape (`cy`) what it shows."""
        holder = "document.querySelector('.graph-canvas')._cyreg.cy"
        return self.page.evaluate(f"() => {{ const cy = {holder}; return {question}; }}")

    def overflow(self) -> int:
        """By how many pixels the page is wider than the window."""
        return int(self.page.evaluate("document.documentElement.scrollWidth - window.innerWidth"))


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrowserContext]:
    with chromium(tmp_path_factory.mktemp("chromium")) as context:
        yield context


@pytest.fixture
def opened(
    browser: BrowserContext, tmp_path: Path
) -> Iterator[Callable[[Mapping[str, Any]], Viewer]]:
    """Opens a recording; in the end nothing was loaded but the file, and nothing was complained."""
    viewers: list[Viewer] = []

    def open_page(
        data: Mapping[str, Any], width: int = 1400, height: int = 900, scheme: Any = "light"
    ) -> Viewer:
        file = tmp_path / f"page{len(viewers)}.html"
        file.write_text(page_of(data), encoding="utf-8")
        page = browser.new_page()
        page.set_default_timeout(PATIENCE)
        page.set_viewport_size({"width": width, "height": height})
        page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        viewer = Viewer(page)
        viewers.append(viewer)
        viewer.open(file)
        return viewer

    yield open_page
    for viewer in viewers:
        viewer.page.close()
        assert viewer.complaints == []
        assert [url for url in viewer.loaded if not url.startswith(("file:", "data:"))] == []
