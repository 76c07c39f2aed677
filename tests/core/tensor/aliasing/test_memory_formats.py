"""`memory_format=`: strides and errors are PyTorch's."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest

import plugrad

FORMATS = ("contiguous_format", "preserve_format", "channels_last", "channels_last_3d")

# Evaluated with `lib`, a memory format `f`, and `x` of one of these layouts.
LAYOUTS = (
    "lib.arange(6.0).reshape(2, 3)",
    "lib.arange(6.0).reshape(2, 3).t()",
    "lib.arange(24.0).reshape(1, 2, 3, 4)",
    "lib.arange(120.0).reshape(2, 3, 4, 5).permute(0, 3, 1, 2)",
    "lib.arange(120.0).reshape(2, 4, 5, 3).permute(0, 3, 1, 2)[:, :, ::2]",
    "lib.arange(48.0).reshape(1, 2, 3, 4, 2)",
    "lib.ones(3, 1, 1, 1)",
    "lib.ones(2, 3, 1, 1)",
)
CALLS = (
    "x.contiguous(memory_format=f)",
    "x.is_contiguous(memory_format=f)",
    "x.clone(memory_format=f)",
    "lib.clone(x, memory_format=f)",
    "x.to(memory_format=f)",
    "x.to(lib.float64, memory_format=f)",
    "x.to('cpu', memory_format=f)",
    "x.to(lib.zeros(1), memory_format=f)",
    "x.float(memory_format=f)",
    "x.double(memory_format=f)",
    "x.type(lib.int64, memory_format=f)",
    "x.cpu(memory_format=f)",
    "lib.empty(tuple(x.shape), memory_format=f)",
    "lib.empty_like(x, memory_format=f)",
    "lib.zeros_like(x, memory_format=f)",
    "lib.ones_like(x, memory_format=f)",
    "lib.full_like(x, 2, memory_format=f)",
    "lib.rand_like(x, memory_format=f)",
    "lib.randn_like(x, memory_format=f)",
    "lib.randint_like(x, 3, memory_format=f)",
    "lib.zeros(2).resize_(tuple(x.shape), memory_format=f)",
    "x.clone().resize_(tuple(x.shape), memory_format=f)",
    "lib.zeros(2).resize_as_(x, memory_format=f)",
)


def _outcome(lib: Any, layout: str, call: str, name: str) -> Any:
    names = {"lib": lib, "f": getattr(lib, name)}
    names["x"] = eval(layout, names)
    try:
        found = eval(call, names)
    except RuntimeError as error:
        return str(error)
    if isinstance(found, bool):
        return found
    x = names["x"]
    # A step along a dimension of size 1 is never taken.
    steps = [step for step, size in zip(found.stride(), found.shape, strict=True) if size != 1]
    same = ("empty", "rand", "resize", "ones", "zeros", "full")
    values = None if any(word in call for word in same) else found.tolist()
    return steps, found.is_contiguous(), found is x, found._version, values


@pytest.mark.parametrize("name", FORMATS)
def test_formats_are_obeyed_as_in_pytorch(torch_oracle: Any, name: str) -> None:
    for layout in LAYOUTS:
        for call in CALLS:
            found = _outcome(plugrad, layout, call, name)
            assert found == _outcome(torch_oracle, layout, call, name), (layout, call)


def test_steps_along_dimensions_of_size_1_are_those_of_the_format(
    torch_oracle: Any,
) -> None:
    calls = ("x.clone", "x.to", "lib.empty_like")
    for sizes in ((1, 1, 2, 2), (2, 3, 1, 1), (1, 3, 1, 4)):
        for call in calls:
            found = []
            for lib in (plugrad, torch_oracle):
                names = {"lib": lib, "x": lib.ones(sizes), "f": lib.channels_last}
                source = f"{call}({'x, ' * ('like' in call)}memory_format=f)"
                found.append(eval(source, names).stride())
            assert found[0] == found[1], (sizes, call)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("x.clone(memory_format=1)", r"clone\(\): argument 'memory_format' must be"),
        ("x.contiguous(memory_format=None)", r"contiguous\(\): argument 'memory_format' must be"),
        ("x.is_contiguous(memory_format=None)", r"is_contiguous\(\): argument 'memory_format'"),
        ("lib.empty(2, memory_format='a')", r"empty\(\): argument 'memory_format' must be"),
        ("lib.zeros_like(x, memory_format='a')", r"zeros_like\(\)"),
        ("x.to(memory_format=1)", r"to\(\) received an invalid combination of arguments"),
        ("x.resize_(2, memory_format=1)", r"resize_\(\)"),
    ],
)
def test_what_is_no_memory_format(torch_oracle: Any, call: str, message: str) -> None:
    for lib in (plugrad, torch_oracle):
        with pytest.raises(TypeError, match=message):
            eval(call, {"lib": lib, "x": lib.ones(2, 3)})


def test_memory_formats_are_objects_with_a_class(torch_oracle: Any) -> None:
    for name in FORMATS:
        found = getattr(plugrad, name)
        assert isinstance(found, plugrad.memory_format)
        assert repr(found).split(".")[1] == repr(getattr(torch_oracle, name)).split(".")[1]
        assert copy.deepcopy(found) is copy.copy(found) is found
        assert pickle.loads(pickle.dumps(found)) is found


def test_a_copy_in_another_format_is_one_node() -> None:
    x = plugrad.arange(24.0).reshape(1, 2, 3, 4).requires_grad_()
    wanted = plugrad.channels_last
    for y, node in (
        (x.contiguous(memory_format=wanted), "CloneBackward0"),
        (x.to(plugrad.float64, memory_format=wanted), "ToCopyBackward0"),
        (x.to(memory_format=wanted), "ToCopyBackward0"),
    ):
        assert type(y.grad_fn).__name__ == node
        assert [type(edge[0]).__name__ for edge in y.grad_fn.next_functions] == ["AccumulateGrad"]
        (grad,) = plugrad.autograd.grad((y * y).sum(), x)
        assert (grad == 2 * x).all()


def test_arrays_without_strides_have_the_format_too(immutable: str) -> None:
    """On immutable arrays: the layout comes from the row-major array behind them."""
    for device in ("meta", immutable):
        x = plugrad.ones(2, 3, 4, 5, device=device)
        for y in (
            x.contiguous(memory_format=plugrad.channels_last),
            plugrad.empty(2, 3, 4, 5, device=device, memory_format=plugrad.channels_last),
            x.double(memory_format=plugrad.channels_last),
        ):
            assert y.stride() == (60, 1, 15, 3)
            assert y.is_contiguous(memory_format=plugrad.channels_last)
            assert not y.is_contiguous()
            assert y._base is None


def test_vmap_clones_in_formats_of_any_rank_only() -> None:
    x = plugrad.ones(2, 1, 2, 3, 4)
    with pytest.raises(RuntimeError, match=r"NYI: Tensor.clone\(memory_format\) inside vmap"):
        plugrad.vmap(lambda t: t.clone(memory_format=plugrad.channels_last))(x)


LEAVES = (
    "lib.zeros(3, 2).t()",
    "lib.zeros(2, 3, 4, 5).contiguous(memory_format=lib.channels_last)",
    "lib.zeros(4, 6)[:, ::2]",
    "lib.zeros(2, 3, 4).permute(2, 0, 1)",
    "lib.zeros(3, 1).expand(3, 2)",
    "lib.zeros(2, 3)",
)
LOSSES = ("(x * x).sum()", "x.sum()", "x.contiguous().pow(2).sum()", "(x.sum() + (x * 2).sum())")


def _gradient_strides(lib: Any, leaf: str, loss: str, create_graph: bool) -> Any:
    names = {"lib": lib}
    names["x"] = x = eval(leaf, names).detach().requires_grad_()
    found = []
    for _ in range(2):
        eval(loss, names).backward(create_graph=create_graph)
        found.append(x.grad.stride())
    return found


@pytest.mark.filterwarnings("ignore:Using backward")
@pytest.mark.parametrize("create_graph", [False, True])
def test_a_gradient_has_the_layout_of_its_dense_leaf(torch_oracle: Any, create_graph: bool) -> None:
    for leaf in LEAVES:
        for loss in LOSSES:
            found = _gradient_strides(plugrad, leaf, loss, create_graph)
            expected = _gradient_strides(torch_oracle, leaf, loss, create_graph)
            assert found == expected, (leaf, loss)
