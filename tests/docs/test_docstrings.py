"""The examples in the core's docstrings run, compiled or not.

Docstrings are read from the source: compiled functions are invisible to doctest's own search.
"""

from __future__ import annotations

import ast
import doctest
import functools
from collections.abc import Iterator
from pathlib import Path

import pytest

import plugrad

CORE = Path(str(plugrad.__file__)).parent
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
Documented = ast.Module | ast.ClassDef | ast.FunctionDef


def docstrings(tree: ast.Module) -> Iterator[tuple[str, int, str]]:
    """Name, line and text of every docstring that has an example."""
    stack: list[tuple[str, Documented]] = [("", tree)]
    while stack:
        prefix, node = stack.pop()
        text = ast.get_docstring(node, clean=True)
        if text and ">>>" in text:
            yield prefix, node.body[0].lineno, text
        stack.extend(
            (f"{prefix}.{child.name}".lstrip("."), child)
            for child in ast.iter_child_nodes(node)
            if isinstance(child, (ast.ClassDef, ast.FunctionDef))
        )


@functools.cache
def from_docstrings() -> list[doctest.DocTest]:
    parser = doctest.DocTestParser()
    found = []
    for path in sorted(CORE.rglob("*.py")):
        source = path.read_text(encoding="utf-8")
        if ">>>" not in source:
            continue
        module = path.relative_to(CORE.parent).with_suffix("").as_posix().replace("/", ".")
        for name, line, text in docstrings(ast.parse(source)):
            label = f"{module}:{name}" if name else module
            found.append(parser.get_doctest(text, {}, label, str(path), line))
    return found


@pytest.mark.parametrize("example", from_docstrings(), ids=lambda test: test.name)
def test_example(example: doctest.DocTest) -> None:
    plugrad.manual_seed(0)
    output: list[str] = []
    doctest.DocTestRunner(optionflags=FLAGS, verbose=False).run(example, out=output.append)
    assert not output, "".join(output)


def test_there_are_examples() -> None:
    assert len(from_docstrings()) > 10
