"""Runs the code of Markdown pages from top to bottom, as a reader would type it.

```python blocks are programs; ```pycon blocks are sessions that must print the page's output.
The blocks of one page share a module. Blocks of any other kind are not run.
"""

from __future__ import annotations

import doctest
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import plugrad
from plugrad.plugins import get_manager

ROOT = Path(__file__).parents[2]
BACKENDS = ROOT / "docs" / "backends"
PAGES = sorted({*(ROOT / "docs").glob("*.md"), *BACKENDS.glob("*.md")})
# The README of each distribution, and of the folders beside them.
FOLDER_READMES = sorted({*ROOT.glob("[a-z]*/README.md"), *ROOT.glob("[a-z]*/[a-z]*/README.md")})
BLOCK = re.compile(r"^```(python|pycon)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# One failure hides no other, and what follows a failure may wait for ever.
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE | doctest.FAIL_FAST


@dataclass(frozen=True)
class Block:
    """One fenced block; `line` is the number of its first line, counted from 0."""

    kind: str
    code: str
    line: int


def blocks_of(page: Path) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    return [
        Block(found[1], found[2], text.count("\n", 0, found.start(2)))
        for found in BLOCK.finditer(text)
    ]


@contextmanager
def typed_into(name: str) -> Iterator[ModuleType]:
    """A module that a reader types into; what it changes in the process is undone afterwards."""
    manager = get_manager()
    known = set(manager.discovered())
    default = plugrad.get_default_dtype()
    module = ModuleType(name)
    sys.modules[name] = module
    plugrad.manual_seed(0)
    try:
        yield module
    finally:
        for plugin in set(manager.discovered()) - known:
            manager.unregister(plugin)
        plugrad.set_default_dtype(default)
        del sys.modules[name]


def library_of(page: Path) -> str:
    """The library that the code of a page needs; pages about a backend have its name."""
    return page.stem.partition("_")[0] if page.parent == BACKENDS else ""


def run(page: Path, module: ModuleType) -> list[Block]:
    """Runs a page's blocks in a module; AssertionError for output that is not the page's."""
    blocks = blocks_of(page)
    for block in blocks:
        if block.kind == "python":
            # Blank lines in front make a traceback point at the line of the page.
            code = compile("\n" * block.line + block.code, str(page), "exec")
            exec(code, module.__dict__)
        else:
            _run_session(page, block, module)
    return blocks


def _run_session(page: Path, block: Block, module: ModuleType) -> None:
    parser = doctest.DocTestParser()
    session = parser.get_doctest(block.code, {}, page.name, str(page), block.line)
    session.globs = module.__dict__
    output: list[str] = []
    runner = doctest.DocTestRunner(optionflags=FLAGS, verbose=False)
    runner.run(session, out=output.append, clear_globs=False)
    assert not output, "".join(output)
