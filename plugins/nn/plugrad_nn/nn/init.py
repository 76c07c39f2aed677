"""Initialisers: fill a tensor in place and return it, as torch.nn.init does."""

from __future__ import annotations

import math
import warnings

import plugrad
from plugrad import Tensor
from plugrad.plugins.arguments import explains

__all__ = [
    "calculate_gain",
    "constant_",
    "eye_",
    "kaiming_normal_",
    "kaiming_uniform_",
    "normal_",
    "ones_",
    "trunc_normal_",
    "uniform_",
    "xavier_normal_",
    "xavier_uniform_",
    "zeros_",
]

_GAINS: dict[str, float] = {
    "linear": 1.0,
    "conv1d": 1.0,
    "conv2d": 1.0,
    "conv3d": 1.0,
    "sigmoid": 1.0,
    "tanh": 5.0 / 3.0,
    "relu": math.sqrt(2.0),
    "selu": 3.0 / 4.0,
}


@explains
def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """The factor on the standard deviation that keeps activations' variance through `nonlinearity`.

    Source: He et al. 2015, section 2.2 (rectifiers); 5/3 for tanh as in PyTorch.
    """
    if nonlinearity == "leaky_relu":
        if param is None:
            slope = 0.01
        elif isinstance(param, bool) or not isinstance(param, int | float):
            raise ValueError(f"negative_slope {param} not a valid number")
        else:
            slope = param
        return math.sqrt(2.0 / (1 + slope**2))
    if nonlinearity not in _GAINS:
        raise ValueError(f"Unsupported nonlinearity {nonlinearity}")
    return _GAINS[nonlinearity]


def _fan_in_and_fan_out(tensor: Tensor) -> tuple[int, int]:
    shape = tuple(tensor.shape)
    if len(shape) < 2:
        raise ValueError(
            "Fan in and fan out can not be computed for tensor with fewer than 2 dimensions"
        )
    receptive_field = math.prod(shape[2:])
    return shape[1] * receptive_field, shape[0] * receptive_field


def _fan(tensor: Tensor, mode: str) -> int:
    modes = ["fan_in", "fan_out"]
    if mode.lower() not in modes:
        raise ValueError(f"Mode {mode} not supported, please use one of {modes}")
    return _fan_in_and_fan_out(tensor)[modes.index(mode.lower())]


@explains
def uniform_(
    tensor: Tensor, a: float = 0.0, b: float = 1.0, generator: plugrad.Generator | None = None
) -> Tensor:
    """Fills with the uniform distribution on [a, b)."""
    with plugrad.no_grad():
        return tensor.uniform_(a, b, generator=generator)


@explains
def normal_(
    tensor: Tensor, mean: float = 0.0, std: float = 1.0, generator: plugrad.Generator | None = None
) -> Tensor:
    """Fills with the normal distribution of the given mean and standard deviation."""
    with plugrad.no_grad():
        return tensor.normal_(mean, std, generator=generator)


# Beyond them, what is left is clamped: the interval has next to no probability.
_MOST_ROUNDS = 1000


@explains
def trunc_normal_(
    tensor: Tensor,
    mean: float = 0.0,
    std: float = 1.0,
    a: float = -2.0,
    b: float = 2.0,
    generator: plugrad.Generator | None = None,
) -> Tensor:
    """Fills with the normal distribution cut to [a, b] (absolute values, not multiples of std).

    Draws again what falls outside; each round keeps at least a few percent of the draws unless the
    interval lies far in a tail, where the mean is clamped into the interval first with a warning.
    """
    # Python's own floats: NumPy's of 32 bits would round the others to theirs.
    mean, std, a, b = float(mean), float(std), float(a), float(b)
    if mean < a - 2.0 * std or mean > b + 2.0 * std:
        warnings.warn(
            "mean is more than 2 std from [a, b] in nn.init.trunc_normal_. "
            "The distribution of values may be incorrect.",
            stacklevel=2,
        )
        mean = min(max(mean, a), b)
    with plugrad.no_grad():
        tensor.normal_(mean, std, generator=generator)
        if tensor.device.type == "meta":
            return tensor
        outside = (tensor < a) | (tensor > b)
        for _ in range(_MOST_ROUNDS):
            if not bool(outside.any()):
                return tensor
            redrawn = plugrad.empty_like(tensor).normal_(mean, std, generator=generator)
            tensor.copy_(plugrad.where(outside, redrawn, tensor))
            outside = (tensor < a) | (tensor > b)
        return tensor.clamp_(a, b)


@explains
def constant_(tensor: Tensor, val: float) -> Tensor:
    """Fills with one value."""
    with plugrad.no_grad():
        return tensor.fill_(val)


@explains
def ones_(tensor: Tensor) -> Tensor:
    """Fills with ones."""
    return constant_(tensor, 1.0)


@explains
def zeros_(tensor: Tensor) -> Tensor:
    """Fills with zeros."""
    return constant_(tensor, 0.0)


@explains
def eye_(tensor: Tensor) -> Tensor:
    """Fills a matrix with the identity: ones on its diagonal, zeros elsewhere."""
    if tensor.ndim != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    rows, columns = tensor.shape
    with plugrad.no_grad():
        tensor.copy_(plugrad.eye(rows, columns, dtype=tensor.dtype, device=tensor.device))
    return tensor


@explains
def xavier_uniform_(
    tensor: Tensor, gain: float = 1.0, generator: plugrad.Generator | None = None
) -> Tensor:
    """Uniform on [-a, a] with a = gain * sqrt(6 / (fan_in + fan_out)).

    Source: Glorot and Bengio 2010, equation 16.
    """
    fan_in, fan_out = _fan_in_and_fan_out(tensor)
    bound = gain * math.sqrt(6.0 / (fan_in + fan_out))
    return uniform_(tensor, -bound, bound, generator)


@explains
def xavier_normal_(
    tensor: Tensor, gain: float = 1.0, generator: plugrad.Generator | None = None
) -> Tensor:
    """Normal with std = gain * sqrt(2 / (fan_in + fan_out)) (Glorot and Bengio 2010)."""
    fan_in, fan_out = _fan_in_and_fan_out(tensor)
    return normal_(tensor, 0.0, gain * math.sqrt(2.0 / (fan_in + fan_out)), generator)


@explains
def kaiming_uniform_(
    tensor: Tensor,
    a: float = 0.0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: plugrad.Generator | None = None,
) -> Tensor:
    """Uniform on [-b, b] with b = gain * sqrt(3 / fan); `a` is the slope of a leaky ReLU.

    Source: He et al. 2015, equation 14.
    """
    if _warn_if_empty(tensor):
        return tensor
    fan = _fan(tensor, mode)
    std = calculate_gain(nonlinearity, a) / math.sqrt(fan)
    bound = math.sqrt(3.0) * std
    return uniform_(tensor, -bound, bound, generator)


@explains
def kaiming_normal_(
    tensor: Tensor,
    a: float = 0.0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: plugrad.Generator | None = None,
) -> Tensor:
    """Normal with std = gain / sqrt(fan) (He et al. 2015, equation 14)."""
    if _warn_if_empty(tensor):
        return tensor
    fan = _fan(tensor, mode)
    std = calculate_gain(nonlinearity, a) / math.sqrt(fan)
    return normal_(tensor, 0.0, std, generator)


def _warn_if_empty(tensor: Tensor) -> bool:
    if 0 in tuple(tensor.shape):
        warnings.warn("Initializing zero-element tensors is a no-op", stacklevel=3)
        return True
    return False
