"""Misuse raises PyTorch's exceptions with PyTorch's words."""

from __future__ import annotations

import re
from typing import Any

import pytest

import plugrad
from tests.core.autograd.error_cases import CASES

try:
    import torch
except ImportError:
    torch = None  # type: ignore[assignment]  # the oracle is optional

FREED = (
    "Trying to backward through the graph a second time (or directly access saved tensors "
    "after they have already been freed). Saved intermediate values of the graph are freed "
    "when you call .backward() or autograd.grad(). Specify retain_graph=True if you need to "
    "backward through the graph a second time or if you need to access saved tensors after "
    "calling backward."
)
MODIFIED = (
    "one of the variables needed for gradient computation has been modified by an inplace "
    "operation: "
)

# The beginning of each message as PyTorch 2.13 words it; the oracle test below keeps it true.
EXPECTED: dict[str, tuple[type[Exception], str]] = {
    "backward_of_a_vector_without_gradient": (
        RuntimeError,
        "grad can be implicitly created only for scalar outputs",
    ),
    "grad_of_a_vector_without_gradient": (
        RuntimeError,
        "grad can be implicitly created only for scalar outputs",
    ),
    "backward_of_a_complex_scalar": (
        RuntimeError,
        "grad can be implicitly created only for real scalar outputs but got torch.complex64",
    ),
    "backward_of_a_constant": (
        RuntimeError,
        "element 0 of tensors does not require grad and does not have a grad_fn",
    ),
    "second_of_two_tensors_is_a_constant": (
        RuntimeError,
        "element 1 of tensors does not require grad and does not have a grad_fn",
    ),
    "backward_under_no_grad_result": (
        RuntimeError,
        "element 0 of tensors does not require grad and does not have a grad_fn",
    ),
    "gradient_of_wrong_shape": (
        RuntimeError,
        "Mismatch in shape: grad_output[0] has a shape of torch.Size([3]) and output[0] "
        "has a shape of torch.Size([2]).",
    ),
    "complex_gradient_for_a_real_tensor": (
        RuntimeError,
        "For complex Tensors, both grad_output and output are required to have the same "
        "dtype. Mismatch in dtype: grad_output[0] has a dtype of torch.complex64 and "
        "output[0] has a dtype of torch.float64.",
    ),
    "gradient_that_is_a_number": (
        TypeError,
        "gradients can be either Tensors or None, but got float",
    ),
    "fewer_gradients_than_tensors": (RuntimeError, "got 2 tensors and 1 gradients"),
    "backward_twice": (RuntimeError, FREED),
    "grad_twice": (RuntimeError, FREED),
    "backward_with_empty_inputs": (
        RuntimeError,
        "`inputs` argument to `backward()` cannot be empty.",
    ),
    "grad_with_empty_inputs": (RuntimeError, "`inputs` argument to `grad()` cannot be empty."),
    "unused_input": (
        RuntimeError,
        "The differentiated Tensor at index 0 appears to not have been used in the graph."
        " Set allow_unused=True if this is the desired behavior.",
    ),
    "input_without_grad": (
        RuntimeError,
        "One of the differentiated Tensors does not require grad",
    ),
    "materialize_contradicts_allow_unused": (
        ValueError,
        "Expected allow_unused to be True or not passed when materialize_grads=True, but "
        "got: allow_unused=False.",
    ),
    "inplace_on_a_leaf": (
        RuntimeError,
        "a leaf Variable that requires grad is being used in an in-place operation.",
    ),
    "inplace_on_a_view_of_a_leaf": (
        RuntimeError,
        "a view of a leaf Variable that requires grad is being used in an in-place operation.",
    ),
    "inplace_on_one_of_several_views": (
        RuntimeError,
        "Output 0 of Unbind is a view and is being modified inplace. This view is the "
        "output of a function that returns multiple views. Such functions do not allow "
        "the output views to be modified inplace. You should replace the inplace "
        "operation by an out-of-place one.",
    ),
    "saved_input_modified": (
        RuntimeError,
        MODIFIED + "[torch.DoubleTensor [2]], which is output 0 of Add, "
        "is at version 1; expected version 0 instead.",
    ),
    "saved_output_modified": (
        RuntimeError,
        MODIFIED + "[torch.DoubleTensor [2]], which is output 0 of Exp, "
        "is at version 1; expected version 0 instead.",
    ),
    "saved_leaf_modified": (
        RuntimeError,
        MODIFIED + "[torch.DoubleTensor [2]] is at version 1; expected version 0 instead.",
    ),
    "modified_through_a_view": (
        RuntimeError,
        MODIFIED + "[torch.DoubleTensor [2]], which is output 0 of Exp, "
        "is at version 1; expected version 0 instead.",
    ),
    "integers_require_grad": (
        RuntimeError,
        "Only Tensors of floating point and complex dtype can require gradients",
    ),
    "integers_asked_to_require_grad": (
        RuntimeError,
        "only Tensors of floating point and complex dtype can require gradients",
    ),
    "requires_grad_of_a_result": (
        RuntimeError,
        "you can only change requires_grad flags of leaf variables. If you want to use a "
        "computed variable in a subgraph that doesn't require differentiation use "
        "var_no_grad = var.detach().",
    ),
    "requires_grad_false_method_on_a_result": (
        RuntimeError,
        "you can only change requires_grad flags of leaf variables. If you want to use a "
        "computed variable in a subgraph that doesn't require differentiation use "
        "var_no_grad = var.detach().",
    ),
    "retain_grad_of_a_constant": (
        RuntimeError,
        "can't retain_grad on Tensor that has requires_grad=False",
    ),
    "hook_on_a_constant": (
        RuntimeError,
        "cannot register a hook on a tensor that doesn't require gradient",
    ),
    "grad_of_wrong_shape_assigned": (
        RuntimeError,
        "attempting to assign a gradient of size '[3]' to a tensor of size '[2]'. Please "
        "ensure that the gradient and the tensor are the same size",
    ),
    "grad_of_wrong_dtype_assigned": (
        RuntimeError,
        "attempting to assign a gradient with dtype",
    ),
    "grad_that_is_no_tensor_assigned": (
        TypeError,
        "assigned grad expected to be a Tensor or None but got grad of type float",
    ),
    "grad_that_is_the_tensor_itself": (RuntimeError, "can't assign Variable as its own grad"),
    "numpy_of_what_requires_grad": (
        RuntimeError,
        "Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.",
    ),
    "deepcopy_of_a_result": (
        RuntimeError,
        "Only Tensors created explicitly by the user (graph leaves) support the deepcopy "
        "protocol at the moment.",
    ),
    "hook_returns_wrong_shape": (RuntimeError, "hook '<lambda>' has changed the size of value"),
    "hook_returns_no_tensor": (TypeError, "expected Variable, but hook returned 'int'"),
    "function_returns_too_many_gradients": (
        RuntimeError,
        "function FBackward returned an incorrect number of gradients (expected 1, got 2)",
    ),
    "function_returns_too_few_gradients": (
        RuntimeError,
        "function FBackward returned an incorrect number of gradients (expected 2, got 1)",
    ),
    "function_returns_gradient_of_wrong_shape": (
        RuntimeError,
        "Function FBackward returned an invalid gradient at index 0 - got [3] but "
        "expected shape compatible with [2]",
    ),
    "function_returns_gradient_that_is_no_tensor": (
        RuntimeError,
        "expected Variable or None (got float)",
    ),
    "function_gives_gradient_to_a_number": (
        RuntimeError,
        "function FBackward returned a gradient different than None at position 2, but "
        "the corresponding forward input was not a Variable",
    ),
    "function_without_backward": (
        NotImplementedError,
        "You must implement either the backward or vjp method for your custom "
        "autograd.Function to use it with backward mode AD.",
    ),
    "function_without_forward": (
        NotImplementedError,
        "You must implement the forward function for custom autograd.Function.",
    ),
    "function_saves_a_number": (
        TypeError,
        "save_for_backward can only save variables, but argument 0 is of type int",
    ),
    "function_marks_a_leaf_dirty": (
        RuntimeError,
        "a leaf Variable that requires grad has been used in an in-place operation.",
    ),
    "function_backward_after_release": (RuntimeError, FREED),
    "function_raises_in_backward": (KeyError, "from backward"),
    "bool_of_a_vector": (
        RuntimeError,
        "Boolean value of Tensor with more than one value is ambiguous",
    ),
    "item_of_a_vector": (
        RuntimeError,
        "a Tensor with 2 elements cannot be converted to Scalar",
    ),
}


def _comparable(text: str) -> str:
    """The text without the library's name and the number in a node's name."""
    return re.sub(r"Backward\d\b", "", text.replace("plugrad", "torch"))


def _check(name: str, library: Any) -> None:
    exception, text = EXPECTED[name]
    with pytest.raises(exception) as caught:
        CASES[name](library)
    assert type(caught.value) is exception
    assert _comparable(str(caught.value.args[0])).startswith(text)


def test_every_case_has_its_message() -> None:
    assert EXPECTED.keys() == CASES.keys()


@pytest.mark.parametrize("name", CASES)
def test_plugrad_raises(name: str) -> None:
    _check(name, plugrad)


@pytest.mark.skipif(torch is None, reason="PyTorch is not installed: make test ORACLE=torch")
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", CASES)
def test_the_table_is_true_of_torch(name: str) -> None:
    _check(name, torch)
