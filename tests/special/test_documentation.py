"""Every function is documented: by its docstring, with an example that runs, and in
docs/special.md."""

from __future__ import annotations

import doctest
import inspect
from pathlib import Path
from types import FunctionType

import pytest

import plugrad
from plugrad.plugins import load_operators

PAGE = Path(__file__).parents[2] / "docs" / "special.md"
OWN = [name for name in load_operators("special").__all__ if not name.startswith("_")]
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def function(name: str) -> FunctionType:
    found = getattr(plugrad.special, name)
    assert isinstance(found, FunctionType)
    return found


@pytest.mark.parametrize("name", OWN)
def test_docstring(name: str) -> None:
    text = inspect.getdoc(function(name)) or ""
    alias = text.startswith("Alias of")
    assert alias or "Source: " in text
    assert alias or ">>> " in text
    assert "Schema:" in text


@pytest.mark.parametrize("name", OWN)
def test_example(name: str) -> None:
    text = inspect.getdoc(function(name)) or ""
    example = doctest.DocTestParser().get_doctest(text, {}, name, None, 0)
    output: list[str] = []
    doctest.DocTestRunner(optionflags=FLAGS, verbose=False).run(example, out=output.append)
    assert not output, "".join(output)


def test_the_page_lists_every_function_with_its_source() -> None:
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    rows = {line.split("`")[1]: line for line in lines if line.startswith("| `")}
    assert sorted(rows) == sorted(OWN)
    for name, row in rows.items():
        text = inspect.getdoc(function(name)) or ""
        shown = row.replace("&#124;", "|").replace("\\|", "|")
        source = text.partition("Source: ")[2].partition("\n\n")[0]
        assert " ".join(source.split()) in shown
        assert " ".join(text.partition("\n\n")[0].split()) in shown


def test_what_torch_has_is_there(torch_oracle: object) -> None:
    module = torch_oracle.special  # type: ignore[attr-defined]
    names = {name for name in dir(module) if callable(getattr(module, name)) and name[0] != "_"}
    assert names - {"Tensor"} - set(plugrad.special.__all__) == set()


def test_names_are_listed() -> None:
    assert set(OWN) < set(dir(plugrad.special))
    assert plugrad.special.expit is plugrad.sigmoid
    assert plugrad.special.gammaln is plugrad.lgamma
    with pytest.raises(AttributeError, match="has no attribute 'gammma'"):
        _ = plugrad.special.gammma


def test_the_stubs_are_not_stale() -> None:
    from tools import stubs

    for path, text in stubs.all_stubs().items():
        assert path.read_text(encoding="utf-8") == text, "run `python tools/stubs.py`"


def test_docstrings_show_derivatives() -> None:
    text = inspect.getdoc(plugrad.special.jv) or ""
    assert "Operands are broadcast; integers give the default dtype." in text
    assert "    v: not_implemented" in text
    assert "    z: grad * ((jv(v - 1, z) - jv(v + 1, z)) / 2).conj()" in text
    text = inspect.getdoc(plugrad.special.gammaln) or ""
    assert "Any shape; integers give the default dtype." in text
    assert "    input: grad * digamma(input)" in text
