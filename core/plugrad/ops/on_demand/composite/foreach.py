"""Operators of whole lists of tensors.

Gradients, tangents and rules of `vmap` come from operators on single tensors. In-place operators
write to each tensor of the list, and return the list. If none of these is needed and all tensors
are alike, a backend takes the whole list in one call: see `lists.fused`.
"""

from __future__ import annotations

# Interpreted: loaded on demand.
from collections.abc import Callable, Sequence
from typing import Any, Final

from plugrad._generated import functions as F
from plugrad.dtype import DType
from plugrad.graph.missing_gradient import require_grad_together
from plugrad.ops.on_demand.composite.lists.fused import (
    fused,
)
from plugrad.ops.on_demand.composite.lists.fused import (
    fused_lists as fused_lists,
)
from plugrad.ops.on_demand.composite.lists.fused import (
    update_lists as update_lists,
)
from plugrad.tensor.base import TensorBase, sizes_of

Tensors = Sequence[Any]
Function = Callable[..., Any]


def _check_lists(self: Tensors, *others: Tensors) -> None:
    """RuntimeError unless there are tensors, and as many in each list."""
    if not self:
        raise RuntimeError("Tensor list must have at least one tensor.")
    for other in others:
        if len(other) != len(self):
            raise RuntimeError(
                "Tensor lists must have the same number of tensors, got "
                f"{len(self)} and {len(other)}"
            )


def _check_numbers(self: Tensors, numbers: Sequence[Any]) -> None:
    if not self:
        raise RuntimeError("Tensor list must have at least one tensor.")
    if len(numbers) != len(self):
        raise RuntimeError("Tensor list must have same number of elements as scalar list.")


def _check_single(tensor: TensorBase) -> None:
    if tensor.ndim != 0 or tensor.numel() != 1:
        raise RuntimeError(
            f"scalar tensor expected to be 0 dim but it has {tensor.ndim} dimensions and "
            f"{tensor.numel()} elements."
        )


def _numbers_of(scalars: Any, count: int) -> list[Any]:
    """The numbers in a vector, one for each tensor of a list."""
    if scalars.ndim != 1:
        raise RuntimeError(
            f"Expected packed scalar Tensor to be of dimension 1. Got {scalars.ndim} instead."
        )
    if sizes_of(scalars)[0] != count:
        raise RuntimeError(
            f"Expected length of scalars to match input of length {count} but got "
            f"{sizes_of(scalars)[0]} instead."
        )
    found: list[Any] = scalars.tolist()
    return found


def _function(name: str) -> Function:
    """A public function, or a method in place, by name; families on demand are loaded by that."""
    if name.endswith("_"):

        def method(tensor: Any, *args: Any, **options: Any) -> Any:
            return getattr(tensor, name)(*args, **options)

        return method

    def function(*args: Any, **options: Any) -> Any:
        return getattr(F, name)(*args, **options)

    return function


def _recorded_together(each: Function) -> Function:
    """All results require grad if any tensor of the lists does."""

    def together(*args: Any, **options: Any) -> Any:
        results = each(*args, **options)
        require_grad_together(results, args)
        return results

    return together


def _of_one_node(factory: Callable[[str], Function]) -> Callable[[str], Function]:
    """A factory of operators that record all tensors in one node; in-place ones record each tensor
    separately."""

    def make(name: str) -> Function:
        each = factory(name)
        return each if name.endswith("_") else _recorded_together(each)

    return make


@_of_one_node
def _unary(name: str) -> Function:
    function = _function(name)

    def each(self: Tensors) -> Any:
        _check_lists(self)
        found = fused(name, "", (self,))
        return [function(tensor) for tensor in self] if found is None else found

    return each


@_of_one_node
def _with_number(name: str) -> Function:
    function = _function(name)

    def each(self: Tensors, scalar: Any) -> Any:
        _check_lists(self)
        found = fused(name, "Scalar", (self,), [scalar] * len(self))
        return [function(tensor, scalar) for tensor in self] if found is None else found

    return each


@_of_one_node
def _with_numbers(name: str) -> Function:
    function = _function(name)

    def each(self: Tensors, scalars: Sequence[Any]) -> Any:
        _check_numbers(self, scalars)
        found = fused(name, "Scalar", (self,), list(scalars))
        if found is not None:
            return found
        return [function(tensor, scalar) for tensor, scalar in zip(self, scalars, strict=True)]

    return each


@_of_one_node
def _with_list(name: str) -> Function:
    function = _function(name)

    def each(self: Tensors, other: Tensors) -> Any:
        _check_lists(self, other)
        found = fused(name, "Tensor", (self, other))
        if found is not None:
            return found
        return [function(tensor, item) for tensor, item in zip(self, other, strict=True)]

    return each


@_of_one_node
def _with_list_and_factor(name: str) -> Function:
    function = _function(name)

    def each(self: Tensors, other: Tensors, alpha: Any) -> Any:
        _check_lists(self, other)
        found = fused(name, "Tensor", (self, other), [alpha] * len(self))
        if found is not None:
            return found
        pairs = zip(self, other, strict=True)
        return [function(tensor, item, alpha=alpha) for tensor, item in pairs]

    return each


@_of_one_node
def _with_tensor(name: str) -> Function:
    function = _function(name)

    def each(self: Tensors, other: Any, **options: Any) -> list[Any]:
        _check_lists(self)
        _check_single(other)
        return [function(tensor, other, **options) for tensor in self]

    return each


def _with_tensor_and_factor(name: str) -> Function:
    each = _with_tensor(name)
    return lambda self, other, alpha: each(self, other, alpha=alpha)


@_of_one_node
def _lerp_list(name: str) -> Function:
    function = _function(name)

    def each(self: Tensors, tensors1: Tensors, weights: Tensors) -> list[Any]:
        _check_lists(self, tensors1, weights)
        return [function(*items) for items in zip(self, tensors1, weights, strict=True)]

    return each


@_of_one_node
def _lerp_number(name: str) -> Function:
    function = _function(name)

    def each(self: Tensors, tensors1: Tensors, weight: Any) -> Any:
        _check_lists(self, tensors1)
        found = fused(name, "", (self, tensors1), [weight] * len(self))
        if found is not None:
            return found
        return [function(*items, weight) for items in zip(self, tensors1, strict=True)]

    return each


@_of_one_node
def _lerp_numbers(name: str) -> Function:
    function = _function(name)

    def each(self: Tensors, tensors1: Tensors, weight: Sequence[Any]) -> Any:
        _check_lists(self, tensors1)
        _check_numbers(self, weight)
        found = fused(name, "", (self, tensors1), list(weight))
        if found is not None:
            return found
        return [function(*items) for items in zip(self, tensors1, weight, strict=True)]

    return each


@_of_one_node
def _product_number(name: str) -> Function:
    function = _function(name)

    def each(self: Tensors, tensor1: Tensors, tensor2: Tensors, value: Any) -> Any:
        _check_lists(self, tensor1, tensor2)
        found = fused(name, "", (self, tensor1, tensor2), [value] * len(self))
        if found is not None:
            return found
        return [function(*items, value=value) for items in zip(self, tensor1, tensor2, strict=True)]

    return each


@_of_one_node
def _product_numbers(name: str) -> Function:
    function = _function(name)

    def each(self: Tensors, tensor1: Tensors, tensor2: Tensors, scalars: Any) -> Any:
        _check_lists(self, tensor1, tensor2)
        _check_numbers(self, scalars)
        found = fused(name, "", (self, tensor1, tensor2), list(scalars))
        if found is not None:
            return found
        return [
            function(a, b, c, value=value)
            for a, b, c, value in zip(self, tensor1, tensor2, scalars, strict=True)
        ]

    return each


def _product_tensor(name: str) -> Function:
    each = _product_numbers(name)

    def with_vector(self: Tensors, tensor1: Tensors, tensor2: Tensors, scalars: Any) -> Any:
        _check_lists(self, tensor1, tensor2)
        return each(self, tensor1, tensor2, _numbers_of(scalars, len(self)))

    return with_vector


@_recorded_together
def pow_of_number(self: Any, exponent: Tensors) -> list[Any]:
    _check_lists(exponent)
    return [F.pow(self, item) for item in exponent]


@_recorded_together
def norm(self: Tensors, ord: Any, dtype: DType | None) -> list[Any]:
    _check_lists(self)
    return [F.linalg_vector_norm(tensor, ord, dtype=dtype) for tensor in self]


@_recorded_together
def powsum(self: Tensors, ord: Any, dtype: DType | None) -> list[Any]:
    _check_lists(self)
    return [F.sum(F.pow(F.abs(tensor), ord), dtype=dtype) for tensor in self]


@_recorded_together
def max_each(self: Tensors) -> list[Any]:
    _check_lists(self)
    for tensor in self:
        if tensor.numel() == 0:
            raise RuntimeError(
                "_foreach_max cannot compute the maximum of an empty tensor; max over zero "
                "elements is undefined."
            )
    return [F.max(tensor) for tensor in self]


@_recorded_together
def mm_each(self: Tensors, mat2: Tensors) -> list[Any]:
    _check_lists(self, mat2)
    return [F.mm(a, b) for a, b in zip(self, mat2, strict=True)]


@_recorded_together
def clone_each(self: Tensors, memory_format: Any) -> list[Any]:
    _check_lists(self)
    return [F.clone(tensor, memory_format=memory_format) for tensor in self]


def copy_each_(self: Tensors, src: Tensors, non_blocking: bool) -> list[Any]:
    _check_lists(self, src)
    return [a.copy_(b, non_blocking) for a, b in zip(self, src, strict=True)]


abs_each: Final = _unary("abs")
abs_each_: Final = _unary("abs_")
acos_each: Final = _unary("acos")
acos_each_: Final = _unary("acos_")
asin_each: Final = _unary("asin")
asin_each_: Final = _unary("asin_")
atan_each: Final = _unary("atan")
atan_each_: Final = _unary("atan_")
ceil_each: Final = _unary("ceil")
ceil_each_: Final = _unary("ceil_")
cos_each: Final = _unary("cos")
cos_each_: Final = _unary("cos_")
cosh_each: Final = _unary("cosh")
cosh_each_: Final = _unary("cosh_")
erf_each: Final = _unary("erf")
erf_each_: Final = _unary("erf_")
erfc_each: Final = _unary("erfc")
erfc_each_: Final = _unary("erfc_")
exp_each: Final = _unary("exp")
exp_each_: Final = _unary("exp_")
expm1_each: Final = _unary("expm1")
expm1_each_: Final = _unary("expm1_")
floor_each: Final = _unary("floor")
floor_each_: Final = _unary("floor_")
frac_each: Final = _unary("frac")
frac_each_: Final = _unary("frac_")
lgamma_each: Final = _unary("lgamma")
lgamma_each_: Final = _unary("lgamma_")
log_each: Final = _unary("log")
log_each_: Final = _unary("log_")
log10_each: Final = _unary("log10")
log10_each_: Final = _unary("log10_")
log1p_each: Final = _unary("log1p")
log1p_each_: Final = _unary("log1p_")
log2_each: Final = _unary("log2")
log2_each_: Final = _unary("log2_")
neg_each: Final = _unary("neg")
neg_each_: Final = _unary("neg_")
reciprocal_each: Final = _unary("reciprocal")
reciprocal_each_: Final = _unary("reciprocal_")
round_each: Final = _unary("round")
round_each_: Final = _unary("round_")
rsqrt_each: Final = _unary("rsqrt")
rsqrt_each_: Final = _unary("rsqrt_")
sigmoid_each: Final = _unary("sigmoid")
sigmoid_each_: Final = _unary("sigmoid_")
sign_each: Final = _unary("sign")
sign_each_: Final = _unary("sign_")
sin_each: Final = _unary("sin")
sin_each_: Final = _unary("sin_")
sinh_each: Final = _unary("sinh")
sinh_each_: Final = _unary("sinh_")
sqrt_each: Final = _unary("sqrt")
sqrt_each_: Final = _unary("sqrt_")
tan_each: Final = _unary("tan")
tan_each_: Final = _unary("tan_")
tanh_each: Final = _unary("tanh")
tanh_each_: Final = _unary("tanh_")
trunc_each: Final = _unary("trunc")
trunc_each_: Final = _unary("trunc_")
zero_each_: Final = _unary("zero_")
add_number: Final = _with_number("add")
add_number_: Final = _with_number("add_")
add_list: Final = _with_list_and_factor("add")
add_list_: Final = _with_list_and_factor("add_")
add_numbers: Final = _with_numbers("add")
add_numbers_: Final = _with_numbers("add_")
add_tensor: Final = _with_tensor_and_factor("add")
add_tensor_: Final = _with_tensor_and_factor("add_")
sub_number: Final = _with_number("sub")
sub_number_: Final = _with_number("sub_")
sub_list: Final = _with_list_and_factor("sub")
sub_list_: Final = _with_list_and_factor("sub_")
sub_numbers: Final = _with_numbers("sub")
sub_numbers_: Final = _with_numbers("sub_")
mul_number: Final = _with_number("mul")
mul_number_: Final = _with_number("mul_")
mul_list: Final = _with_list("mul")
mul_list_: Final = _with_list("mul_")
mul_numbers: Final = _with_numbers("mul")
mul_numbers_: Final = _with_numbers("mul_")
mul_tensor: Final = _with_tensor("mul")
mul_tensor_: Final = _with_tensor("mul_")
div_number: Final = _with_number("div")
div_number_: Final = _with_number("div_")
div_list: Final = _with_list("div")
div_list_: Final = _with_list("div_")
div_numbers: Final = _with_numbers("div")
div_numbers_: Final = _with_numbers("div_")
div_tensor: Final = _with_tensor("div")
div_tensor_: Final = _with_tensor("div_")
clamp_max_number: Final = _with_number("clamp_max")
clamp_max_number_: Final = _with_number("clamp_max_")
clamp_max_list: Final = _with_list("clamp_max")
clamp_max_list_: Final = _with_list("clamp_max_")
clamp_max_numbers: Final = _with_numbers("clamp_max")
clamp_max_numbers_: Final = _with_numbers("clamp_max_")
clamp_min_number: Final = _with_number("clamp_min")
clamp_min_number_: Final = _with_number("clamp_min_")
clamp_min_list: Final = _with_list("clamp_min")
clamp_min_list_: Final = _with_list("clamp_min_")
clamp_min_numbers: Final = _with_numbers("clamp_min")
clamp_min_numbers_: Final = _with_numbers("clamp_min_")
maximum_number: Final = _with_number("clamp_min")
maximum_number_: Final = _with_number("clamp_min_")
maximum_list: Final = _with_list("maximum")
maximum_list_: Final = _with_list("clamp_min_")
maximum_numbers: Final = _with_numbers("clamp_min")
maximum_numbers_: Final = _with_numbers("clamp_min_")
minimum_number: Final = _with_number("clamp_max")
minimum_number_: Final = _with_number("clamp_max_")
minimum_list: Final = _with_list("minimum")
minimum_list_: Final = _with_list("clamp_max_")
minimum_numbers: Final = _with_numbers("clamp_max")
minimum_numbers_: Final = _with_numbers("clamp_max_")
pow_number: Final = _with_number("pow")
pow_number_: Final = _with_number("pow_")
pow_list: Final = _with_list("pow")
pow_list_: Final = _with_list("pow_")
pow_numbers: Final = _with_numbers("pow")
pow_numbers_: Final = _with_numbers("pow_")
lerp_list: Final = _lerp_list("lerp")
lerp_list_: Final = _lerp_list("lerp_")
lerp_number: Final = _lerp_number("lerp")
lerp_number_: Final = _lerp_number("lerp_")
lerp_numbers: Final = _lerp_numbers("lerp")
lerp_numbers_: Final = _lerp_numbers("lerp_")
addcmul_number: Final = _product_number("addcmul")
addcmul_number_: Final = _product_number("addcmul_")
addcmul_numbers: Final = _product_numbers("addcmul")
addcmul_numbers_: Final = _product_numbers("addcmul_")
addcmul_tensor: Final = _product_tensor("addcmul")
addcmul_tensor_: Final = _product_tensor("addcmul_")
addcdiv_number: Final = _product_number("addcdiv")
addcdiv_number_: Final = _product_number("addcdiv_")
addcdiv_numbers: Final = _product_numbers("addcdiv")
addcdiv_numbers_: Final = _product_numbers("addcdiv_")
addcdiv_tensor: Final = _product_tensor("addcdiv")
addcdiv_tensor_: Final = _product_tensor("addcdiv_")
