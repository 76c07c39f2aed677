"""Tests of the site that `make docs` has built; it runs them, and passes the site's location."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

SITE = os.environ.get("PLUGRAD_SITE", "")
if not SITE:
    collect_ignore_glob = ["test_*.py"]
else:
    from playwright.sync_api import BrowserContext

    from tests.browser import Watched, chromium

    @pytest.fixture(scope="session")
    def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrowserContext]:
        with chromium(tmp_path_factory.mktemp("chromium")) as context:
            yield context

    @pytest.fixture
    def open_page(browser: BrowserContext) -> Iterator[Callable[..., Watched]]:
        """Opens a page of the site; in the end nothing was complained of."""
        opened: list[Watched] = []

        def open_one(uri: str, **options: object) -> Watched:
            watched = Watched(browser, **options)  # type: ignore[arg-type]  # what it takes
            opened.append(watched)
            watched.open(Path(SITE) / uri)
            return watched

        yield open_one
        for watched in opened:
            watched.page.close()
            assert watched.complaints == []


@pytest.fixture(scope="session")
def site() -> Path:
    return Path(SITE).resolve()
