"""`plugrad.cuda` lists what it has, which is what the reference shows, each with a docstring."""

from __future__ import annotations

import inspect

import pytest

pytest.importorskip("cupy")

from plugrad_cuda import cuda


def test_everything_public_is_listed_and_explained() -> None:
    found = {
        name
        for name, value in vars(cuda).items()
        if (inspect.isfunction(value) or inspect.isclass(value))
        and value.__module__.startswith("plugrad_cuda")
        and not name.startswith("_")
    }
    assert sorted(cuda.__all__) == sorted(found)
    for name in found:
        assert inspect.getdoc(getattr(cuda, name)), name
