"""Functions that get no tensor, or no module, where they need one: a TypeError names the argument.

Oracle: the names and annotations of their arguments; PyTorch, for functions that take anything.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import plugrad

MODULES = (
    *("nn.functional", "nn.init", "nn.utils", "nn.utils.fusion", "nn.utils.memory_format"),
    *("nn.utils.parametrizations", "nn.utils.parametrize", "nn.utils.prune", "nn.utils.rnn"),
    "nn.utils.stateless",
)
WRONG: dict[str, Callable[[], Any]] = {
    "list": lambda: [1.0],
    "str": lambda: "x",
    "NoneType": lambda: None,
    "ndarray": lambda: np.ones(2),
    "MaskedArray": lambda: np.ma.masked_array(np.ones(2), mask=[True, False]),
}
# What else they are called with, where that is not as many of the same.
REST: dict[str, tuple[Any, ...]] = {
    "constant": (1.0,),
    "pad": ([1, 1],),
    "sparse": (0.5,),
}
# What such an argument is good for.
TAKEN = {
    "calculate_gain": {"str"},
    "invert_permutation": {"NoneType"},
    # They check for a module with parametrizations and return False, as in PyTorch.
    "is_parametrized": set(WRONG),
    "transfer_parametrizations_and_params": set(WRONG),
    "type_before_parametrizations": set(WRONG),
}
# PyTorch's error of another type, or PyTorch's words.
WORDS = {
    "skip_init": (RuntimeError, "Expected a Module; got "),
    "pad_sequence": (RuntimeError, "pad_sequence: Expected iterable for input sequences"),
    "global_unstructured": (TypeError, "parameters is not an Iterable"),
}


def functions() -> Iterator[tuple[str, str]]:
    for module in MODULES:
        found = importlib.import_module(f"plugrad_nn.{module}")
        for name in found.__all__:
            if inspect.isroutine(getattr(found, name)) and name != "cached":
                yield module, name


def arguments(function: Any, name: str, wrong: Any) -> list[Any]:
    if name in REST:
        return [wrong, *REST[name]]
    parameters = inspect.signature(function).parameters.values()
    needed = [each for each in parameters if each.default is each.empty and each.kind < 2]
    return [wrong] * max(1, len(needed))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("module", "name"), list(functions()))
def test_what_is_no_tensor_or_module_is_named(module: str, name: str) -> None:
    function = getattr(importlib.import_module(f"plugrad_nn.{module}"), name)
    for kind, make in WRONG.items():
        if kind in TAKEN.get(name, ()):
            continue
        with pytest.raises((TypeError, RuntimeError)) as caught:
            function(*arguments(function, name, make()))
        words = str(caught.value)
        error, alternative = WORDS.get(name, (TypeError, ""))
        if alternative and alternative in words:
            assert type(caught.value) is error
            continue
        assert type(caught.value) is TypeError, (kind, words)
        assert "argument '" in words, (kind, words)
        assert kind in words or "found element of type" in words, (kind, words)


@pytest.mark.parametrize("name", [name for name in TAKEN if "parametri" in name])
def test_questions_about_parametrizations_take_anything_as_in_torch(torch: Any, name: str) -> None:
    given = [[1.0], "x", None, np.ones(2)]
    there = torch.nn.utils.parametrize
    if name.startswith("transfer"):
        target = [plugrad.nn.Linear(1, 1), torch.nn.Linear(1, 1)]
        for value in given:
            for library, model in zip((plugrad.nn.utils.parametrize, there), target, strict=True):
                assert library.transfer_parametrizations_and_params(value, model) is model
        return
    ours = [getattr(plugrad.nn.utils.parametrize, name)(value) for value in given]
    assert ours == [getattr(there, name)(value) for value in given]


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("name", ["weight_norm", "clip_grad_norm"])
def test_warnings_of_older_names_show_the_callers_line(name: str) -> None:
    layer = plugrad.nn.Linear(2, 2)
    given = layer if name == "weight_norm" else layer.parameters()
    with pytest.warns(FutureWarning, match="is deprecated|is now deprecated") as caught:
        getattr(plugrad.nn.utils, name)(*([given] if name == "weight_norm" else [given, 1.0]))
    assert caught[0].filename == __file__


def test_a_masked_array_as_the_bias_of_a_fusion_is_named() -> None:
    one = plugrad.ones(2)
    bias: Any = np.ma.masked_array(np.ones(2), mask=[True, False])
    with pytest.raises(
        TypeError, match=r"argument 'conv_b' \(position 2\) must be Tensor, not Mas"
    ):
        plugrad.nn.utils.fuse_conv_bn_weights(plugrad.ones(2, 1, 1), bias, one, one, 0.1, one, one)
