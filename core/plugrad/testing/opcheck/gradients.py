"""Checks an operator's gradient: where it is registered, and its values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import plugrad
import plugrad.autograd.forward_ad as fwAD
from plugrad.dispatch import keys
from plugrad.dispatch.backends.active import find_backend
from plugrad.dispatch.keys import dispatch_key
from plugrad.testing.gradcheck import gradcheck, gradgradcheck
from plugrad.testing.opcheck.inputs import Call, OpCheckError, Skipped, mapped, outputs_of

_NO_GRADIENT = ("no autograd formula was registered", "autograd kernel was not registered")


def check_autograd_registration(call: Call) -> dict[str, str]:
    """OpCheckError if a kernel below autograd records a graph of its own."""
    if not call.requires_grad:
        return {}
    active = find_backend(call.tensors[0].device.type)
    autograd = dispatch_key("Autograd" + active.key_name)
    for key in (autograd, keys.AUTOGRAD_ALIAS, keys.COMPOSITE_IMPLICIT_AUTOGRAD):
        if call.op.kernel_for(key) is not None:
            return {}
    values = call.copies()
    below = keys.DENSE_BIT | (1 << (keys.BACKEND_SHIFT + active.number))
    given = [*mapped_ids(values)]
    for result in outputs_of(call.op.redispatch(below, *values)):
        is_tensor = isinstance(result, plugrad.Tensor)
        if is_tensor and result.requires_grad and id(result) not in given:
            raise OpCheckError(
                f"{call.op.qualified_name} has no kernel for an Autograd key, but its results "
                "require grad: a kernel for a backend records a graph, which is then lost or "
                "wrong. Register the gradient with register_autograd, or the kernel as "
                "CompositeImplicitAutograd if it is made of other operators."
            )
    return {}


def mapped_ids(values: tuple[Any, ...]) -> list[int]:
    found: list[int] = []
    mapped(lambda tensor: found.append(id(tensor)), values)
    return found


def _double(tensor: Any) -> Any:
    if tensor.is_complex():
        return tensor.to(plugrad.complex128)
    return tensor.double() if tensor.is_floating_point() else tensor


def check_gradients(call: Call) -> dict[str, str]:
    """OpCheckError if gradients differ from finite differences."""
    if not call.requires_grad:
        raise Skipped("no argument requires grad")
    if call.op.schema.mutates:
        raise Skipped("the operator writes to its arguments")
    if call.draws_random_numbers:
        raise Skipped("it draws random numbers")
    values = call.copies(_double)
    leaves: list[Any] = []
    mapped(lambda tensor: leaves.append(tensor) if tensor.requires_grad else None, values)
    places = {id(leaf): number for number, leaf in enumerate(leaves)}

    def function(*inputs: Any) -> Any:
        given = mapped(
            lambda tensor: inputs[places[id(tensor)]] if id(tensor) in places else tensor, values
        )
        results = [item for item in outputs_of(call.run(given)) if _is_differentiable(item)]
        return tuple(results)

    try:
        results = [item for item in function(*leaves) if item.requires_grad]
    except (RuntimeError, TypeError) as error:
        raise Skipped(f"it does not compute in double precision: {error}") from error
    if not results:
        raise Skipped("no result requires grad")
    second = _second_gradients(results, leaves)
    try:
        gradcheck(function, leaves)
    except Exception as error:
        raise OpCheckError(
            f"the gradient of {call.op.qualified_name} is not what finite differences give: "
            f"{error}\nFix the formula (register_autograd, or `derivatives`); if the operator is "
            "not smooth at these arguments, check it at others."
        ) from error
    found = {"forward": _check_tangents(call, function, leaves)}
    if second:
        return {**found, "second": f"SKIPPED: {second}"}
    try:
        gradgradcheck(function, leaves)
    except Exception as error:
        raise OpCheckError(
            f"the second gradient of {call.op.qualified_name} is not what finite differences of "
            f"the first give: {error}\nHave backward use differentiable operators on what ctx "
            "saved, or mark it with plugrad.autograd.function.once_differentiable."
        ) from error
    return {**found, "second": "SUCCESS"}


def _check_tangents(call: Call, function: Callable[..., Any], leaves: list[Any]) -> str:
    """OpCheckError if tangents differ from finite differences; returns the outcome."""
    with fwAD.dual_level():
        duals = [fwAD.make_dual(leaf, plugrad.ones_like(leaf)) for leaf in leaves]
        try:
            function(*duals)
        except NotImplementedError as error:
            if "Trying to use forward AD with" in str(error):
                return f"SKIPPED: {error}"
            raise
    try:
        gradcheck(function, leaves, check_forward_ad=True, check_backward_ad=False)
    except Exception as error:
        raise OpCheckError(
            f"the tangent of {call.op.qualified_name} in forward mode is not what finite "
            f"differences give: {error}\nFix the rule (`jvp` of register_autograd, or `forward`)."
        ) from error
    return "SUCCESS"


def _is_differentiable(item: Any) -> bool:
    return isinstance(item, plugrad.Tensor) and (item.is_floating_point() or item.is_complex())


def _second_gradients(results: list[Any], leaves: list[Any]) -> str:
    """Why there are no second gradients; empty if there are."""
    outputs = [plugrad.ones_like(item) for item in results]
    try:
        plugrad.autograd.grad(results, leaves, outputs, retain_graph=True, allow_unused=True)
    except RuntimeError as error:
        if any(text in str(error) for text in _NO_GRADIENT):
            raise Skipped("no gradient is registered") from error
        raise
    outputs = [item.requires_grad_() for item in outputs]
    try:
        first = plugrad.autograd.grad(
            results, leaves, outputs, create_graph=True, allow_unused=True
        )
    except RuntimeError as error:
        return f"backward cannot be recorded: {error}"
    gradients = [item for item in first if item is not None and item.requires_grad]
    if not gradients:
        return "backward is not recorded"
    try:
        # Towards all leaves: a node that raises may lead to none of the arguments.
        plugrad.autograd.backward([item.abs().sum() for item in gradients])
    except RuntimeError as error:
        return str(error)
    return ""
