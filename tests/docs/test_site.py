"""The documentation site: every page has its place, and generated pages say what the tables say.

The site itself is built by `make docs`, strictly.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from types import ModuleType

import pytest
import yaml

from plugrad.dispatch.operator import all_operators
from tests.docs import pages

TOOLS = pages.ROOT / "tools"


def tool(name: str) -> ModuleType:
    """A module of tools/, which is no package."""
    spec = importlib.util.spec_from_file_location(name, TOOLS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look there
    spec.loader.exec_module(module)
    return module


reference = tool("reference")
operator_pages = tool("operator_pages")
hooks = tool("site_hooks")
CONFIG = yaml.safe_load((pages.ROOT / "mkdocs.yml").read_text(encoding="utf-8"))


def leaves(nav: object) -> Iterator[str]:
    """The pages of a navigation."""
    if isinstance(nav, str):
        yield nav
    elif isinstance(nav, dict):
        for entry in nav.values():
            yield from leaves(entry)
    elif isinstance(nav, list):
        for entry in nav:
            yield from leaves(entry)


def test_every_page_is_in_the_navigation() -> None:
    written = {
        path.relative_to(pages.ROOT / "docs").as_posix()
        for path in (pages.ROOT / "docs").rglob("*.md")
    }
    generated = set(reference.pages())
    assert set(leaves(CONFIG["nav"])) == written | generated | set(hooks.OUTSIDE.values())


def test_the_operators_pages_are_added_to_the_navigation() -> None:
    nav = hooks.on_config({"nav": [{"Start": ["index.md"]}, {"Reference": []}]})["nav"]
    assert set(leaves(nav)) == set(operator_pages.pages()) | {"index.md"}


def test_every_public_operator_has_a_page() -> None:
    pages_of_operators = operator_pages.pages()
    for op in all_operators():
        if op.namespace == "plugrad" and not op.name.startswith("_"):
            names = {op.name, op.name.rstrip("_")}
            found = [
                name for name in names if operator_pages.operator_page(name) in pages_of_operators
            ]
            assert found, op.full_name


def test_an_operators_page_says_what_is_known_of_it() -> None:
    sin = operator_pages.pages()["reference/operators/plugrad.sin.md"]
    for line in (
        "# `sin` { #plugrad.sin }",
        "plugrad.sin(input: Tensor, *, out: Tensor | None=None) -> Tensor",
        "Tensor.sin() -> Tensor",
        "Tensor.sin_() -> Tensor",
        "Sine of each element, in radians.",
        "Schema:\n\n```text\nsin(Tensor self) -> Tensor\n```",
        "## Gradient\n\n* `self`: `",
        "|  | cpu: plugrad-cpu | jax: plugrad-jax | cuda: plugrad-cuda | array API | core only |",
        "| `sin` | native |",
    ):
        assert line in sin


def test_an_operators_page_has_each_overload_and_links_to_what_it_is_made_of() -> None:
    largest = operator_pages.pages()["reference/operators/plugrad.max.md"]
    assert {"## `max.other`", "## `max.dim`", "## `max`"} <= set(largest.splitlines())
    assert "* `max.other` is made of [`maximum`](plugrad.maximum.md)." in largest


def test_an_operators_page_names_variants_who_has_them_and_what_they_need() -> None:
    known = operator_pages.pages()
    gelu = known["reference/operators/plugrad.gelu.md"]
    found = [line for line in gelu.splitlines() if line.startswith("| `gelu` | cpu |")]
    own, of_bfloat16, other = found
    assert own.startswith("| `gelu` | cpu | plugrad-native | native | any (three builds) |")
    assert of_bfloat16.endswith("| bfloat16, from 2,048 elements |")
    assert other.endswith(
        "| plugrad-onednn | onednn | sse41 | float32, contiguous, from 2,048 elements |"
    )
    assert "`add_.Tensor` | cpu | plugrad-native" in known["reference/operators/plugrad.add.md"]
    assert "The packages of plugrad have none." in known["reference/operators/plugrad.sin.md"]


def test_the_variants_of_a_decomposed_operator_are_those_of_its_parts() -> None:
    softmax = operator_pages.pages()["reference/operators/plugrad.softmax.md"]
    assert "| `_softmax` | cpu | plugrad-onednn |" in softmax


def test_the_list_of_operators_can_be_filtered() -> None:
    for page in hooks.FILTERED:
        known = operator_pages.pages()
        text = known.get(page) or (pages.ROOT / "docs" / page).read_text(encoding="utf-8")
        assert len(hooks.TABLE.findall(text)) > 1, page


@pytest.mark.parametrize(
    ("uri", "meta"),
    [
        ("tensors.md", {}),
        ("reference/operators/plugrad.sin.md", {"search": {"boost": 2}}),
        ("reference/operators/loss/index.md", {"search": {"exclude": True}}),
    ],
)
def test_the_search_weighs_pages(uri: str, meta: dict[str, object]) -> None:
    found: dict[str, object] = {}
    hooks.weigh(uri, found)
    assert found == meta


def test_a_docstring_becomes_markdown() -> None:
    def function() -> None:
        """One line.

        Args:
            a: the first,
                on two lines.
            b: the second.

        >>> 1 + 1
        2
        """

    assert reference.described(function) == [
        "One line.",
        "**Args:**\n\n* `a`: the first, on two lines.\n* `b`: the second.",
        "```pycon\n>>> 1 + 1\n2\n```",
    ]


def test_every_special_function_is_in_the_reference() -> None:
    page = reference.pages()["reference/special.md"]
    assert "### `gammaln` { #plugrad.special.gammaln }" in page
    own = sum(len(family.operators) for family in reference.families(reference.SPECIAL))
    assert page.partition("## Operators of the core")[0].count("\n### ") == own


def test_examples_in_docstrings_are_fenced() -> None:
    text = "One line.\n\n    >>> x\n    1\n\n>>> y\n2"
    inner, outer = "    ```pycon\n    >>> x\n    1\n    ```", "```pycon\n>>> y\n2\n```"
    assert reference.fenced(text) == f"One line.\n\n{inner}\n\n{outer}"


@pytest.mark.parametrize(
    ("link", "source", "uri", "expected"),
    [
        ("tensors.md", "docs/index.md", "index.md", None),
        ("../README.md", "docs/index.md", "index.md", "readme.md"),
        ("../examples/README.md", "docs/index.md", "index.md", "examples.md"),
        ("docs/design.md", "CONTRIBUTING.md", "contributing.md", "design.md"),
        ("docs/nope.md", "CONTRIBUTING.md", "contributing.md", None),
        ("../README.md", "examples/README.md", "examples.md", "readme.md"),
        ("newton.py", "examples/README.md", "examples.md", "source/examples/newton.py"),
        ("../core/README.md", "docs/index.md", "index.md", None),
        ("../plugins.md", "docs/reference/plugins.md", "reference/plugins.md", None),
        ("../../README.md", "docs/reference/index.md", "reference/index.md", "../readme.md"),
    ],
)
def test_links_lead_to_the_sites_pages(
    link: str, source: str, uri: str, expected: str | None
) -> None:
    assert hooks.site_link(link, source, uri) == expected


def test_pages_from_outside_are_there() -> None:
    assert all((pages.ROOT / source).is_file() for source in hooks.OUTSIDE)
