"""The examples in the docstrings of nn.functional print the same in PyTorch (oracle: torch)."""

from __future__ import annotations

import doctest
import inspect
from typing import Any

import pytest

from plugrad.nn import functional

FLAGS = doctest.NORMALIZE_WHITESPACE
# PyTorch accepts only matrices with rows of a multiple of 16 bytes.
ELSEWHERE = {"grouped_mm"}


@pytest.mark.filterwarnings("ignore:.*is deprecated")
@pytest.mark.parametrize("name", sorted({*functional.__all__} - ELSEWHERE))
def test_an_example_prints_the_same_in_torch(torch: Any, name: str) -> None:
    text = inspect.getdoc(getattr(functional, name)) or ""
    # The in-place activations are functions of torch.nn.functional only.
    text = text.replace(f"plugrad.{name}(", f"plugrad.nn.functional.{name}(")
    text = text.replace("plugrad", "torch")
    example = doctest.DocTestParser().get_doctest(text, {}, name, None, None)
    assert example.examples
    torch.manual_seed(0)
    said: list[str] = []
    doctest.DocTestRunner(optionflags=FLAGS, verbose=False).run(example, out=said.append)
    assert not said, "".join(said)
