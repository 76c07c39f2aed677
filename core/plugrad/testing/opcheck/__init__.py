"""`opcheck`: checks that an operator does what its declaration says."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from plugrad.dispatch.operator import Operator
from plugrad.library import CustomOpDef
from plugrad.ops.arguments import checked_arguments
from plugrad.ops.namespace import OpOverload, OpOverloadPacket, overload_of
from plugrad.testing.opcheck.backends import check_backends
from plugrad.testing.opcheck.capture import check_capture
from plugrad.testing.opcheck.fakes import check_fake
from plugrad.testing.opcheck.gradients import check_autograd_registration, check_gradients
from plugrad.testing.opcheck.inputs import Call, OpCheckError, Skipped
from plugrad.testing.opcheck.schema import check_schema
from plugrad.testing.opcheck.vmap import check_vmap

__all__ = ["OpCheckError", "opcheck"]

_CHECKS: Final[dict[str, Callable[[Call], dict[str, str]]]] = {
    "test_schema": check_schema,
    "test_autograd_registration": check_autograd_registration,
    "test_faketensor": check_fake,
    "test_gradients": check_gradients,
    "test_capture": check_capture,
    "test_backends": check_backends,
    "test_vmap": check_vmap,
}


def opcheck(
    op: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any] | None = None,
    *,
    test_utils: str | Sequence[str] = tuple(_CHECKS),
    raise_exception: bool = True,
    atol: float | None = None,
    rtol: float | None = None,
) -> dict[str, str]:
    """Check an operator on some arguments: schema, gradient, fake, kernels and rules.

    Call it with several sets of typical arguments; with tensors that require grad if the operator
    has a gradient. The arguments are not written to.

    Args:
        op: what `custom_op` returned, or an operator of `plugrad.ops`.
        args, kwargs: what to call it with.
        test_utils: which checks to do:

            - "test_schema": the schema says correctly which arguments are written to and which
              results share memory with arguments;
            - "test_autograd_registration": the gradient is registered where autograd looks;
            - "test_faketensor": on tensors without data the results have the right shape and dtype;
            - "test_gradients": gradients agree with finite differences in double precision, and
              second ones, if backward is differentiable, and tangents, if there is a forward rule;
            - "test_capture": the calls that the operator makes, recorded and run again on other
              values, give what the operator gives for these;
            - "test_backends": every installed backend that computes it gives what the CPU gives;
            - "test_vmap": the rule for batches agrees with a loop.
        raise_exception: raise at the first failure; False puts its message into the result.
        atol, rtol: tolerances for values; by default they depend on the dtype.

    Returns:
        "SUCCESS", "SKIPPED: why" or what failed, by check; parts of a check, such as
        ``"test_backends[jax]"``, have entries of their own.

    Raises:
        OpCheckError: a check failed; the message says what was declared, what happened, and how to
            fix it.
        ValueError: `op` is not an operator, or a check has no such name.
        RuntimeError: the arguments do not fit the schema.

    >>> import plugrad
    >>> @plugrad.library.custom_op("demo_opcheck::double", mutates_args=())
    ... def double(x: plugrad.Tensor) -> plugrad.Tensor:
    ...     return x * 2
    >>> double.register_autograd(lambda ctx, grad: grad * 2)
    >>> @double.register_fake
    ... def _(x):
    ...     return plugrad.empty_like(x)
    >>> result = plugrad.library.opcheck(double, (plugrad.ones(3, requires_grad=True),))
    >>> result["test_schema"], result["test_gradients"], result["test_vmap"]
    ('SUCCESS', 'SUCCESS', 'SKIPPED: no rule is registered with register_vmap')
    """
    if (rtol is None) != (atol is None):
        raise ValueError("opcheck(op, ...): if you specify one of rtol/atol, you must specify both")
    overload = _overload_of(op)
    names = tuple(_CHECKS) if test_utils == "ALL" else test_utils
    chosen = (names,) if isinstance(names, str) else tuple(names)
    if not set(chosen) <= set(_CHECKS):
        raise ValueError(
            f"opcheck(op, ..., test_utils={test_utils}), expected test_utils to be subset of "
            f"{tuple(_CHECKS)} but it was not"
        )
    values = checked_arguments(overload.op, args, kwargs or {})
    call = Call(overload, values, atol, rtol)
    results: dict[str, str] = {}
    for name in chosen:
        try:
            parts = _CHECKS[name](call)
        except Skipped as skipped:
            results[name] = f"SKIPPED: {skipped}"
        except Exception as error:
            if raise_exception:
                raise OpCheckError(f"opcheck(op, ...): {name} failed with {error}") from error
            results[name] = str(error)
        else:
            results[name] = "SUCCESS"
            results.update({f"{name}[{part}]": text for part, text in parts.items()})
    return results


def _overload_of(op: Any) -> OpOverload:
    if isinstance(op, CustomOpDef):
        return op._opoverload
    if isinstance(op, OpOverloadPacket):
        names = op.overloads()
        if len(names) != 1:
            raise RuntimeError(
                f"opcheck can only test operators without overloads. Got the following overloads "
                f"for {op._qualified_op_name}: {names}"
            )
        found: OpOverload = getattr(op, names[0])
        return found
    if isinstance(op, Operator):
        return overload_of(op)
    if not isinstance(op, OpOverload):
        raise ValueError(
            "opcheck(op, ...): op must be instance of OpOverload, e.g. "
            f"plugrad.ops.plugrad.sin.default, got {type(op)}"
        )
    return op
