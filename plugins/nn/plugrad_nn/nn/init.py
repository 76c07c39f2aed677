"""Initialisers: fill a tensor in place and return it, as torch.nn.init does."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import plugrad
from plugrad import Tensor
from plugrad.plugins.arguments import explains

__all__ = [
    "calculate_gain",
    "constant",
    "constant_",
    "dirac",
    "dirac_",
    "eye",
    "eye_",
    "kaiming_normal",
    "kaiming_normal_",
    "kaiming_uniform",
    "kaiming_uniform_",
    "normal",
    "normal_",
    "ones_",
    "orthogonal",
    "orthogonal_",
    "sparse",
    "sparse_",
    "trunc_normal_",
    "uniform",
    "uniform_",
    "xavier_normal",
    "xavier_normal_",
    "xavier_uniform",
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

    Args:
        nonlinearity: the name of a function in `plugrad.nn.functional`.
        param: the slope, for "leaky_relu".

    Source: He et al. 2015, section 2.2 (rectifiers); 5/3 for tanh as in PyTorch.

    >>> import plugrad
    >>> plugrad.nn.init.calculate_gain("leaky_relu", 1.0)
    1.0
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
    """Fills with the uniform distribution on [a, b).

    Args:
        tensor: the tensor to fill; it is returned.
        a, b: the bounds.
        generator: draws the random numbers; by default the device's.

    >>> import plugrad
    >>> x = plugrad.nn.init.uniform_(plugrad.empty(3), 1.0, 2.0)
    >>> bool(((1 <= x) & (x < 2)).all())
    True
    """
    with plugrad.no_grad():
        return tensor.uniform_(a, b, generator=generator)


@explains
def normal_(
    tensor: Tensor, mean: float = 0.0, std: float = 1.0, generator: plugrad.Generator | None = None
) -> Tensor:
    """Fills with the normal distribution of the given mean and standard deviation.

    Args:
        tensor: the tensor to fill; it is returned.
        mean, std: of the distribution.
        generator: draws the random numbers; by default the device's.

    >>> import plugrad
    >>> plugrad.nn.init.normal_(plugrad.empty(2), mean=5.0, std=0.0)
    tensor([5., 5.])
    """
    with plugrad.no_grad():
        return tensor.normal_(mean, std, generator=generator)


# After this number of rounds, remaining elements get the most likely value: the interval has almost
# no probability.
_MOST_ROUNDS = 10_000


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

    If the interval is likely, normal numbers outside of it are drawn again. Otherwise uniform
    numbers are accepted with a probability proportional to the density.

    Args:
        tensor: the tensor to fill; it is returned.
        mean, std: of the distribution before it is cut.
        a, b: the bounds.
        generator: draws the random numbers; by default the device's.

    >>> import plugrad
    >>> x = plugrad.nn.init.trunc_normal_(plugrad.empty(3), a=-1.0, b=1.0)
    >>> bool((x.abs() <= 1).all())
    True
    """
    # Python's own floats: NumPy's of 32 bits would round the others to theirs.
    mean, std, a, b = float(mean), float(std), float(a), float(b)
    if tensor.device.type == "meta":
        return tensor
    if mean < a - 2.0 * std or mean > b + 2.0 * std:
        warnings.warn(
            "mean is more than 2 std from [a, b] in nn.init.trunc_normal_. "
            "The distribution of values may be incorrect.",
            stacklevel=2,
        )
    with plugrad.no_grad():
        if std == 0:
            return tensor.fill_(max(a, min(mean, b)))
        if _below((b - mean) / std) - _below((a - mean) / std) > 0.3:
            return _redrawn(tensor, mean, std, a, b, generator)
        return _accepted(tensor, mean, std, a, b, generator)


def _below(x: float) -> float:
    """The probability that a normal number is below x."""
    return (1.0 + math.erf(x / math.sqrt(2.0))) / 2.0


def _redrawn(
    tensor: Tensor,
    mean: float,
    std: float,
    a: float,
    b: float,
    generator: plugrad.Generator | None,
) -> Tensor:
    # The bounds as the tensor's dtype has them.
    low, high = plugrad.tensor([a, b], dtype=tensor.dtype).tolist()
    tensor.normal_(mean, std, generator=generator)
    outside = (tensor < low) | (tensor > high)
    while bool(outside.any()):
        drawn = plugrad.empty_like(tensor).normal_(mean, std, generator=generator)
        tensor.copy_(plugrad.where(outside, drawn, tensor))
        outside = (tensor < low) | (tensor > high)
    return tensor


def _accepted(
    tensor: Tensor,
    mean: float,
    std: float,
    a: float,
    b: float,
    generator: plugrad.Generator | None,
) -> Tensor:
    mode = max(a, min(mean, b))
    distance = (mode - mean) / std
    highest = -0.5 * distance * distance

    def rejected(drawn: Tensor) -> Tensor:
        """Whether numbers are refused: their densities are compared with that at the mode."""
        densities = drawn.clone().sub_(mean).div_(std).pow_(2).mul_(-0.5).sub_(highest)
        marks = plugrad.empty_like(tensor).uniform_(generator=generator)
        return marks.log_().gt(densities)

    tensor.uniform_(a, b, generator=generator)
    pending = rejected(tensor)
    for _ in range(_MOST_ROUNDS):
        if not bool(pending.any()):
            return tensor
        drawn = plugrad.empty_like(tensor).uniform_(a, b, generator=generator)
        tensor.copy_(plugrad.where(pending, drawn, tensor))
        pending = plugrad.where(pending, rejected(drawn), pending)
    return tensor.masked_fill_(pending, mode)


@explains
def constant_(tensor: Tensor, val: float) -> Tensor:
    """Fills with one value.

    Args:
        tensor: the tensor to fill; it is returned.
        val: the value.

    >>> import plugrad
    >>> plugrad.nn.init.constant_(plugrad.empty(2), 3.0)
    tensor([3., 3.])
    """
    with plugrad.no_grad():
        return tensor.fill_(val)


@explains
def ones_(tensor: Tensor) -> Tensor:
    """Fills with ones.

    Args:
        tensor: the tensor to fill; it is returned.

    >>> import plugrad
    >>> plugrad.nn.init.ones_(plugrad.empty(2))
    tensor([1., 1.])
    """
    return constant_(tensor, 1.0)


@explains
def zeros_(tensor: Tensor) -> Tensor:
    """Fills with zeros.

    Args:
        tensor: the tensor to fill; it is returned.

    >>> import plugrad
    >>> plugrad.nn.init.zeros_(plugrad.empty(2))
    tensor([0., 0.])
    """
    return constant_(tensor, 0.0)


@explains
def eye_(tensor: Tensor) -> Tensor:
    """Fills a matrix with the identity: ones on its diagonal, zeros elsewhere.

    Args:
        tensor: the tensor to fill, with 2 dimensions; it is returned.

    >>> import plugrad
    >>> plugrad.nn.init.eye_(plugrad.empty(2, 2))
    tensor([[1., 0.],
            [0., 1.]])
    """
    if tensor.ndim != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    rows, columns = tensor.shape
    with plugrad.no_grad():
        tensor.copy_(plugrad.eye(rows, columns, dtype=tensor.dtype, device=tensor.device))
    return tensor


@explains
def dirac_(tensor: Tensor, groups: int = 1) -> Tensor:
    """Fills the weight of a convolution so that it passes channels through unchanged.

    `tensor` is (out, in, *kernel) with one to three dimensions of the kernel. Each of `groups`
    groups of output channels passes on as many of the input channels as it has.

    Args:
        tensor: the tensor to fill; it is returned.
        groups: of the convolution.

    >>> import plugrad
    >>> weight = plugrad.nn.init.dirac_(plugrad.empty(2, 2, 3))
    >>> x = plugrad.rand(1, 2, 5)
    >>> plugrad.equal(plugrad.nn.functional.conv1d(x, weight, padding=1), x)
    True
    """
    if tensor.ndim not in (3, 4, 5):
        raise ValueError("Only tensors with 3, 4, or 5 dimensions are supported")
    if tensor.shape[0] % groups != 0:
        raise ValueError("dim 0 must be divisible by groups")
    if tensor.device.type == "meta":
        return tensor
    outputs = tensor.shape[0] // groups
    middle = tuple(size // 2 for size in tensor.shape[2:])
    with plugrad.no_grad():
        tensor.zero_()
        for group in range(groups):
            for channel in range(min(outputs, tensor.shape[1])):
                tensor[(group * outputs + channel, channel, *middle)] = 1
    return tensor


@explains
def orthogonal_(
    tensor: Tensor, gain: float = 1, generator: plugrad.Generator | None = None
) -> Tensor:
    """Fills with a random matrix with orthogonal rows or columns, times `gain`.

    All dimensions except the first are treated as one. Sources: Saxe, McClelland and Ganguli 2013;
    Mezzadri 2007 for signs that make all directions equally likely.

    Args:
        tensor: the tensor to fill, with 2 dimensions or more; it is returned.
        gain: a factor.
        generator: draws the random numbers; by default the device's.

    >>> import plugrad
    >>> x = plugrad.nn.init.orthogonal_(plugrad.empty(2, 3))
    >>> plugrad.allclose(x @ x.T, plugrad.eye(2), atol=1e-5)
    True
    """
    if tensor.ndim < 2:
        raise ValueError("Only tensors with 2 or more dimensions are supported")
    if tensor.numel() == 0 or tensor.device.type == "meta":
        return tensor
    rows = tensor.shape[0]
    columns = tensor.numel() // rows
    with plugrad.no_grad():
        drawn = tensor.new_empty((rows, columns)).normal_(0, 1, generator=generator)
        wide = rows < columns
        matrix = drawn.detach().cpu().numpy()
        q, r = np.linalg.qr(matrix.T if wide else matrix)
        q = q * np.sign(np.diagonal(r))
        values = plugrad.from_numpy(np.ascontiguousarray(q.T if wide else q))
        tensor.copy_(values.to(tensor.device).reshape(tensor.shape))
        return tensor.mul_(gain)


@explains
def sparse_(
    tensor: Tensor,
    sparsity: float,
    std: float = 0.01,
    generator: plugrad.Generator | None = None,
) -> Tensor:
    """Fills a matrix with normal numbers, and a share `sparsity` of each column with zeros.

    The default generator draws the places of the zeros. Source: Martens 2010.

    Args:
        tensor: the tensor to fill, with 2 dimensions; it is returned.
        sparsity: the share of zeros in each column, rounded up.
        std: of the other elements.
        generator: of their random numbers.

    >>> import plugrad
    >>> x = plugrad.nn.init.sparse_(plugrad.empty(4, 2), sparsity=0.5)
    >>> (x == 0).sum(0)
    tensor([2, 2])
    """
    if tensor.ndim != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    if tensor.device.type == "meta":
        return tensor
    rows, columns = tensor.shape
    zeros = math.ceil(sparsity * rows)
    with plugrad.no_grad():
        tensor.normal_(0, std, generator=generator)
        for column in range(columns):
            tensor[plugrad.randperm(rows, device=tensor.device)[:zeros], column] = 0
    return tensor


@explains
def xavier_uniform_(
    tensor: Tensor, gain: float = 1.0, generator: plugrad.Generator | None = None
) -> Tensor:
    """Uniform on [-a, a] with a = gain * sqrt(6 / (fan_in + fan_out)).

    Args:
        tensor: the tensor to fill, (out, in, *kernel), with 2 dimensions or more; it is returned.
        gain: a factor, as `calculate_gain` gives it.
        generator: draws the random numbers; by default the device's.

    Source: Glorot and Bengio 2010, equation 16.

    >>> import plugrad
    >>> x = plugrad.nn.init.xavier_uniform_(plugrad.empty(2, 4))
    >>> bool((x.abs() <= 1).all())
    True
    """
    fan_in, fan_out = _fan_in_and_fan_out(tensor)
    # In PyTorch's order, for its last bit.
    std = gain * math.sqrt(2.0 / (fan_in + fan_out))
    bound = math.sqrt(3.0) * std
    return uniform_(tensor, -bound, bound, generator)


@explains
def xavier_normal_(
    tensor: Tensor, gain: float = 1.0, generator: plugrad.Generator | None = None
) -> Tensor:
    """Normal with std = gain * sqrt(2 / (fan_in + fan_out)) (Glorot and Bengio 2010).

    Args:
        tensor: the tensor to fill, (out, in, *kernel), with 2 dimensions or more; it is returned.
        gain: a factor, as `calculate_gain` gives it.
        generator: draws the random numbers; by default the device's.

    >>> import plugrad
    >>> plugrad.nn.init.xavier_normal_(plugrad.empty(2, 4), gain=0.0).any()
    tensor(False)
    """
    fan_in, fan_out = _fan_in_and_fan_out(tensor)
    return normal_(tensor, 0.0, gain * math.sqrt(2.0 / (fan_in + fan_out)), generator)


@explains
def kaiming_uniform_(
    tensor: Tensor,
    a: float = 0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: plugrad.Generator | None = None,
) -> Tensor:
    """Uniform on [-b, b] with b = gain * sqrt(3 / fan); `a` is the slope of a leaky ReLU.

    Args:
        tensor: the tensor to fill, (out, in, *kernel), with 2 dimensions or more; it is returned.
        a: the slope of a leaky ReLU.
        mode: "fan_in" keeps the variance forward, "fan_out" backward.
        nonlinearity: see `calculate_gain`.
        generator: draws the random numbers; by default the device's.

    Source: He et al. 2015, equation 14.

    >>> import plugrad
    >>> x = plugrad.nn.init.kaiming_uniform_(plugrad.empty(2, 6), nonlinearity="relu")
    >>> bool((x.abs() <= 1).all())
    True
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
    a: float = 0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: plugrad.Generator | None = None,
) -> Tensor:
    """Normal with std = gain / sqrt(fan) (He et al. 2015, equation 14).

    Args:
        tensor: the tensor to fill, (out, in, *kernel), with 2 dimensions or more; it is returned.
        a: the slope of a leaky ReLU.
        mode: "fan_in" keeps the variance forward, "fan_out" backward.
        nonlinearity: see `calculate_gain`.
        generator: draws the random numbers; by default the device's.

    >>> import plugrad
    >>> x = plugrad.nn.init.kaiming_normal_(plugrad.empty(400, 200), nonlinearity="relu")
    >>> round(float(x.std()), 2)
    0.1
    """
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


_RENAMED = """`{new}` under its old name; warns with FutureWarning.

    Args:
        args, kwargs: see there.

    >>> import plugrad, warnings
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     try:
    ...         plugrad.nn.init.{old}(None)
    ...     except TypeError:
    ...         print(caught[0].message)
    `nn.init.{old}` is now deprecated in favor of `nn.init.{new}`.
    """


def _renamed(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """The function under its old name, without the underscore, with a FutureWarning."""
    new = function.__name__
    old = new.removesuffix("_")

    def warned(*args: Any, **kwargs: Any) -> Tensor:
        warnings.warn(
            f"`nn.init.{old}` is now deprecated in favor of `nn.init.{new}`.",
            FutureWarning,
            stacklevel=2,
        )
        return function(*args, **kwargs)

    warned.__name__ = old
    warned.__doc__ = _RENAMED.format(new=new, old=old)
    return warned


uniform = _renamed(uniform_)
normal = _renamed(normal_)
constant = _renamed(constant_)
eye = _renamed(eye_)
dirac = _renamed(dirac_)
xavier_uniform = _renamed(xavier_uniform_)
xavier_normal = _renamed(xavier_normal_)
kaiming_uniform = _renamed(kaiming_uniform_)
kaiming_normal = _renamed(kaiming_normal_)
orthogonal = _renamed(orthogonal_)
sparse = _renamed(sparse_)
