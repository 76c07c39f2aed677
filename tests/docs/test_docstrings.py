"""The examples in docstrings run, in the core compiled or not, and every class has one.

Docstrings are read from the source: compiled functions are invisible to doctest's own search.
"""

from __future__ import annotations

import ast
import doctest
import functools
import importlib
from collections.abc import Iterator
from pathlib import Path

import pytest

import plugrad

PACKAGES = ("plugrad", "plugrad_distributions", "plugrad_nn")
CLASSES = ("nn", "optim", "optim.lr_scheduler", "optim.swa_utils", "distributions")
# What others are made of.
BASES = {"LRScheduler", "_LRScheduler", "Distribution", "ExponentialFamily", "Transform"}
# One failure hides no other, and what follows a failure may wait for ever.
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE | doctest.FAIL_FAST
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
    roots = [Path(str(importlib.import_module(name).__file__)).parent for name in PACKAGES]
    for path in sorted(path for root in roots for path in root.rglob("*.py")):
        source = path.read_text(encoding="utf-8")
        if ">>>" not in source:
            continue
        module = (
            path.relative_to(next(root for root in roots if root in path.parents).parent)
            .with_suffix("")
            .as_posix()
            .replace("/", ".")
        )
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


@pytest.mark.parametrize("namespace", CLASSES)
def test_every_class_of_a_namespace_has_an_example(namespace: str) -> None:
    there = importlib.import_module(f"plugrad.{namespace}")
    classes = {name: getattr(there, name) for name in there.__all__}
    without = [
        name
        for name, found in classes.items()
        if isinstance(found, type) and ">>>" not in (found.__dict__.get("__doc__") or "")
    ]
    assert set(without) <= BASES
