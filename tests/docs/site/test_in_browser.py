"""The site in a browser, read from disk: it fits, finds and filters, in light and dark."""

from __future__ import annotations

import base64
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.browser import Watched

Open = Callable[..., Watched]
OPERATORS = "reference/operators/index.html"


def shown_rows(watched: Watched) -> list[str]:
    """The first cells of the rows that a filter has left."""
    return [
        row.locator("td").first.inner_text()
        for row in watched.page.locator(".md-content tbody tr:visible").all()
    ]


def darkness(watched: Watched, selector: str) -> float:
    """How dark an element is on the screen, from 0 to 1."""
    shot = watched.page.locator(selector).first.screenshot()
    return float(
        watched.page.evaluate(
            """async (data) => {
                const image = await createImageBitmap(await (await fetch(data)).blob());
                const canvas = new OffscreenCanvas(image.width, image.height);
                const context = canvas.getContext("2d");
                context.drawImage(image, 0, 0);
                const pixels = context.getImageData(0, 0, image.width, image.height).data;
                let sum = 0;
                for (let i = 0; i < pixels.length; i += 1) if (i % 4 < 3) sum += pixels[i];
                return 1 - sum / (pixels.length / 4) / 765;
            }""",
            f"data:image/png;base64,{base64.b64encode(shot).decode()}",
        )
    )


def alike(pages: list[Path]) -> list[Path]:
    """Some of the generated pages: one in a hundred, and the pages with the longest names."""
    by_length = sorted(pages, key=lambda page: len(page.as_posix()))
    return [*by_length[::100], *by_length[-3:]]


def test_no_page_scrolls_sideways(open_page: Open, site: Path) -> None:
    operators = list((site / "reference" / "operators").glob("plugrad.*.html"))
    families = list((site / "reference" / "operators").glob("*/index.html"))
    # The page for wrong addresses is made for a server.
    left_out = {*operators, *families, site / "404.html"}
    written = [page for page in sorted(site.rglob("*.html")) if page not in left_out]
    assert len(written) > 100
    watched = open_page("index.html")
    wide = {}
    for page in (*written, *alike(operators), *alike(families)):
        watched.open(page)
        for width in (1400, 420):
            watched.resize(width)
            if (over := watched.overflow()) > 0:
                wide[f"{page.relative_to(site)} at {width}"] = over
    assert wide == {}


def test_the_search_finds_an_operator_from_disk(open_page: Open) -> None:
    watched = open_page("index.html")
    watched.page.locator(".md-search__input").fill("cumsum")
    first = watched.page.locator(".md-search-result__link").first
    assert "plugrad.cumsum.html" in str(first.get_attribute("href"))
    first.click()
    watched.page.wait_for_url("**/plugrad.cumsum.html*")
    assert watched.page.locator("h1").inner_text().startswith("cumsum")


@pytest.mark.parametrize(("words", "found"), [("cumsum", "cumsum"), ("layers CONV 2d", "conv2d")])
def test_the_filter_leaves_rows_with_all_words(open_page: Open, words: str, found: str) -> None:
    watched = open_page(OPERATORS)
    everything = watched.page.locator(".md-content tbody tr").count()
    watched.page.get_by_label("Filter").fill(words)
    rows = shown_rows(watched)
    assert found in rows
    assert len(rows) < 12
    assert watched.page.locator("#filter-count").inner_text() == f"{len(rows)} of {everything}"
    watched.page.get_by_label("Filter").fill("")
    assert watched.page.locator(".md-content tbody tr:visible").count() == everything


def test_the_filter_hides_headings_of_empty_tables(open_page: Open) -> None:
    watched = open_page("operators.html")
    headings = watched.page.locator(".md-content h2:visible")
    before = headings.count()
    watched.page.get_by_label("Filter").fill("softmax_backward")
    assert 0 < headings.count() < before / 4


def test_a_link_can_filter(open_page: Open, site: Path) -> None:
    watched = open_page("index.html")
    watched.page.goto(f"{(site / OPERATORS).as_uri()}?filter=cumsum")
    assert "cumsum" in shown_rows(watched)
    assert len(shown_rows(watched)) < 12


@pytest.mark.parametrize("page", ["concepts.html", "performance.html", "scaling.html"])
def test_the_switch_makes_pictures_dark(open_page: Open, page: str) -> None:
    watched = open_page(page)
    assert darkness(watched, ".md-content img") < 0.3
    watched.page.locator("label[title='Dark']").click()
    watched.page.wait_for_function("document.body.dataset.mdColorScheme === 'slate'")
    assert darkness(watched, ".md-content img") > 0.6


def test_pages_are_dark_where_the_reader_prefers_it(open_page: Open) -> None:
    watched = open_page("how_it_is_executed.html", scheme="dark")
    assert darkness(watched, "body") > 0.6
    assert darkness(watched, ".md-content img") > 0.6


def test_the_front_page_leads_three_kinds_of_reader_on(open_page: Open) -> None:
    watched = open_page("index.html", width=420)
    doors = watched.page.locator(".grid.cards > ul > li")
    assert doors.count() == 3
    doors.nth(1).get_by_role("link").first.click()
    assert watched.page.locator("h1").inner_text().startswith("Write a backend")
