"""The base classes of distributions."""

from __future__ import annotations

import warnings
from typing import Any, ClassVar, Self

import plugrad
from plugrad import Size, Tensor
from plugrad_distributions.distributions import constraints
from plugrad_distributions.distributions.utils import _LazyAsProperty, sum_rightmost

__all__ = ["Distribution", "ExponentialFamily", "Family"]


class Distribution:
    """A probability distribution, or a batch of them.

    Samples have the shape `sample_shape + batch_shape + event_shape`.

    Args:
        batch_shape: the shape of the batch of distributions.
        event_shape: the shape of one value.
        validate_args: whether to check parameters and values; by default yes, unless Python runs
            with -O.

    Raises ValueError if parameters do not satisfy `arg_constraints`.

    >>> import plugrad
    >>> from plugrad.distributions import Distribution
    >>> class Coin(Distribution):
    ...     arg_constraints = {}
    ...     def sample(self, sample_shape=()):
    ...         return plugrad.randint(0, 2, sample_shape)
    ...     def log_prob(self, value):
    ...         return plugrad.full(value.shape, 0.5).log()
    >>> Coin().log_prob(Coin().sample((3,)))
    tensor([-0.6931, -0.6931, -0.6931])
    """

    has_rsample: Any = False
    has_enumerate_support: Any = False
    _validate_args = __debug__

    @staticmethod
    def set_default_validate_args(value: bool) -> None:
        """Set whether distributions made from now on check their arguments.

        >>> import plugrad
        >>> from plugrad.distributions import Distribution, Normal
        >>> Distribution.set_default_validate_args(False)
        >>> Normal(0.0, -1.0).scale
        tensor(-1.)
        >>> Distribution.set_default_validate_args(True)
        """
        if value not in (True, False):
            raise ValueError(f"value has to be True or False, got {value!r}")
        Distribution._validate_args = value

    def __init__(
        self, batch_shape: Any = (), event_shape: Any = (), validate_args: bool | None = None
    ) -> None:
        self._batch_shape = Size(batch_shape)
        self._event_shape = Size(event_shape)
        if validate_args is not None:
            self._validate_args = validate_args
        if self._validate_args:
            self._check_parameters()
        super().__init__()

    def _check_parameters(self) -> None:
        try:
            wanted = self.arg_constraints
        except NotImplementedError:
            warnings.warn(
                f"{type(self)} does not define `arg_constraints`. Please set "
                "`arg_constraints = {}` or initialize the distribution with `validate_args=False` "
                "to turn off validation.",
                stacklevel=3,
            )
            return
        for name, constraint in wanted.items():
            if constraints.is_dependent(constraint):
                continue
            if name not in vars(self) and isinstance(
                getattr(type(self), name, None), _LazyAsProperty
            ):
                continue  # computed from another parameter
            value = getattr(self, name)
            if not constraint.check(value).all():
                raise ValueError(
                    f"Expected parameter {name} ({type(value).__name__} of shape "
                    f"{tuple(value.shape)}) of distribution {self!r} to satisfy the constraint "
                    f"{constraint!r}, but found invalid values:\n{value}"
                )

    def expand(self, batch_shape: Any, _instance: Any = None) -> Self:
        """The distribution expanded to this batch shape, with views of its parameters.

        >>> import plugrad
        >>> from plugrad.distributions import Normal
        >>> Normal(0.0, 1.0).expand((2, 3)).sample().shape
        plugrad.Size([2, 3])
        """
        raise NotImplementedError

    @property
    def batch_shape(self) -> Size:
        """The shape of the parameters that are independent of one another.

        >>> import plugrad
        >>> from plugrad.distributions import MultivariateNormal, Normal
        >>> Normal(plugrad.zeros(3), 1.0).batch_shape
        plugrad.Size([3])
        >>> MultivariateNormal(plugrad.zeros(5, 2), plugrad.eye(2)).batch_shape
        plugrad.Size([5])
        """
        return self._batch_shape

    @property
    def event_shape(self) -> Size:
        """The shape of one value.

        >>> import plugrad
        >>> from plugrad.distributions import MultivariateNormal, Normal
        >>> Normal(plugrad.zeros(3), 1.0).event_shape
        plugrad.Size([])
        >>> MultivariateNormal(plugrad.zeros(5, 2), plugrad.eye(2)).event_shape
        plugrad.Size([2])
        """
        return self._event_shape

    @property
    def arg_constraints(self) -> dict[str, constraints.Constraint]:
        """The constraint of each parameter, by name.

        >>> from plugrad.distributions import Normal
        >>> sorted(Normal(0.0, 1.0).arg_constraints)
        ['loc', 'scale']
        """
        raise NotImplementedError

    @property
    def support(self) -> Any:
        """The constraint that values satisfy.

        >>> import plugrad
        >>> from plugrad.distributions import Uniform
        >>> Uniform(0.0, 2.0).support.check(plugrad.tensor([1.0, 3.0]))
        tensor([ True, False])
        """
        raise NotImplementedError

    @property
    def mean(self) -> Tensor:
        """The mean.

        >>> from plugrad.distributions import Gamma
        >>> Gamma(3.0, 2.0).mean
        tensor(1.5000)
        """
        raise NotImplementedError

    @property
    def mode(self) -> Tensor:
        """The value with the highest density.

        >>> from plugrad.distributions import Gamma
        >>> Gamma(3.0, 2.0).mode
        tensor(1.)
        """
        raise NotImplementedError(f"{type(self)} does not implement mode")

    @property
    def variance(self) -> Tensor:
        """The variance.

        >>> from plugrad.distributions import Uniform
        >>> Uniform(0.0, 6.0).variance
        tensor(3.)
        """
        raise NotImplementedError

    @property
    def stddev(self) -> Tensor:
        """The standard deviation.

        >>> from plugrad.distributions import Normal
        >>> Normal(0.0, 2.0).stddev
        tensor(2.)
        """
        return self.variance.sqrt()

    def sample(self, sample_shape: Any = ()) -> Tensor:
        """Values without gradients, of shape `sample_shape + batch_shape + event_shape`.

        >>> import plugrad
        >>> from plugrad.distributions import Normal
        >>> Normal(plugrad.zeros(3), 1.0).sample((2,)).shape
        plugrad.Size([2, 3])
        """
        with plugrad.no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """Values with gradients with respect to the parameters.

        >>> import plugrad
        >>> from plugrad.distributions import Normal
        >>> loc = plugrad.zeros(3, requires_grad=True)
        >>> Normal(loc, 1.0).rsample((2,)).sum().backward()
        >>> loc.grad
        tensor([2., 2., 2.])
        """
        raise NotImplementedError

    def sample_n(self, n: int) -> Tensor:
        """n values: use `sample((n,))`."""
        warnings.warn(
            "`sample_n(n)` will be deprecated. Use `sample((n,))` instead.",
            FutureWarning,
            stacklevel=2,
        )
        return self.sample(Size((n,)))

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density, or of the probability, at values.

        >>> import plugrad
        >>> from plugrad.distributions import Bernoulli
        >>> Bernoulli(0.25).log_prob(plugrad.tensor([0.0, 1.0])).exp()
        tensor([0.7500, 0.2500])
        """
        raise NotImplementedError

    def cdf(self, value: Tensor) -> Tensor:
        """The probability of values up to this one.

        >>> import plugrad
        >>> from plugrad.distributions import Normal
        >>> Normal(0.0, 1.0).cdf(plugrad.tensor(0.0))
        tensor(0.5000)
        """
        raise NotImplementedError

    def icdf(self, value: Tensor) -> Tensor:
        """The inverse of `cdf`.

        >>> import plugrad
        >>> from plugrad.distributions import Uniform
        >>> Uniform(0.0, 8.0).icdf(plugrad.tensor(0.25))
        tensor(2.)
        """
        raise NotImplementedError

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """All values of a discrete distribution along the first dimension, repeated over the batch;
        with `expand=False` the batch dimensions are 1.

        >>> import plugrad
        >>> from plugrad.distributions import Bernoulli
        >>> Bernoulli(plugrad.tensor([0.3, 0.7])).enumerate_support()
        tensor([[0., 0.],
                [1., 1.]])
        """
        raise NotImplementedError

    def entropy(self) -> Tensor:
        """The entropy in nats, of shape `batch_shape`.

        >>> import plugrad
        >>> from plugrad.distributions import Bernoulli
        >>> Bernoulli(plugrad.tensor([0.5, 0.25])).entropy()
        tensor([0.6931, 0.5623])
        """
        raise NotImplementedError

    def perplexity(self) -> Tensor:
        """The exponential of the entropy.

        >>> import plugrad
        >>> from plugrad.distributions import Categorical
        >>> Categorical(plugrad.ones(6)).perplexity()
        tensor(6.0000)
        """
        return plugrad.exp(self.entropy())

    def _extended_shape(self, sample_shape: Any = ()) -> Size:
        return Size(Size(sample_shape) + self._batch_shape + self._event_shape)

    def _validate_sample(self, value: Any) -> None:
        """Raises ValueError unless this is a value of the distribution."""
        if not isinstance(value, Tensor):
            raise ValueError("The value argument to log_prob must be a Tensor")
        events = len(self._event_shape)
        if value.shape[value.dim() - events :] != self._event_shape:
            raise ValueError(
                "The right-most size of value must match event_shape: "
                f"{value.shape} vs {self._event_shape}."
            )
        wanted = self._batch_shape + self._event_shape
        for size, other in zip(reversed(value.shape), reversed(wanted), strict=False):
            if size not in (1, other) and other != 1:
                raise ValueError(
                    "Value is not broadcastable with batch_shape+event_shape: "
                    f"{value.shape} vs {Size(wanted)}."
                )
        try:
            support = self.support
        except NotImplementedError:
            warnings.warn(
                f"{type(self)} does not define `support` to enable sample validation. Please "
                "initialize the distribution with `validate_args=False` to turn off validation.",
                stacklevel=3,
            )
            return
        if not support.check(value).all():
            raise ValueError(
                f"Expected value argument ({type(value).__name__} of shape {tuple(value.shape)}) "
                f"to be within the support ({support!r}) of the distribution {self!r}, but found "
                f"invalid values:\n{value}"
            )

    def _get_checked_instance(self, cls: type, _instance: Any = None) -> Any:
        """A new object of this class, for `expand` to fill; raises if a subclass needs more than
        `cls` fills in."""
        if _instance is None and type(self).__init__ is not cls.__init__:  # type: ignore[misc]
            raise NotImplementedError(
                f"Subclass {type(self).__name__} of {cls.__name__} that defines a custom __init__ "
                "method must also define a custom .expand() method."
            )
        return self.__new__(type(self)) if _instance is None else _instance

    def __repr__(self) -> str:
        shown = []
        for name in self.arg_constraints:
            if name in vars(self):
                value = vars(self)[name]
                shown.append(f"{name}: {value if value.numel() == 1 else value.size()}")
        return f"{type(self).__name__}({', '.join(shown)})"


class Family(Distribution):
    """A distribution with only tensors as its state.

    Attributes:
        event_dims: how many last dimensions of a parameter are not batch dimensions, by name.
    """

    event_dims: ClassVar[dict[str, int]] = {}

    def expand(self, batch_shape: Any, _instance: Any = None) -> Self:
        definer: Any = next(cls for cls in type(self).__mro__ if "event_dims" in vars(cls))
        new: Self = self._get_checked_instance(definer, _instance)
        batch_shape = Size(batch_shape)
        for name, dims in definer.event_dims.items():
            value = vars(self).get(name)
            if value is not None:
                event = value.shape[value.dim() - dims :]
                vars(new)[name] = value.expand(batch_shape + event)
        self._copy_to(new, batch_shape)
        Distribution.__init__(new, batch_shape, self._event_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    def _copy_to(self, new: Any, batch_shape: Size) -> None:
        """The attributes of an expanded distribution besides its parameters."""


class ExponentialFamily(Family):
    """A distribution with the density exp(t(x) . n - F(n) + k(x)): n are the natural parameters, F
    is the logarithm of the normalizer, and k the carrier measure.

    >>> from plugrad.distributions import ExponentialFamily, Gamma
    >>> isinstance(Gamma(3.0, 2.0), ExponentialFamily)
    True
    """

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        raise NotImplementedError

    def _log_normalizer(self, *natural_params: Any) -> Tensor:
        raise NotImplementedError

    @property
    def _mean_carrier_measure(self) -> Any:
        """The mean of k, if it does not depend on the parameters."""
        raise NotImplementedError

    def entropy(self) -> Tensor:
        """Computed from the gradient of F, which is the mean of t(x).

        Source: Nielsen and Nock, Entropies and Cross-entropies of Exponential Families, 2010.
        """
        natural = [p.detach().requires_grad_() for p in self._natural_params]
        log_normalizer = self._log_normalizer(*natural)
        grads = plugrad.autograd.grad(log_normalizer.sum(), natural, create_graph=True)
        result = log_normalizer - self._mean_carrier_measure
        batch = result.dim()
        for parameter, grad in zip(natural, grads, strict=True):
            term = parameter * grad
            result = result - sum_rightmost(term, term.dim() - batch)
        return result
