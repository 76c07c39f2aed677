"""The base class of transforms, inverses, and transforms built from others."""

from __future__ import annotations

import math
import weakref
from collections.abc import Sequence
from typing import Any

import plugrad
from plugrad import Size, Tensor
from plugrad_distributions.distributions import constraints
from plugrad_distributions.distributions.utils import sum_rightmost

__all__ = [
    "ComposeTransform",
    "IndependentTransform",
    "ReshapeTransform",
    "Transform",
    "identity_transform",
]


class Transform:
    """A function that has an inverse, at least on one side.

    A subclass defines `_call`, `_inverse`, `domain` and `codomain`, and `log_abs_det_jacobian` if
    it is bijective.

    Args:
        cache_size: 1 keeps the last value and its image, so that inverting the last result is exact
            and free; 0 keeps nothing.

    Attributes:
        bijective: whether the inverse holds on both sides.
        domain: the constraint of its arguments.
        codomain: the constraint of its results.

    >>> import plugrad
    >>> from plugrad.distributions import constraints
    >>> from plugrad.distributions.transforms import Transform
    >>> class Cube(Transform):
    ...     domain = codomain = constraints.real
    ...     bijective = True
    ...     def _call(self, x):
    ...         return x**3
    ...     def _inverse(self, y):
    ...         return y.sign() * y.abs() ** (1 / 3)
    ...     def log_abs_det_jacobian(self, x, y):
    ...         return (3 * x**2).log()
    >>> y = Cube()(plugrad.tensor([-2.0, 1.0]))
    >>> y, Cube().inv(y)
    (tensor([-8.,  1.]), tensor([-2.,  1.]))
    """

    bijective: Any = False
    domain: Any
    codomain: Any

    def __init__(self, cache_size: int = 0) -> None:
        self._cache_size = cache_size
        self._inv: Any = None
        if cache_size == 1:
            self._cached_x_y: tuple[Any, Any] = None, None
        elif cache_size != 0:
            raise ValueError("cache_size must be 0 or 1")
        super().__init__()

    def __getstate__(self) -> dict[str, Any]:
        # Weak references cannot be pickled.
        return {**vars(self), "_inv": None}

    @property
    def event_dim(self) -> int:
        """How many last dimensions of a value form one event, in the domain and the codomain.

        >>> from plugrad.distributions.transforms import ExpTransform, IndependentTransform
        >>> ExpTransform().event_dim, IndependentTransform(ExpTransform(), 1).event_dim
        (0, 1)
        """
        if self.domain.event_dim == self.codomain.event_dim:
            return int(self.domain.event_dim)
        raise ValueError("Please use either .domain.event_dim or .codomain.event_dim")

    @property
    def inv(self) -> Transform:
        """The inverse; its inverse is this transform.

        >>> import plugrad
        >>> from plugrad.distributions.transforms import ExpTransform
        >>> ExpTransform().inv(plugrad.tensor([1.0]))
        tensor([0.])
        """
        inverse = self._inv() if self._inv is not None else None
        if inverse is None:
            inverse = _InverseTransform(self)
            self._inv = weakref.ref(inverse)
        return inverse

    @property
    def sign(self) -> Any:
        """The sign of the derivative, for a function of numbers.

        >>> from plugrad.distributions.transforms import AffineTransform, ExpTransform
        >>> ExpTransform().sign, AffineTransform(0.0, -2.0).sign
        (1, -1)
        """
        raise NotImplementedError

    def with_cache(self, cache_size: int = 1) -> Transform:
        """The same transform with or without a cache.

        >>> from plugrad.distributions.transforms import ExpTransform
        >>> ExpTransform().with_cache(1) == ExpTransform()
        True
        """
        if self._cache_size == cache_size:
            return self
        if type(self).__init__ is Transform.__init__:
            return type(self)(cache_size=cache_size)
        raise NotImplementedError(f"{type(self)}.with_cache is not implemented")

    def __eq__(self, other: object) -> bool:
        return self is other

    __hash__ = object.__hash__

    def __call__(self, x: Any) -> Any:
        if self._cache_size == 0:
            return self._call(x)
        old_x, old_y = self._cached_x_y
        if x is old_x:
            return old_y
        y = self._call(x)
        self._cached_x_y = x, y
        return y

    def _inv_call(self, y: Any) -> Any:
        if self._cache_size == 0:
            return self._inverse(y)
        old_x, old_y = self._cached_x_y
        if y is old_y:
            return old_x
        x = self._inverse(y)
        self._cached_x_y = x, y
        return x

    def _call(self, x: Any) -> Any:
        raise NotImplementedError

    def _inverse(self, y: Any) -> Any:
        raise NotImplementedError

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        """The logarithm of the absolute determinant of dy / dx, for a value and its image.

        >>> import plugrad
        >>> from plugrad.distributions.transforms import AffineTransform
        >>> x = plugrad.zeros(2)
        >>> affine = AffineTransform(1.0, 5.0)
        >>> affine.log_abs_det_jacobian(x, affine(x))
        tensor([1.6094, 1.6094])
        """
        raise NotImplementedError

    def __repr__(self) -> str:
        return type(self).__name__ + "()"

    def forward_shape(self, shape: Any) -> Any:
        """The shape of the image of a value of this shape.

        >>> from plugrad.distributions.transforms import StickBreakingTransform
        >>> StickBreakingTransform().forward_shape((4, 3))
        plugrad.Size([4, 4])
        """
        return shape

    def inverse_shape(self, shape: Any) -> Any:
        """The shape of a value with an image of this shape.

        >>> from plugrad.distributions.transforms import StickBreakingTransform
        >>> StickBreakingTransform().inverse_shape((4, 3))
        plugrad.Size([4, 2])
        """
        return shape


class _InverseTransform(Transform):
    """The inverse of a transform; they share a cache."""

    def __init__(self, transform: Transform) -> None:
        super().__init__(cache_size=transform._cache_size)
        self._inv: Any = transform

    @constraints.dependent_property(is_discrete=False)
    def domain(self) -> Any:
        return self._inv.codomain

    @constraints.dependent_property(is_discrete=False)
    def codomain(self) -> Any:
        return self._inv.domain

    def __getstate__(self) -> dict[str, Any]:
        return dict(vars(self))

    @property
    def bijective(self) -> Any:
        return self._inv.bijective

    @property
    def sign(self) -> Any:
        return self._inv.sign

    @property
    def inv(self) -> Transform:
        return self._inv

    def with_cache(self, cache_size: int = 1) -> Transform:
        return self.inv.with_cache(cache_size).inv

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _InverseTransform) and bool(self._inv == other._inv)

    __hash__ = object.__hash__

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._inv!r})"

    def __call__(self, x: Any) -> Any:
        return self._inv._inv_call(x)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return -self._inv.log_abs_det_jacobian(y, x)

    def forward_shape(self, shape: Any) -> Any:
        return self._inv.inverse_shape(shape)

    def inverse_shape(self, shape: Any) -> Any:
        return self._inv.forward_shape(shape)


class ComposeTransform(Transform):
    """A chain of transforms; the first in the list runs first.

    >>> import plugrad
    >>> from plugrad.distributions import transforms
    >>> parts = [transforms.ExpTransform(), transforms.AffineTransform(1.0, 2.0)]
    >>> transforms.ComposeTransform(parts)(plugrad.tensor([0.0]))
    tensor([3.])
    """

    def __init__(self, parts: Sequence[Transform], cache_size: int = 0) -> None:
        if cache_size:
            parts = [part.with_cache(cache_size) for part in parts]
        super().__init__(cache_size=cache_size)
        self.parts = list(parts)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ComposeTransform) and self.parts == other.parts

    __hash__ = object.__hash__

    @constraints.dependent_property(is_discrete=False)
    def domain(self) -> Any:
        if not self.parts:
            return constraints.real
        domain = self.parts[0].domain
        # A part with larger events enlarges the events of all parts before it.
        dims = self.parts[-1].codomain.event_dim
        for part in reversed(self.parts):
            dims = max(
                dims + part.domain.event_dim - part.codomain.event_dim, part.domain.event_dim
            )
        more = dims - domain.event_dim
        return constraints.independent(domain, more) if more > 0 else domain

    @constraints.dependent_property(is_discrete=False)
    def codomain(self) -> Any:
        if not self.parts:
            return constraints.real
        codomain = self.parts[-1].codomain
        dims = self.parts[0].domain.event_dim
        for part in self.parts:
            dims = max(
                dims + part.codomain.event_dim - part.domain.event_dim, part.codomain.event_dim
            )
        more = dims - codomain.event_dim
        return constraints.independent(codomain, more) if more > 0 else codomain

    @property
    def bijective(self) -> Any:
        return all(part.bijective for part in self.parts)

    @property
    def sign(self) -> Any:
        return math.prod([part.sign for part in self.parts])

    @property
    def inv(self) -> Transform:
        inverse = self._inv() if self._inv is not None else None
        if inverse is None:
            inverse = ComposeTransform([part.inv for part in reversed(self.parts)])
            self._inv = weakref.ref(inverse)
            # The inverse refers to this transform, so that `inv.inv` is the same object.
            inverse._inv = lambda: self
        return inverse

    def with_cache(self, cache_size: int = 1) -> Transform:
        if self._cache_size == cache_size:
            return self
        return ComposeTransform(self.parts, cache_size=cache_size)

    def __call__(self, x: Any) -> Any:
        for part in self.parts:
            x = part(x)
        return x

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        if not self.parts:
            return plugrad.zeros_like(x)
        values = [x]
        for part in self.parts[:-1]:
            values.append(part(values[-1]))
        values.append(y)
        total: Any = 0
        dims = self.domain.event_dim
        for part, before, after in zip(self.parts, values, values[1:], strict=False):
            more = dims - part.domain.event_dim
            total = total + sum_rightmost(part.log_abs_det_jacobian(before, after), more)
            dims += part.codomain.event_dim - part.domain.event_dim
        return total

    def forward_shape(self, shape: Any) -> Any:
        for part in self.parts:
            shape = part.forward_shape(shape)
        return shape

    def inverse_shape(self, shape: Any) -> Any:
        for part in reversed(self.parts):
            shape = part.inverse_shape(shape)
        return shape

    def __repr__(self) -> str:
        parts = ",\n    ".join(repr(part) for part in self.parts)
        return f"{type(self).__name__}(\n    {parts}\n)"


identity_transform = ComposeTransform([])


class IndependentTransform(Transform):
    """A transform that treats the last batch dimensions as part of the event: determinants are
    products over them.

    >>> import plugrad
    >>> from plugrad.distributions import transforms
    >>> transform = transforms.IndependentTransform(transforms.ExpTransform(), 1)
    >>> transform.log_abs_det_jacobian(plugrad.ones(2), plugrad.ones(2).exp())
    tensor(2.)
    """

    def __init__(
        self, base_transform: Transform, reinterpreted_batch_ndims: int, cache_size: int = 0
    ) -> None:
        super().__init__(cache_size=cache_size)
        self.base_transform = base_transform.with_cache(cache_size)
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims

    def with_cache(self, cache_size: int = 1) -> Transform:
        if self._cache_size == cache_size:
            return self
        dims = self.reinterpreted_batch_ndims
        return IndependentTransform(self.base_transform, dims, cache_size=cache_size)

    @constraints.dependent_property(is_discrete=False)
    def domain(self) -> Any:
        return constraints.independent(self.base_transform.domain, self.reinterpreted_batch_ndims)

    @constraints.dependent_property(is_discrete=False)
    def codomain(self) -> Any:
        return constraints.independent(self.base_transform.codomain, self.reinterpreted_batch_ndims)

    @property
    def bijective(self) -> Any:
        return self.base_transform.bijective

    @property
    def sign(self) -> Any:
        return self.base_transform.sign

    def _call(self, x: Any) -> Any:
        if x.dim() < self.domain.event_dim:
            raise ValueError("Too few dimensions on input")
        return self.base_transform(x)

    def _inverse(self, y: Any) -> Any:
        if y.dim() < self.codomain.event_dim:
            raise ValueError("Too few dimensions on input")
        return self.base_transform.inv(y)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        each = self.base_transform.log_abs_det_jacobian(x, y)
        return sum_rightmost(each, self.reinterpreted_batch_ndims)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.base_transform!r}, {self.reinterpreted_batch_ndims})"

    def forward_shape(self, shape: Any) -> Any:
        return self.base_transform.forward_shape(shape)

    def inverse_shape(self, shape: Any) -> Any:
        return self.base_transform.inverse_shape(shape)


class ReshapeTransform(Transform):
    """Reshapes the last dimensions.

    >>> import plugrad
    >>> from plugrad.distributions import transforms
    >>> transforms.ReshapeTransform((2,), (2, 1))(plugrad.tensor([0.0, 1.0]))
    tensor([[0.],
            [1.]])
    """

    bijective = True

    def __init__(self, in_shape: Any, out_shape: Any, cache_size: int = 0) -> None:
        self.in_shape = Size(in_shape)
        self.out_shape = Size(out_shape)
        if self.in_shape.numel() != self.out_shape.numel():
            raise ValueError("in_shape, out_shape have different numbers of elements")
        super().__init__(cache_size=cache_size)

    @constraints.dependent_property
    def domain(self) -> Any:
        return constraints.independent(constraints.real, len(self.in_shape))

    @constraints.dependent_property
    def codomain(self) -> Any:
        return constraints.independent(constraints.real, len(self.out_shape))

    def with_cache(self, cache_size: int = 1) -> Transform:
        if self._cache_size == cache_size:
            return self
        return ReshapeTransform(self.in_shape, self.out_shape, cache_size=cache_size)

    def _batch(self, x: Tensor, shape: Size) -> Size:
        return Size(x.shape[: x.dim() - len(shape)])

    def _call(self, x: Any) -> Any:
        return x.reshape(self._batch(x, self.in_shape) + self.out_shape)

    def _inverse(self, y: Any) -> Any:
        return y.reshape(self._batch(y, self.out_shape) + self.in_shape)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return plugrad.zeros(self._batch(x, self.in_shape), dtype=x.dtype, device=x.device)

    def _moved(self, shape: Any, before: Size, after: Size) -> Size:
        if len(shape) < len(before):
            raise ValueError("Too few dimensions on input")
        cut = len(shape) - len(before)
        if tuple(shape[cut:]) != tuple(before):
            raise ValueError(
                f"Shape mismatch: expected {tuple(shape[cut:])} but got {tuple(before)}"
            )
        return Size(tuple(shape[:cut]) + after)

    def forward_shape(self, shape: Any) -> Any:
        return self._moved(shape, self.in_shape, self.out_shape)

    def inverse_shape(self, shape: Any) -> Any:
        return self._moved(shape, self.out_shape, self.in_shape)
