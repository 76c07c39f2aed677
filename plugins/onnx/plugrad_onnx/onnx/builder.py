"""Makes ONNX nodes; lowerings get it as their first argument."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Literal, overload

import numpy as np
import onnx
from onnx import helper

import plugrad
from plugrad_onnx.onnx.dtypes import array_of, onnx_type
from plugrad_onnx.onnx.errors import OnnxExporterError, SizeError
from plugrad_onnx.onnx.sizes import Symbols, Varying


class Value:
    """A tensor of the ONNX graph.

    Attributes:
        name: its name there.
        shape: sizes, each an int, or a `Varying` that depends on dynamic sizes; None if unknown.
        dtype: plugrad's dtype.

    >>> import plugrad
    >>> from plugrad.onnx import Value
    >>> value = Value("x", (2, 3), plugrad.float32)
    >>> value.ndim, value
    (2, <Value x: plugrad.float32(2, 3)>)
    """

    def __init__(self, name: str, shape: tuple[Any, ...] | None, dtype: Any) -> None:
        self.name = name
        self.shape = shape
        self.dtype = dtype

    def __repr__(self) -> str:
        return f"<Value {self.name}: {self.dtype}{self.shape}>"

    @property
    def ndim(self) -> int:
        """The number of dimensions.

        >>> import plugrad
        >>> from plugrad.onnx import Value
        >>> Value("x", (2, 3), plugrad.float32).ndim
        2
        """
        return len(self.sizes)

    @property
    def sizes(self) -> tuple[Any, ...]:
        """The shape, which must be known.

        >>> import plugrad
        >>> from plugrad.onnx import Value
        >>> Value("x", (2, 3), plugrad.float32).sizes
        (2, 3)
        """
        if self.shape is None:
            raise OnnxExporterError(f"the shape of {self.name} is not known")
        return self.shape


class Builder:
    """The ONNX graph under construction, and a lowering's information about its operator.

    Attributes:
        opset: the version of ONNX's operators; do not make newer ones.
        shapes, dtypes: the shapes and dtypes of the operator's results; `shape` and `dtype` are the
            first result's.

    >>> import plugrad
    >>> @plugrad.library.custom_op("onnx_builder::scaled", mutates_args=())
    ... def scaled(x: plugrad.Tensor, by: float) -> plugrad.Tensor:
    ...     return x * by
    >>> def lower(builder, x, by):
    ...     return builder.op("Mul", x, builder.number(by, x.dtype))
    >>> plugrad.onnx.register_lowering(scaled, lower)
    >>> class Model(plugrad.nn.Module):
    ...     def forward(self, x):
    ...         return scaled(x, 3.0)
    >>> program = plugrad.onnx.export(Model(), (plugrad.ones(2),))
    >>> [node.op_type for node in program.model_proto.graph.node], program(plugrad.ones(2))
    (['Mul'], (tensor([3., 3.]),))
    """

    def __init__(self, opset: int, symbols: Symbols) -> None:
        self.opset = opset
        self.symbols = symbols
        self.nodes: list[onnx.NodeProto] = []
        # Initializers' elements and dtypes.
        self.initializers: dict[str, tuple[np.ndarray[Any, Any], Any]] = {}
        self.domains: set[str] = set()
        self.shapes: list[tuple[Any, ...]] = []
        self.dtypes: list[Any] = []
        # For new nodes: where the operator was called, and its name.
        self.path = ""
        self.stem = "value"
        self._used: set[str] = set()
        self._constants: dict[Any, Value] = {}
        self._sizes: dict[tuple[int, ...], str] = {}
        # Dimensions of existing values, by their sizes; inputs first.
        self._dimensions: dict[tuple[int, ...], tuple[str, int]] = {}
        self._inputs: dict[tuple[int, ...], tuple[str, int]] = {}

    @property
    def shape(self) -> tuple[Any, ...]:
        """The shape of the operator's first result."""
        return self.shapes[0]

    @property
    def dtype(self) -> Any:
        """The dtype of the operator's first result."""
        return self.dtypes[0]

    # Names and nodes

    def fresh(self, stem: str) -> str:
        """A name that is not taken yet."""
        stem = re.sub(r"[^\w./]", "_", stem) or "value"
        name, number = stem, 0
        while name in self._used:
            number += 1
            name = f"{stem}_{number}"
        self._used.add(name)
        return name

    def input(self, stem: str, shape: tuple[Any, ...], dtype: Any) -> Value:
        """An input of the graph."""
        value = Value(self.fresh(stem), shape, dtype)
        for axis, size in enumerate(shape):
            if isinstance(size, Varying):
                self._inputs.setdefault(size.values, (value.name, axis))
        return value

    def known(self, value: Value) -> None:
        """Declare the value's shape known: its dimensions may be read."""
        for axis, size in enumerate(value.shape or ()):
            if isinstance(size, Varying):
                self._dimensions.setdefault(size.values, (value.name, axis))

    @overload
    def op(
        self,
        op_type: str,
        *inputs: Value | None,
        outputs: Literal[1] = 1,
        dtype: Any = None,
        shape: tuple[Any, ...] | None = None,
        domain: str = "",
        **attributes: Any,
    ) -> Value: ...
    @overload
    def op(
        self,
        op_type: str,
        *inputs: Value | None,
        outputs: int,
        dtype: Any = None,
        shape: tuple[Any, ...] | None = None,
        domain: str = "",
        **attributes: Any,
    ) -> Any: ...
    def op(
        self,
        op_type: str,
        *inputs: Value | None,
        outputs: int = 1,
        dtype: Any = None,
        shape: tuple[Any, ...] | None = None,
        domain: str = "",
        **attributes: Any,
    ) -> Any:
        """Make a node.

        Args:
            op_type: ONNX's name of the operator, such as "Gemm".
            inputs: None for one that is left out.
            outputs: how many results there are.
            dtype: the dtype of the results; by default the first input's.
            shape: the result's shape, if it is known and useful.
            domain: the domain of an operator that is not ONNX's own, such as "com.microsoft".
            attributes: numbers, strings, or lists of them; attributes that are None are left out.

        Returns:
            a `Value`, or a tuple of them if there are several.
        """
        if dtype is None:
            found = [each.dtype for each in inputs if each is not None]
            dtype = found[0] if found else self.dtype
        names = ["" if each is None else each.name for each in inputs]
        while names and not names[-1]:
            names.pop()
        made = [Value(self.fresh(self.stem), shape, dtype) for _ in range(outputs)]
        given = {name: value for name, value in attributes.items() if value is not None}
        node = helper.make_node(
            op_type,
            names,
            [each.name for each in made],
            name=self.fresh("/" + "/".join([*self.path.split("."), op_type]).lstrip("/")),
            domain=domain,
            **given,
        )
        self.nodes.append(node)
        if domain:
            self.domains.add(domain)
        return made[0] if outputs == 1 else tuple(made)

    # Constants

    def constant(self, array: Any, dtype: Any = None, name: str = "") -> Value:
        """An initializer with the elements of an array, a list or a tensor.

        Args:
            dtype: plugrad's; by default a tensor's own, else int64.
            name: the initializer's name; equal constants without a name are made once.
        """
        if isinstance(array, plugrad.Tensor):
            tensor = array if dtype is None else array.to(dtype)
        else:
            tensor = plugrad.tensor(array, dtype=dtype or plugrad.int64)
        elements = array_of(tensor)
        key = (tensor.dtype, elements.shape, elements.tobytes()) if elements.size < 1024 else None
        if not name and key in self._constants:
            return self._constants[key]
        value = Value(self.fresh(name or "constant"), tuple(elements.shape), tensor.dtype)
        self.initializers[value.name] = elements, tensor.dtype
        if not name and key is not None:
            self._constants[key] = value
        return value

    def number(self, number: Any, dtype: Any) -> Value:
        """A number as a tensor without dimensions; it may depend on dynamic sizes."""
        if isinstance(number, Varying):
            size = self.op("Squeeze", self.integers([number]), self.constant([0]))
            return self.cast(size, dtype)
        if isinstance(number, complex):
            raise OnnxExporterError(f"the number {number} is complex: ONNX has no operators for it")
        return self.constant(number, dtype)

    def operand(self, value: Any, dtype: Any) -> Value:
        """A value or number, cast to a dtype."""
        return self.cast(value, dtype) if isinstance(value, Value) else self.number(value, dtype)

    def cast(self, value: Value, dtype: Any) -> Value:
        """The value, cast to a dtype; the value itself if it has that dtype."""
        if value.dtype == dtype:
            return value
        return self.op("Cast", value, dtype=dtype, shape=value.shape, to=onnx_type(dtype))

    # Sizes

    def integers(self, numbers: Sequence[Any]) -> Value:
        """A vector of int64; each number may depend on dynamic sizes."""
        if not any(isinstance(number, Varying) for number in numbers):
            return self.constant([int(number) for number in numbers])
        parts = [
            self._size(n) if isinstance(n, Varying) else self.constant([int(n)]) for n in numbers
        ]
        if len(parts) == 1:
            return parts[0]
        return self.op("Concat", *parts, dtype=plugrad.int64, axis=0)

    def is_known(self, number: Any) -> bool:
        """Whether `integers` can compute a number."""
        if not isinstance(number, Varying):
            return True
        found = number.values in self._inputs or number.values in self._dimensions
        return found or self.symbols.fit(number) is not None

    def _size(self, number: Varying) -> Value:
        known = self._sizes.get(number.values)
        if known is None:
            stem, self.stem = self.stem, "size"
            known = self._sizes[number.values] = self._made_size(number).name
            self.stem = stem
        return Value(known, (1,), plugrad.int64)

    def _made_size(self, number: Varying) -> Value:
        dimension = self._inputs.get(number.values)
        terms = None if dimension else self.symbols.fit(number)
        if dimension is None and terms is None:
            dimension = self._dimensions.get(number.values)
        if dimension is not None:
            name, axis = dimension
            value = Value(name, None, plugrad.int64)
            return self.op("Shape", value, dtype=plugrad.int64, start=axis, end=axis + 1)
        if terms is None:
            raise SizeError(
                f"a number is {number.values} where the dynamic sizes "
                f"{', '.join(self.symbols.names)} are {list(self.symbols.rows)}: it is no sum of "
                "multiples of them, and no size of an existing value"
            )
        total: Value | None = None
        for names, factor in terms.items():
            term = self.constant([factor])
            for name in names:
                term = self.op("Mul", term, self._size(Varying(self.symbols.vector(name))))
            total = term if total is None else self.op("Add", total, term)
        assert total is not None  # a number that varies has terms
        return total

    # Parts that several lowerings use

    def reshape(self, value: Value, shape: Sequence[Any]) -> Value:
        """The value with another shape and the same number of elements; one size may be -1."""
        shape = list(shape)
        asked: list[Any] = list(shape)
        varying = [axis for axis, size in enumerate(shape) if isinstance(size, Varying)]
        if len(varying) > 1:
            varying = [axis for axis in varying if not self.is_known(shape[axis])]
        # One size follows from the others.
        if len(varying) == 1 and not any(type(size) is int and size < 1 for size in shape):
            asked[varying[0]] = -1
        zero = 1 if any(type(size) is int and size == 0 for size in asked) else None
        given = None if any(type(size) is int and size == -1 for size in shape) else tuple(shape)
        return self.op("Reshape", value, self.integers(asked), shape=given, allowzero=zero)

    def expand(self, value: Value, shape: Sequence[Any]) -> Value:
        """The value, repeated along dimensions of size 1."""
        return self.op("Expand", value, self.integers(shape), shape=tuple(shape))

    def transpose(self, value: Value, order: Sequence[int]) -> Value:
        """The value with its dimensions in another order."""
        shape = None if value.shape is None else tuple(value.shape[axis] for axis in order)
        return self.op("Transpose", value, perm=list(order), shape=shape)

    def unsqueeze(self, value: Value, *axes: int) -> Value:
        """The value with added dimensions of size 1; `axes` are their positions in the result."""
        return self.op("Unsqueeze", value, self.constant(list(axes)))

    def squeeze(self, value: Value, *axes: int) -> Value:
        """The value without these dimensions of size 1; `axes` are not negative."""
        return self.op("Squeeze", value, self.constant(list(axes)))

    def slice(self, value: Value, axis: int, start: Any, end: Any, step: int = 1) -> Value:
        """A slice of the value along one dimension; `end=None` means to its end."""
        last = np.iinfo(np.int64).max if step > 0 else np.iinfo(np.int64).min
        return self.op(
            "Slice",
            value,
            self.integers([start]),
            self.integers([int(last) if end is None else end]),
            self.constant([axis]),
            self.constant([step]),
        )
