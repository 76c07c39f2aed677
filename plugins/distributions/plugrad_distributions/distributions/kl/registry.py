"""The registry of functions that compute the divergence of two distributions."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import total_ordering
from typing import Any, Final

from plugrad import Tensor
from plugrad_distributions.distributions.distribution import Distribution

__all__ = ["kl_divergence", "register_kl"]

Divergence = Callable[[Any, Any], Tensor]

# PyTorch's names, which packages use.
_KL_REGISTRY: Final[dict[tuple[type, type], Divergence]] = {}
_KL_MEMOIZE: Final[dict[tuple[type, type], Divergence | None]] = {}


def register_kl(type_p: type, type_q: type) -> Callable[[Divergence], Divergence]:
    """A decorator: register the function for distributions of these two classes and their
    subclasses. As in PyTorch, a class need not derive from Distribution: a package may use its own
    base class.

    Raises TypeError if either is not a class.

    >>> import plugrad
    >>> from plugrad.distributions import Normal, kl_divergence, register_kl
    >>> class Tight(Normal):
    ...     pass
    >>> @register_kl(Tight, Tight)
    ... def _(p, q):
    ...     return (p.loc - q.loc).abs()
    >>> kl_divergence(Tight(1.0, 0.1), Tight(3.0, 0.1))
    tensor(2.)
    """
    for name, kind in (("type_p", type_p), ("type_q", type_q)):
        if not isinstance(kind, type):
            raise TypeError(f"{name} has to be a class of distributions, got {kind!r}")

    def decorator(function: Divergence) -> Divergence:
        _KL_REGISTRY[type_p, type_q] = function
        _KL_MEMOIZE.clear()
        return function

    return decorator


@total_ordering
class _Match:
    """A pair of classes; the smaller of two pairs is the nearer match."""

    def __init__(self, *types: type) -> None:
        self.types = types

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Match) and self.types == other.types

    def __le__(self, other: _Match) -> bool:
        for mine, theirs in zip(self.types, other.types, strict=True):
            if not issubclass(mine, theirs):
                return False
            if mine is not theirs:
                break
        return True


def _find(type_p: type, type_q: type) -> Divergence | None:
    matches = [
        pair for pair in _KL_REGISTRY if issubclass(type_p, pair[0]) and issubclass(type_q, pair[1])
    ]
    if not matches:
        return None
    left = min(_Match(*pair) for pair in matches).types
    right = min(_Match(*reversed(pair)) for pair in matches).types
    by_p, by_q = _KL_REGISTRY[left[0], left[1]], _KL_REGISTRY[right[1], right[0]]
    if by_p is not by_q:
        warnings.warn(
            f"Ambiguous kl_divergence({type_p.__name__}, {type_q.__name__}). Please "
            f"register_kl({left[0].__name__}, {right[0].__name__})",
            RuntimeWarning,
            stacklevel=3,
        )
    return by_p


def kl_divergence(p: Distribution, q: Distribution) -> Tensor:
    """The divergence E_p[log p(x) - log q(x)] in nats, of shape `batch_shape`.

    Raises NotImplementedError if there is no closed form for the two classes.

    >>> import plugrad
    >>> from plugrad.distributions import Normal, kl_divergence
    >>> kl_divergence(Normal(0.0, 1.0), Normal(1.0, 1.0))
    tensor(0.5000)
    """
    pair = type(p), type(q)
    if pair not in _KL_MEMOIZE:
        _KL_MEMOIZE[pair] = _find(*pair)
    function = _KL_MEMOIZE[pair]
    if function is None:
        raise NotImplementedError(
            f"No KL(p || q) is implemented for p type {type(p).__name__} and q type "
            f"{type(q).__name__}"
        )
    return function(p, q)
