"""Links of the built site lead to files and anchors, also in menus and generated pages."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from urllib.parse import unquote

LINK = re.compile(r"""<(?:a|link|img|script)\b[^>]*?\s(?:href|src)=(?:"([^"]*)"|([^\s>"]+))""")
ANCHOR = re.compile(r"""\s(?:id|name)=(?:"([^"]*)"|([^\s>"]+))""")
ELSEWHERE = re.compile(r"[a-z]+:|//|/")


@cache
def anchors(page: Path) -> frozenset[str]:
    text = page.read_text(encoding="utf-8")
    return frozenset(first or second for first, second in ANCHOR.findall(text))


def broken(page: Path) -> set[str]:
    """The links of a page that lead nowhere."""
    found = set()
    for first, second in LINK.findall(page.read_text(encoding="utf-8")):
        link = (first or second).replace("&amp;", "&")
        path, _, anchor = link.partition("#")
        # The page for wrong addresses is made for a server.
        if ELSEWHERE.match(link) or page.name == "404.html":
            continue
        target = (page.parent / unquote(path.partition("?")[0])).resolve() if path else page
        to_page = anchor and target.suffix == ".html" and target.is_file()
        if not target.is_file() or (to_page and unquote(anchor) not in anchors(target)):
            found.add(link)
    return found


def test_every_link_leads_somewhere(site: Path) -> None:
    pages = sorted(site.rglob("*.html"))
    assert len(pages) > 700
    found = {page.relative_to(site).as_posix(): links for page in pages if (links := broken(page))}
    assert found == {}
