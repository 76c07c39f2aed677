"""FunctionNode: the graph node of a user's `autograd.Function`, which is also its `ctx`."""

from __future__ import annotations

from typing import Any, Final, final

from mypy_extensions import i64, mypyc_attr

from plugrad._generated import functions as F
from plugrad.dispatch.caller import warn_at_caller
from plugrad.dispatch.local_state import current_state
from plugrad.dtype import COMPLEX
from plugrad.graph.history import next_sequence_nr
from plugrad.graph.node import Edge, InputMetadata, Node, name_of
from plugrad.graph.saved_tensor import SavedTensor
from plugrad.graph.saved_variable import SavedVariable, raise_freed
from plugrad.tensor.base import TensorBase, sizes_of
from plugrad.tensor.calls.arguments import type_name

READ_ONCE: Final = (
    "saved_tensors can only be accessed once when clear_saved_tensors_on_access=True is set on the "
    "autograd.Function. Either access saved_tensors only once, or set "
    "clear_saved_tensors_on_access=False."
)


@final
class _Default:
    """Holds the `backward` of the base class, which means "not overridden"."""

    def __init__(self) -> None:
        self.backward: Any = None


_default: Final = _Default()


def set_default_backward(function: Any) -> None:
    """Set the `backward` that a Function inherits if it has none."""
    _default.backward = function


@mypyc_attr(allow_interpreted_subclasses=True)
class FunctionNode(Node):
    """What `forward` and `backward` receive as `ctx`.

    What is public here has PyTorch's name; all else begins with an underscore, for users give
    `ctx` attributes of their own.

    Attributes:
        needs_input_grad: for every argument of `apply`, whether it requires grad.
        to_save: what `save_for_backward` was given, until `apply` saves it.
        saved_for_forward: what `save_for_forward` was given, until `apply` returns.
        non_differentiable: what `mark_non_differentiable` was given, until `apply` returns.
        dirty_tensors: what `mark_dirty` was given, until `apply` returns.
    """

    def __init__(self) -> None:
        super().__init__(next_sequence_nr())
        self.needs_input_grad: Any = None
        self.to_save: Any = None
        self.saved_for_forward: Any = None
        self.non_differentiable: Any = None
        self.dirty_tensors: Any = None
        self._is_tensor: list[bool] = []
        self._saved: list[SavedVariable | None] = []
        # Shapes of the outputs that have no gradient, for zeros; the others are in the metadata.
        self._constant_outputs: dict[int, InputMetadata] | None = None
        # Set by `forward`: its result is only a view of its input.
        self._is_pure_view: Any = False
        self._materialize: bool = True
        self._materialize_constant: bool = True
        self._read_once: bool = False
        self._was_read: bool = False
        self._boxed: bool = False

    def save_for_backward(self, *tensors: Any) -> None:
        """Keep tensors for `backward`, which finds them in `saved_tensors`.

        Inputs and outputs are kept without reference cycles, and checked for writes in between.
        None stays None.

        Raises:
            TypeError: (from `apply`) something is neither a Tensor nor None.
        """
        self.to_save = tensors

    def save_for_forward(self, *tensors: Any) -> None:
        """Keep tensors for `jvp`, which finds them in `saved_tensors`.

        Raises:
            AssertionError: something is neither a Tensor nor None.
        """
        check_saved_for_forward(tensors)
        self.saved_for_forward = tensors

    def mark_non_differentiable(self, *args: Any) -> None:
        """Say that these outputs carry no gradient; `backward` gets zeros for them."""
        self.non_differentiable = args

    def mark_dirty(self, *args: Any) -> None:
        """Say that `forward` wrote to these inputs, which it must return."""
        self.dirty_tensors = args

    def set_materialize_grads(self, value: Any) -> None:
        """Whether `backward` gets zeros, rather than None, where no gradient arrived.

        Raises:
            TypeError: `value` is not a bool.
        """
        self._materialize = _as_bool(value, "set_materialize_grads")

    @property
    def materialize_grads(self) -> Any:
        """Whether `backward` gets zeros, rather than None, where no gradient arrived."""
        return self._materialize

    @materialize_grads.setter
    def materialize_grads(self, value: Any) -> None:
        self._materialize = _as_bool(value, "set_materialize_grads")

    @property
    def _materialize_non_diff_grads(self) -> Any:
        """Whether outputs without gradient get zeros as well."""
        return self._materialize_constant

    @_materialize_non_diff_grads.setter
    def _materialize_non_diff_grads(self, value: Any) -> None:
        self._materialize_constant = _as_bool(value, "set_materialize_non_diff_grads")

    @property
    def requires_grad(self) -> bool:
        return True

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        """What `save_for_backward` kept.

        Raises:
            RuntimeError: the graph was freed, or a tensor was written to since.
        """
        if self._was_read:
            raise RuntimeError(READ_ONCE)
        if self.saved_for_forward is not None:
            given: tuple[Any, ...] = self.saved_for_forward
            return given
        return self._unpack()

    @property
    def saved_variables(self) -> tuple[Any, ...]:
        """Former name of `saved_tensors`."""
        warn_at_caller(
            "'saved_variables' is deprecated; use 'saved_tensors'",
            DeprecationWarning,
        )
        if self._was_read:
            raise RuntimeError(READ_ONCE)
        return self._unpack()

    @property
    def _raw_saved_tensors(self) -> tuple[Any, ...]:
        """Handles on the saved tensors, to pack them."""
        if self._released:
            raise_freed()
        return tuple([SavedTensor(self, "_saved", index) for index in range(len(self._saved))])

    def _unpack(self) -> tuple[Any, ...]:
        if self._released:
            raise_freed()
        found: list[Any] = []
        for item in self._saved:
            if item is None:
                found.append(None)
            else:
                found.append(item.unpack_for_function(self))
        if self._read_once:
            self._saved = []
            self._was_read = True
        return tuple(found)

    def maybe_clear_saved_tensors(self) -> None:
        """Free the saved tensors now, inside `backward`, unless the graph is kept."""
        task: Any = current_state().graph_task
        if task is not None and not task.keep_graph:
            self._release_variables()

    def _release_variables(self) -> None:
        self._released = True
        if self._saved:
            self._saved = []

    def apply(self, grads: list[TensorBase | None]) -> list[TensorBase | None]:
        user: Any = self._user_backward()
        if self._materialize:
            index: i64 = 0
            count: i64 = len(grads)
            while index < count:
                if grads[index] is None:
                    grads[index] = self._zeros(index)
                index += 1
        if self._boxed:
            # The caller releases the list's items, so that `backward` alone holds them.
            boxed: list[Any] = list(grads)
            for position in range(len(grads)):
                grads[position] = None
            result: Any = user(self, boxed)
        elif len(grads) == 1:
            result = user(self, grads[0])
        else:
            result = user(self, *grads)
        if isinstance(result, tuple):
            return self._gradients(result)
        return self._gradients((result,))

    def _user_backward(self) -> Any:
        # Typed Any, so that the class attribute is looked up.
        this: Any = self
        function: Any = this._forward_cls
        backward: Any = function.backward
        vjp: Any = function.vjp
        if vjp is _default.backward:
            return backward
        if backward is not _default.backward:
            raise RuntimeError(
                "Implementing both 'backward' and 'vjp' for a custom Function is not allowed. You "
                "should only implement one of them."
            )
        return vjp

    def _zeros(self, index: i64) -> Any:
        """Zeros like an output; None for one that is not a tensor."""
        metadata = self._metadata_of_input(index)
        if metadata is None:
            constant = self._constant_outputs
            if constant is None or not self._materialize_constant:
                return None
            metadata = constant.get(index)
            if metadata is None:
                return None
        return F.zeros(metadata.shape, dtype=metadata.dtype, device=metadata.device)

    def _gradients(self, values: tuple[Any, ...]) -> list[TensorBase | None]:
        """One gradient per tensor argument, from one per argument."""
        count: i64 = len(self._is_tensor)
        given: i64 = len(values)
        if given != count:
            self._check_count(values)
        found: list[TensorBase | None] = []
        index: i64 = 0
        while index < count:
            value: Any = values[index]
            if self._is_tensor[index]:
                if value is None:
                    found.append(None)
                elif isinstance(value, TensorBase):
                    if value.dtype.category == COMPLEX:
                        check_complex(self._next_edges[len(found)])
                    found.append(value)
                else:
                    raise RuntimeError(f"expected Variable or None (got {type_name(value)})")
            elif value is not None:
                raise RuntimeError(
                    f"function {name_of(self)} returned a gradient different than None at position "
                    f"{int(index) + 1}, but the corresponding forward input was not a Variable"
                )
            index += 1
        return found

    def _check_count(self, values: tuple[Any, ...]) -> None:
        """Too many gradients are all right if the surplus is None."""
        count = len(self._is_tensor)
        if len(values) < count or any(value is not None for value in values[count:]):
            raise RuntimeError(
                f"function {name_of(self)} returned an incorrect number of gradients (expected "
                f"{count}, got {len(values)})"
            )

    def _note_constant_output(self, index: int, tensor: TensorBase) -> None:
        """Record the shape of an output that has no gradient."""
        if self._constant_outputs is None:
            self._constant_outputs = {}
        self._constant_outputs[index] = InputMetadata(sizes_of(tensor), tensor.dtype, tensor.device)


def check_complex(edge: Edge) -> None:
    """Whether a complex gradient may go along an edge: only if the input was complex."""
    function = edge.function
    if function is None:
        return
    metadata = function._metadata_of_input(edge.input_nr)
    if metadata is not None and metadata.dtype.category != COMPLEX:
        raise RuntimeError(
            "Expected isFloatingType(grad.scalar_type()) || (input_is_complex == grad_is_complex) "
            "to be true, but got false: a complex gradient for a real input"
        )


def check_saved_for_forward(tensors: tuple[Any, ...]) -> None:
    """Whether `save_for_forward` may keep these."""
    for tensor in tensors:
        if tensor is not None and not isinstance(tensor, TensorBase):
            raise AssertionError(
                "save_for_forward expects all arguments to be tensors; you should save non-tensors "
                "as attributes on ctx."
            )


def _as_bool(value: Any, name: str) -> bool:
    if not isinstance(value, bool):
        raise TypeError(
            f"{name} received an invalid combination of arguments - got ({type_name(value)}), but "
            "expected (bool)"
        )
    return value


@final
class Error(Node):
    """Passes nothing back: differentiating its outputs raises an error."""

    def __init__(self, message: str) -> None:
        super().__init__(next_sequence_nr())
        self.message = message

    def apply(self, grads: list[TensorBase | None]) -> list[TensorBase | None]:
        raise RuntimeError(self.message)
