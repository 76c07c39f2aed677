"""Which names are there, and what is said of those that are not."""

from __future__ import annotations

import importlib
from types import ModuleType

import pytest

from plugrad_as_torch.layout import layouts, torch_names
from plugrad_as_torch.lookup import find, has_module, lacks
from plugrad_as_torch.own.pytree import tree_flatten, tree_map_only, tree_unflatten
from plugrad_as_torch.own.torch_version import TorchVersion
from tests.as_torch.conftest import Run

WHERE = "docs/torch_names.md lists what is missing, and `plugrad check` what a program uses of it"


def test_errors_name_what_is_missing(run: Run) -> None:
    program = """
import plugrad.as_torch
plugrad.as_torch.install()
for statement in (
    "import torch; torch.sparse_coo_tensor",
    "import torch; torch.nope",
    "import torch; torch.fx.symbolic_trace(len)",
    "import torch; torch.fx.Proxy()",
    "from torch import sparse_coo_tensor",
    "from torch.onnx import InputObserver",
    "from torch import nope",
    "import torch.onnx.nope",
):
    try:
        exec(statement)
    except (AttributeError, ImportError, NotImplementedError) as error:
        print(f"{type(error).__name__}: {error}")
import torch
print(hasattr(torch, "nope"), isinstance(1, torch.fx.Proxy), "__path__" in dir(torch))
"""
    capture = "plugrad.capture records the operators of a function"
    onnx = (
        "plugrad-onnx writes ONNX files; lowerings of operators are "
        "plugrad.onnx.register_lowering's"
    )
    sparse = f"torch.sparse_coo_tensor is not in plugrad yet: use dense tensors; {WHERE}"
    assert run("-c", program).stdout.splitlines() == [
        f"AttributeError: {sparse}",
        "AttributeError: module 'torch' has no attribute 'nope'",
        f"NotImplementedError: torch.fx.symbolic_trace is not in plugrad yet: {capture}; {WHERE}",
        f"NotImplementedError: torch.fx.Proxy is not in plugrad yet: {capture}; {WHERE}",
        f"ModuleNotFoundError: No module named 'torch.sparse_coo_tensor': {sparse}",
        "ImportError: cannot import name 'InputObserver' from 'torch.onnx': "
        f"torch.onnx.InputObserver is not in plugrad yet: {onnx}; {WHERE}",
        "ModuleNotFoundError: No module named 'torch.nope': torch is plugrad in this process, "
        "which has no such module",
        "ModuleNotFoundError: No module named 'torch.onnx.nope': "
        f"torch.onnx.nope is not in plugrad yet: {onnx}; {WHERE}",
        "False False True",
    ]


def offered(module: str) -> set[str]:
    """What the tables and modules of our own have for a module of PyTorch."""
    layout = layouts()[module]
    if not layout.own:
        return layout.names()
    own = importlib.import_module(f"plugrad_as_torch.own.{layout.own}")
    return layout.names() | set(own.__all__)


def test_every_entry_of_the_tables_can_be_had() -> None:
    for module in layouts():
        for name in offered(module):
            find(module, name)


@pytest.mark.filterwarnings("ignore:'has_")
def test_the_tables_name_what_pytorch_has(torch_oracle: ModuleType) -> None:
    unknown = []
    # These two share a module of ours with torch.cuda.amp.
    shared = {"torch.cuda.amp.autocast_mode", "torch.cuda.amp.grad_scaler"}
    # PyTorch has it only together with the package tensorboard.
    optional = {"torch.utils.tensorboard", "torch.utils.tensorboard.writer"}
    for module in sorted(layouts().keys() - shared - optional):
        package, *parts = module.split(".")
        there: object = importlib.import_module(package)
        for part in parts:
            there = getattr(there, part, None) or importlib.import_module(module)
        unknown += [f"{module}.{name}" for name in offered(module) if not hasattr(there, name)]
    assert unknown == []


def test_the_list_of_names_is_pytorchs(torch_oracle: ModuleType) -> None:
    for module in ("torch", "torch.nn", "torch.nn.functional", "torch.linalg", "torch.Tensor"):
        there = eval(module, {"torch": torch_oracle})
        assert [name for name in torch_names()[module] if not hasattr(there, name)] == []
    assert set(torch_oracle.nn.init.__dict__) > torch_names()["torch.nn.init"]


def test_what_plugrad_has_is_there() -> None:
    for name in (
        "torch.nn.modules.conv.Conv2d",
        "torch.linalg.eigh",
        "torch.special.erfcx",
        "torch.nn.functional.relu",
        "torch.utils.data.DataLoader",
        "torch.autograd.forward_ad.dual_level",
        "torch._C._nn.gelu",
        "torch.Tensor.sum",
        # PyTorch's modules define these and leave them out of `__all__`.
        "torch.overrides.TorchFunctionMode",
        "torch.library.register_autograd",
        "torch.library.opcheck",
        "torch.utils.flop_counter.mm_flop",
    ):
        assert not lacks(name), name
    assert lacks("torch.fx.Proxy.node") == "torch.fx.Proxy"
    assert lacks("torch.Tensor.coalesce") == "torch.Tensor.coalesce"
    assert has_module("torch.nn.modules.rnn")
    assert not has_module("torch.nn.no_module_of_pytorch")


@pytest.mark.parametrize(
    ("less", "more"),
    [("2.4", "2.13.0"), ("2.13.0a0", "2.13.0"), ("2.13", "2.13.1+cpu"), ((2, 12), "2.13.0")],
)
def test_versions_compare_as_versions(less: object, more: str) -> None:
    assert TorchVersion(more) > less
    assert TorchVersion(more) >= less
    assert not TorchVersion(more) < less
    assert TorchVersion(more) != less
    assert TorchVersion("2.13") == "2.13.0"


def test_trees_are_taken_apart_as_in_pytorch(torch_oracle: ModuleType) -> None:
    tree = {"b": 1, "a": [None, (2.5, {"d": 3, "c": ()})]}
    leaves, structure = tree_flatten(tree)
    assert leaves == torch_oracle.utils._pytree.tree_flatten(tree)[0]
    assert list(tree_unflatten(leaves, structure)) == ["b", "a"]
    doubled = tree_map_only(int, lambda leaf: leaf * 2, tree)
    expected = torch_oracle.utils._pytree.tree_map_only(int, lambda leaf: leaf * 2, tree)
    assert doubled == expected


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("torch.nn.grad", "Tensor"),
        ("torch.autograd.graph", "output_nr"),
        ("torch.masked", "iinfo"),
        ("torch.optim.optimizer", "Tensor"),
        ("torch.optim.adam", "Tensor"),
        ("torch.nn.utils.parametrize", "ModuleDict"),
        ("torch.utils.data.dataloader", "Sampler"),
    ],
)
def test_modules_have_what_pytorchs_import_from_each_other_and_not_what_plugrads_do(
    module: str, name: str, torch_oracle: ModuleType
) -> None:
    assert lacks(f"{module}.{name}") == (
        "" if hasattr(importlib.import_module(module), name) else f"{module}.{name}"
    )
