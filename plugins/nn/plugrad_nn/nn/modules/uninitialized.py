"""Parameters and buffers of lazy modules; their shapes are determined by the first input."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, NoReturn

import plugrad
from plugrad import Tensor
from plugrad_nn.nn.parameter import Buffer, Parameter

__all__ = ["UninitializedBuffer", "UninitializedParameter", "UninitializedTensorMixin"]

_SHAPELESS = (
    "Can't access the shape of an uninitialized parameter or buffer. This error usually happens "
    "in `load_state_dict` when trying to load an uninitialized parameter into an initialized one. "
    "Call `forward` to initialize the parameters before accessing their attributes."
)
_UNUSABLE = (
    "Attempted to use an uninitialized parameter in {}. This error happens when you are using a "
    "`LazyModule` or explicitly manipulating `plugrad.nn.parameter.{}` objects. When using "
    "LazyModules Call `forward` with a dummy batch to initialize the parameters before calling "
    "plugrad functions"
)
# The methods of parameters and buffers that modules call.
_ALLOWED = frozenset(
    [
        *(
            "to",
            "cpu",
            "cuda",
            "half",
            "float",
            "double",
            "bfloat16",
            "type",
            "copy_",
            "get_device",
        ),
        *("is_floating_point", "is_complex", "requires_grad_", "register_hook"),
    ]
)
_OPERATORS = frozenset(
    f"__{prefix}{name}__"
    for name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul")
    for prefix in ("", "r", "i")
) | {"__len__", "__iter__", "__getitem__", "__setitem__", "__neg__", "__bool__", "__float__"}


class UninitializedTensorMixin:
    """A parameter or buffer of a lazy module; its shape is determined by the first input."""

    cls_to_become: ClassVar[type[Tensor]]
    data: Tensor

    def materialize(self, shape: Sequence[int], device: Any = None, dtype: Any = None) -> None:
        """Gives it uninitialized memory of this shape, and its final class."""
        old = self.data
        self.data = plugrad.empty(
            tuple(shape),
            device=old.device if device is None else device,
            dtype=old.dtype if dtype is None else dtype,
        )
        # Stays the same object: optimisers have it already.
        self.__class__ = self.cls_to_become  # type: ignore[assignment]  # for good

    @property
    def shape(self) -> NoReturn:
        """Raises RuntimeError: it has none yet."""
        raise RuntimeError(_SHAPELESS)

    def detach(self) -> Any:
        """Itself: state dicts hold it directly."""
        return self

    def __repr__(self, *, tensor_contents: object = None) -> str:
        return f"<{type(self).__name__}>"


def _unusable(name: str) -> Callable[..., NoReturn]:
    def refuse(self: Tensor, *args: Any, **kwargs: Any) -> NoReturn:
        raise ValueError(_UNUSABLE.format(name, type(self).__name__))

    refuse.__name__ = name
    refuse.__doc__ = "Raises ValueError: it has no shape yet."
    return refuse


# Methods alone: a class that takes over functions too would slow down every call of the program.
for _name in dir(Tensor):
    _method = getattr(Tensor, _name)
    _kept = _name in _ALLOWED or (_name.startswith("_") and _name not in _OPERATORS)
    if callable(_method) and not _kept and not hasattr(UninitializedTensorMixin, _name):
        setattr(UninitializedTensorMixin, _name, _unusable(_name))


class UninitializedParameter(UninitializedTensorMixin, Parameter):  # type: ignore[misc]  # __repr__
    """A parameter that has no shape yet; `materialize` makes it a `Parameter`.

    >>> import plugrad
    >>> weight = plugrad.nn.UninitializedParameter()
    >>> weight.materialize((2, 3))
    >>> weight.shape, type(weight).__name__
    (plugrad.Size([2, 3]), 'Parameter')
    """

    cls_to_become = Parameter

    def __new__(
        cls, requires_grad: bool = True, device: Any = None, dtype: Any = None
    ) -> UninitializedParameter:
        values = plugrad.empty(0, device=device, dtype=dtype)
        made: UninitializedParameter = Tensor._make_subclass(cls, values, requires_grad)
        return made

    def __init__(self, requires_grad: bool = True, device: Any = None, dtype: Any = None) -> None:
        """Nothing to do: `__new__` made the tensor; this keeps Tensor's own initialiser out."""

    def __deepcopy__(self, memo: dict[int, Any]) -> UninitializedParameter:
        if id(self) not in memo:
            memo[id(self)] = type(self)(self.requires_grad, self.data.device, self.data.dtype)
        copied: UninitializedParameter = memo[id(self)]
        return copied

    def __reduce_ex__(self, protocol: object) -> tuple[Any, ...]:
        return type(self), (self.requires_grad, str(self.data.device), self.data.dtype)


class UninitializedBuffer(UninitializedTensorMixin, Buffer):
    """A buffer that has no shape yet; `materialize` makes it a `Buffer`.

    >>> import plugrad
    >>> sums = plugrad.nn.UninitializedBuffer()
    >>> sums.materialize((2, 3))
    >>> sums.shape
    plugrad.Size([2, 3])
    """

    cls_to_become = Buffer

    def __new__(
        cls,
        requires_grad: bool = False,
        device: Any = None,
        dtype: Any = None,
        persistent: bool = True,
    ) -> UninitializedBuffer:
        values = plugrad.empty(0, device=device, dtype=dtype)
        made: UninitializedBuffer = Tensor._make_subclass(cls, values, requires_grad)
        made.persistent = persistent
        return made

    def __init__(
        self,
        requires_grad: bool = False,
        device: Any = None,
        dtype: Any = None,
        persistent: bool = True,
    ) -> None:
        """Nothing to do: `__new__` made the tensor; this keeps Tensor's own initialiser out."""

    def __deepcopy__(self, memo: dict[int, Any]) -> UninitializedBuffer:
        if id(self) not in memo:
            old = self.data
            made = type(self)(self.requires_grad, old.device, old.dtype, self.persistent)
            memo[id(self)] = made
        copied: UninitializedBuffer = memo[id(self)]
        return copied

    def __reduce_ex__(self, protocol: object) -> tuple[Any, ...]:
        device, dtype = str(self.data.device), self.data.dtype
        return type(self), (self.requires_grad, device, dtype, self.persistent)
