"""Checks the types of the documentation's code: `python -m tools.snippets`, part of `make lint`.

Users copy these snippets, so mypy --strict and pyright must find nothing in them. The blocks of a
page form one module; statements in sessions that raise an error on purpose are left out. Files that
a page asks its reader to save become files. The installed plugrad is used.

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
# A page redefines a name to show another version of it.
MYPY = (
    *("--strict", "--allow-redefinition", "--explicit-package-bases", "--config-file="),
    # SciPy has no types of its own.
    "--disable-error-code=import-untyped",
)
PYRIGHT = {
    "typeCheckingMode": "standard",
    # Sessions show the value of an expression, and use a loop's last variables.
    "reportUnusedExpression": "none",
    "reportPossiblyUnboundVariable": "none",
    # A page redefines a function to show another version of it.
    "reportRedeclaration": "none",
    # Also for plugrad's submodules: editors warn about modules without a source.
    "reportMissingModuleSource": "error",
}


def modules() -> Iterator[tuple[Path, str]]:
    """The target file for the code of each page, and the code."""
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
    """Whether the page excludes a block from the check."""
    before = page.read_text(encoding="utf-8").split("\n")[: block.line - 1]
    return UNTYPED.search("\n".join(before)) is not None


def statements(block: pages.Block) -> Iterator[tuple[int, str]]:
    """Code, and its line in the page, counted from 0."""
    if block.kind == "python":
        yield block.line, block.code.rstrip("\n")
        return
    for example in doctest.DocTestParser().get_examples(block.code):
        if example.exc_msg is None:
            yield block.line + example.lineno, example.source.rstrip("\n")


def write() -> None:
    """Write the modules; unchanged files stay, for the checkers' caches."""
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
    """Run both checkers once over all modules."""
    write()
    commands = [
        [sys.executable, "-m", "mypy", *MYPY, "."],
        [sys.executable, "-m", "basedpyright", "--pythonpath", sys.executable],
    ]
    # Check against the installed plugrad, as users have it, and not the sources.
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    return max(
        subprocess.run(command, cwd=FOLDER, env=environment, check=False).returncode
        for command in commands
    )


if __name__ == "__main__":
    sys.exit(check())
