"""What backward() and grad() take and refuse: each call gives the same with PyTorch."""

from __future__ import annotations

import types
from collections import OrderedDict
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

import plugrad

Call = Callable[[Any], Any]


def leaf(lib: Any, *values: float) -> Any:
    return lib.tensor(list(values) or [1.0, 2.0], dtype=lib.float64, requires_grad=True)


def ones(lib: Any, *shape: int) -> Any:
    return lib.ones(shape, dtype=lib.float64)


def square(lib: Any) -> tuple[Any, Any, Any]:
    """A leaf, its square and the sum of that."""
    x = leaf(lib)
    y = x * x
    return x, y, y.sum()


def plain(value: Any) -> Any:
    """Tensors as lists, so that results of two libraries compare."""
    if isinstance(value, tuple):
        return tuple(plain(item) for item in value)
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    return value.tolist() if hasattr(value, "tolist") else value


def outcome(call: Call, lib: Any) -> Any:
    """The result of a call, or the type and the words of what it raises."""
    try:
        return plain(call(lib))
    except Exception as error:
        return type(error), str(error).replace(f"{lib.__name__}.", "")


def grad_of_sum(lib: Any, make_inputs: Call, **options: Any) -> Any:
    x, y, s = square(lib)
    return lib.autograd.grad(s, make_inputs({"x": x, "y": y}), **options)


def one_of_no_output(lib: Any) -> Any:
    return lib.autograd.grad([], leaf(lib))


def backward_of_nothing(lib: Any) -> Any:
    return lib.autograd.backward([]), lib.autograd.backward([], inputs=leaf(lib))


def superfluous_gradients_are_ignored(lib: Any) -> Any:
    x, y, _ = square(lib)
    return lib.autograd.grad(y, x, [ones(lib, 2), ones(lib, 3)])


def gradient_of_another_float_dtype(lib: Any) -> Any:
    x, y, _ = square(lib)
    return lib.autograd.grad(y, x, lib.ones(2))


def integer_gradient(lib: Any) -> Any:
    x, y, _ = square(lib)
    return lib.autograd.grad(y, x, lib.ones(2, dtype=lib.int64))


def constant_input(lib: Any) -> Any:
    return lib.autograd.grad(square(lib)[2], lib.ones(2))


def constant_input_of_backward(lib: Any) -> Any:
    return lib.autograd.backward(square(lib)[2], inputs=lib.ones(2))


def output_that_is_a_number(lib: Any) -> Any:
    return lib.autograd.grad([1.0], leaf(lib))


def input_that_is_a_number(lib: Any) -> Any:
    return lib.autograd.grad(square(lib)[2], [1.0])


def input_of_backward_that_is_a_string(lib: Any) -> Any:
    return lib.autograd.backward(square(lib)[2], inputs=["x"])


def unused_input_of_backward(lib: Any) -> Any:
    x, _, s = square(lib)
    unused = leaf(lib)
    s.backward(inputs=[unused])
    return x.grad, unused.grad


def unused_result(lib: Any) -> Any:
    return lib.autograd.grad(square(lib)[2], leaf(lib) * 2)


def used_and_unused(lib: Any) -> Any:
    x, _, s = square(lib)
    return lib.autograd.grad(s, [x, leaf(lib) * 2], allow_unused=True)


def materialized(lib: Any) -> Any:
    x, _, s = square(lib)
    return lib.autograd.grad(s, [x, leaf(lib)], materialize_grads=True)


def materialized_with_graph(lib: Any) -> Any:
    (g,) = lib.autograd.grad(square(lib)[2], leaf(lib), materialize_grads=True, create_graph=True)
    return g, g.requires_grad


def materialize_against_allow_unused(lib: Any) -> Any:
    x, _, s = square(lib)
    return lib.autograd.grad(s, x, materialize_grads=True, allow_unused=False)


def duplicated_inputs_of_backward(lib: Any) -> Any:
    x, _, s = square(lib)
    s.backward(inputs=[x, x])
    return x.grad


def inputs_of_backward_that_are_results(lib: Any) -> Any:
    x, y, s = square(lib)
    s.backward(inputs=[y], retain_graph=True)
    s.backward(inputs=[y], retain_graph=True)
    first = y.grad.tolist(), x.grad, y.retains_grad
    s.backward(inputs=[y, x])
    return *first, y.grad, x.grad


def inputs_as_a_dict(lib: Any) -> Any:
    return grad_of_sum(lib, lambda tensors: tensors)


def inputs_as_an_empty_dict(lib: Any) -> Any:
    return grad_of_sum(lib, lambda tensors: {})


def inputs_as_another_mapping(lib: Any) -> Any:
    return grad_of_sum(lib, types.MappingProxyType)


def inputs_as_a_subclass_of_dict(lib: Any) -> Any:
    return grad_of_sum(lib, OrderedDict)


def inputs_as_an_iterator(lib: Any) -> Any:
    return grad_of_sum(lib, lambda tensors: iter(tensors.values()))


def inputs_of_backward_as_a_dict(lib: Any) -> Any:
    x, _, s = square(lib)
    s.backward(inputs={"x": x})
    return x.grad


def inputs_of_backward_as_another_mapping(lib: Any) -> Any:
    x, _, s = square(lib)
    return s.backward(inputs=OrderedDict(x=x))


def flags_may_be_integers(lib: Any) -> Any:
    x, _, s = square(lib)
    s.backward(retain_graph=1)
    s.backward(retain_graph=0)
    return x.grad


def batched(lib: Any, make_grads: Call, make_outputs: Call | None = None, **options: Any) -> Any:
    x, y, s = square(lib)
    outputs = y if make_outputs is None else make_outputs([y, s])
    return lib.autograd.grad(outputs, x, make_grads(lib), is_grads_batched=True, **options)


def batch_of_gradients(lib: Any) -> Any:
    return batched(lib, lambda lib: lib.eye(2, dtype=lib.float64))


def batch_for_several_outputs(lib: Any) -> Any:
    return batched(
        lib, lambda lib: [lib.eye(2, dtype=lib.float64), ones(lib, 2)], lambda outputs: outputs
    )


def batches_of_different_lengths(lib: Any) -> Any:
    return batched(
        lib, lambda lib: [lib.eye(2, dtype=lib.float64), ones(lib, 3)], lambda outputs: outputs
    )


def batch_of_implicit_gradients(lib: Any) -> Any:
    return batched(lib, lambda lib: None, lambda outputs: outputs[1])


def empty_batch(lib: Any) -> Any:
    return batched(lib, lambda lib: ones(lib, 0, 2))


def batch_with_an_unused_input(lib: Any) -> Any:
    x, y, _ = square(lib)
    grads = lib.eye(2, dtype=lib.float64)
    inputs = [x, leaf(lib, 5.0)]
    return lib.autograd.grad(y, inputs, grads, is_grads_batched=True, allow_unused=True)


def batch_frees_the_graph(lib: Any) -> Any:
    x, y, _ = square(lib)
    grads = lib.eye(2, dtype=lib.float64)
    lib.autograd.grad(y, x, grads, is_grads_batched=True)
    return lib.autograd.grad(y, x, grads, is_grads_batched=True)


def batch_that_is_differentiable(lib: Any) -> Any:
    x, y, _ = square(lib)
    grads = lib.eye(2, dtype=lib.float64)
    (g,) = lib.autograd.grad(y, x, grads, is_grads_batched=True, create_graph=True)
    return lib.autograd.grad(g.sum(), x)


def both_names_of_the_gradients(lib: Any) -> Any:
    s = square(lib)[2]
    with pytest.warns(FutureWarning, match="`grad_variables` is deprecated"):
        return lib.autograd.backward(s, ones(lib), grad_variables=ones(lib))


def old_name_of_the_gradients(lib: Any) -> Any:
    x, _, s = square(lib)
    with pytest.warns(FutureWarning, match="`grad_variables` is deprecated"):
        lib.autograd.backward(s, grad_variables=ones(lib))
    return x.grad


def only_inputs_is_deprecated(lib: Any) -> Any:
    x, _, s = square(lib)
    with pytest.warns(FutureWarning, match="only_inputs argument is deprecated"):
        return lib.autograd.grad(s, x, only_inputs=False)


CALLS = [
    one_of_no_output,
    backward_of_nothing,
    superfluous_gradients_are_ignored,
    gradient_of_another_float_dtype,
    integer_gradient,
    constant_input,
    constant_input_of_backward,
    output_that_is_a_number,
    input_that_is_a_number,
    input_of_backward_that_is_a_string,
    unused_input_of_backward,
    unused_result,
    used_and_unused,
    materialized,
    materialized_with_graph,
    materialize_against_allow_unused,
    duplicated_inputs_of_backward,
    inputs_of_backward_that_are_results,
    inputs_as_a_dict,
    inputs_as_an_empty_dict,
    inputs_as_another_mapping,
    inputs_as_a_subclass_of_dict,
    inputs_as_an_iterator,
    inputs_of_backward_as_a_dict,
    inputs_of_backward_as_another_mapping,
    flags_may_be_integers,
    batch_of_gradients,
    batch_for_several_outputs,
    batches_of_different_lengths,
    batch_of_implicit_gradients,
    empty_batch,
    batch_with_an_unused_input,
    batch_frees_the_graph,
    batch_that_is_differentiable,
    both_names_of_the_gradients,
    old_name_of_the_gradients,
    only_inputs_is_deprecated,
]


@pytest.mark.parametrize("call", CALLS, ids=lambda call: call.__name__)
def test_a_call_does_what_it_does_in_pytorch(call: Call, torch_oracle: ModuleType) -> None:
    assert outcome(call, plugrad) == outcome(call, torch_oracle)


def test_a_batch_of_the_wrong_shape_is_refused() -> None:
    # PyTorch's own message gives a wrong shape here.
    x = leaf(plugrad)
    with pytest.raises(
        RuntimeError,
        match=r"mismatch was detected: grad_output\[0\] has a shape of plugrad.Size\(\[3\]\) and "
        r"output\[0\] has a shape of plugrad.Size\(\[2\]\). If you only want",
    ):
        plugrad.autograd.grad(x * 2, x, ones(plugrad, 2, 3), is_grads_batched=True)


def test_a_batch_needs_a_dimension() -> None:
    x = leaf(plugrad)
    with pytest.raises(IndexError, match="0-dim"):
        plugrad.autograd.grad(x * 2, x, plugrad.tensor(1.0), is_grads_batched=True)


def test_backward_with_create_graph_warns_of_the_reference_cycle() -> None:
    with pytest.warns(UserWarning, match="will create a reference cycle between the parameter"):
        leaf(plugrad).sum().backward(create_graph=True)
