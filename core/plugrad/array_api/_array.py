"""The arrays that the namespace makes: tensors with operators that follow the standard.

PyTorch's operators differ from the standard's: arrays without dimensions promote like numbers, most
unsigned integers promote with nothing, `inf // 2` is nan, and slices have no negative steps. Plain
tensors keep that. A result is an `Array` unless one of the arguments is a plain tensor, so programs
that use plain tensors get PyTorch's rules throughout.
"""

from __future__ import annotations

# Interpreted: loaded on demand.
from collections.abc import Callable
from functools import wraps
from types import FunctionType
from typing import Any

from plugrad.array_api._operators import F, Tensor, floor_divide, remainder
from plugrad.array_api._promotion import operands, promoted, result_type
from plugrad.dtype import COMPLEX, FLOATING, INTEGER, bool_, int64
from plugrad.tensor.calls.overridable import disabled_plugrad_function

_NUMBERS = (bool, int, float, complex)
OnFloats = Callable[[Tensor, Tensor], Tensor]


class Count(int):
    """How many elements an array has: a number, as the standard's `size` is, that can be called
    as PyTorch's method `size` is."""

    _array: Tensor

    def __call__(self, dim: int | None = None) -> Any:
        """The shape, or the length of one dimension."""
        return Tensor.size(self._array, dim)


class Array(Tensor):
    """A tensor with operators that follow the array API standard.

    An operator on an array and a plain tensor follows PyTorch, and gives a plain tensor. So do the
    functions and methods of plugrad.

    >>> from plugrad import array_api as xp
    >>> xp.ones(2, dtype=xp.int8) + xp.asarray(1)
    Array([2, 2])
    """

    __module__ = "plugrad.array_api"
    __plugrad_function__ = disabled_plugrad_function  # type: ignore[assignment]  # not bound
    __torch_function__ = disabled_plugrad_function

    def __getitem__(self, index: Any) -> Any:
        key, backwards = _forwards(self, index)
        found = Tensor.__getitem__(self, key)
        if backwards:
            axes, rest = backwards
            found = Tensor.__getitem__(F.flip(found, axes), rest)
        return as_array(found)

    def __setitem__(self, index: Any, value: Any) -> None:
        key, backwards = _forwards(self, index)
        if backwards:
            axes, rest = backwards
            part = Tensor.__getitem__(self, key)
            turned = F.flip(part, axes)
            Tensor.__setitem__(turned, rest, value)
            part.copy_(F.flip(turned, axes))
        else:
            Tensor.__setitem__(self, key, value)

    def to_device(self, device: Any, /, *, stream: Any = None) -> Any:
        """The array on another device."""
        return as_array(Tensor.to_device(self, device, stream=stream))

    @property
    def size(self) -> Count:
        """The number of elements; `x.size()` is the shape."""
        found = Count(self.numel())
        found._array = self
        return found

    @property
    def T(self) -> Any:
        """The transpose of a matrix, a view; ValueError for another number of dimensions."""
        if self.ndim != 2:
            raise ValueError(
                f"T: the array must have two dimensions, not {self.ndim}; permute_dims() reverses "
                "more of them, mT transposes stacks of matrices"
            )
        return as_array(F.numpy_T(self))

    @property
    def mT(self) -> Any:
        """The transposes of a stack of matrices, `(..., M, N)` to `(..., N, M)`, a view; ValueError
        for less than two dimensions."""
        if self.ndim < 2:
            raise ValueError(f"mT: the array must have two dimensions or more, not {self.ndim}")
        return as_array(F.mT(self))


def as_array(found: Any) -> Any:
    """New tensors, in a tuple or alone, as arrays; objects of other classes stay."""
    if type(found) is Tensor:
        found.__class__ = Array
    elif isinstance(found, tuple):
        for each in found:
            as_array(each)
    return found


def _has_plain(values: Any) -> bool:
    for value in values:
        if isinstance(value, (list, tuple)):
            if _has_plain(value):
                return True
        elif isinstance(value, Tensor) and not isinstance(value, Array):
            return True
    return False


def arrays_from_arrays(function: Any) -> Any:
    """A function that returns arrays unless a plain tensor is among its arguments."""

    @wraps(function)
    def called(*args: Any, **options: Any) -> Any:
        found = function(*args, **options)
        if _has_plain(args) or (options and _has_plain(options.values())):
            return found
        return as_array(found)

    return called


def publish(namespace: dict[str, Any]) -> None:
    """Wrap the public functions of a module in `arrays_from_arrays`, given the module's globals."""
    for name, each in list(namespace.items()):
        if name.startswith("_") or not isinstance(each, FunctionType):
            continue
        if each.__module__ in (namespace["__name__"], "plugrad.array_api"):
            namespace[name] = arrays_from_arrays(each)


def _forwards(x: Tensor, index: Any) -> tuple[Any, Any]:
    """Translate an index that tensors refuse: a key; and, if slices run backwards, the axes of the
    key's result to reverse, and the key to apply after that."""
    if isinstance(index, Tensor):
        return _without_lengths_of_zero(x, index), None
    keys = index if isinstance(index, tuple) else (index,)
    if not any(isinstance(key, (slice, Tensor)) for key in keys):
        return index, None
    keys = tuple(_as_indices(key) for key in keys)
    if not any(isinstance(key, slice) and _runs_backwards(key) for key in keys):
        return keys, None
    after = keys[keys.index(...) + 1 :] if any(key is ... for key in keys) else ()
    axis = 0
    axes: list[int] = []
    first = [slice(None)] * x.ndim
    rest = list(keys)
    for place, key in enumerate(keys):
        if key is ...:
            axis = x.ndim - sum(_consumed(each) for each in after)
            continue
        if isinstance(key, slice) and axis < x.ndim and _runs_backwards(key):
            steps = range(x.shape[axis])[key]
            # The same places in ascending order.
            first[axis] = slice(steps[-1], steps[0] + 1, -steps.step) if steps else slice(0, 0)
            rest[place] = slice(None)
            axes.append(axis)
        axis += _consumed(key)
    return tuple(first), (tuple(axes), tuple(rest))


def _runs_backwards(key: slice) -> bool:
    return key.step is not None and int(key.step) < 0


def _consumed(key: Any) -> int:
    """How many dimensions an item of an index is about."""
    if key is None or isinstance(key, bool):
        return 0
    return int(key.ndim) if str(getattr(key, "dtype", "")).endswith("bool") else 1


def _as_indices(key: Any) -> Any:
    """Indices as int64, because uint8 tensors would be masks."""
    if isinstance(key, Tensor) and key.dtype.category == INTEGER:
        return key.to(int64)
    return key


def _without_lengths_of_zero(x: Tensor, key: Tensor) -> Tensor:
    """A mask may have length 0 where the array is longer: it selects nothing."""
    if key.dtype is not bool_ or 0 not in key.shape or key.ndim > x.ndim:
        indices: Tensor = _as_indices(key)
        return indices
    if all(length in (0, size) for length, size in zip(key.shape, x.shape, strict=False)):
        return F.zeros(tuple(x.shape[: key.ndim]), dtype=bool_, device=key.device)
    return key


def _by_function(function: OnFloats | None, other: Any) -> bool:
    """Whether an operator computes with a number otherwise than tensors do."""
    if function is F.pow:  # of a number that is a half tensors take the root: nan of -infinity
        return isinstance(other, float) and abs(other) == 0.5
    return function is not None and isinstance(other, _NUMBERS)


def _operator(name: str, on_floats: OnFloats | None) -> Any:
    plain = getattr(Tensor, name)

    def operator(self: Array, other: Any) -> Any:
        if isinstance(other, Array) or _by_function(on_floats, other):
            a, b = operands(self, other)
            if on_floats is not None and a.dtype.category == FLOATING:
                return as_array(on_floats(a, b))
            return as_array(plain(a, b))
        found = plain(self, other)
        return found if isinstance(other, Tensor) else as_array(found)

    return _named(operator, name)


def _reflected(name: str, on_floats: OnFloats | None) -> Any:
    plain = getattr(Tensor, f"__r{name}__")
    forward = getattr(Tensor, f"__{name}__")

    def operator(self: Array, other: Any) -> Any:
        if isinstance(other, Tensor):  # Python tries the subclass's method first.
            return forward(other, self)
        if on_floats is not None and isinstance(other, _NUMBERS):
            a, b = operands(other, self)
            if a.dtype.category == FLOATING:
                return as_array(on_floats(a, b))
        return as_array(plain(self, other))

    return _named(operator, f"__r{name}__")


def _inplace(name: str, on_floats: OnFloats | None) -> Any:
    plain = getattr(Tensor, name)

    def operator(self: Array, other: Any) -> Any:
        if isinstance(other, Array) and promoted(self.dtype, other.dtype) is self.dtype:
            other = other.to(self.dtype)
        elif not _by_function(on_floats, other) or result_type(self, other) is not self.dtype:
            return plain(self, other)
        if on_floats is not None and self.dtype.category == FLOATING:
            return self.copy_(on_floats(*operands(self, other)))
        return plain(self, other)

    return _named(operator, name)


def _write_product(self: Array, other: Any) -> Any:
    found = self @ other
    if found.shape != self.shape or found.dtype is not self.dtype:
        raise ValueError(
            f"@=: the product has shape {tuple(found.shape)} and dtype {found.dtype!r}, and the "
            f"array has {tuple(self.shape)} and {self.dtype!r}"
        )
    return self.copy_(found)


def _unary(name: str) -> Any:
    plain = getattr(Tensor, name)

    def operator(self: Array) -> Any:
        found = plain(self)
        return as_array(F.clone(self) if found is self else found)

    return _named(operator, name)


def _conversion(name: str) -> Any:
    plain = getattr(Tensor, name)

    def operator(self: Array) -> Any:
        if self.dtype.category == COMPLEX:
            raise TypeError(f"{name}(): a complex array is not a real number: use real()")
        return plain(self)

    return operator


def _named(operator: Any, name: str) -> Any:
    operator.__name__ = name
    operator.__qualname__ = f"Array.{name}"
    return operator


# For floating point numbers, three operators differ from PyTorch's.
_ON_FLOATS: dict[str, OnFloats] = {"floordiv": floor_divide, "mod": remainder, "pow": F.pow}

for _name in (
    "add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "and", "or", "xor", "lshift",
    "rshift",
):  # fmt: skip
    setattr(Array, f"__{_name}__", _operator(f"__{_name}__", _ON_FLOATS.get(_name)))
    setattr(Array, f"__r{_name}__", _reflected(_name, _ON_FLOATS.get(_name)))
    setattr(Array, f"__i{_name}__", _inplace(f"__i{_name}__", _ON_FLOATS.get(_name)))
for _name in ("matmul", "eq", "ne", "lt", "le", "gt", "ge"):
    setattr(Array, f"__{_name}__", _operator(f"__{_name}__", None))
for _name in ("abs", "neg", "pos", "invert"):
    setattr(Array, f"__{_name}__", _unary(f"__{_name}__"))
for _name, _method in (
    ("float", _conversion("__float__")), ("int", _conversion("__int__")),
    ("imatmul", _write_product),
):  # fmt: skip
    setattr(Array, f"__{_name}__", _named(_method, f"__{_name}__"))
Array.__hash__ = Tensor.__hash__  # type: ignore[method-assign]  # `__eq__` took it away
