"""Arguments, their kinds and defaults are PyTorch's, for everything that both have."""

from __future__ import annotations

import importlib
import inspect
from types import ModuleType
from typing import Any

import pytest

import plugrad
from plugrad import nn

MODULES = (
    *("nn", "nn.functional", "nn.init", "nn.grad", "nn.parallel", "nn.utils", "nn.utils.rnn"),
    *("nn.utils.parametrize", "nn.utils.parametrizations", "nn.utils.prune", "nn.utils.fusion"),
    *("nn.utils.memory_format", "nn.attention", "nn.attention.bias", "optim"),
    *("optim.lr_scheduler", "optim.swa_utils", "distributions", "distributions.transforms"),
    *("distributions.constraints", "distributions.kl", "distributions.utils"),
)
# What PyTorch writes otherwise, with the same meaning: `Module.__init__(*args, **kwargs)`.
FREE = {"args", "kwargs"}


def module_of(library: ModuleType, name: str) -> Any:
    found: Any = library
    for part in name.split("."):
        found = getattr(found, part, None) or importlib.import_module(f"{library.__name__}.{name}")
    return found


def shown(value: object) -> str:
    text = repr(value).replace("plugrad", "torch").split(" at 0x")[0]
    return "()" if text == "torch.Size([])" else text


def arguments(function: Any) -> list[tuple[str, str, str]] | None:
    try:
        found = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return None
    return [(each.name, each.kind.name, shown(each.default)) for each in found]


def public(module: Any) -> list[str]:
    names = getattr(module, "__all__", None) or [n for n in dir(module) if not n.startswith("_")]
    return [name for name in names if callable(getattr(module, name))]


@pytest.mark.parametrize("name", MODULES)
def test_functions_and_constructors_take_what_torchs_take(torch: Any, name: str) -> None:
    ours, theirs = module_of(plugrad, name), module_of(torch, name)
    compared = 0
    differing = []
    for each in public(theirs):
        if not hasattr(ours, each):
            continue
        found, expected = arguments(getattr(ours, each)), arguments(getattr(theirs, each))
        if found is None or not expected or {argument for argument, _, _ in expected} == FREE:
            continue
        compared += 1
        if found != expected:
            differing.append((each, found, expected))
    assert not differing
    assert compared


# Arguments that PyTorch names otherwise than in all other classes, and one of its own use.
OTHER_NAMES = {
    *("HalfCauchy.icdf", "HalfNormal.icdf", "MixtureSameFamily.cdf", "MixtureSameFamily.log_prob"),
    "CorrCholeskyTransform.log_abs_det_jacobian",
}
# About sparse tensors, other processes' devices and PyTorch's own compiler.
NOT_HERE = {"ipu", "mtia", "xpu"}


def test_modules_have_the_methods_of_torchs(torch: Any) -> None:
    lacking = []
    for name in [*nn.__all__, "Module"]:
        theirs = getattr(torch.nn, name, None)
        if isinstance(theirs, type) and issubclass(theirs, torch.nn.Module):
            there = {each for each in dir(theirs) if not each.startswith("_")}
            lacking += [(name, each) for each in there - set(dir(getattr(nn, name))) - NOT_HERE]
    # The masks of a fast path that does not exist here.
    assert set(lacking) == {("MultiheadAttention", "merge_masks")}


def test_methods_of_module_take_what_torchs_take(torch: Any) -> None:
    for name, method in inspect.getmembers(torch.nn.Module, inspect.isfunction):
        if name.startswith("_") or name in NOT_HERE or name == "forward":
            continue
        assert arguments(getattr(nn.Module, name)) == arguments(method), name


@pytest.mark.parametrize("name", ["optim", "optim.lr_scheduler", "distributions"])
def test_methods_of_other_classes_take_what_torchs_take(torch: Any, name: str) -> None:
    ours, theirs = module_of(plugrad, name), module_of(torch, name)
    differing = []
    for each in public(theirs):
        kind = getattr(theirs, each)
        if not isinstance(kind, type) or not hasattr(ours, each):
            continue
        for method, function in inspect.getmembers(kind, inspect.isfunction):
            mine = getattr(getattr(ours, each), method, None)
            if method.startswith("_") or mine is None:
                continue
            if arguments(mine) != arguments(function):
                differing.append(f"{each}.{method}")
    assert set(differing) <= OTHER_NAMES
