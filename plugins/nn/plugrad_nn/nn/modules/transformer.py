"""Transformers: encoders, decoders and their layers."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import plugrad
from plugrad import Tensor
from plugrad_nn.nn import functional as F
from plugrad_nn.nn import init
from plugrad_nn.nn.container import ModuleList
from plugrad_nn.nn.functions.attention import additive_mask
from plugrad_nn.nn.linear import Linear
from plugrad_nn.nn.module import Module
from plugrad_nn.nn.modules.attention import MultiheadAttention
from plugrad_nn.nn.normalization import Dropout, LayerNorm

Activation = str | Callable[[Tensor], Tensor]


class _Layer(Module):
    """The base of layers of encoders and decoders."""

    self_attn: MultiheadAttention
    activation: Any

    def _build(
        self,
        attentions: tuple[str, ...],
        d_model: int,
        nhead: int,
        dim_feedforward: int,
        dropout: float,
        activation: Activation,
        layer_norm_eps: float,
        batch_first: bool,
        norm_first: bool,
        bias: bool,
        device: Any,
        dtype: plugrad.dtype | None,
    ) -> None:
        where: dict[str, Any] = {"device": device, "dtype": dtype}
        for name in attentions:
            attention = MultiheadAttention(
                d_model, nhead, dropout, bias, batch_first=batch_first, **where
            )
            self.add_module(name, attention)
        self.linear1 = Linear(d_model, dim_feedforward, bias, **where)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias, **where)
        self.norm_first = norm_first
        parts = len(attentions) + 1
        for number in range(1, parts + 1):
            norm = LayerNorm(d_model, layer_norm_eps, bias=bias, **where)
            self.add_module(f"norm{number}", norm)
        for number in range(1, parts + 1):
            self.add_module(f"dropout{number}", Dropout(dropout))
        self.activation = _activation(activation)

    def _feed_forward(self, x: Tensor) -> Tensor:
        result: Tensor = self.linear2(self.dropout(self.activation(self.linear1(x))))
        return result

    def _residual(self, x: Tensor, parts: list[Callable[[Tensor], Tensor]]) -> Tensor:
        """Adds the result of each part to `x`, with normalisation before or after."""
        for number, part in enumerate(parts, 1):
            norm, dropout = getattr(self, f"norm{number}"), getattr(self, f"dropout{number}")
            x = x + dropout(part(norm(x))) if self.norm_first else norm(x + dropout(part(x)))
        return x


def _activation(given: Activation) -> Any:
    if not isinstance(given, str):
        return given
    if given not in ("relu", "gelu"):
        raise RuntimeError(f"activation should be relu/gelu, not {given}")
    return F.relu if given == "relu" else F.gelu


class TransformerEncoderLayer(_Layer):
    """Attention of a sequence to itself, then two linear layers, with residuals.

    Args:
        d_model: E, the width of inputs and outputs.
        nhead: heads of attention.
        dim_feedforward: the width between the two linear layers.
        dropout: in training, the probability of zeroing weights of attention and outputs of parts.
        activation: between the linear layers: "relu", "gelu" or a function.
        layer_norm_eps: added to the variance by the normalisations.
        batch_first: inputs and outputs are (N, S, E) rather than (S, N, E).
        norm_first: normalise the input of each part, not its output.
        bias: with False, no shifts in linear layers and normalisations.

    >>> import plugrad
    >>> layer = plugrad.nn.TransformerEncoderLayer(8, nhead=2, batch_first=True)
    >>> layer(plugrad.ones(1, 3, 8)).shape
    plugrad.Size([1, 3, 8])
    """

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Activation = F.relu,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: plugrad.dtype | None = None,
    ) -> None:
        super().__init__()
        self._build(
            ("self_attn",),
            d_model,
            nhead,
            dim_feedforward,
            dropout,
            activation,
            layer_norm_eps,
            batch_first,
            norm_first,
            bias,
            device,
            dtype,
        )

    def forward(
        self,
        src: Tensor,
        src_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool = False,
    ) -> Tensor:
        """The next sequence.

        Args:
            src: (S, N, E), with `batch_first` (N, S, E), or (S, E).
            src_mask: (S, S) or (N * nhead, S, S); as `attn_mask` of `MultiheadAttention`.
            src_key_padding_mask: (N, S) or (S); as its `key_padding_mask`.
            is_causal: a hint that `src_mask` is the causal one.
        """
        padding = additive_mask(
            src_key_padding_mask, "src_key_padding_mask", src_mask, src, "src_mask"
        )
        mask = additive_mask(src_mask, "src_mask", None, src)

        def attend(x: Tensor) -> Tensor:
            found: Tensor = self.self_attn(
                x,
                x,
                x,
                attn_mask=mask,
                key_padding_mask=padding,
                need_weights=False,
                is_causal=is_causal,
            )[0]
            return found

        return self._residual(src, [attend, self._feed_forward])


class TransformerDecoderLayer(_Layer):
    """Attention of a sequence to itself and to another one, then two linear layers.

    Arguments are the same as for `TransformerEncoderLayer`.

    >>> import plugrad
    >>> layer = plugrad.nn.TransformerDecoderLayer(8, nhead=2)
    >>> layer(plugrad.ones(3, 1, 8), plugrad.ones(5, 1, 8)).shape
    plugrad.Size([3, 1, 8])
    """

    multihead_attn: MultiheadAttention

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Activation = F.relu,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: plugrad.dtype | None = None,
    ) -> None:
        super().__init__()
        self._build(
            ("self_attn", "multihead_attn"),
            d_model,
            nhead,
            dim_feedforward,
            dropout,
            activation,
            layer_norm_eps,
            batch_first,
            norm_first,
            bias,
            device,
            dtype,
        )

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool = False,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """The next sequence.

        Args:
            tgt: (T, N, E), with `batch_first` (N, T, E), or (T, E).
            memory: (S, N, E) or in the same form, the last sequence of an encoder.
            tgt_mask, tgt_key_padding_mask: of the attention of `tgt` to itself: (T, T) or
                (N * nhead, T, T), and (N, T) or (T).
            memory_mask, memory_key_padding_mask: of the attention to `memory`: (T, S) or
                (N * nhead, T, S), and (N, S) or (S).
            tgt_is_causal, memory_is_causal: hints that a mask is the causal one.
        """

        def attend(x: Tensor) -> Tensor:
            found: Tensor = self.self_attn(
                x,
                x,
                x,
                attn_mask=tgt_mask,
                key_padding_mask=tgt_key_padding_mask,
                is_causal=tgt_is_causal,
                need_weights=False,
            )[0]
            return found

        def remember(x: Tensor) -> Tensor:
            found: Tensor = self.multihead_attn(
                x,
                memory,
                memory,
                attn_mask=memory_mask,
                key_padding_mask=memory_key_padding_mask,
                is_causal=memory_is_causal,
                need_weights=False,
            )[0]
            return found

        return self._residual(tgt, [attend, remember, self._feed_forward])


class TransformerEncoder(Module):
    """Copies of an encoder layer, one after the other.

    Args:
        encoder_layer: the layer that is copied; all copies start with its weights.
        num_layers: how many.
        norm: a module that is called on the last sequence.
        enable_nested_tensor, mask_check: about PyTorch's nested tensors; they change nothing.

    >>> import plugrad
    >>> nn = plugrad.nn
    >>> encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, nhead=2), num_layers=2)
    >>> encoder(plugrad.ones(3, 1, 8)).shape
    plugrad.Size([3, 1, 8])
    """

    def __init__(
        self,
        encoder_layer: Module,
        num_layers: int,
        norm: Module | None = None,
        enable_nested_tensor: bool = True,
        mask_check: bool = True,
    ) -> None:
        super().__init__()
        self.layers = ModuleList([copy.deepcopy(encoder_layer) for _ in range(num_layers)])
        self.num_layers = num_layers
        self.norm = norm
        self.enable_nested_tensor = enable_nested_tensor
        self.use_nested_tensor = False
        self.mask_check = mask_check

    def forward(
        self,
        src: Tensor,
        mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool | None = None,
    ) -> Tensor:
        """The last sequence; arguments as of `TransformerEncoderLayer`.

        `is_causal=None` finds out whether `mask` is the causal one.
        """
        padding = additive_mask(src_key_padding_mask, "src_key_padding_mask", mask, src, "mask")
        mask = additive_mask(mask, "mask", None, src)
        causal = _is_causal(mask, is_causal, src, self.layers)
        for layer in self.layers:
            src = layer(src, src_mask=mask, is_causal=causal, src_key_padding_mask=padding)
        return src if self.norm is None else self.norm(src)


class TransformerDecoder(Module):
    """Copies of a decoder layer, one after the other.

    Args:
        decoder_layer: the layer that is copied; all copies start with its weights.
        num_layers: how many.
        norm: a module that is called on the last sequence.

    >>> import plugrad
    >>> nn = plugrad.nn
    >>> decoder = nn.TransformerDecoder(nn.TransformerDecoderLayer(8, nhead=2), num_layers=2)
    >>> decoder(plugrad.ones(3, 1, 8), plugrad.ones(5, 1, 8)).shape
    plugrad.Size([3, 1, 8])
    """

    def __init__(self, decoder_layer: Module, num_layers: int, norm: Module | None = None) -> None:
        super().__init__()
        self.layers = ModuleList([copy.deepcopy(decoder_layer) for _ in range(num_layers)])
        self.num_layers = num_layers
        self.norm = norm

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """The last sequence; arguments as of `TransformerDecoderLayer`.

        `tgt_is_causal=None` finds out whether `tgt_mask` is the causal one.
        """
        causal = _is_causal(tgt_mask, tgt_is_causal, tgt, self.layers)
        for layer in self.layers:
            tgt = layer(
                tgt,
                memory,
                tgt_mask=tgt_mask,
                memory_mask=memory_mask,
                tgt_key_padding_mask=tgt_key_padding_mask,
                memory_key_padding_mask=memory_key_padding_mask,
                tgt_is_causal=causal,
                memory_is_causal=memory_is_causal,
            )
        return tgt if self.norm is None else self.norm(tgt)


class Transformer(Module):
    """An encoder and a decoder (Vaswani et al., Attention Is All You Need, 2017).

    Args:
        d_model: E, the width of inputs and outputs.
        nhead: heads of attention.
        num_encoder_layers, num_decoder_layers: how many layers each has.
        custom_encoder, custom_decoder: modules to use instead.

    The other arguments are the same as for `TransformerEncoderLayer`. Weights of two and more
    dimensions start with `xavier_uniform_`.

    >>> import plugrad
    >>> model = plugrad.nn.Transformer(8, nhead=2, num_encoder_layers=1, num_decoder_layers=1)
    >>> model(plugrad.ones(5, 1, 8), plugrad.ones(3, 1, 8)).shape
    plugrad.Size([3, 1, 8])
    """

    encoder: Any
    decoder: Any

    def __init__(
        self,
        d_model: int = 512,
        nhead: int = 8,
        num_encoder_layers: int = 6,
        num_decoder_layers: int = 6,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Activation = F.relu,
        custom_encoder: Any = None,
        custom_decoder: Any = None,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: plugrad.dtype | None = None,
    ) -> None:
        super().__init__()
        options: tuple[Any, ...] = (d_model, nhead, dim_feedforward, dropout, activation)
        options += (layer_norm_eps, batch_first, norm_first, bias, device, dtype)

        def norm() -> LayerNorm:
            return LayerNorm(d_model, layer_norm_eps, bias=bias, device=device, dtype=dtype)

        self.encoder = custom_encoder
        if custom_encoder is None:
            encoder_layer = TransformerEncoderLayer(*options)
            self.encoder = TransformerEncoder(encoder_layer, num_encoder_layers, norm())
        self.decoder = custom_decoder
        if custom_decoder is None:
            decoder_layer = TransformerDecoderLayer(*options)
            self.decoder = TransformerDecoder(decoder_layer, num_decoder_layers, norm())
        self._reset_parameters()
        self.d_model = d_model
        self.nhead = nhead
        self.batch_first = batch_first

    def _reset_parameters(self) -> None:
        for parameter in self.parameters():
            if parameter.dim() > 1:
                init.xavier_uniform_(parameter)

    def forward(
        self,
        src: Tensor,
        tgt: Tensor,
        src_mask: Tensor | None = None,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        src_is_causal: bool | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """The decoder's result for `tgt` and for the encoder's result for `src`.

        Arguments are the same as for `TransformerEncoder` and `TransformerDecoder`. RuntimeError
        if the two differ in their batches, or if their width is not `d_model`.
        """
        batch = 0 if self.batch_first else 1
        if src.dim() == 3 and src.shape[batch] != tgt.shape[batch]:
            raise RuntimeError("the batch number of src and tgt must be equal")
        if src.shape[-1] != self.d_model or tgt.shape[-1] != self.d_model:
            raise RuntimeError("the feature number of src and tgt must be equal to d_model")
        memory = self.encoder(
            src,
            mask=src_mask,
            src_key_padding_mask=src_key_padding_mask,
            is_causal=src_is_causal,
        )
        result: Tensor = self.decoder(
            tgt,
            memory,
            tgt_mask=tgt_mask,
            memory_mask=memory_mask,
            tgt_key_padding_mask=tgt_key_padding_mask,
            memory_key_padding_mask=memory_key_padding_mask,
            tgt_is_causal=tgt_is_causal,
            memory_is_causal=memory_is_causal,
        )
        return result

    @staticmethod
    def generate_square_subsequent_mask(
        sz: int, device: Any = None, dtype: plugrad.dtype | None = None
    ) -> Tensor:
        """The causal mask (sz, sz): minus infinity above the diagonal, zero elsewhere.

        >>> import plugrad
        >>> plugrad.nn.Transformer.generate_square_subsequent_mask(3)
        tensor([[0., -inf, -inf],
                [0., 0., -inf],
                [0., 0., 0.]])
        """
        filled = plugrad.full((sz, sz), float("-inf"), device=device, dtype=dtype)
        return plugrad.triu(filled, diagonal=1)


def _is_causal(mask: Tensor | None, given: bool | None, x: Tensor, layers: ModuleList) -> bool:
    """`given`, or if it is None, whether `mask` is the causal one for `x`."""
    if given is not None or mask is None:
        return given is True
    batch_first = layers[0].self_attn.batch_first
    length = x.shape[1] if x.dim() == 3 and batch_first else x.shape[0]
    if tuple(mask.shape) != (length, length):
        return False
    causal = Transformer.generate_square_subsequent_mask(length, mask.device, mask.dtype)
    return bool((mask == causal).all())
