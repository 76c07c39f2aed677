"""`backward` and `grad`: the public functions, with PyTorch's checks, above the engine."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, overload

from plugrad._generated import functions as F
from plugrad.autograd.gradients import batch_size_of, make_grads
from plugrad.autograd.graph import GradientEdge
from plugrad.autograd.imperative_engine import DEFAULT_ENGINE, run_backward
from plugrad.dispatch.caller import warn_at_caller
from plugrad.levels import map_flat
from plugrad.tensor.base import TensorBase, tensor_class
from plugrad.tensor.calls.arguments import raise_argument_error
from plugrad.tensor.calls.overridable import OVERRIDES, PROCEED, override_call
from plugrad.tensor.levels import in_transform

if TYPE_CHECKING:
    from plugrad import Tensor

_Key = TypeVar("_Key")


@overload
def backward(
    tensors: Tensor | GradientEdge | Sequence[Tensor | GradientEdge],
    grad_tensors: Tensor | Sequence[Tensor | None] | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    grad_variables: Tensor | Sequence[Tensor | None] | None = None,
    inputs: Tensor | GradientEdge | Sequence[Tensor | GradientEdge] | None = None,
) -> None: ...
@overload
def backward(
    tensors: Tensor | GradientEdge | Sequence[Tensor | GradientEdge],
    grad_tensors: Tensor | Sequence[Tensor | None] | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    grad_variables: Tensor | Sequence[Tensor | None] | None = None,
    inputs: Mapping[Any, Tensor | GradientEdge] | None = None,
) -> None: ...
def backward(
    tensors: Any,
    grad_tensors: Any = None,
    retain_graph: Any = None,
    create_graph: Any = False,
    grad_variables: Any = None,
    inputs: Any = None,
) -> None:
    """Accumulate the gradients of `tensors` with respect to the graph's leaves into `.grad`.

    Args:
        tensors: a tensor or `GradientEdge`, or a sequence of them; the tensors to
            differentiate.
        grad_tensors: the vectors of the vector-Jacobian product, one per tensor and of its shape;
            None where the tensor has one element.
        retain_graph: keep the saved tensors, so that the graph can run again; default
            `create_graph`.
        create_graph: record the gradients' computation, for higher derivatives.
        inputs: accumulate only into these tensors, given as one, as a sequence or as a dict's
            values; default all leaves.

    Raises:
        RuntimeError: a tensor needs no grad, has more than one element and no `grad_tensors`
            entry, a shape does not fit, `inputs` is empty, or the graph was freed already.

    >>> import plugrad
    >>> x = plugrad.tensor([1., 2.], requires_grad=True)
    >>> plugrad.autograd.backward((x * x).sum())
    >>> x.grad
    tensor([2., 4.])
    """
    if OVERRIDES.active:
        given: dict[str, Any] = {
            "grad_tensors": grad_tensors,
            "retain_graph": retain_graph,
            "create_graph": create_graph,
            "inputs": inputs,
        }
        if override_call(backward, (tensors,), (tensors,), given) is not PROCEED:
            return
    if grad_variables is not None:
        warn_at_caller("`grad_variables` is deprecated. Use `grad_tensors` instead.", FutureWarning)
        if grad_tensors is not None:
            raise RuntimeError(
                "`grad_tensors` and `grad_variables` (deprecated) arguments both passed to "
                "`backward()`. Please only use `grad_tensors`."
            )
        grad_tensors = grad_variables
    if in_transform():
        raise RuntimeError(
            "backward() called inside a plugrad.func transform. This is not supported, please use "
            "plugrad.func.grad or plugrad.func.vjp instead or call backward() outside of "
            "transforms."
        )
    wanted: tuple[Any, ...] = ()
    if inputs is not None:
        wanted = _inputs(inputs, "backward")
    outputs = _as_tuple(tensors, "backward", "tensors", 1)
    grads = make_grads(
        outputs, _per_output(grad_tensors, len(outputs), "backward", "grad_tensors", 2), False
    )
    keep = bool(create_graph if retain_graph is None else retain_graph)
    _run(outputs, grads, keep, bool(create_graph), wanted, True, True)


@overload
def grad(
    outputs: Tensor | GradientEdge | Sequence[Tensor | GradientEdge],
    inputs: Tensor | GradientEdge | Sequence[Tensor | GradientEdge],
    grad_outputs: Tensor | Sequence[Tensor | None] | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> tuple[Tensor, ...]: ...
@overload
def grad(
    outputs: Tensor | GradientEdge | Sequence[Tensor | GradientEdge],
    inputs: Mapping[_Key, Tensor | GradientEdge],
    grad_outputs: Tensor | Sequence[Tensor | None] | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> dict[_Key, Tensor]: ...
def grad(
    outputs: Any,
    inputs: Any,
    grad_outputs: Any = None,
    retain_graph: Any = None,
    create_graph: Any = False,
    only_inputs: Any = True,
    allow_unused: bool | None = None,
    is_grads_batched: Any = False,
    materialize_grads: Any = False,
) -> Any:
    """The gradients of `outputs` with respect to `inputs`, as a tuple; `.grad` does not change.

    Args:
        outputs, inputs: a tensor or `GradientEdge`, or a sequence of them. If `inputs` is a
            dict, so is the result.
        grad_outputs: the vectors of the vector-Jacobian product, one per output.
        retain_graph, create_graph: as in `backward`.
        allow_unused: give None for an input that no output depends on, instead of raising;
            default the value of `materialize_grads`.
        is_grads_batched: the first dimension of all `grad_outputs` and of the results is a batch.
            One pass computes all of its elements, as with `vmap`.
        materialize_grads: give zeros for such an input.

    Raises:
        RuntimeError: as `backward`; or an input was not used and `allow_unused` is false.
        ValueError: `materialize_grads` with `allow_unused=False`; batches of different lengths.

    >>> import plugrad
    >>> x = plugrad.tensor(3., requires_grad=True)
    >>> plugrad.autograd.grad(x ** 2, x)
    (tensor(6.),)
    >>> v = plugrad.ones(2, requires_grad=True)
    >>> plugrad.autograd.grad(v * v, v, plugrad.eye(2), is_grads_batched=True)
    (tensor([[2., 0.],
            [0., 2.]]),)
    """
    if OVERRIDES.active:
        given: dict[str, Any] = {
            "grad_outputs": grad_outputs,
            "retain_graph": retain_graph,
            "create_graph": create_graph,
            "only_inputs": only_inputs,
            "allow_unused": allow_unused,
            "is_grads_batched": is_grads_batched,
            "materialize_grads": materialize_grads,
        }
        handled = override_call(grad, (outputs, inputs), (outputs, inputs), given)
        if handled is not PROCEED:
            return handled
    if materialize_grads and allow_unused is False:
        raise ValueError(
            "Expected allow_unused to be True or not passed when materialize_grads=True, but got: "
            "allow_unused=False."
        )
    unused = bool(materialize_grads if allow_unused is None else allow_unused)
    roots = _as_tuple(outputs, "grad", "outputs", 1)
    wanted = _inputs(inputs, "grad")
    if not only_inputs:
        warn_at_caller(
            "only_inputs argument is deprecated and is ignored now (defaults to True). To "
            "accumulate gradient for other parts of the graph, please use "
            "plugrad.autograd.backward.",
            FutureWarning,
        )
    grads = make_grads(
        roots,
        _per_output(grad_outputs, len(roots), "grad", "grad_outputs", 3),
        bool(is_grads_batched),
    )
    keep = bool(create_graph if retain_graph is None else retain_graph)
    create = bool(create_graph)
    if is_grads_batched:
        found = _run_batched(roots, grads, keep, create, wanted, unused)
    else:
        found = _run(roots, grads, keep, create, wanted, unused, False)
    if materialize_grads:
        found = _materialize(found, wanted, create)
    if type(inputs) is dict:
        return dict(zip(inputs.keys(), found, strict=True))
    return found


def _materialize(
    found: tuple[Any, ...], wanted: tuple[Any, ...], requires_grad: bool
) -> tuple[Any, ...]:
    made: list[Any] = []
    for result, item in zip(found, wanted, strict=True):
        if result is None:
            if not isinstance(item, TensorBase):
                raise RuntimeError(
                    "materialize_grads cannot be used when the given input is a GradientEdge"
                )
            result = F.zeros_like(item, requires_grad=requires_grad)
        made.append(result)
    return tuple(made)


def _run_batched(
    roots: tuple[Any, ...],
    grads: tuple[TensorBase | None, ...],
    keep_graph: bool,
    create_graph: bool,
    wanted: tuple[Any, ...],
    allow_unreachable: bool,
) -> tuple[Any, ...]:
    """One pass for a whole batch of gradients."""

    def run(parts: list[Any]) -> list[Any]:
        return list(
            _run(roots, tuple(parts), keep_graph, create_graph, wanted, allow_unreachable, False)
        )

    size = batch_size_of(grads)
    dims = [None if grad is None else 0 for grad in grads]
    return tuple(map_flat(run, list(grads), dims, size))


def _run(
    outputs: tuple[Any, ...],
    grads: tuple[Any, ...],
    keep_graph: bool,
    create_graph: bool,
    inputs: tuple[Any, ...],
    allow_unreachable: bool,
    accumulate_grad: bool,
) -> tuple[Any, ...]:
    """A pass by whatever engine `Tensor._execution_engine` is now."""
    engine: Any = tensor_class()._execution_engine
    if engine is DEFAULT_ENGINE:
        return run_backward(
            outputs, grads, keep_graph, create_graph, inputs, allow_unreachable, accumulate_grad
        )
    return tuple(
        engine.run_backward(
            outputs,
            grads,
            keep_graph,
            create_graph,
            inputs,
            allow_unreachable=allow_unreachable,
            accumulate_grad=accumulate_grad,
        )
    )


def _as_tuple(value: Any, function: str, name: str, position: int) -> tuple[Any, ...]:
    if isinstance(value, (TensorBase, GradientEdge)):
        return (value,)
    if not isinstance(value, Iterable):
        raise_argument_error(function, name, position, "Tensor or tuple of Tensors", value)
    return tuple(value)


def _inputs(value: Any, function: str) -> tuple[Any, ...]:
    items: tuple[Any, ...]
    if isinstance(value, (TensorBase, GradientEdge)):
        return (value,)
    if type(value) is dict:
        items = tuple(value.values())
    elif isinstance(value, Mapping):
        raise TypeError(
            f"`inputs` argument to `{function}()` must be a dict, not {type(value).__name__}. "
            "Other Mapping types are not supported."
        )
    else:
        items = _as_tuple(value, function, "inputs", 2 if function == "grad" else 5)
    if not items:
        raise RuntimeError(f"`inputs` argument to `{function}()` cannot be empty.")
    return items


def _per_output(grads: Any, count: int, function: str, name: str, position: int) -> tuple[Any, ...]:
    if grads is None:
        return (None,) * count
    return _as_tuple(grads, function, name, position)
