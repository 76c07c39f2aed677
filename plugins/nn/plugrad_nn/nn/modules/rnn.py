"""Recurrent layers over sequences: RNN, LSTM and GRU, and RNNBase below them."""

from __future__ import annotations

import math
import warnings
from numbers import Number
from typing import Any, ClassVar

import plugrad
from plugrad import Tensor
from plugrad_nn.nn import init
from plugrad_nn.nn.functions.recurrent import State, run_layers
from plugrad_nn.nn.module import Module
from plugrad_nn.nn.parameter import Parameter
from plugrad_nn.nn.utils.rnn import PackedSequence

# How many gates of width H a row of the weights holds.
_GATES = {"LSTM": 4, "GRU": 3, "RNN_TANH": 1, "RNN_RELU": 1}
_NO_PROJECTION = "proj_size argument is only supported for LSTM, not RNN or GRU"


class RNNBase(Module):
    """The base of RNN, LSTM and GRU, which differ in `mode` and in their states.

    The input is (T, B, I); with `batch_first` (B, T, I); without a batch (T, I); or a
    `PackedSequence` of sequences of several lengths. Outputs have D * H in place of I, with D = 2
    if `bidirectional`, else 1. States are (num_layers * D, B, H), or without a batch (num_layers *
    D, H); by default they start at zero.

    Args:
        input_size: I.
        hidden_size: H.
        num_layers: layers on top of each other; each takes the outputs of the one below.
        bias: add `bias_ih_l{k}` and `bias_hh_l{k}`; only cuDNN distinguishes the two.
        batch_first: the batch is the first dimension of inputs and outputs, not of states.
        dropout: in training, the probability of zeroing an output of each layer but the last.
        bidirectional: run a second set of weights, `..._reverse`, from the end.
        proj_size: P, if not 0: outputs and hidden states of an LSTM are multiplied by
            `weight_hr_l{k}` (P, H), so have P for H.

    All weights start uniform on [-k, k] with k = 1 / sqrt(hidden_size).

    >>> import plugrad
    >>> layer = plugrad.nn.RNNBase("GRU", 3, 4, bidirectional=True)
    >>> len(layer.all_weights), layer.weight_ih_l0.shape
    (2, plugrad.Size([12, 3]))
    """

    _kind: ClassVar[str]

    def __init__(
        self,
        mode: str,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device: Any = None,
        dtype: plugrad.dtype | None = None,
    ) -> None:
        super().__init__()
        self.mode = mode
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.num_layers = num_layers
        self.bias = bias
        self.batch_first = batch_first
        self.dropout = float(dropout)
        self.bidirectional = bidirectional
        self.proj_size = proj_size
        self._check_arguments(dropout)
        if not isinstance(mode, str) or mode not in _GATES:
            raise ValueError(f"Unrecognized RNN mode: {mode}")
        self._all_weights: list[list[str]] = []
        width = proj_size or hidden_size
        rows = _GATES[mode] * hidden_size
        for layer in range(num_layers):
            columns = input_size if layer == 0 else width * self._directions
            shapes: dict[str, tuple[int, ...]]
            shapes = {"weight_ih": (rows, columns), "weight_hh": (rows, width)}
            if bias:
                shapes |= {"bias_ih": (rows,), "bias_hh": (rows,)}
            if proj_size:
                shapes["weight_hr"] = (proj_size, hidden_size)
            for suffix in ("", "_reverse")[: self._directions]:
                names = [f"{kind}_l{layer}{suffix}" for kind in shapes]
                for name, shape in zip(names, shapes.values(), strict=True):
                    made = plugrad.empty(shape, device=device, dtype=dtype)
                    self.register_parameter(name, Parameter(made))
                self._all_weights.append(names)
        self.reset_parameters()

    @property
    def _directions(self) -> int:
        return 2 if self.bidirectional else 1

    def _check_arguments(self, dropout: object) -> None:
        number = isinstance(dropout, Number) and not isinstance(dropout, bool)
        if not number or not 0 <= self.dropout <= 1:
            raise ValueError(
                "dropout should be a number in range [0, 1] representing the probability of an "
                "element being zeroed"
            )
        if self.dropout > 0 and self.num_layers == 1:
            warnings.warn(
                "dropout option adds dropout after all but last recurrent layer, so non-zero "
                f"dropout expects num_layers greater than 1, but got dropout={dropout} and "
                f"num_layers={self.num_layers}",
                stacklevel=4,
            )
        for name, kind in (("bias", bool), ("batch_first", bool)):
            _check_type(name, getattr(self, name), kind)
        for name in ("input_size", "hidden_size"):
            _check_type(name, getattr(self, name), int)
            if getattr(self, name) <= 0:
                raise ValueError(f"{name} must be greater than zero")
        if self.num_layers <= 0:
            raise ValueError("num_layers must be greater than zero")
        if self.proj_size < 0:
            raise ValueError(
                "proj_size should be a positive integer or zero to disable projections"
            )
        if self.proj_size >= self.hidden_size:
            raise ValueError("proj_size has to be smaller than hidden_size")

    def reset_parameters(self) -> None:
        """Draws the initial weights again."""
        bound = 1 / math.sqrt(self.hidden_size)
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    def flatten_parameters(self) -> None:
        """Does nothing: only cuDNN needs the weights in one piece of memory."""

    @property
    def all_weights(self) -> list[list[Parameter]]:
        """The weights by layer and direction.

        >>> import plugrad
        >>> [[weight.shape for weight in layer] for layer in plugrad.nn.RNN(2, 3).all_weights]
        [[plugrad.Size([3, 2]), plugrad.Size([3, 3]), plugrad.Size([3]), plugrad.Size([3])]]
        """
        return [[getattr(self, name) for name in names] for names in self._all_weights]

    def forward(self, input: Any, hx: Any = None) -> Any:
        """The outputs of the last layer, and the last states of all layers."""
        states: State | None = None if hx is None else self._as_states(hx)
        packed = isinstance(input, PackedSequence)
        order = back = sizes = None
        if packed:
            input, batch_sizes, order, back = input
            sizes = batch_sizes.tolist()
        batched = packed or input.dim() == 3
        if not packed:
            self._check_rank(input)
            self._check_ranks_of_states(states, batched)
        batch_dim = 0 if self.batch_first else 1
        if not batched:
            input = input.unsqueeze(batch_dim)
            states = None if states is None else tuple(state.unsqueeze(1) for state in states)
        batch = sizes[0] if sizes is not None else input.shape[batch_dim]
        if states is None:
            states = tuple(
                plugrad.zeros(shape, dtype=input.dtype, device=input.device)
                for shape in self._shapes_of_states(batch)
            )
        self._check_values(input, 2 if packed else 3)
        self._check_shapes_of_states(states, batch)
        if order is not None:
            states = tuple(state.index_select(1, order) for state in states)
        time_first = input.transpose(0, 1) if self.batch_first and not packed else input
        if time_first.shape[0] == 0:
            raise RuntimeError("Expected sequence length to be larger than 0 in RNN")
        output, states = run_layers(
            self.mode,
            time_first,
            sizes,
            states,
            self.all_weights,
            self.bias,
            self._directions,
            self.dropout if self.training else 0.0,
        )
        if packed:
            if back is not None:
                states = tuple(state.index_select(1, back) for state in states)
            return PackedSequence(output, batch_sizes, order, back), self._as_given(states)
        if self.batch_first:
            output = output.transpose(0, 1)
        if not batched:
            output = output.squeeze(batch_dim)
            states = tuple(state.squeeze(1) for state in states)
        return output, self._as_given(states)

    def _as_states(self, hx: Any) -> State:
        return (hx,)

    def _as_given(self, states: State) -> Any:
        return states[0]

    def _shapes_of_states(self, batch: int) -> list[tuple[int, int, int]]:
        return [(self.num_layers * self._directions, batch, self.proj_size or self.hidden_size)]

    def _check_rank(self, input: Tensor) -> None:
        if input.dim() not in (2, 3):
            tensor = " tensor" if self._kind == "RNN" else ""
            raise ValueError(
                f"{self._kind}: Expected input to be 2D or 3D, got {input.dim()}D{tensor} instead"
            )

    def _check_ranks_of_states(self, states: State | None, batched: bool) -> None:
        rank, kind = (3, "batched") if batched else (2, "unbatched")
        if states is not None and states[0].dim() != rank:
            raise RuntimeError(
                f"For {kind} {rank}-D input, hx should also be {rank}-D but got "
                f"{states[0].dim()}-D tensor"
            )

    def _check_values(self, input: Tensor, rank: int) -> None:
        dtype = getattr(self, self._all_weights[0][0]).dtype
        if input.dtype != dtype and not plugrad.is_autocast_enabled(input.device.type):
            raise ValueError(
                f"RNN input dtype ({input.dtype}) does not match weight dtype ({dtype}). "
                f"Convert input: input.to({dtype}), or convert model: model.to({input.dtype})"
            )
        if input.dim() != rank:
            raise RuntimeError(f"input must have {rank} dimensions, got {input.dim()}")
        if input.shape[-1] != self.input_size:
            raise RuntimeError(
                "input.size(-1) must be equal to input_size. Expected "
                f"{self.input_size}, got {input.shape[-1]}"
            )

    def _check_shapes_of_states(self, states: State, batch: int) -> None:
        for place, (state, shape) in enumerate(
            zip(states, self._shapes_of_states(batch), strict=True)
        ):
            if tuple(state.shape) != shape:
                which = f"hidden[{place}]" if len(states) > 1 else "hidden"
                raise RuntimeError(f"Expected {which} size {shape}, got {list(state.shape)}")

    # PyTorch's names for these checks; layers that inherit from these call them.

    def check_input(self, input: Tensor, batch_sizes: Tensor | None) -> None:
        """Raises ValueError or RuntimeError for a wrong dtype, rank or width of the input."""
        self._check_values(input, 3 if batch_sizes is None else 2)

    def get_expected_hidden_size(
        self, input: Tensor, batch_sizes: Tensor | None
    ) -> tuple[int, int, int]:
        """The shape of the hidden states for an input, or one that is packed."""
        return self._shapes_of_states(self._batch_of(input, batch_sizes))[0]

    def check_hidden_size(
        self,
        hx: Tensor,
        expected_hidden_size: tuple[int, int, int],
        msg: str = "Expected hidden size {}, got {}",
    ) -> None:
        """Raises RuntimeError for states of another shape."""
        if tuple(hx.shape) != tuple(expected_hidden_size):
            raise RuntimeError(msg.format(expected_hidden_size, list(hx.shape)))

    def check_forward_args(self, input: Tensor, hidden: Any, batch_sizes: Tensor | None) -> None:
        """Raises ValueError or RuntimeError for a wrong input or wrong states."""
        self.check_input(input, batch_sizes)
        batch = self._batch_of(input, batch_sizes)
        self._check_shapes_of_states(self._as_states(hidden), batch)

    def permute_hidden(self, hx: Any, permutation: Tensor | None) -> Any:
        """The states with their batch in another order."""
        if permutation is None:
            return hx
        return self._as_given(
            tuple(state.index_select(1, permutation) for state in self._as_states(hx))
        )

    def _batch_of(self, input: Tensor, batch_sizes: Tensor | None) -> int:
        if batch_sizes is not None:
            return int(batch_sizes[0])
        return int(input.shape[0 if self.batch_first else 1])

    def extra_repr(self) -> str:
        shown = [f"{self.input_size}, {self.hidden_size}"]
        for name, default in (
            ("proj_size", 0),
            ("num_layers", 1),
            ("bias", True),
            ("batch_first", False),
            ("dropout", 0.0),
            ("bidirectional", False),
        ):
            if getattr(self, name) != default:
                shown.append(f"{name}={getattr(self, name)}")
        return ", ".join(shown)


def _check_type(name: str, value: object, kind: type) -> None:
    if not isinstance(value, kind):
        raise TypeError(f"{name} should be of type {kind.__name__}, got: {type(value).__name__}")


class RNN(RNNBase):
    """Elman's recurrent layer: h' = tanh(W_ih x + b_ih + W_hh h + b_hh).

    `RNNBase` describes shapes and arguments. `nonlinearity` is "tanh" or "relu".

    >>> import plugrad
    >>> output, h = plugrad.nn.RNN(3, 4, num_layers=2)(plugrad.ones(5, 1, 3))
    >>> output.shape, h.shape
    (plugrad.Size([5, 1, 4]), plugrad.Size([2, 1, 4]))
    """

    _kind = "RNN"

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        nonlinearity: str = "tanh",
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        *,
        proj_size: int | None = None,
        device: Any = None,
        dtype: plugrad.dtype | None = None,
    ) -> None:
        if proj_size is not None:
            raise ValueError(_NO_PROJECTION)
        if nonlinearity not in ("tanh", "relu"):
            raise ValueError(
                f"Unknown nonlinearity '{nonlinearity}'. Select from 'tanh' or 'relu'."
            )
        super().__init__(
            f"RNN_{nonlinearity.upper()}",
            input_size,
            hidden_size,
            num_layers,
            bias,
            batch_first,
            dropout,
            bidirectional,
            device=device,
            dtype=dtype,
        )
        self.nonlinearity = nonlinearity


class GRU(RNNBase):
    """Gated recurrent units (Cho et al. 2014); `RNNBase` describes shapes and arguments.

    With gates r, z = sigmoid(W_i x + b_i + W_h h + b_h):
    h' = z h + (1 - z) tanh(W_in x + b_in + r (W_hn h + b_hn)). The rows of the weights belong to r,
    z and n, in this order.

    >>> import plugrad
    >>> output, h = plugrad.nn.GRU(3, 4, bidirectional=True)(plugrad.ones(5, 1, 3))
    >>> output.shape, h.shape
    (plugrad.Size([5, 1, 8]), plugrad.Size([2, 1, 4]))
    """

    _kind = "GRU"

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        *,
        proj_size: int | None = None,
        device: Any = None,
        dtype: plugrad.dtype | None = None,
    ) -> None:
        if proj_size is not None:
            raise ValueError(_NO_PROJECTION)
        super().__init__(
            "GRU",
            input_size,
            hidden_size,
            num_layers,
            bias,
            batch_first,
            dropout,
            bidirectional,
            device=device,
            dtype=dtype,
        )


class LSTM(RNNBase):
    """Long short-term memory (Hochreiter and Schmidhuber 1997); `RNNBase` describes arguments.

    With gates i, f, o = sigmoid(W_i x + b_i + W_h h + b_h): c' = f c + i tanh(the same for g),
    h' = o tanh(c'). The rows of the weights belong to i, f, g and o, in this order. The states are
    a pair (h, c); c has H even if `proj_size` gives h another width.

    >>> import plugrad
    >>> output, (h, c) = plugrad.nn.LSTM(3, 4, proj_size=2)(plugrad.ones(5, 1, 3))
    >>> output.shape, h.shape, c.shape
    (plugrad.Size([5, 1, 2]), plugrad.Size([1, 1, 2]), plugrad.Size([1, 1, 4]))
    """

    _kind = "LSTM"

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device: Any = None,
        dtype: plugrad.dtype | None = None,
    ) -> None:
        super().__init__(
            "LSTM",
            input_size,
            hidden_size,
            num_layers,
            bias,
            batch_first,
            dropout,
            bidirectional,
            proj_size,
            device,
            dtype,
        )

    def _as_states(self, hx: Any) -> State:
        return (hx[0], hx[1])

    def _as_given(self, states: State) -> Any:
        return states

    def get_expected_cell_size(
        self, input: Tensor, batch_sizes: Tensor | None
    ) -> tuple[int, int, int]:
        """The shape of the cell states for an input, or one that is packed."""
        return self._shapes_of_states(self._batch_of(input, batch_sizes))[1]

    def _shapes_of_states(self, batch: int) -> list[tuple[int, int, int]]:
        layers = self.num_layers * self._directions
        return [*super()._shapes_of_states(batch), (layers, batch, self.hidden_size)]

    def _check_ranks_of_states(self, states: State | None, batched: bool) -> None:
        rank, kind = (3, "batched") if batched else (2, "unbatched")
        if states is not None and any(state.dim() != rank for state in states):
            raise RuntimeError(
                f"For {kind} {rank}-D input, hx and cx should also be {rank}-D but got "
                f"({states[0].dim()}-D, {states[1].dim()}-D) tensors"
            )
