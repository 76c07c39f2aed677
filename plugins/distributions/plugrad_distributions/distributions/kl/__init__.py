"""The Kullback-Leibler divergence of two distributions, by closed forms.

`register_kl` adds one. It is looked up by the classes of both distributions, nearest base classes
first.
"""

from __future__ import annotations

from plugrad_distributions.distributions.kl import crossed, families
from plugrad_distributions.distributions.kl.registry import _KL_MEMOIZE as _KL_MEMOIZE
from plugrad_distributions.distributions.kl.registry import _KL_REGISTRY as _KL_REGISTRY
from plugrad_distributions.distributions.kl.registry import kl_divergence, register_kl

__all__ = ["kl_divergence", "register_kl"]

families.register()
crossed.register()
