"""Transforms to a constraint: `biject_to` is one to one, `transform_to` need not be.

`biject_to(constraint)` gives a bijection from unconstrained vectors, which samplers need.
`transform_to(constraint)` may have more parameters than the constraint has dimensions, which suits
optimizers.

>>> import plugrad
>>> from plugrad.distributions import constraints, transform_to
>>> transform_to(constraints.positive)(plugrad.tensor(0.0))
tensor(1.)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from plugrad_distributions.distributions import constraints, transforms

__all__ = ["ConstraintRegistry", "biject_to", "transform_to"]

Factory = Callable[[Any], transforms.Transform]


class ConstraintRegistry:
    """Maps classes of constraints to functions that make a transform for a constraint.

    >>> import plugrad
    >>> from plugrad.distributions import biject_to, constraints
    >>> transform = biject_to(constraints.interval(0.0, 10.0))
    >>> transform(plugrad.tensor([-1.0, 0.0, 100.0]))
    tensor([ 2.6894,  5.0000, 10.0000])
    """

    def __init__(self) -> None:
        self._registry: dict[type[constraints.Constraint], Factory] = {}
        super().__init__()

    def register(self, constraint: Any, factory: Factory | None = None) -> Any:
        """Register a function that makes transforms to the constraints of a class; also as a
        decorator.

        Raises TypeError for anything but a constraint or a class of constraints.

        >>> import plugrad
        >>> from plugrad.distributions import constraints, transform_to, transforms
        >>> class Even(constraints.Constraint):
        ...     pass
        >>> @transform_to.register(Even)
        ... def _(constraint):
        ...     return transforms.AffineTransform(0.0, 2.0)
        >>> transform_to(Even())(plugrad.tensor(3.0))
        tensor(6.)
        """
        if factory is None:
            return lambda factory: self.register(constraint, factory)
        if isinstance(constraint, constraints.Constraint):
            constraint = type(constraint)
        if not isinstance(constraint, type) or not issubclass(constraint, constraints.Constraint):
            raise TypeError(
                "Expected constraint to be either a Constraint subclass or instance, but got "
                f"{constraint}"
            )
        self._registry[constraint] = factory
        return factory

    def __call__(self, constraint: constraints.Constraint) -> transforms.Transform:
        """A transform from unconstrained vectors to a constraint.

        Raises NotImplementedError if none is registered.
        """
        try:
            factory = self._registry[type(constraint)]
        except KeyError:
            raise NotImplementedError(
                f"Cannot transform {type(constraint).__name__} constraints"
            ) from None
        return factory(constraint)


biject_to: Final = ConstraintRegistry()
transform_to: Final = ConstraintRegistry()


def _both(*kinds: Any) -> Callable[[Factory], Factory]:
    """Register a function for classes of constraints in both registries."""

    def registered(factory: Factory) -> Factory:
        for kind in kinds:
            biject_to.register(kind, factory)
            transform_to.register(kind, factory)
        return factory

    return registered


@_both(constraints.real)
def _to_real(constraint: Any) -> transforms.Transform:
    return transforms.identity_transform


def _independent(registry: ConstraintRegistry) -> Factory:
    def factory(constraint: Any) -> transforms.Transform:
        base = registry(constraint.base_constraint)
        return transforms.IndependentTransform(base, constraint.reinterpreted_batch_ndims)

    return factory


@_both(constraints.greater_than, constraints.greater_than_eq)
def _to_greater_than(constraint: Any) -> transforms.Transform:
    return transforms.ComposeTransform(
        [transforms.ExpTransform(), transforms.AffineTransform(constraint.lower_bound, 1)]
    )


@_both(constraints.less_than)
def _to_less_than(constraint: Any) -> transforms.Transform:
    return transforms.ComposeTransform(
        [transforms.ExpTransform(), transforms.AffineTransform(constraint.upper_bound, -1)]
    )


@_both(constraints.interval, constraints.half_open_interval)
def _to_interval(constraint: Any) -> transforms.Transform:
    lower, upper = constraint.lower_bound, constraint.upper_bound
    if (
        isinstance(lower, int | float)
        and isinstance(upper, int | float)
        and (lower, upper) == (0, 1)
    ):
        return transforms.SigmoidTransform()
    return transforms.ComposeTransform(
        [transforms.SigmoidTransform(), transforms.AffineTransform(lower, upper - lower)]
    )


@_both(constraints.corr_cholesky)
def _to_corr_cholesky(constraint: Any) -> transforms.Transform:
    return transforms.CorrCholeskyTransform()


def _onto_simplex(constraint: Any) -> transforms.Transform:
    return transforms.StickBreakingTransform()


def _to_simplex(constraint: Any) -> transforms.Transform:
    return transforms.SoftmaxTransform()


def _to_lower_cholesky(constraint: Any) -> transforms.Transform:
    return transforms.LowerCholeskyTransform()


def _to_positive_definite(constraint: Any) -> transforms.Transform:
    return transforms.PositiveDefiniteTransform()


def _parts(registry: ConstraintRegistry) -> tuple[Factory, Factory]:
    def of_cat(constraint: Any) -> transforms.Transform:
        parts = [registry(part) for part in constraint.cseq]
        return transforms.CatTransform(parts, constraint.dim, constraint.lengths)

    def of_stack(constraint: Any) -> transforms.Transform:
        return transforms.StackTransform([registry(c) for c in constraint.cseq], constraint.dim)

    return of_cat, of_stack


biject_to.register(constraints.simplex, _onto_simplex)
transform_to.register(constraints.simplex, _to_simplex)
transform_to.register(constraints.lower_cholesky, _to_lower_cholesky)
transform_to.register(constraints.positive_definite, _to_positive_definite)
transform_to.register(constraints.positive_semidefinite, _to_positive_definite)
for _registry in (biject_to, transform_to):
    _registry.register(constraints.independent, _independent(_registry))
    _of_cat, _of_stack = _parts(_registry)
    _registry.register(constraints.cat, _of_cat)
    _registry.register(constraints.stack, _of_stack)
