"""What the JAX backend shows its users has a docstring, and the examples in it run."""

from __future__ import annotations

import doctest
import inspect

import pytest

pytest.importorskip("jax")

import plugrad
import plugrad_jax

FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


@pytest.mark.parametrize("name", ["", *plugrad_jax.__all__])
def test_public_names_are_explained_by_examples_that_run(name: str) -> None:
    text = inspect.getdoc(getattr(plugrad_jax, name) if name else plugrad_jax)
    assert text
    plugrad.manual_seed(0)
    output: list[str] = []
    example = doctest.DocTestParser().get_doctest(text, {}, name, None, 0)
    doctest.DocTestRunner(optionflags=FLAGS, verbose=False).run(example, out=output.append)
    assert not output, "".join(output)
