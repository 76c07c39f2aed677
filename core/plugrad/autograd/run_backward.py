"""`backward` and `grad`: what users call, with PyTorch's checks, above the engine."""

from __future__ import annotations

from typing import Any

from plugrad._generated import functions as F
from plugrad.autograd.engine.engine import ENGINE
from plugrad.autograd.engine.roots import Identity
from plugrad.autograd.properties import output_nr
from plugrad.autograd.retain import retain_grad
from plugrad.dtype import COMPLEX, FLOATING
from plugrad.graph.history import grad_fn_of, gradient_edge, try_grad_accumulator
from plugrad.graph.node import Edge
from plugrad.tensor.base import TensorBase, sizes_of


def backward(
    tensors: Any,
    grad_tensors: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    grad_variables: Any = None,
    inputs: Any = None,
) -> None:
    """Accumulate the gradients of `tensors` with respect to the graph's leaves into `.grad`.

    Args:
        tensors: a tensor or a sequence of them; of which the derivative is taken.
        grad_tensors: the vectors of the vector-Jacobian product, one per tensor and of its shape;
            None where the tensor has one element.
        retain_graph: keep what the graph saved, so that it can run again; default `create_graph`.
        create_graph: record the gradients' computation, for higher derivatives.
        inputs: accumulate only into these tensors; default all leaves.

    Raises:
        RuntimeError: a tensor needs no grad, has more than one element and no `grad_tensors`
            entry, a shape does not fit, `inputs` is empty, or the graph was freed already.

    >>> import plugrad
    >>> x = plugrad.tensor([1., 2.], requires_grad=True)
    >>> plugrad.autograd.backward((x * x).sum())
    >>> x.grad
    tensor([2., 4.])
    """
    if grad_variables is not None:
        import warnings

        warnings.warn(
            "`grad_variables` is deprecated. Use `grad_tensors` instead.", FutureWarning, 2
        )
        if grad_tensors is not None:
            raise RuntimeError(
                "`grad_tensors` and `grad_variables` (deprecated) arguments both passed to "
                "`backward()`. Please only use `grad_tensors`."
            )
        grad_tensors = grad_variables
    if inputs is not None and not isinstance(inputs, TensorBase) and len(inputs) == 0:
        raise RuntimeError("`inputs` argument to `backward()` cannot be empty.")
    outputs = _as_tuple(tensors, "tensors")
    wanted = () if inputs is None else _as_tuple(inputs, "inputs")
    grads = _make_grads(outputs, _per_output(grad_tensors, len(outputs)), "grad_tensors")
    keep = create_graph if retain_graph is None else retain_graph
    _run_backward(outputs, grads, keep, create_graph, wanted, True, True)


def grad(
    outputs: Any,
    inputs: Any,
    grad_outputs: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> tuple[Any, ...]:
    """The gradients of `outputs` with respect to `inputs`, as a tuple; `.grad` stays untouched.

    Args:
        outputs, inputs: a tensor or a sequence of them.
        grad_outputs: the vectors of the vector-Jacobian product, one per output.
        retain_graph, create_graph: as in `backward`.
        allow_unused: give None for an input that no output depends on, instead of raising;
            default the value of `materialize_grads`.
        materialize_grads: give zeros for such an input.

    Raises:
        RuntimeError: as `backward`; or an input was not used and `allow_unused` is false.

    >>> import plugrad
    >>> x = plugrad.tensor(3., requires_grad=True)
    >>> plugrad.autograd.grad(x ** 2, x)
    (tensor(6.),)
    """
    if materialize_grads and allow_unused is False:
        raise ValueError(
            "Expected allow_unused to be True or not passed when materialize_grads=True, but got: "
            "allow_unused=False."
        )
    if is_grads_batched:
        raise NotImplementedError("autograd.grad: is_grads_batched needs vmap, which is not built")
    if not only_inputs:
        import warnings

        warnings.warn(
            "only_inputs argument is deprecated and is ignored now (defaults to True). To "
            "accumulate gradient for other parts of the graph, please use autograd.backward.",
            FutureWarning,
            2,
        )
    if allow_unused is None:
        allow_unused = materialize_grads
    roots = _as_tuple(outputs, "outputs")
    wanted = _as_tuple(inputs, "inputs")
    if not wanted:
        raise RuntimeError("`inputs` argument to `grad()` cannot be empty.")
    grads = _make_grads(roots, _per_output(grad_outputs, len(roots)), "grad_outputs")
    keep = create_graph if retain_graph is None else retain_graph
    found = _run_backward(roots, grads, keep, create_graph, wanted, allow_unused, False)
    if materialize_grads:
        if any(
            result is None and not _may_be_differentiated(tensor)
            for result, tensor in zip(found, wanted, strict=True)
        ):
            raise RuntimeError(
                "None of the inputs for which gradients are materialized may be of a dtype that "
                "has no gradient."
            )
        found = tuple(
            F.zeros_like(tensor, requires_grad=create_graph) if result is None else result
            for result, tensor in zip(found, wanted, strict=True)
        )
    return found


def _may_be_differentiated(tensor: TensorBase) -> bool:
    return tensor.dtype.category >= FLOATING


def _as_tuple(value: Any, name: str) -> tuple[Any, ...]:
    items: tuple[Any, ...] = (value,) if isinstance(value, TensorBase) else tuple(value)
    for index, item in enumerate(items):
        if not isinstance(item, TensorBase):
            raise TypeError(
                f"element {index} of {name} must be a Tensor, not {type(item).__name__}"
            )
    return items


def _per_output(grads: Any, count: int) -> tuple[Any, ...]:
    if grads is None:
        return (None,) * count
    if isinstance(grads, TensorBase):
        return (grads,)
    return tuple(grads)


def _make_grads(
    outputs: tuple[Any, ...], grads: tuple[Any, ...], name: str
) -> list[TensorBase | None]:
    """Check the gradients given, and fill in those that may be left out."""
    if len(outputs) != len(grads):
        raise RuntimeError(f"got {len(outputs)} tensors and {len(grads)} gradients")
    made: list[TensorBase | None] = []
    for index, output in enumerate(outputs):
        grad = grads[index]
        if isinstance(grad, TensorBase):
            if sizes_of(grad) != sizes_of(output):
                raise RuntimeError(
                    f"Mismatch in shape: grad_output[{index}] has a shape of {grad.shape} and "
                    f"output[{index}] has a shape of {output.shape}."
                )
            if (output.dtype.category == COMPLEX) != (grad.dtype.category == COMPLEX):
                raise RuntimeError(
                    "For complex Tensors, both grad_output and output are required to have the "
                    f"same dtype. Mismatch in dtype: grad_output[{index}] has a dtype of "
                    f"{grad.dtype} and output[{index}] has a dtype of {output.dtype}."
                )
            made.append(grad)
        elif grad is None:
            made.append(_implicit_grad(output))
        else:
            raise TypeError(
                f"gradients can be either Tensors or None, but got {type(grad).__name__}"
            )
    return made


def _implicit_grad(output: Any) -> TensorBase | None:
    if not output.requires_grad:
        return None
    if output.numel() != 1:
        raise RuntimeError("grad can be implicitly created only for scalar outputs")
    if output.dtype.category != FLOATING:
        raise RuntimeError(
            f"grad can be implicitly created only for real scalar outputs but got {output.dtype}"
        )
    made: TensorBase = F.ones_like(output)
    return made


def _run_backward(
    outputs: tuple[Any, ...],
    grads: list[TensorBase | None],
    keep_graph: bool,
    create_graph: bool,
    inputs: tuple[Any, ...],
    allow_unreachable: bool,
    accumulate_grad: bool,
) -> tuple[Any, ...]:
    roots: list[Edge] = []
    for index, output in enumerate(outputs):
        edge = gradient_edge(output)
        if edge.function is None:
            raise RuntimeError(
                f"element {index} of tensors does not require grad and does not have a grad_fn"
            )
        roots.append(edge)
    if not roots:
        return ()
    wanted = [_input_edge(tensor, index, accumulate_grad) for index, tensor in enumerate(inputs)]
    found = ENGINE.execute(tuple(roots), grads, keep_graph, create_graph, accumulate_grad, wanted)
    if not accumulate_grad and not allow_unreachable:
        for index, item in enumerate(found):
            if item is None:
                raise RuntimeError(
                    f"The differentiated Tensor at index {index} appears to not have been used in "
                    "the graph. Set allow_unused=True if this is the desired behavior."
                )
    return tuple(found)


def _input_edge(tensor: Any, index: int, accumulate_grad: bool) -> Edge:
    """Where the gradient of one of `inputs` arrives; a node of its own if the graph has none."""
    if not tensor.requires_grad:
        raise RuntimeError("One of the differentiated Tensors does not require grad")
    node = grad_fn_of(tensor)
    if node is None:
        node = try_grad_accumulator(tensor)
        return Edge(Identity() if node is None else node, 0)
    if accumulate_grad:
        retain_grad(tensor)
    return Edge(node, output_nr(tensor))
