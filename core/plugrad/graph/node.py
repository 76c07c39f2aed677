"""Nodes and edges: the graph that backward runs over.

    forward      x ---\
                       mul ---> y
                 w ---/

    graph        AccumulateGrad(x) <--edge 0-- MulBackward0 <-- y.grad_fn
                 AccumulateGrad(w) <--edge 1--/

A node's *inputs* are gradients of the forward outputs; its *outputs* travel along `next_edges`,
one for each differentiable forward input.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any, Final, final

from mypy_extensions import i32, i64, mypyc_attr

from plugrad.device import Device
from plugrad.dispatch.backends.active import streams_of
from plugrad.dispatch.backends.streams import STREAMS
from plugrad.dispatch.local_state import current_state
from plugrad.dtype import DType
from plugrad.graph.removable_handle import register
from plugrad.tensor.base import TensorBase, sizes_of

# AccumulateGrad's sequence number: it runs before everything else that is ready.
MAX_SEQUENCE_NR: Final = (1 << 62) - 1
# What users see of it.
HIGHEST_SEQUENCE_NR: Final = (1 << 64) - 1


@final
class Edge:
    """Points to an input of a node; `function` is None where no gradient flows."""

    def __init__(self, function: Node | None, input_nr: i64) -> None:
        self.function = function
        self.input_nr: i64 = input_nr

    def is_valid(self) -> bool:
        return self.function is not None


NO_EDGE: Final = Edge(None, 0)


class InputMetadata:
    """What a gradient must look like: the forward output's shape, dtype and device."""

    def __init__(self, shape: tuple[int, ...], dtype: DType, device: Device) -> None:
        self.shape = shape
        self.dtype = dtype
        self.device = device

    @property
    def is_nested_tensor(self) -> bool:
        """Whether it is a nested tensor; there are none."""
        return False

    @property
    def is_cpp_nested_tensor(self) -> bool:
        """Whether it is a nested tensor; there are none."""
        return False


@final
class StreamMetadata(InputMetadata):
    """The same for an output on a device with streams, and the stream that made it.

    A class of its own, so that nodes of other devices are not larger for it.
    """

    def __init__(
        self, shape: tuple[int, ...], dtype: DType, device: Device, stream: object
    ) -> None:
        super().__init__(shape, dtype, device)
        self.stream: Any = stream


def own_metadata(tensor: TensorBase) -> InputMetadata:
    """What a gradient of a tensor must look like, as an object that may be changed."""
    streams = streams_of(tensor.device) if STREAMS.active else None
    if streams is None:
        return InputMetadata(sizes_of(tensor), tensor.dtype, tensor.device)
    return StreamMetadata(sizes_of(tensor), tensor.dtype, tensor.device, streams.current())


def _shared_metadata(tensor: TensorBase) -> InputMetadata:
    """The metadata that was made last, if it fits: in a chain of operators that keep the shape,
    tensors share one tuple of sizes."""
    sizes = sizes_of(tensor)
    last = _LAST.metadata
    if last.shape is sizes and last.dtype is tensor.dtype and last.device is tensor.device:
        return last
    made = InputMetadata(sizes, tensor.dtype, tensor.device)
    _LAST.metadata = made
    return made


@final
class NodeHooks:
    """A node's hooks; created when the first one is registered.

    Attributes:
        tensor_pre: the hooks of a tensor and the number of the input that is its gradient, in
            order; there may be several for one input, since a saved output has its own.
        retains_grad: per input number, a weak reference to the tensor that retains its gradient.
        pre: called before the node runs, with all its inputs; may replace them.
        post: called afterwards with outputs and inputs; may replace the outputs.
        token: an object that lives as long as the node and supports weak references.
    """

    def __init__(self) -> None:
        self.tensor_pre: list[tuple[Any, int]] = []
        self.retains_grad: dict[int, Any] = {}
        self.pre: Any = None
        self.post: Any = None
        self.token: Any = None


@final
class _Creation:
    """Holds the function that is called for every new node: anomaly mode, which records where it
    was made."""

    def __init__(self) -> None:
        self.listener: Any = None


_creation: Final = _Creation()


def observe_node_creation(listener: Any) -> None:
    """Call `listener(node)` for every node that is made from now on; None stops it."""
    _creation.listener = listener


def is_node_creation_observed() -> bool:
    """Whether there is a listener to new nodes."""
    return _creation.listener is not None


@mypyc_attr(allow_interpreted_subclasses=True)
class Node:
    """One step of backward: computes the gradients of forward inputs from the gradients of its
    outputs.

    It lives as long as a tensor that has it as its `grad_fn`, or a node with an edge to it. Saved
    tensors are freed after it has run, unless the graph is retained.

    Names that are not PyTorch's begin with an underscore: a node is also the `ctx` of a custom
    Function, to which users give attributes of their own.

    Attributes:
        _edge_count: how many edges there are. `_edge0`, `_nr0`, `_edge1`, `_nr1`: the first two, in
            fields of their own, so that no objects have to be made for them; `_more_edges` are the
            others. See `_edge_node`.
        _number: the sequence number; counts up per thread, and the later node runs first.
        _topological_nr: longest path to a leaf; a path X -> Y implies a larger number at X.
        _has_parent: set when the number is read; after that no edges may be added.
        _partial: set while the node runs in a pass that does not need every gradient.
        _owner, _pending, _buffer: the engine's notes while a backward pass runs over the node.
    """

    def __init__(self, sequence_nr: i64) -> None:
        self._edge0: Node | None = None
        self._edge1: Node | None = None
        self._more_edges: tuple[Edge, ...] = ()
        self._nr0: i32 = 0
        self._nr1: i32 = 0
        self._edge_count: i64 = 0
        self._number: i64 = sequence_nr
        self._topological_nr: i64 = 0
        self._pending: i64 = 0
        self._has_parent: bool = False
        self._released: bool = False
        self._partial: bool = False
        self._metadata0: InputMetadata | None = None
        self._more_metadata: list[InputMetadata | None] | None = None
        self._node_hooks: NodeHooks | None = None
        self._owner: object = None
        self._buffer: object = None
        self._extra: dict[Any, Any] | None = None
        if _creation.listener is not None:
            _creation.listener(self)

    def apply(self, grads: list[TensorBase | None]) -> list[TensorBase | None]:
        """Compute the gradients for `next_edges` from the inputs' gradients; None stands for
        zero."""
        raise NotImplementedError(f"{self.name()}.apply")

    def _release_variables(self) -> None:
        """Release saved tensors."""

    def __reduce_ex__(self, protocol: object) -> Any:
        raise TypeError(
            f"cannot copy or pickle '{self.name()}': a node belongs to the graph that made it"
        )

    def name(self) -> str:
        """The class name, such as ``MulBackward0``."""
        return type(self).__name__

    @final
    def _set_next_edges(self, edges: tuple[Edge, ...]) -> None:
        if self._has_parent:
            raise RuntimeError(
                f"{self.name()}: edges cannot change once another node points to this one, or "
                "topological numbers would be wrong"
            )
        self._edge0 = self._edge1 = None
        self._nr0 = self._nr1 = 0
        self._more_edges = ()
        self._edge_count = 0
        self._topological_nr = 0
        for edge in edges[:2]:
            self._append_edge(edge.function, i32(edge.input_nr))
        if len(edges) > 2:
            self._more_edges = edges[2:]
            self._edge_count = len(edges)
            for edge in self._more_edges:
                self._note_child(edge.function)

    @final
    def _add_next_edge(self, edge: Edge) -> None:
        self._set_next_edges((*self._next_edges, edge))

    @final
    def _append_edge(self, function: Node | None, input_nr: i32) -> None:
        """`_add_next_edge` of a node that is being made."""
        count = self._edge_count
        if count == 0:
            self._edge0 = function
            self._nr0 = input_nr
        elif count == 1:
            self._edge1 = function
            self._nr1 = input_nr
        else:
            self._more_edges = (*self._more_edges, Edge(function, i64(input_nr)))
        self._edge_count = count + 1
        self._note_child(function)

    @final
    def _note_child(self, function: Node | None) -> None:
        if function is not None:
            function._has_parent = True
            if function._topological_nr >= self._topological_nr:
                self._topological_nr = function._topological_nr + 1

    @final
    def _edge_node(self, index: i64) -> Node | None:
        """The node that output `index` goes to; None if no gradient flows there."""
        if index == 0:
            return self._edge0
        if index == 1:
            return self._edge1
        return self._more_edges[index - 2].function

    @final
    def _edge_nr(self, index: i64) -> i64:
        """Which input of that node the output is."""
        if index == 0:
            return i64(self._nr0)
        if index == 1:
            return i64(self._nr1)
        return self._more_edges[index - 2].input_nr

    @final
    def _wants(self, index: i64) -> bool:
        """Whether output `index` has to be computed in the pass that runs.

        With `inputs=`, a pass may need only some of the gradients that a node could compute.
        """
        function = self._edge_node(index)
        if function is None or not self._partial:
            return function is not None
        task: Any = current_state().graph_task
        return task is None or bool(task.wants(function))

    @property
    def _next_edges(self) -> tuple[Edge, ...]:
        """Where the outputs go."""
        return tuple(
            [
                Edge(self._edge_node(index), self._edge_nr(index))
                for index in range(self._edge_count)
            ]
        )

    @final
    def _should_compute_output(self, index: i64) -> bool:
        """Whether output `index` is needed."""
        return self._edge_node(index) is not None

    @final
    def _add_input_metadata(self, tensor: TensorBase | None) -> i64:
        """Note how the next input looks; returns its number. None for an undefined input."""
        metadata: InputMetadata | None = None
        if tensor is not None:
            metadata = own_metadata(tensor) if STREAMS.active else _shared_metadata(tensor)
        if self._more_metadata is not None:
            self._more_metadata.append(metadata)
            return len(self._more_metadata)
        if self._metadata0 is None:
            if metadata is None:
                self._metadata0 = UNDEFINED_INPUT
            else:
                self._metadata0 = metadata
            return 0
        self._more_metadata = [metadata]
        return 1

    @final
    def _num_inputs(self) -> i64:
        if self._more_metadata is not None:
            return len(self._more_metadata) + 1
        return 0 if self._metadata0 is None else 1

    @final
    def _metadata_of_input(self, index: i64) -> InputMetadata | None:
        if index == 0:
            first = self._metadata0
            return None if first is UNDEFINED_INPUT else first
        if self._more_metadata is None:
            return None
        return self._more_metadata[index - 1]

    @final
    def _stream(self) -> StreamMetadata | None:
        """Where its forward ran, if on a stream: by the first of its outputs that has one."""
        first = self._metadata0
        if isinstance(first, StreamMetadata):
            return first
        more = self._more_metadata
        if more is not None:
            for metadata in more:
                if isinstance(metadata, StreamMetadata):
                    return metadata
        return None

    @final
    def _ensure_hooks(self) -> NodeHooks:
        hooks = self._node_hooks
        if hooks is None:
            hooks = NodeHooks()
            self._node_hooks = hooks
        return hooks

    @property
    def next_functions(self) -> tuple[tuple[Node | None, int], ...]:
        """Pairs of node and input number that the outputs go to."""
        return tuple((edge.function, edge.input_nr) for edge in self._next_edges)

    @property
    def metadata(self) -> dict[Any, Any]:
        """A dictionary for any data that a user wants to store with the node."""
        if self._extra is None:
            self._extra = {}
        return self._extra

    @property
    def requires_grad(self) -> bool:
        """True: a node exists only because something requires grad."""
        return True

    @property
    def _input_metadata(self) -> tuple[InputMetadata, ...]:
        return tuple(
            [
                self._metadata_of_input(index) or UNDEFINED_INPUT
                for index in range(self._num_inputs())
            ]
        )

    def _sequence_nr(self) -> int:
        number: int = self._number
        return HIGHEST_SEQUENCE_NR if number == MAX_SEQUENCE_NR else number

    def _set_sequence_nr(self, number: int) -> None:
        if number < 0:
            raise OverflowError("can't convert negative int to unsigned")
        if self._number == MAX_SEQUENCE_NR:
            # The engine recognises accumulators by this number; they may have hooks elsewhere.
            self._ensure_hooks()
        self._number = min(number, int(MAX_SEQUENCE_NR))

    def __call__(self, *grads: Any) -> Any:
        """Run the node alone, without its hooks: gradients of its inputs from those given.

        Raises:
            TypeError: not one Tensor or None for each of its inputs.
        """
        count: int = self._num_inputs()
        if len(grads) != count:
            raise TypeError(f"expected {count} arguments, got {len(grads)} instead")
        given: list[TensorBase | None] = []
        for index, grad in enumerate(grads):
            if grad is not None and not isinstance(grad, TensorBase):
                raise TypeError(f"argument {index} is not a Variable")
            given.append(grad)
        outputs = self.apply(given)
        return outputs[0] if len(outputs) == 1 else tuple(outputs)

    def register_hook(self, fn: Any) -> Any:
        """Call `fn(grad_inputs, grad_outputs)` after the node ran; it may return new grad_inputs.

        Returns a handle with `remove()`.
        """
        hooks = self._ensure_hooks()
        if hooks.post is None:
            hooks.post = OrderedDict()
        return register(hooks.post, fn)

    def register_prehook(self, fn: Any) -> Any:
        """Call `fn(grad_outputs)` before the node runs; it may return new ones.

        Returns a handle with `remove()`.
        """
        hooks = self._ensure_hooks()
        if hooks.pre is None:
            hooks.pre = OrderedDict()
        return register(hooks.pre, fn)

    def _register_hook_dict(self, tensor: Any) -> None:
        """Run the hooks of `tensor._backward_hooks` on the gradient of that output.

        Raises:
            TypeError: not a tensor.
            RuntimeError: it has no such dict.
        """
        if not isinstance(tensor, TensorBase):
            raise TypeError("_register_hook_dict expected a variable")
        meta = tensor._autograd_meta
        if meta is None or meta.hooks is None:
            raise RuntimeError("_register_hook_dict: the tensor has no _backward_hooks")
        self._ensure_hooks().tensor_pre.append((meta.hooks, int(meta.output_nr)))

    def __repr__(self) -> str:
        return f"<{self.name()} object at {id(self):#x}>"

    def _repr_html_(self) -> str:
        from plugrad._notebooks import node_html  # only notebooks need it

        return node_html(self)


def name_of(node: Node) -> str:
    """`node.name()`, even where a user's `ctx.name = ...` hides the method.

    >>> import plugrad
    >>> from plugrad.plugins.watching import name_of
    >>> name_of(plugrad.ones(2, requires_grad=True).exp().grad_fn)
    'ExpBackward0'
    """
    cls: Any = type(node)
    name: str = cls.name(node)
    return name


def operator_name(node: Node) -> str:
    """The name of the forward operator: ``Exp`` for ``ExpBackward0``, ``Sum1`` for
    ``SumBackward1``."""
    name = name_of(node)
    stem = name.rstrip("0123456789")
    if not stem.endswith("Backward") or stem == "Backward":
        return name
    number = name[len(stem) :]
    return stem[: -len("Backward")] + ("" if number == "0" else number)


# The dtype of a gradient that may have any.
ANY_DTYPE: Final = DType("any", "Any", 0, 2, -1)
UNDEFINED_INPUT: Final = InputMetadata(
    (), DType("undefined", "Undefined", 0, 0, -1), Device("", None)
)


@final
class _Last:
    """The metadata that was made last; it is never changed."""

    def __init__(self) -> None:
        self.metadata = InputMetadata((), ANY_DTYPE, Device("", None))


_LAST: Final = _Last()
