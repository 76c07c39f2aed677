"""Steps of recurrent layers, convolutions of sequences, and norms of weights."""

# Tensor dunders may return NotImplemented: Any.
# mypy: disable-error-code="no-any-return"

from __future__ import annotations

# Interpreted: loaded on demand.
import math
from typing import TYPE_CHECKING, Any

from plugrad._generated import functions as F
from plugrad.dtype import FLOATING, DType
from plugrad.ops.prepare.reductions import wrap_dim
from plugrad.tensor.base import sizes_of

if TYPE_CHECKING:
    from plugrad._generated.methods import TensorMethods as Tensor


def conv_tbc(self: Tensor, weight: Tensor, bias: Tensor, pad: int) -> Tensor:
    if self.ndim != 3:
        raise RuntimeError("Input must have 3 dims: time, batch, in_channel")
    if weight.ndim != 3:
        raise RuntimeError(
            "Weight tensor must have 3 dims: kernel_width, in_channels, out_channels."
        )
    if bias.ndim != 1:
        raise RuntimeError("Bias must be 1-D")
    width, channels, outputs = sizes_of(weight)
    if sizes_of(self)[2] != channels:
        raise RuntimeError("Input dim 2 (input channels) is not == dim 1 in the weight tensor")
    if sizes_of(bias)[0] != outputs:
        raise RuntimeError("Bias size must equal dim 2 in the weight tensor (output channels).")
    x: Any = self
    if pad:
        x = F.constant_pad_nd(x, (0, 0, 0, 0, pad, pad))
    length = sizes_of(x)[0] - width + 1
    if length < 0:
        raise RuntimeError(
            f"conv_tbc(): the weight is {width} wide, but the padded input {sizes_of(x)[0]} long"
        )
    # The sum over one place of the kernel after the other: a matrix product each.
    total: Any = bias.expand((length, sizes_of(self)[1], outputs))
    for place in range(width):
        total = total + F.matmul(x.narrow(0, place, length), weight.select(0, place))
    return total if width else total.clone()


def safe_softmax(self: Tensor, dim: int, dtype: DType | None) -> Tensor:
    # As zeros, such rows have a gradient that is not nan.
    lost: Any = F.all(F.eq(self.detach(), -math.inf), dim, True)
    known = F.softmax(F.masked_fill(self, lost, 0), dim, dtype=dtype)
    return F.masked_fill(known, lost, 0)


def norm_except_dim(v: Tensor, pow: int, dim: int) -> Tensor:
    if dim == -1:
        return F.linalg_vector_norm(v, pow, None, False)
    place = wrap_dim(dim, v.ndim)
    others = tuple([item for item in range(v.ndim) if item != place])
    if not others:
        return F.abs(v)
    return F.linalg_vector_norm(v, pow, others, True)


def weight_norm(v: Tensor, g: Tensor, dim: int) -> Tensor:
    return v * (g / F.norm_except_dim(v, 2, dim))


def _check_cell(input: Any, states: list[Any], weights: tuple[Any, ...], gates: int) -> None:
    """RuntimeError with PyTorch's message unless the weights fit a cell with this number of
    gates."""
    w_ih, w_hh = weights[:2]
    width, hidden = w_ih.size(1), w_hh.size(1)
    if input.size(1) != width:
        raise RuntimeError(
            f"input has inconsistent input_size: got {input.size(1)} expected {width}"
        )
    for name, weight in (("weight_ih", w_ih), ("weight_hh", w_hh)):
        if weight.size(0) != gates * hidden:
            raise RuntimeError(
                f"{name} first dim must be {gates} * hidden_size = {gates * hidden}, but got "
                f"{weight.size(0)}"
            )
    for number, state in enumerate(states):
        if input.size(0) != state.size(0):
            raise RuntimeError(
                f"Input batch size {input.size(0)} doesn't match hidden{number} batch size "
                f"{state.size(0)}"
            )
        if state.size(1) != hidden:
            raise RuntimeError(
                f"hidden{number} has inconsistent hidden_size: got {state.size(1)}, expected "
                f"{hidden}"
            )


def _gates(input: Tensor, hx: Tensor, weights: tuple[Any, ...]) -> tuple[Any, Any]:
    w_ih, w_hh, b_ih, b_hh = weights
    return F.linear(input, w_ih, b_ih), F.linear(hx, w_hh, b_hh)


def _floating_gates(input: Tensor, hx: Tensor, weights: tuple[Any, ...]) -> tuple[Any, Any]:
    of_input, of_state = _gates(input, hx, weights)
    if of_input.dtype.category < FLOATING:
        raise RuntimeError(
            "result type Float can't be cast to the desired output type "
            f"{of_input.dtype.scalar_name}"
        )
    return of_input, of_state


def rnn_tanh_cell(input: Tensor, hx: Tensor, *weights: Any) -> Tensor:
    _check_cell(input, [hx], weights, 1)
    of_input, of_state = _gates(input, hx, weights)
    return F.tanh(of_input + of_state)


def rnn_relu_cell(input: Tensor, hx: Tensor, *weights: Any) -> Tensor:
    _check_cell(input, [hx], weights, 1)
    of_input, of_state = _gates(input, hx, weights)
    return F.relu(of_input + of_state)


def gru_cell(input: Tensor, hx: Tensor, *weights: Any) -> Tensor:
    _check_cell(input, [hx], weights, 3)
    of_input, of_state = _floating_gates(input, hx, weights)
    reset_i, update_i, new_i = F.chunk(of_input, 3, 1)
    reset_h, update_h, new_h = F.chunk(of_state, 3, 1)
    reset = F.sigmoid(reset_i + reset_h)
    update = F.sigmoid(update_i + update_h)
    new = F.tanh(new_i + reset * new_h)
    return new + update * (hx - new)


def lstm_cell(input: Tensor, hx: list[Tensor], *weights: Any) -> tuple[Tensor, Tensor]:
    if len(hx) != 2:
        raise RuntimeError("lstm_cell expects two hidden states")
    _check_cell(input, list(hx), weights, 4)
    of_input, of_state = _floating_gates(input, hx[0], weights)
    enter, forget, new, leave = F.chunk(of_input + of_state, 4, 1)
    cell: Any = F.sigmoid(forget) * hx[1] + F.sigmoid(enter) * F.tanh(new)
    return F.sigmoid(leave) * F.tanh(cell), cell
