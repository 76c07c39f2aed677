"""Build steps that mkdocs.yml cannot express: pages from outside docs/, generated pages, and links.

Pages link to each other as files of the repository, where they are also read. Links out of docs/
are rewritten to the file's place on the site. MkDocs is imported only in its hooks, because tests
read this module without it.
"""

from __future__ import annotations

import posixpath
import re
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tools"))

# In this folder; MkDocs runs this file by its path.
import operator_pages  # noqa: E402
import reference  # noqa: E402

# Files of the repository that become pages of the site.
OUTSIDE = {
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "README.md": "readme.md",
    "examples/README.md": "examples.md",
    "examples/backend_numbers/README.md": "example_backend_numbers.md",
    "examples/backend_strict/README.md": "example_backend_strict.md",
    **{
        f"core/plugrad/{part}/DESIGN.md": f"design_{part}.md"
        for part in (
            *("dispatch", "ops", "codegen", "tensor", "graph", "autograd", "transforms"),
            "plugins",
        )
    },
}
LINK = re.compile(r"""(\]\(|src=")([^)#:\s"]+)((?:#[^)]*)?[)"])""")
# Pages with long tables, which get a box to filter their rows; the value is the box's placeholder.
FILTERED = {
    operator_pages.LIST: "a name, a word, a family",
    "operators.md": "fft, missing, decomposed",
    "variants.md": "softmax, onednn, float64",
}
FILTER = """\
<div class="filter">
<label for="filter">Filter:</label>
<input id="filter" type="search" placeholder="{words}" autocomplete="off" spellcheck="false">
<output id="filter-count" for="filter"></output>
</div>

"""
# Pages without a table of contents at the side, because they need the width.
WIDE = {"index.md", *FILTERED}
# A table, or the heading of its section.
TABLE = re.compile(r"^(##|\|) ", re.MULTILINE)
# The weight of a page in the search, by the start of its path; 0 excludes it.
SEARCH = {
    f"{operator_pages.FOLDER}/plugrad.": 2,
    operator_pages.FOLDER: 0,
    "operators.md": 0,
    "variants.md": 0.5,
    "changelog.md": 0.3,
    "results/": 0.3,
    "performance.md": 0.5,
    "torch_names.md": 0.5,
}


def on_config(config: Any) -> Any:
    """The operators come last in the reference."""
    section = next(entry["Reference"] for entry in config["nav"] if "Reference" in entry)
    section.append({"Operators": operator_pages.navigation()})
    return config


def on_files(files: Any, config: Any) -> Any:
    from mkdocs.structure.files import File

    for source, uri in OUTSIDE.items():
        files.append(File.generated(config, uri, abs_src_path=str(ROOT / source)))
    for uri, text in (reference.pages() | operator_pages.pages()).items():
        files.append(File.generated(config, uri, content=text))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Links lead to pages of the site; links to other files of the repository lead to a copy."""
    from mkdocs.structure.files import File

    uri = page.file.src_uri
    weigh(uri, page.meta)
    if uri in WIDE:
        page.meta["hide"] = ["toc"]
    if uri in FILTERED:
        box = FILTER.format(words=FILTERED[uri])
        markdown = TABLE.sub(lambda found: box + found[0], markdown, count=1)
    source = next((path for path, target in OUTSIDE.items() if target == uri), f"docs/{uri}")

    def rewrite(found: re.Match[str]) -> str:
        link = site_link(found[2], source, uri)
        if link is None:
            return found[0]
        target = posixpath.normpath(posixpath.join(posixpath.dirname(uri), link))
        if files.get_file_from_path(target) is None and target.startswith("source/"):
            path = ROOT / target.removeprefix("source/")
            files.append(File.generated(config, target, abs_src_path=str(path)))
        return f"{found[1]}{link}{found[3]}"

    return LINK.sub(rewrite, markdown)


def weigh(uri: str, meta: dict[str, Any]) -> None:
    """Set the weight of a page in the search."""
    found = next((weight for start, weight in SEARCH.items() if uri.startswith(start)), 1)
    if found == 0:
        meta["search"] = {"exclude": True}
    elif found != 1:
        meta["search"] = {"boost": found}


def site_link(link: str, source: str, uri: str) -> str | None:
    """A link of the file `source`, rewritten for the page `uri`; None to leave it unchanged."""
    path = posixpath.normpath(posixpath.join(posixpath.dirname(source), link))
    if source.startswith("docs/") and path.startswith("docs/"):
        return None
    if not (ROOT / path).is_file():
        return None
    if path in OUTSIDE:
        target = OUTSIDE[path]
    elif path.startswith("docs/"):
        target = path.removeprefix("docs/")
    elif path.endswith(".md"):
        return None  # the build fails, because such a page must be in OUTSIDE
    else:
        target = f"source/{path}"
    return posixpath.relpath(target, posixpath.dirname(uri) or ".")
