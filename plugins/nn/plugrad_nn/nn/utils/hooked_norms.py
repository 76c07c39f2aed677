"""Weight and spectral normalisation by hooks, which parametrizations are to replace."""

from __future__ import annotations

import warnings
from typing import Any, TypeVar

import plugrad
from plugrad import Tensor
from plugrad.plugins.arguments import explains
from plugrad_nn.nn import functional as F
from plugrad_nn.nn.module import Module
from plugrad_nn.nn.modules.conv_transpose import _ConvTranspose
from plugrad_nn.nn.parameter import Parameter, is_lazy

__all__ = ["remove_spectral_norm", "remove_weight_norm", "spectral_norm", "weight_norm"]

T = TypeVar("T", bound=Module)


class _Hook:
    """Runs before `forward` and computes the weight `name` from other members."""

    kind = ""

    def __init__(self, name: str) -> None:
        self.name = name

    def compute_weight(self, module: Any, training: bool) -> Tensor:
        raise NotImplementedError

    def __call__(self, module: Any, inputs: Any) -> None:
        setattr(module, self.name, self.compute_weight(module, module.training))

    def attach(self, module: Any) -> None:
        for hook in module._forward_pre_hooks.values():
            if type(hook) is type(self) and hook.name == self.name:
                raise RuntimeError(
                    f"Cannot register two {self.kind} hooks on the same parameter {self.name}"
                )
        if self.name not in module._parameters:
            raise ValueError(f"Module '{module}' has no parameter with name '{self.name}'")
        if module._parameters[self.name] is None:
            raise ValueError(
                f"`{type(self).__name__}` cannot be applied as parameter `{self.name}` is None"
            )
        if is_lazy(getattr(module, self.name)):
            who, what = type(self).__name__, self.kind.removesuffix("_norm")
            raise ValueError(
                f"The module passed to `{who}` can't have uninitialized parameters. Make sure to "
                f"run the dummy forward before applying {what} normalization"
            )

    @classmethod
    def detach(cls, module: Any, name: str, suffixes: str) -> None:
        for key, hook in list(module._forward_pre_hooks.items()):
            if type(hook) is cls and hook.name == name:
                with plugrad.no_grad():
                    weight = hook.compute_weight(module, False)
                delattr(module, name)
                for suffix in suffixes.split():
                    delattr(module, f"{name}_{suffix}")
                module.register_parameter(name, Parameter(weight.detach()))
                del module._forward_pre_hooks[key]
                return
        raise ValueError(f"{cls.kind} of '{name}' not found in {module}")


class WeightNorm(_Hook):
    """weight = g * v / norm of v along all dimensions but `dim`."""

    kind = "weight_norm"

    def __init__(self, name: str, dim: int | None) -> None:
        super().__init__(name)
        self.dim = -1 if dim is None else dim

    def compute_weight(self, module: Any, training: bool = False) -> Tensor:
        """The weight of `module`."""
        size, direction = getattr(module, f"{self.name}_g"), getattr(module, f"{self.name}_v")
        return plugrad._weight_norm(direction, size, self.dim)


class SpectralNorm(_Hook):
    """weight = original / estimate of its largest singular value."""

    kind = "spectral_norm"

    def __init__(self, name: str, n_power_iterations: int, dim: int, eps: float) -> None:
        super().__init__(name)
        if n_power_iterations <= 0:
            raise ValueError(
                "Expected n_power_iterations to be positive, but got "
                f"n_power_iterations={n_power_iterations}"
            )
        self.n_power_iterations = n_power_iterations
        self.dim = dim
        self.eps = eps

    def compute_weight(self, module: Any, training: bool) -> Tensor:
        """The weight of `module`; in training, the estimate is improved first."""
        weight = getattr(module, f"{self.name}_orig")
        u, v = getattr(module, f"{self.name}_u"), getattr(module, f"{self.name}_v")
        matrix = weight.movedim(self.dim, 0).flatten(1)
        if training:
            with plugrad.no_grad():
                for _ in range(self.n_power_iterations):
                    v.copy_(F.normalize(matrix.t() @ u, dim=0, eps=self.eps))
                    u.copy_(F.normalize(matrix @ v, dim=0, eps=self.eps))
            # Copies: the next call writes into the buffers, which this one's backward needs.
            u, v = u.clone(), v.clone()
        found: Tensor = weight / plugrad.dot(u, matrix @ v)
        return found


@explains
def weight_norm(module: T, name: str = "weight", dim: int | None = 0) -> T:
    """As `parametrizations.weight_norm`, with `weight_g` and `weight_v`; FutureWarning.

    Args:
        module: has the parameter.
        name: of the parameter.
        dim: the dimension along which each entry has its own norm; None for a single norm.

    >>> import plugrad, warnings
    >>> warnings.simplefilter("ignore", FutureWarning)
    >>> sorted(plugrad.nn.utils.weight_norm(plugrad.nn.Linear(2, 3)).state_dict())
    ['bias', 'weight_g', 'weight_v']
    """
    warnings.warn(
        "`plugrad.nn.utils.weight_norm` is deprecated in favor of "
        "`plugrad.nn.utils.parametrizations.weight_norm`.",
        FutureWarning,
        stacklevel=3,  # beyond the decorator
    )
    hook = WeightNorm(name, dim)
    hook.attach(module)
    weight = getattr(module, name)
    del module._parameters[name]
    norms = plugrad.norm_except_dim(weight.detach(), 2, hook.dim)
    module.register_parameter(f"{name}_g", Parameter(norms))
    module.register_parameter(f"{name}_v", Parameter(weight.detach()))
    setattr(module, name, hook.compute_weight(module))
    module.register_forward_pre_hook(hook)
    return module


@explains
def remove_weight_norm(module: T, name: str = "weight") -> T:
    """Makes the weight a parameter again; ValueError if `weight_norm` was not called.

    Args:
        module: has the parameter.
        name: of the parameter.

    >>> import plugrad, warnings
    >>> warnings.simplefilter("ignore", FutureWarning)
    >>> layer = plugrad.nn.utils.weight_norm(plugrad.nn.Linear(2, 3))
    >>> sorted(plugrad.nn.utils.remove_weight_norm(layer).state_dict())
    ['bias', 'weight']
    """
    WeightNorm.detach(module, name, "g v")
    return module


@explains
def spectral_norm(
    module: T,
    name: str = "weight",
    n_power_iterations: int = 1,
    eps: float = 1e-12,
    dim: int | None = None,
) -> T:
    """As `parametrizations.spectral_norm`, with `weight_orig`, `weight_u` and `weight_v`.

    Args:
        module: has the parameter.
        name: of the parameter.
        n_power_iterations: by how many steps each call in training improves the estimate.
        eps: the least norm of the singular vectors.
        dim: the dimension of outputs; by default 0, and 1 for transposed convolution.

    >>> import plugrad
    >>> layer = plugrad.nn.utils.spectral_norm(plugrad.nn.Linear(2, 3))
    >>> sorted(layer.state_dict())
    ['bias', 'weight_orig', 'weight_u', 'weight_v']
    """
    if dim is None:
        dim = 1 if isinstance(module, _ConvTranspose) else 0
    hook = SpectralNorm(name, n_power_iterations, dim, eps)
    hook.attach(module)
    weight: Any = module._parameters[name]
    with plugrad.no_grad():
        matrix = weight.movedim(dim, 0).flatten(1)
        u, v = (
            F.normalize(matrix.new_empty(size).normal_(0, 1), dim=0, eps=eps)
            for size in matrix.shape
        )
    delattr(module, name)
    module.register_parameter(f"{name}_orig", weight)
    setattr(module, name, weight.detach())
    module.register_buffer(f"{name}_u", u)
    module.register_buffer(f"{name}_v", v)
    module.register_forward_pre_hook(hook)
    return module


@explains
def remove_spectral_norm(module: T, name: str = "weight") -> T:
    """Makes the weight a parameter again; ValueError if `spectral_norm` was not called.

    Args:
        module: has the parameter.
        name: of the parameter.

    >>> import plugrad
    >>> layer = plugrad.nn.utils.spectral_norm(plugrad.nn.Linear(2, 3))
    >>> sorted(plugrad.nn.utils.remove_spectral_norm(layer).state_dict())
    ['bias', 'weight']
    """
    SpectralNorm.detach(module, name, "u v orig")
    return module
