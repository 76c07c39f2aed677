"""Checks the types of the documentation's code: `python -m tools.snippets`, part of `make lint`.

Users copy these snippets, so mypy --strict and pyright must find nothing in them. The blocks of a
page make one module; sessions count without what raises an error, which is shown on purpose. Files
that a page has its reader save become files. plugrad is the one that is installed.

A block that a checker cannot follow has `<!-- untyped: why -->` on the line above its fence.
"""

from __future__ import annotations

import ast
import doctest
import importlib.util
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.docs import pages, workshop

FOLDER = pages.ROOT / "build" / "snippets"
UNTYPED = re.compile(r"<!-- untyped: .+ -->\s*\Z")
# A page defines a name again where it shows another version of it.
MYPY = (
    *("--strict", "--allow-redefinition", "--explicit-package-bases", "--config-file="),
    # SciPy has no types of its own.
    "--disable-error-code=import-untyped",
)
PYRIGHT = {
    "typeCheckingMode": "standard",
    # Sessions show what an expression is worth, and use what a loop left.
    "reportUnusedExpression": "none",
    "reportPossiblyUnboundVariable": "none",
    # A page defines a function again to show another version of it.
    "reportRedeclaration": "none",
    # Of plugrad's submodules, too: what has no source is a warning in an editor.
    "reportMissingModuleSource": "error",
}


def modules() -> Iterator[tuple[Path, str]]:
    """Where the code of each page goes, and the code."""
    for page in [pages.ROOT / "README.md", *pages.PAGES, *pages.FOLDER_READMES]:
        library = pages.library_of(page)
        if library and importlib.util.find_spec(f"plugrad_{library}") is None:
            continue
        if page.name in workshop.WORKSHOPS:
            for step in workshop.steps_of(page):
                if step.kind == "python" and step.title:
                    yield Path(step.title), step.text
            continue
        name = "_".join(page.relative_to(pages.ROOT).with_suffix("").parts)
        lines = [""] * page.read_text(encoding="utf-8").count("\n")
        for block in pages.blocks_of(page):
            if not is_untyped(page, block):
                for line, text in statements(block):
                    lines[line : line + 1 + text.count("\n")] = text.split("\n")
        code = "\n".join(lines)
        if code.strip():
            yield Path(f"{name}.py"), code + "\n"


def is_untyped(page: Path, block: pages.Block) -> bool:
    """Whether the page says that a block is not to be checked."""
    before = page.read_text(encoding="utf-8").split("\n")[: block.line - 1]
    return UNTYPED.search("\n".join(before)) is not None


def statements(block: pages.Block) -> Iterator[tuple[int, str]]:
    """Code, and the line of the page where it stands, counted from 0."""
    if block.kind == "python":
        yield block.line, block.code.rstrip("\n")
        return
    for example in doctest.DocTestParser().get_examples(block.code):
        if example.exc_msg is None:
            yield block.line + example.lineno, example.source.rstrip("\n")


def write() -> None:
    """Write the modules; what is there and has not changed stays, for the checkers' caches."""
    wanted = dict(modules())
    wanted[Path("pyrightconfig.json")] = json.dumps(PYRIGHT, indent=2)
    for path in FOLDER.rglob("*.py"):
        if path.relative_to(FOLDER) not in wanted:
            path.unlink()
    for path, text in wanted.items():
        if path.suffix == ".py":
            ast.parse(text, str(path))
        file = FOLDER / path
        file.parent.mkdir(parents=True, exist_ok=True)
        if not file.exists() or file.read_text(encoding="utf-8") != text:
            file.write_text(text, encoding="utf-8")


def check() -> int:
    """Run both checkers, each once over all."""
    write()
    commands = [
        [sys.executable, "-m", "mypy", *MYPY, "."],
        [sys.executable, "-m", "basedpyright", "--pythonpath", sys.executable],
    ]
    # The installed plugrad is to be checked, as users have it, and not the sources.
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    return max(
        subprocess.run(command, cwd=FOLDER, env=environment, check=False).returncode
        for command in commands
    )


if __name__ == "__main__":
    sys.exit(check())
