"""The stubs that the generator writes: types and texts, or an error that names what lacks them."""

from __future__ import annotations

from pathlib import Path

import pytest

import plugrad
from plugrad.codegen import EntryError, stubs
from plugrad.codegen.groups import group_entries
from plugrad.codegen.handwritten import Sources, with_texts
from plugrad.codegen.model import parse_entries
from plugrad.codegen.stub import check_typed

DOUBLED = """
- func: doubled(Tensor self) -> Tensor
  composite: doubled
  doc: Twice the input.
"""
PACKAGE = Path(str(plugrad.__file__)).parent


def test_a_type_that_python_lacks_does_not_build(tmp_path: Path) -> None:
    file = tmp_path / "odd.yaml"
    file.write_text(DOUBLED.replace("Tensor self", "Tensor self, Stream how"))
    with pytest.raises(
        EntryError, match=r"odd.yaml: doubled: argument 'how' has the type Stream, which"
    ):
        stubs([file])


def test_operators_of_the_core_alone_need_no_types() -> None:
    entry = {"func": "_inner(Stream how) -> Tensor", "variants": [], "composite": "inner"}
    check_typed(group_entries(parse_entries("odd", [entry])))


def test_a_function_without_a_text_does_not_build() -> None:
    sources = Sources(PACKAGE)
    template = "def from_numpy(ndarray: Any) -> Tensor: ...\n"
    assert '    """A tensor' in with_texts(template, sources, {})
    with pytest.raises(EntryError, match=r"public.pyi.in: gremlin has no docstring"):
        with_texts("def gremlin() -> None: ...\n", sources, {})
