"""Compares an operator's fake with the operator on real data."""

from __future__ import annotations

from typing import Any

import plugrad
from plugrad.device import Device, as_device
from plugrad.errors import OperatorNotFoundError
from plugrad.library.fakes import SizesContext, dynamic_sizes
from plugrad.testing.opcheck.inputs import Call, OpCheckError, mapped, outputs_of


def check_fake(call: Call) -> dict[str, str]:
    """OpCheckError if results on the device "meta" look otherwise."""
    with plugrad.no_grad():
        real = outputs_of(call.run(call.copies()))
        with dynamic_sizes() as context:
            fake = outputs_of(_run_on_meta(call))
    if len(real) != len(fake):
        raise OpCheckError(
            f"{call.op.qualified_name} returned {len(real)} results, its fake {len(fake)}. The "
            "fake must return what the operator does, tensor by tensor."
        )
    for number, (wanted, found) in enumerate(zip(real, fake, strict=True)):
        if isinstance(wanted, plugrad.Tensor):
            _compare(call, context, number, wanted, found)
    return {}


def _run_on_meta(call: Call) -> Any:
    try:
        return call.run(_on_meta(call))
    except OperatorNotFoundError:
        raise
    except Exception as error:
        raise OpCheckError(
            f"{call.op.qualified_name} raised {type(error).__name__} on tensors without data: "
            f"{error}\nWhat runs there, its fake or the operators it is made of, can use shapes "
            "and dtypes but no values. If it is composite and takes values out of tensors, with "
            "item(), tolist() or numpy(), make it a custom_op."
        ) from error


def _on_meta(call: Call) -> tuple[Any, ...]:
    meta = as_device("meta")
    values = (meta if isinstance(value, Device) else value for value in call.copies())
    return tuple(mapped(lambda tensor: tensor.detach().to(meta), value) for value in values)


def _compare(call: Call, context: SizesContext, number: int, real: Any, fake: Any) -> None:
    where = f"result {number} of {call.op.qualified_name}"
    if not isinstance(fake, plugrad.Tensor) or fake.device.type != "meta":
        place = type(fake).__name__ if not isinstance(fake, plugrad.Tensor) else fake.device
        raise OpCheckError(
            f"the fake of {call.op.qualified_name} returned {place} as {where}, expected a tensor "
            "on the device 'meta'. Make it from an argument: x.new_empty(...)."
        )
    if fake.dtype is not real.dtype:
        raise OpCheckError(
            f"{where} has the dtype {real.dtype}, but its fake has {fake.dtype}. Make the fake "
            f"with dtype={real.dtype}, or have the kernel return {fake.dtype}."
        )
    dynamic = {size: (smallest, largest) for size, smallest, largest in context.sizes}
    same = len(real.shape) == len(fake.shape)
    for wanted, found in zip(real.shape, fake.shape, strict=False):
        if found in dynamic:
            smallest, largest = dynamic[found]
            if wanted < smallest or (largest is not None and wanted > largest):
                raise OpCheckError(
                    f"{where} has a size of {wanted}, but its fake declared "
                    f"new_dynamic_size(min={smallest}, max={largest}). Pass the true bounds."
                )
        elif wanted != found:
            same = False
    if not same:
        raise OpCheckError(
            f"{where} has the shape {tuple(real.shape)}, but its fake has {tuple(fake.shape)}. One "
            "of the two is wrong; for a size that depends on data use "
            "get_ctx().new_dynamic_size()."
        )
