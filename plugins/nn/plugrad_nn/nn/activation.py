"""Activations as modules: each applies the function of the same name in `functional`."""

from __future__ import annotations

import warnings
from typing import Any, Final

import plugrad
from plugrad import Tensor
from plugrad_nn.nn import functional as F
from plugrad_nn.nn.module import Module
from plugrad_nn.nn.parameter import Parameter

_RENAMED: Final = "keyword argument `{0}_value` is deprecated and renamed to `{0}_val`"


class _InplaceActivation(Module):
    """An activation that can overwrite its input; `inplace` is printed only when set."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace

    def extra_repr(self) -> str:
        return "inplace=True" if self.inplace else ""


class ReLU(_InplaceActivation):
    """max(x, 0).

    >>> import plugrad
    >>> plugrad.nn.ReLU()(plugrad.tensor([-2.0, 0.5]))
    tensor([0.0000, 0.5000])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.relu(input, self.inplace)


class SiLU(_InplaceActivation):
    """x * sigmoid(x).

    >>> import plugrad
    >>> plugrad.nn.SiLU()(plugrad.tensor([-2.0, 0.5]))
    tensor([-0.2384,  0.3112])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.silu(input, self.inplace)


class LeakyReLU(_InplaceActivation):
    """x where positive, `negative_slope * x` elsewhere.

    >>> import plugrad
    >>> plugrad.nn.LeakyReLU()(plugrad.tensor([-2.0, 0.5]))
    tensor([-0.0200,  0.5000])
    """

    def __init__(self, negative_slope: float = 1e-2, inplace: bool = False) -> None:
        super().__init__(inplace)
        self.negative_slope = negative_slope

    def forward(self, input: Tensor) -> Tensor:
        return F.leaky_relu(input, self.negative_slope, self.inplace)

    def extra_repr(self) -> str:
        return _join(f"negative_slope={self.negative_slope}", super().extra_repr())


class ELU(_InplaceActivation):
    """x where positive, `alpha * (exp(x) - 1)` elsewhere.

    >>> import plugrad
    >>> plugrad.nn.ELU()(plugrad.tensor([-2.0, 0.5]))
    tensor([-0.8647,  0.5000])
    """

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__(inplace)
        self.alpha = alpha

    def forward(self, input: Tensor) -> Tensor:
        return F.elu(input, self.alpha, self.inplace)

    def extra_repr(self) -> str:
        return _join(f"alpha={self.alpha}", super().extra_repr())


class ReLU6(_InplaceActivation):
    """min(max(x, 0), 6).

    >>> import plugrad
    >>> plugrad.nn.ReLU6()(plugrad.tensor([-2.0, 0.5]))
    tensor([0.0000, 0.5000])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.relu6(input, self.inplace)


class SELU(_InplaceActivation):
    """The scaled ELU that keeps mean 0 and variance 1 (Klambauer et al. 2017).

    >>> import plugrad
    >>> plugrad.nn.SELU()(plugrad.tensor([-2.0, 0.5]))
    tensor([-1.5202,  0.5254])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.selu(input, self.inplace)


class Mish(_InplaceActivation):
    """x * tanh(softplus(x)).

    >>> import plugrad
    >>> plugrad.nn.Mish()(plugrad.tensor([-2.0, 0.5]))
    tensor([-0.2525,  0.3752])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.mish(input, self.inplace)


class Hardsigmoid(_InplaceActivation):
    """min(max(x + 3, 0), 6) / 6.

    >>> import plugrad
    >>> plugrad.nn.Hardsigmoid()(plugrad.tensor([-2.0, 0.5]))
    tensor([0.1667, 0.5833])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.hardsigmoid(input, self.inplace)

    def extra_repr(self) -> str:
        return ""


class Hardswish(_InplaceActivation):
    """x * hardsigmoid(x).

    >>> import plugrad
    >>> plugrad.nn.Hardswish()(plugrad.tensor([-2.0, 0.5]))
    tensor([-0.3333,  0.2917])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.hardswish(input, self.inplace)

    def extra_repr(self) -> str:
        return ""


class CELU(_InplaceActivation):
    """x where positive, `alpha * (exp(x / alpha) - 1)` elsewhere.

    >>> import plugrad
    >>> plugrad.nn.CELU()(plugrad.tensor([-2.0, 0.5]))
    tensor([-0.8647,  0.5000])
    """

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__(inplace)
        self.alpha = alpha

    def forward(self, input: Tensor) -> Tensor:
        return F.celu(input, self.alpha, self.inplace)

    def extra_repr(self) -> str:
        return _join(f"alpha={self.alpha}", super().extra_repr())


class RReLU(_InplaceActivation):
    """x where positive, else a multiple of x: by a random factor in training, otherwise by its
    mean.

    Args:
        lower, upper: between which the factor is drawn.

    >>> import plugrad
    >>> plugrad.nn.RReLU(0.25, 0.25)(plugrad.tensor([-2.0, 0.5]))
    tensor([-0.5000,  0.5000])
    """

    def __init__(
        self, lower: float = 1.0 / 8, upper: float = 1.0 / 3, inplace: bool = False
    ) -> None:
        super().__init__(inplace)
        self.lower = lower
        self.upper = upper

    def forward(self, input: Tensor) -> Tensor:
        return F.rrelu(input, self.lower, self.upper, self.training, self.inplace)

    def extra_repr(self) -> str:
        return _join(f"lower={self.lower}, upper={self.upper}", super().extra_repr())


class Hardtanh(_InplaceActivation):
    """x, held between `min_val` and `max_val`; `min_value` and `max_value` are their old names.

    >>> import plugrad
    >>> plugrad.nn.Hardtanh()(plugrad.tensor([-2.0, 0.5]))
    tensor([-1.0000,  0.5000])
    """

    def __init__(
        self,
        min_val: float = -1.0,
        max_val: float = 1.0,
        inplace: bool = False,
        min_value: float | None = None,
        max_value: float | None = None,
    ) -> None:
        super().__init__(inplace)
        if min_value is not None:
            warnings.warn(_RENAMED.format("min"), FutureWarning, stacklevel=2)
            min_val = min_value
        if max_value is not None:
            warnings.warn(_RENAMED.format("max"), FutureWarning, stacklevel=2)
            max_val = max_value
        if min_val > max_val:
            raise AssertionError(f"max_val ({max_val}) must be greater than min_val ({min_val})")
        self.min_val = min_val
        self.max_val = max_val

    def forward(self, input: Tensor) -> Tensor:
        return F.hardtanh(input, self.min_val, self.max_val, self.inplace)

    def extra_repr(self) -> str:
        return _join(f"min_val={self.min_val}, max_val={self.max_val}", super().extra_repr())


class Threshold(_InplaceActivation):
    """x where above `threshold`, `value` elsewhere.

    >>> import plugrad
    >>> plugrad.nn.Threshold(0.1, 20.0)(plugrad.tensor([-2.0, 0.5]))
    tensor([20.0000,  0.5000])
    """

    def __init__(self, threshold: float, value: float, inplace: bool = False) -> None:
        super().__init__(inplace)
        self.threshold = threshold
        self.value = value

    def forward(self, input: Tensor) -> Tensor:
        return F.threshold(input, self.threshold, self.value, self.inplace)

    def extra_repr(self) -> str:
        return _join(f"threshold={self.threshold}, value={self.value}", super().extra_repr())


def _join(first: str, second: str) -> str:
    return f"{first}, {second}" if second else first


class GELU(Module):
    """x * Phi(x), Phi the normal distribution function; `approximate` is "none" or "tanh".

    >>> import plugrad
    >>> plugrad.nn.GELU()(plugrad.tensor([-2.0, 0.5]))
    tensor([-0.0455,  0.3457])
    """

    def __init__(self, approximate: str = "none") -> None:
        super().__init__()
        self.approximate = approximate

    def forward(self, input: Tensor) -> Tensor:
        return F.gelu(input, approximate=self.approximate)

    def extra_repr(self) -> str:
        return f"approximate={self.approximate!r}"


class Softsign(Module):
    """x / (1 + |x|).

    >>> import plugrad
    >>> plugrad.nn.Softsign()(plugrad.tensor([-2.0, 0.5]))
    tensor([-0.6667,  0.3333])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.softsign(input)


class Tanhshrink(Module):
    """x - tanh(x).

    >>> import plugrad
    >>> plugrad.nn.Tanhshrink()(plugrad.tensor([-2.0, 0.5]))
    tensor([-1.0360,  0.0379])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.tanhshrink(input)


class _Shrink(Module):
    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__()
        self.lambd = lambd

    def extra_repr(self) -> str:
        return f"{self.lambd}"


class Hardshrink(_Shrink):
    """x where its absolute value exceeds `lambd`, 0 elsewhere.

    >>> import plugrad
    >>> plugrad.nn.Hardshrink()(plugrad.tensor([-2.0, 0.5]))
    tensor([-2.,  0.])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.hardshrink(input, self.lambd)


class Softshrink(_Shrink):
    """x moved toward 0 by `lambd`, and 0 where that would cross it.

    >>> import plugrad
    >>> plugrad.nn.Softshrink()(plugrad.tensor([-2.0, 0.5]))
    tensor([-1.5000,  0.0000])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.softshrink(input, self.lambd)


class Sigmoid(Module):
    """1 / (1 + exp(-x)).

    >>> import plugrad
    >>> plugrad.nn.Sigmoid()(plugrad.tensor([-2.0, 0.5]))
    tensor([0.1192, 0.6225])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.sigmoid(input)


class Tanh(Module):
    """The hyperbolic tangent.

    >>> import plugrad
    >>> plugrad.nn.Tanh()(plugrad.tensor([-2.0, 0.5]))
    tensor([-0.9640,  0.4621])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.tanh(input)


class LogSigmoid(Module):
    """log(sigmoid(x)), computed without overflow.

    >>> import plugrad
    >>> plugrad.nn.LogSigmoid()(plugrad.tensor([-2.0, 0.5]))
    tensor([-2.1269, -0.4741])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.logsigmoid(input)


class GLU(Module):
    """a * sigmoid(b), a and b the halves of x along `dim` (Dauphin et al. 2017).

    >>> import plugrad
    >>> plugrad.nn.GLU()(plugrad.tensor([1.0, 2.0, 0.0, 0.0]))
    tensor([0.5000, 1.0000])
    """

    def __init__(self, dim: int = -1) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, input: Tensor) -> Tensor:
        return F.glu(input, self.dim)

    def extra_repr(self) -> str:
        return f"dim={self.dim}"


class PReLU(Module):
    """x where positive, a learned weight times x elsewhere (He et al. 2015).

    Args:
        num_parameters: 1, or the number of channels (dimension 1).
        init: the initial value of the weights.

    >>> import plugrad
    >>> plugrad.nn.PReLU()(plugrad.tensor([-2.0, 0.5])).tolist()
    [-0.5, 0.5]
    """

    weight: Parameter

    def __init__(
        self,
        num_parameters: int = 1,
        init: float = 0.25,
        device: Any = None,
        dtype: plugrad.dtype | None = None,
    ) -> None:
        super().__init__()
        self.num_parameters = num_parameters
        self.init = init
        self.weight = Parameter(plugrad.empty(num_parameters, device=device, dtype=dtype))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Back to the weights that it started with."""
        with plugrad.no_grad():
            self.weight.fill_(self.init)

    def forward(self, input: Tensor) -> Tensor:
        return F.prelu(input, self.weight)

    def extra_repr(self) -> str:
        return f"num_parameters={self.num_parameters}"


class Softplus(Module):
    """log(1 + exp(beta * x)) / beta, and x itself where beta * x exceeds `threshold`.

    >>> import plugrad
    >>> plugrad.nn.Softplus()(plugrad.tensor([-2.0, 0.5]))
    tensor([0.1269, 0.9741])
    """

    def __init__(self, beta: float = 1.0, threshold: float = 20.0) -> None:
        super().__init__()
        self.beta = beta
        self.threshold = threshold

    def forward(self, input: Tensor) -> Tensor:
        return F.softplus(input, self.beta, self.threshold)

    def extra_repr(self) -> str:
        return f"beta={self.beta}, threshold={self.threshold}"


class _AlongDim(Module):
    def __init__(self, dim: int | None = None) -> None:
        super().__init__()
        self.dim = dim

    def extra_repr(self) -> str:
        return f"dim={self.dim}"


class Softmax(_AlongDim):
    """exp(x) / sum(exp(x)) along `dim`.

    >>> import plugrad
    >>> plugrad.nn.Softmax(dim=0)(plugrad.tensor([0.0, 0.0]))
    tensor([0.5000, 0.5000])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.softmax(input, self.dim)


class LogSoftmax(_AlongDim):
    """log(softmax(x)) along `dim`.

    >>> import plugrad
    >>> plugrad.nn.LogSoftmax(dim=0)(plugrad.tensor([0.0, 0.0]))
    tensor([-0.6931, -0.6931])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.log_softmax(input, self.dim)


class Softmin(_AlongDim):
    """softmax(-x) along `dim`.

    >>> import plugrad
    >>> plugrad.nn.Softmin(dim=0)(plugrad.tensor([0.0, 0.0]))
    tensor([0.5000, 0.5000])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.softmin(input, self.dim)


class Softmax2d(Module):
    """softmax along the channels of images (N, C, H, W) or (C, H, W).

    >>> import plugrad
    >>> plugrad.nn.Softmax2d()(plugrad.ones(1, 3, 2, 2)).shape
    plugrad.Size([1, 3, 2, 2])
    """

    def forward(self, input: Tensor) -> Tensor:
        if input.dim() not in (3, 4):
            raise ValueError(
                f"Softmax2d: expected input to be 3D or 4D, got {input.dim()}D instead"
            )
        return F.softmax(input, -3)
