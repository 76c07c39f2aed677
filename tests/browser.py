"""Chromium, driven by Playwright, for tests of pages; without one they skip with the reason."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

import pytest

pytest.importorskip("playwright")
from playwright.sync_api import BrowserContext, Error, Page, sync_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
FLAGS = (
    *("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)
# Milliseconds, on a machine that is busy with other tests.
PATIENCE = 60_000


@contextmanager
def chromium(profile: Path) -> Iterator[BrowserContext]:
    """A browser of its own, which keeps its profile in a new folder."""
    found = next((path for name in NAMES if (path := shutil.which(name))), None)
    if found is None:
        pytest.skip("there is no Chromium here: apt-get install chromium")
    with sync_playwright() as playwright:
        try:
            context = playwright.chromium.launch_persistent_context(
                profile, executable_path=found, headless=True, args=list(FLAGS)
            )
        except Error as error:
            pytest.skip(f"{found} does not start: {error.message.splitlines()[0]}")
        # What one test switched is not switched for the next one.
        context.add_init_script("try { localStorage.clear() } catch {}")
        yield context
        context.close()


class Watched:
    """An open page, with what it complained of and what it loaded from elsewhere."""

    def __init__(
        self, context: BrowserContext, width: int = 1400, scheme: Literal["light", "dark"] = "light"
    ) -> None:
        self.page: Page = context.new_page()
        self.page.set_default_timeout(PATIENCE)
        self.page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        self.resize(width)
        self.complaints: list[str] = []
        self.page.on("console", lambda message: self._complain(f"{message.type}: {message.text}"))
        self.page.on("pageerror", lambda error: self._complain(str(error)))
        self.page.on("requestfailed", lambda request: self._complain(f"failed: {request.url}"))
        self.page.on("request", lambda request: self._requested(request.url))

    def _complain(self, what: str) -> None:
        self.complaints.append(f"{self.page.url}: {what}")

    def _requested(self, url: str) -> None:
        if not url.startswith(("file:", "data:", "blob:", "about:")):
            self._complain(f"loads {url}")

    def open(self, file: Path) -> None:
        self.page.goto(file.as_uri())

    def resize(self, width: int) -> None:
        self.page.set_viewport_size({"width": width, "height": 900})

    def overflow(self) -> int:
        """By how many pixels the page is wider than the window."""
        return int(self.page.evaluate("document.documentElement.scrollWidth - window.innerWidth"))
