"""What nodes show of what they saved: `_saved_self`, `_raw_saved_self` and the like."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest

import plugrad
from plugrad.graph.saved_tensor import SavedTensor, make_saved_tensor

FREED = "after they have already been freed"


def leaf(*values: float) -> Any:
    return plugrad.tensor(list(values) or [1.0, 2.0], dtype=plugrad.float64, requires_grad=True)


def identity(value: Any) -> Any:
    return value


# Operators for which plugrad's formulas save the same as PyTorch's.
PROGRAMS = {
    "mul": lambda m, x: x * x,
    "div": lambda m, x: x / m.full((2, 3), 2.0),
    "pow": lambda m, x: x**3,
    "exp": lambda m, x: x.exp(),
    "sqrt": lambda m, x: x.sqrt(),
    "log": lambda m, x: x.log(),
    "sigmoid": lambda m, x: x.sigmoid(),
    "max": lambda m, x: x.max(dim=1).values,
    "clamp": lambda m, x: x.clamp(0, 2),
    "mm": lambda m, x: x @ m.ones(3, 4),
    "atan2": lambda m, x: m.atan2(x, m.ones(2, 3)),
    "transpose": lambda m, x: x.transpose(0, 1),
    "view": lambda m, x: x.view(3, 2),
    "cat": lambda m, x: m.cat([x, x], 1),
    "index": lambda m, x: x[m.tensor([1, 0])],
    "where": lambda m, x: m.where(x > 2, x, m.zeros(2, 3)),
    "cumsum": lambda m, x: x.cumsum(1),
    "gather": lambda m, x: x.gather(1, m.tensor([[0], [1]])),
    "stack": lambda m, x: m.stack([x, x]),
    "softmax": lambda m, x: x.softmax(1),
    "logsumexp": lambda m, x: x.logsumexp(1),
    "sum": lambda m, x: x.sum(1),
    "mean": lambda m, x: x.mean(),
}


def shown(library: Any, program: Any) -> dict[str, Any]:
    x = library.tensor([[1.0, 2.0, 3.0], [0.4, 0.5, 0.6]], requires_grad=True)
    node = program(library, x).grad_fn
    names = [name for name in dir(node) if name.startswith("_saved_")]
    return {name: plain(getattr(node, name)) for name in names}


def plain(value: Any) -> Any:
    if hasattr(value, "tolist"):
        return [round(number, 5) for number in value.flatten().tolist()]
    if isinstance(value, tuple):
        return tuple(plain(item) for item in value)
    return value if value is None or isinstance(value, (bool, int, float, str)) else str(value)


@pytest.mark.parametrize("name", PROGRAMS)
def test_attributes_have_the_names_and_values_that_torch_gives(
    name: str, torch_oracle: ModuleType
) -> None:
    ours, theirs = shown(plugrad, PROGRAMS[name]), shown(torch_oracle, PROGRAMS[name])
    common = ours.keys() & theirs.keys()
    assert common, (ours, theirs)
    assert {key: ours[key] for key in common} == {key: theirs[key] for key in common}
    # Tensors are saved by the same names, whether or not they are needed.
    tensors = {key for key, value in ours.items() if isinstance(value, list)}
    assert tensors <= theirs.keys()


def test_inputs_are_shown_as_they_are_and_outputs_with_their_history() -> None:
    x = leaf()
    y = x.exp()
    z = y * x
    assert z.grad_fn._saved_self is y
    assert z.grad_fn._saved_other is x
    assert y.grad_fn._saved_result is not y
    assert y.grad_fn._saved_result.grad_fn is y.grad_fn


def test_what_was_not_needed_is_none() -> None:
    y = leaf() * plugrad.ones(2)
    assert y.grad_fn._saved_self is None
    with pytest.raises(RuntimeError, match="saved tensor with value None is forbidden"):
        y.grad_fn._raw_saved_self.register_hooks(identity, identity)


def test_lists_are_shown_as_tuples() -> None:
    x = plugrad.ones(2, 2, requires_grad=True)
    indices = plugrad.tensor([0, 1])
    node = x[:, indices].grad_fn
    assert node._saved_indices[1].tolist() == [0, 1]
    assert node._saved_indices[0] is None
    raw = node._raw_saved_indices
    assert [type(item) for item in raw] == [SavedTensor, SavedTensor]
    raw[1].register_hooks(lambda t: t, lambda t: t * 0)
    assert node._saved_indices[1].tolist() == [0, 0]
    with pytest.raises(RuntimeError, match="None is forbidden"):
        raw[0].register_hooks(identity, identity)
    (node,) = [y.grad_fn for y in [x[:, indices]]]
    node._release_variables()
    with pytest.raises(RuntimeError, match=FREED):
        node._saved_indices  # noqa: B018


def test_after_backward_only_arguments_that_are_no_tensors_are_there() -> None:
    x = leaf()
    y = x**3
    node, raw = y.grad_fn, y.grad_fn._raw_saved_self
    y.sum().backward()
    assert node._saved_exponent == 3
    with pytest.raises(RuntimeError, match=FREED):
        node._saved_self  # noqa: B018
    for handle in (raw, node._raw_saved_self):
        with pytest.raises(RuntimeError, match=FREED):
            handle.unpack()
        with pytest.raises(RuntimeError, match=FREED):
            handle.data  # noqa: B018
        with pytest.raises(RuntimeError, match="register_hooks on a saved tensor after it has"):
            handle.register_hooks(identity, identity)


def test_unknown_attributes_are_missing() -> None:
    node = (leaf() * 2).grad_fn
    for name in ("_saved_nothing", "_raw_saved_nothing", "nothing"):
        assert not hasattr(node, name)
    with pytest.raises(AttributeError, match="'MulBackward0' object has no attribute 'nothing'"):
        node.nothing  # noqa: B018
    with pytest.raises(AttributeError):
        node._raw_saved_other  # noqa: B018  # a number is no saved tensor


def test_errors_within_properties_are_not_hidden() -> None:
    class Reading(plugrad.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x.clone()

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return grad * ctx.saved_tensors[0]

    y = Reading.apply(leaf())

    def unpack(tensor: Any) -> Any:
        raise AttributeError("from the hook")

    y.grad_fn._raw_saved_tensors[0].register_hooks(identity, unpack)
    with pytest.raises(AttributeError, match="from the hook"):
        y.sum().backward()


def test_dir_lists_them() -> None:
    names = dir(plugrad.ones(2, 2, requires_grad=True).sum(1).grad_fn)
    assert {"_saved_dim", "_saved_keepdim", "_saved_self_sym_sizes", "name"} <= set(names)
    names = dir((leaf() * leaf()).grad_fn)
    assert {"_saved_self", "_raw_saved_self", "_saved_other", "_raw_saved_other"} <= set(names)


# Hooks on one saved tensor.


def test_hooks_pack_at_once_and_unpack_when_needed() -> None:
    seen: list[Any] = []
    x = leaf()
    y = x * x

    def pack(tensor: Any) -> Any:
        seen.append((tensor.requires_grad, tensor is x, plugrad.is_grad_enabled()))
        return tensor.tolist()

    y.grad_fn._raw_saved_self.register_hooks(
        pack, lambda values: plugrad.tensor(values, dtype=x.dtype) * 10
    )
    assert seen == [(False, False, False)]
    y.sum().backward()
    assert x.grad.tolist() == [11.0, 22.0]


def test_a_leaf_with_hooks_is_unpacked_as_that_leaf() -> None:
    x = leaf()
    y = x * x
    y.grad_fn._raw_saved_self.register_hooks(identity, lambda tensor: tensor * 3)
    unpacked = y.grad_fn._saved_self
    assert unpacked.is_leaf
    assert unpacked.requires_grad
    (first,) = plugrad.autograd.grad(y.sum(), x, create_graph=True)
    first.sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]


def test_an_output_with_hooks_keeps_its_history() -> None:
    x = leaf(0.5, 1.0)
    y = x.exp()
    y.grad_fn._raw_saved_result.register_hooks(identity, lambda tensor: tensor * 2)
    assert y.grad_fn._saved_result.grad_fn is y.grad_fn
    (first,) = plugrad.autograd.grad(y.sum(), x, create_graph=True)
    assert first.tolist() == pytest.approx((2 * x.exp()).tolist())
    assert first.grad_fn is not None


def test_only_one_pair_of_hooks() -> None:
    y = leaf() * leaf()
    raw = y.grad_fn._raw_saved_self
    raw.register_hooks(identity, identity)
    message = "register_hooks on a saved tensor whose hooks have already been set"
    with pytest.raises(RuntimeError, match=message):
        raw.register_hooks(identity, identity)
    with plugrad.autograd.saved_tensors.saved_tensors_hooks(identity, identity):
        z = leaf() * leaf()
    with pytest.raises(RuntimeError, match=message):
        z.grad_fn._raw_saved_self.register_hooks(identity, identity)


def test_hooks_must_be_callable_and_must_not_write() -> None:
    y = (leaf() * 1) ** 2
    raw = y.grad_fn._raw_saved_self
    with pytest.raises(TypeError):
        raw.register_hooks(1, 2)
    with pytest.raises(TypeError):
        raw.register_hooks(identity)
    with pytest.raises(RuntimeError, match="pack hook is modifying its input in place"):
        raw.register_hooks(lambda tensor: tensor.add_(1), identity)


def test_data_and_unpack_hook_show_what_is_kept() -> None:
    x = leaf()
    with plugrad.autograd.saved_tensors.saved_tensors_hooks(identity, identity):
        y = x**2
    z = y.exp()
    w = z**2
    assert y.grad_fn._raw_saved_self.data is x
    assert y.grad_fn._raw_saved_self.unpack_hook is identity
    assert z.grad_fn._raw_saved_result.data is not z
    assert z.grad_fn._raw_saved_result.unpack_hook is None
    assert w.grad_fn._raw_saved_self.data is z


def test_custom_functions_have_raw_saved_tensors() -> None:
    class Double(plugrad.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            result = x * 2
            ctx.save_for_backward(x, result, None)
            return result

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            x, result, nothing = ctx.saved_tensors
            assert nothing is None
            return grad * x * result

    x = leaf()
    y = Double.apply(x)
    raw = y.grad_fn._raw_saved_tensors
    assert raw[0].unpack() is x
    raw[1].register_hooks(identity, lambda tensor: tensor + 100)
    y.sum().backward()
    assert x.grad.tolist() == [102.0, 208.0]


def test_a_saved_tensor_of_ones_own() -> None:
    x = leaf()
    assert make_saved_tensor(x).unpack() is x
    middle = x * 2
    saved = make_saved_tensor(middle)
    middle.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        saved.unpack()
    with plugrad.autograd.saved_tensors.saved_tensors_hooks(lambda t: t.detach(), identity):
        saved = make_saved_tensor(middle)
    assert saved.unpack().grad_fn is middle.grad_fn
