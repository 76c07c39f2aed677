"""Single steps of recurrent layers as modules: RNNCell, LSTMCell, GRUCell."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import plugrad
from plugrad import Tensor
from plugrad_nn.nn import init
from plugrad_nn.nn.module import Module
from plugrad_nn.nn.parameter import Parameter


class RNNCellBase(Module):
    """The base of the cells: weights, and inputs with a batch (B, I) or without (I).

    Args:
        input_size: I.
        hidden_size: H, the size of a state (B, H) or (H); states start at zero by default.
        bias: add `bias_ih` and `bias_hh`.
        num_chunks: how many gates of width H a row of the weights holds.

    All weights start uniform on [-k, k] with k = 1 / sqrt(hidden_size).

    >>> import plugrad
    >>> cell = plugrad.nn.RNNCellBase(3, 4, bias=True, num_chunks=2)
    >>> cell.weight_ih.shape
    plugrad.Size([8, 3])
    """

    weight_ih: Parameter
    weight_hh: Parameter
    bias_ih: Parameter | None
    bias_hh: Parameter | None

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool,
        num_chunks: int,
        device: Any = None,
        dtype: plugrad.dtype | None = None,
    ) -> None:
        super().__init__()
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.bias = bias
        rows = num_chunks * hidden_size
        for name, shape in (("weight_ih", (rows, input_size)), ("weight_hh", (rows, hidden_size))):
            made = plugrad.empty(shape, device=device, dtype=dtype)
            self.register_parameter(name, Parameter(made))
        for name in ("bias_ih", "bias_hh"):
            shift = Parameter(plugrad.empty(rows, device=device, dtype=dtype)) if bias else None
            self.register_parameter(name, shift)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws the initial weights again."""
        bound = 1 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    def _check(self, input: Tensor, states: tuple[Tensor, ...]) -> None:
        """Raises PyTorch's errors; input (B, I), states (B, H)."""
        if input.shape[1] != self.input_size:
            raise RuntimeError(
                f"input has inconsistent input_size: got {input.shape[1]} expected "
                f"{self.input_size}"
            )
        for place, state in enumerate(states):
            if state.shape[0] != input.shape[0]:
                raise RuntimeError(
                    f"Input batch size {input.shape[0]} doesn't match hidden{place} batch size "
                    f"{state.shape[0]}"
                )
            if state.shape[1] != self.hidden_size:
                raise RuntimeError(
                    f"hidden{place} has inconsistent hidden_size: got {state.shape[1]}, expected "
                    f"{self.hidden_size}"
                )

    def _check_ranks(self, input: Tensor, states: dict[str, Tensor]) -> None:
        for name, tensor in {"input": input, **states}.items():
            if tensor.dim() not in (1, 2):
                raise ValueError(
                    f"{type(self).__name__}: Expected {name} to be 1D or 2D, got "
                    f"{tensor.dim()}D instead"
                )

    def _zeros(self, input: Tensor) -> Tensor:
        shape = (*input.shape[:-1], self.hidden_size)
        return plugrad.zeros(shape, dtype=input.dtype, device=input.device)

    def _weights(self) -> tuple[Parameter, Parameter, Parameter | None, Parameter | None]:
        return self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh

    def extra_repr(self) -> str:
        return f"{self.input_size}, {self.hidden_size}" + ("" if self.bias else ", bias=False")


class _OneState(RNNCellBase):
    """A cell with the hidden state as its only state."""

    def _operator(self) -> Any:
        raise NotImplementedError

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        """The next hidden state."""
        self._check_ranks(input, {} if hx is None else {"hidden": hx})
        hidden = self._zeros(input) if hx is None else hx
        batched = input.dim() == 2
        if not batched:
            input, hidden = input.unsqueeze(0), hidden.unsqueeze(0)
        if hidden.dim() != 2:
            raise RuntimeError(
                f"Expected hidden to be {2 if batched else 1}D, got {hidden.dim()}D instead"
            )
        self._check(input, (hidden,))
        result: Tensor = self._operator()(input, hidden, *self._weights())
        return result if batched else result.squeeze(0)


class RNNCell(_OneState):
    """One step of `RNN`: h' = tanh(W_ih x + b_ih + W_hh h + b_hh), or relu for tanh.

    Shapes and arguments are the same as for `RNNCellBase`; `nonlinearity` is "tanh" or "relu".

    >>> import plugrad
    >>> plugrad.nn.RNNCell(3, 4)(plugrad.ones(2, 3)).shape
    plugrad.Size([2, 4])
    """

    _OPERATORS: ClassVar[dict[str, str]] = {"tanh": "rnn_tanh_cell", "relu": "rnn_relu_cell"}

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        nonlinearity: str = "tanh",
        device: Any = None,
        dtype: plugrad.dtype | None = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 1, device, dtype)
        self.nonlinearity = nonlinearity

    def _operator(self) -> Any:
        if self.nonlinearity not in self._OPERATORS:
            raise RuntimeError(f"Unknown nonlinearity: {self.nonlinearity}")
        return getattr(plugrad, self._OPERATORS[self.nonlinearity])

    def extra_repr(self) -> str:
        kind = "" if self.nonlinearity == "tanh" else f", nonlinearity={self.nonlinearity}"
        return super().extra_repr() + kind


class GRUCell(_OneState):
    """One step of `GRU`; shapes and arguments are the same as for `RNNCellBase`.

    >>> import plugrad
    >>> plugrad.nn.GRUCell(3, 4)(plugrad.ones(3)).shape
    plugrad.Size([4])
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        device: Any = None,
        dtype: plugrad.dtype | None = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 3, device, dtype)

    def _operator(self) -> Any:
        return plugrad.gru_cell


class LSTMCell(RNNCellBase):
    """One step of `LSTM`; the state is a pair (h, c) of shape (B, H) or (H) each.

    >>> import plugrad
    >>> h, c = plugrad.nn.LSTMCell(3, 4)(plugrad.ones(2, 3))
    >>> h.shape, c.shape
    (plugrad.Size([2, 4]), plugrad.Size([2, 4]))
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        device: Any = None,
        dtype: plugrad.dtype | None = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 4, device, dtype)

    def forward(
        self, input: Tensor, hx: tuple[Tensor, Tensor] | None = None
    ) -> tuple[Tensor, Tensor]:
        """The next hidden state and the next cell state."""
        given = {} if hx is None else {f"hx[{place}]": state for place, state in enumerate(hx)}
        self._check_ranks(input, given)
        states = (self._zeros(input), self._zeros(input)) if hx is None else hx
        batched = input.dim() == 2
        if not batched:
            input = input.unsqueeze(0)
            states = (states[0].unsqueeze(0), states[1].unsqueeze(0))
        self._check(input, states)
        hidden, cell = plugrad.lstm_cell(input, list(states), *self._weights())
        return (hidden, cell) if batched else (hidden.squeeze(0), cell.squeeze(0))
