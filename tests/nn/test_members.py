"""Exchanging a tensor of a module, whatever it is (oracle: PyTorch, by the same calls)."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

import plugrad

CALLS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "a parameter": lambda lib, f, m: f.swap_tensor(m, "weight", lib.ones(1, 2)),
    "None for a parameter": lambda lib, f, m: f.swap_tensor(m, "bias", None),
    "a buffer": lambda lib, f, m: f.swap_tensor(m, "kept", lib.ones(1)),
    "an attribute": lambda lib, f, m: f.swap_tensor(m, "free", lib.ones(3)),
    "what is no tensor": lambda lib, f, m: f.swap_tensor(m, "number", lib.ones(3)),
    "what is not there": lambda lib, f, m: f.swap_tensor(m, "nothing", lib.ones(3)),
    "there and back": lambda lib, f, m: f.swap_tensor(
        m, "nothing", f.swap_tensor(m, "nothing", lib.ones(1), allow_missing=True)
    ),
    "set a parameter": lambda lib, f, m: f.set_tensor(m, "weight", lib.ones(1, 2)),
    "set what is not there": lambda lib, f, m: f.set_tensor(m, "nothing", lib.ones(1)),
    "a dot": lambda lib, f, m: f.swap_tensor(m, "a.b", lib.ones(1)),
    "no name": lambda lib, f, m: f.swap_tensor(m, "", lib.ones(1)),
    "no module": lambda lib, f, m: f.swap_tensor(3, "a", lib.ones(1)),
    "a number": lambda lib, f, m: f.swap_tensor(m, "weight", 3),
}


def after(lib: Any, functions: ModuleType, call: Callable[[Any, Any, Any], Any]) -> Any:
    """What a call gives or raises, and all that the module has then."""
    lib.manual_seed(0)
    module = lib.nn.Linear(2, 1)
    module.register_buffer("kept", lib.zeros(1))
    module.free, module.number = lib.zeros(2), 3
    try:
        given = call(lib, functions, module)
        found = [None if given is None else given.tolist()]
    except Exception as error:
        found = [type(error).__name__, str(error).replace("torch.", "")]
    parameters = {name: value.tolist() for name, value in module.named_parameters()}
    buffers = {name: value.tolist() for name, value in module.named_buffers()}
    nothing = getattr(module, "nothing", None)
    return [*found, parameters, buffers, module.free.tolist(), module.number, nothing is None]


@pytest.mark.parametrize("name", CALLS)
def test_a_tensor_is_exchanged_as_in_pytorch(name: str, torch_oracle: ModuleType) -> None:
    ours = importlib.import_module("plugrad.nn.utils.members")
    theirs = importlib.import_module("torch.nn.utils._named_member_accessor")
    assert after(plugrad, ours, CALLS[name]) == after(torch_oracle, theirs, CALLS[name])
