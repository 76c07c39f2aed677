"""Lazy modules, parameters without a shape, buffers, and containers of parameters."""

from __future__ import annotations

import copy
import pickle
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import pytest

import plugrad
from plugrad import nn

CASES = [
    ("LazyLinear(3)", (2, 4)),
    ("LazyLinear(3, bias=False)", (4,)),
    ("LazyConv1d(4, 3, padding='same', groups=2)", (2, 4, 5)),
    ("LazyConv2d(4, 3, stride=2, padding_mode='reflect', padding=1)", (2, 5, 5)),
    ("LazyConv3d(4, 2, bias=False)", (1, 2, 3, 2, 2)),
    ("LazyConvTranspose1d(4, 3, 2, output_padding=1)", (2, 4, 5)),
    ("LazyConvTranspose2d(4, 3, groups=2)", (2, 4, 3, 3)),
    ("LazyConvTranspose3d(2, 2)", (2, 3, 2, 2)),
    ("LazyBatchNorm1d()", (4, 3)),
    ("LazyBatchNorm2d(affine=False)", (4, 3, 2, 2)),
    ("LazyBatchNorm3d(0.1, track_running_stats=False, bias=False)", (2, 3, 2, 2, 2)),
    ("LazyInstanceNorm1d()", (2, 3, 4)),
    ("LazyInstanceNorm2d(affine=False)", (2, 3, 2, 2)),
    ("LazyInstanceNorm3d()", (2, 3, 2, 2, 2)),
]


@pytest.mark.parametrize(("expression", "shape"), CASES)
def test_lazy_layer_is_torchs(
    torch: Any, assert_equal_to_torch: Callable[..., None], expression: str, shape: tuple[int, ...]
) -> None:
    found = []
    for library in (plugrad, torch):
        library.manual_seed(1)
        layer = eval(f"nn.{expression}", {"nn": library.nn})
        texts = [repr(layer), str(sorted(layer.state_dict()))]
        parameters = list(layer.parameters())
        x = library.linspace(-1, 2, 200)[: 2 * 3 * 20].repeat(4)
        size = 1
        for n in shape:
            size *= n
        result = layer(x[:size].reshape(shape))
        # Optimisers that were made before have the same objects.
        assert all(a is b for a, b in zip(parameters, layer.parameters(), strict=True))
        texts += [repr(layer), str(sorted(layer.state_dict())), type(layer).__name__]
        found.append((texts, [result, *layer.state_dict().values()]))
    assert found[0][0] == found[1][0]
    for actual, expected in zip(found[0][1], found[1][1], strict=True):
        assert_equal_to_torch(actual, expected, rtol=1e-4, atol=1e-5)


def test_lazy_layer_takes_its_shapes_from_a_state_dict() -> None:
    source = nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2))
    lazy = nn.Sequential(nn.LazyLinear(2), nn.LazyBatchNorm1d())
    lazy.load_state_dict(source.state_dict())
    source.eval()
    lazy.eval()
    x = plugrad.rand(4, 3)
    assert plugrad.equal(lazy(x), source(x))
    assert type(lazy[0]) is nn.Linear
    loaded = nn.LazyLinear(2)
    loaded.load_state_dict(nn.Linear(3, 2).state_dict())
    with pytest.raises(AssertionError, match="in_features inferred from input: 4 is not equal"):
        loaded(plugrad.ones(1, 4))


@pytest.mark.parametrize("again", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_lazy_layer_is_copied_and_moved_before_it_has_shapes(again: Callable[[Any], Any]) -> None:
    layer = again(nn.LazyLinear(2).double())
    other = nn.LazyLinear(2)
    other.load_state_dict(layer.state_dict())
    assert other.has_uninitialized_params()
    assert layer(plugrad.ones(1, 3, dtype=plugrad.float64)).shape == (1, 2)
    assert type(layer.weight) is nn.Parameter


def test_parameter_without_shape_cannot_be_used() -> None:
    parameter = nn.UninitializedParameter()
    assert repr(parameter) == "<UninitializedParameter>"
    with pytest.raises(RuntimeError, match="Can't access the shape of an uninitialized"):
        parameter.shape  # noqa: B018
    with pytest.raises(ValueError, match="Attempted to use an uninitialized parameter in"):
        parameter + 1
    with pytest.raises(RuntimeError, match="Can't access the shape of an uninitialized"):
        nn.Linear(3, 2).load_state_dict(nn.LazyLinear(2).state_dict())
    with pytest.raises(RuntimeError, match=r"Expected 2D \(unbatched\) or 3D \(batched\) input"):
        nn.LazyConv1d(3, 2)(plugrad.ones(2))
    parameter.materialize((2, 3))
    assert (parameter + 1).shape == (2, 3)


def test_assigned_buffer_is_registered() -> None:
    layer = nn.Module()
    layer.kept = nn.Buffer(plugrad.ones(2))
    layer.temporary = nn.Buffer(plugrad.zeros(1), persistent=False)
    assert list(layer.state_dict()) == ["kept"]
    assert sorted(name for name, _ in layer.named_buffers()) == ["kept", "temporary"]
    layer.kept = nn.Buffer(plugrad.zeros(2), persistent=False)
    assert list(layer.state_dict()) == []
    layer.kept = plugrad.ones(3)
    assert layer.get_buffer("kept").tolist() == [1.0] * 3
    assert next(copy.deepcopy(layer).double().buffers()).dtype == plugrad.float64
    assert type(nn.Buffer(plugrad.ones(1)) + 1) is plugrad.Tensor


def test_dictionary_of_parameters(torch: Any) -> None:
    found = []
    for library in (plugrad, torch):
        lib_nn, ones = library.nn, library.ones
        table = lib_nn.ParameterDict({"b": ones(2, 3), "a": lib_nn.Parameter(ones(1)), "c": 5})
        states = [repr(table), list(table), list(table.state_dict()), table.get("z"), "b" in table]
        table |= OrderedDict(z=ones(1), y=ones(1))
        states += [list(table.keys()), list(reversed(table)), len(table), table.popitem()[0]]
        states += [table.setdefault("w", 3), table.pop("w"), list(table.fromkeys(["k"], 2).items())]
        copied = table.copy()
        states += [copied["a"] is table["a"], list((copied | {"n": 1}).keys())]
        del table["b"]
        states += [[name for name, _ in table.named_parameters()]]
        table.clear()
        states += [len(table), len(list(table.parameters())), len(copied)]
        for wrong in (3, [3], [(1, 2, 3)], {1: 2}):
            with pytest.raises((TypeError, ValueError)) as caught:
                lib_nn.ParameterDict(wrong)
            states.append(str(caught.value))
        found.append(states)
    assert found[0][0].replace("plugrad.", "torch.") == found[1][0]
    assert found[0][1:] == found[1][1:]


def test_sequences_of_modules_are_repeated() -> None:
    one = nn.Sequential(nn.ReLU(), nn.Tanh())
    assert [type(module) for module in 2 * one] == [nn.ReLU, nn.Tanh] * 2
    one *= 2
    one += nn.Sequential(nn.ELU())
    assert (len(one), one[0] is one[2]) == (5, True)
    with pytest.raises(ValueError, match="Non-positive multiplication factor 0 for"):
        one * 0
    with pytest.raises(TypeError, match="unsupported operand type"):
        one * "a"  # type: ignore[operator]


def test_module_on_meta_gets_memory_and_other_submodules() -> None:
    net = nn.Sequential(nn.Linear(2, 3, device="meta"))
    net.to_empty(device="cpu")
    assert type(net[0].weight) is nn.Parameter
    assert net[0].weight.device.type == "cpu"
    net.set_submodule("0", nn.ReLU(), strict=True)
    assert net(plugrad.tensor([-1.0])).tolist() == [0.0]
    with pytest.raises(AttributeError, match="Sequential has no attribute `1`"):
        net.set_submodule("1", nn.ReLU(), strict=True)
    with pytest.raises(ValueError, match="without a target name"):
        net.set_submodule("", nn.ReLU())
