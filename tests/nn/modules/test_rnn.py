"""Recurrent layers and packed sequences: outputs, states, gradients and errors of PyTorch."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import plugrad
from plugrad import nn, profiler
from plugrad.nn.utils import rnn
from plugrad_nn.nn.functions import recurrent

LAYERS = [
    "RNN(3, 4, 2, 'relu', bias=False)",
    "RNN(3, 4, batch_first=True, bidirectional=True)",
    "GRU(3, 4, 2, bidirectional=True)",
    "GRU(3, 4, bias=False)",
    "LSTM(3, 4, 2, bidirectional=True, proj_size=2)",
    "LSTM(3, 4, 2, bias=False, batch_first=True)",
]


def _both(torch: Any, expression: str) -> tuple[Any, Any]:
    """The layer in both libraries, drawn from the same seed."""
    made = []
    for library in (plugrad, torch):
        library.manual_seed(3)
        made.append(eval(f"nn.{expression}", {"nn": library.nn}))
    return made[0], made[1]


def _flat(result: Any) -> list[Any]:
    if isinstance(result, tuple) and not hasattr(result, "data"):
        return [tensor for part in result for tensor in _flat(part)]
    return [result.data if hasattr(result, "batch_sizes") else result]


def _compare(
    torch: Any,
    assert_equal: Callable[..., None],
    layers: tuple[Any, Any],
    call: Callable[[Any, Any, Any], Any],
    values: np.ndarray,
) -> None:
    """Outputs and all gradients; `call(library, layer, x)`."""
    results = []
    for library, layer in zip((plugrad, torch), layers, strict=True):
        layer.double()
        x = library.tensor(values, requires_grad=True)
        outputs = _flat(call(library, layer, x))
        sum(
            (output * (place + 1.5)).pow(2).sum() for place, output in enumerate(outputs)
        ).backward()
        results.append([*outputs, x.grad, *(weight.grad for weight in layer.parameters())])
    for actual, expected in zip(*results, strict=True):
        assert_equal(actual, expected)


@pytest.mark.parametrize("expression", LAYERS)
@pytest.mark.parametrize("form", ["batch", "states", "unbatched", "packed", "packed states"])
def test_recurrent_layer_is_torchs(
    torch: Any,
    rng: np.random.Generator,
    assert_equal_to_torch: Callable[..., None],
    expression: str,
    form: str,
) -> None:
    layers = _both(torch, expression)
    for (name, weight), (expected_name, expected) in zip(
        layers[0].state_dict().items(), layers[1].state_dict().items(), strict=True
    ):
        assert name == expected_name
        assert_equal_to_torch(weight, expected)
    assert repr(layers[0]) == repr(layers[1])
    values = rng.standard_normal((5, 3) if form == "unbatched" else (5, 5, 3))
    rows = len(layers[0].all_weights)
    widths = [layers[0].proj_size or 4, 4][: 2 if "LSTM" in expression else 1]
    states = [rng.standard_normal((rows, 5, width)) for width in widths]

    def call(library: Any, layer: Any, x: Any) -> Any:
        hx = [library.tensor(state) for state in states]
        given = ((hx[0] if len(hx) == 1 else tuple(hx)),) if "states" in form else ()
        if "packed" in form:
            x = library.nn.utils.rnn.pack_padded_sequence(
                x, [2, 5, 1, 2, 4], layer.batch_first, enforce_sorted=False
            )
        return layer(x, *given)

    _compare(torch, assert_equal_to_torch, layers, call, values)


@pytest.mark.parametrize("expression", ["RNNCell(3, 4)", "RNNCell(3, 4, False, 'relu')"])
@pytest.mark.parametrize("kind", ["RNN", "GRU", "LSTM"])
def test_recurrent_cell_is_torchs(
    torch: Any,
    rng: np.random.Generator,
    assert_equal_to_torch: Callable[..., None],
    expression: str,
    kind: str,
) -> None:
    if kind != "RNN":
        expression = expression.replace("RNN", kind).replace(", 'relu'", "")
    layers = _both(torch, expression)
    assert repr(layers[0]) == repr(layers[1])

    def call(library: Any, layer: Any, x: Any) -> Any:
        first = layer(x[:2])
        return first, layer(x[2:], first), layer(x[0])

    _compare(torch, assert_equal_to_torch, layers, call, rng.standard_normal((4, 3)))


def test_dropout_between_layers_draws_torchs_numbers(
    torch: Any, rng: np.random.Generator, assert_equal_to_torch: Callable[..., None]
) -> None:
    layers = _both(torch, "LSTM(3, 4, 3, batch_first=True, dropout=0.5, bidirectional=True)")

    def call(library: Any, layer: Any, x: Any) -> Any:
        library.manual_seed(5)
        return layer(x)

    _compare(torch, assert_equal_to_torch, layers, call, rng.standard_normal((2, 3, 3)))
    layers[0].eval()
    x = plugrad.ones(2, 3, 3, dtype=plugrad.float64)
    assert plugrad.equal(layers[0](x)[0], layers[0](x)[0])


def test_sums_of_ones_by_hand() -> None:
    layer = nn.RNN(1, 1, nonlinearity="relu", bias=False)
    for weight in layer.parameters():
        nn.init.ones_(weight)
    output, last = layer(plugrad.ones(4, 1))
    assert output.tolist() == [[1.0], [2.0], [3.0], [4.0]]
    assert last.tolist() == [[4.0]]
    same = copy.deepcopy(layer)
    nn.init.zeros_(layer.weight_hh_l0)
    assert same(plugrad.ones(2, 1))[0].tolist() == [[1.0], [2.0]]
    assert layer(plugrad.ones(2, 1))[0].tolist() == [[1.0], [1.0]]


@pytest.mark.parametrize("kind", ["LSTM", "GRU"])
@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("options", [{}, {"bias": False, "bidirectional": True}])
def test_all_steps_at_once_are_the_steps_one_by_one(
    monkeypatch: pytest.MonkeyPatch, kind: str, packed: bool, options: dict[str, Any]
) -> None:
    found = []
    for as_one in (("LSTM", "GRU"), ()):
        monkeypatch.setattr(recurrent, "_AS_ONE", as_one)
        plugrad.manual_seed(0)
        layer = getattr(nn, kind)(3, 4, 2, dropout=0.5, **options)
        x: Any = plugrad.randn(5, 3, 3, requires_grad=True)
        given = rnn.pack_padded_sequence(x, [5, 2, 2]) if packed else x
        results = _flat(layer(given))
        sum((result * (n + 1.5)).pow(2).sum() for n, result in enumerate(results)).backward()
        found.append([*results, x.grad, *(weight.grad for weight in layer.parameters())])
    for one, other in zip(*found, strict=True):
        plugrad.testing.assert_close(one, other)


@pytest.mark.parametrize("kind", ["LSTM", "GRU"])
def test_number_of_operators_does_not_grow_with_the_sequence(kind: str) -> None:
    counts = []
    for length in (20, 50):
        layer = getattr(nn, kind)(3, 4)
        with profiler.profile() as profile:
            layer(plugrad.ones(length, 1, 3))[0].sum().backward()
        counts.append(sum(each.count for each in profile.key_averages()))
    assert counts[0] == counts[1]


@pytest.mark.parametrize("kind", ["RNN", "LSTM", "GRU"])
def test_an_empty_batch_has_empty_outputs(kind: str) -> None:
    layer = getattr(nn, kind)(3, 4)
    output, state = layer(plugrad.ones(5, 0, 3))
    output.sum().backward()
    assert output.shape == (5, 0, 4)
    assert all(part.shape == (1, 0, 4) for part in _flat(state))
    assert all((weight.grad == 0).all() for weight in layer.parameters())


def test_second_derivative_of_a_recurrent_layer() -> None:
    layer = nn.LSTM(2, 2).double()

    def call(x: plugrad.Tensor) -> plugrad.Tensor:
        output: plugrad.Tensor = layer(x)[0]
        return output

    x = plugrad.rand(2, 1, 2, dtype=plugrad.float64, requires_grad=True)
    assert plugrad.autograd.gradgradcheck(call, (x,))


@pytest.mark.parametrize(
    ("expression", "error"),
    [
        ("nn.LSTM(2, 3)(lib.zeros(2))", ValueError),
        ("nn.RNN(2, 3)(lib.zeros(2))", ValueError),
        ("nn.LSTM(2, 3)(lib.zeros(2, 1, 4))", RuntimeError),
        ("nn.LSTM(2, 3)(lib.zeros(0, 1, 2))", RuntimeError),
        ("nn.GRU(2, 3)(lib.zeros(2, 2), lib.zeros(1, 1, 3))", RuntimeError),
        ("nn.GRU(2, 3)(lib.zeros(2, 1, 2), lib.zeros(1, 3))", RuntimeError),
        ("nn.GRU(2, 3)(lib.zeros(2, 1, 2), lib.zeros(1, 1, 4))", RuntimeError),
        ("nn.LSTM(2, 3)(lib.zeros(2, 2), (lib.zeros(1, 3), lib.zeros(1, 1, 3)))", RuntimeError),
        (
            "nn.LSTM(2, 3)(lib.zeros(2, 1, 2), (lib.zeros(1, 1, 3), lib.zeros(1, 1, 4)))",
            RuntimeError,
        ),
        ("nn.LSTM(2, 3).double()(lib.zeros(2, 2))", ValueError),
        ("nn.LSTM(2, 3, dropout=2)", ValueError),
        ("nn.LSTM(2, 3, proj_size=3)", ValueError),
        ("nn.GRU(2, 3, proj_size=2)", ValueError),
        ("nn.LSTM(2.0, 3)", TypeError),
        ("nn.LSTM(2, 0)", ValueError),
        ("nn.LSTM(2, 3, num_layers=0)", ValueError),
        ("nn.RNN(2, 3, nonlinearity='sin')", ValueError),
        ("nn.RNNCell(2, 3, nonlinearity='sin')(lib.zeros(1, 2))", RuntimeError),
        ("nn.GRUCell(2, 3)(lib.zeros(1, 2, 2))", ValueError),
        ("nn.GRUCell(2, 3)(lib.zeros(2, 3))", RuntimeError),
        ("nn.GRUCell(2, 3)(lib.zeros(2, 2), lib.zeros(3, 3))", RuntimeError),
        ("nn.LSTMCell(2, 3)(lib.zeros(2, 2), (lib.zeros(2, 4), lib.zeros(2, 4)))", RuntimeError),
        ("rnn.pack_padded_sequence(lib.zeros(3, 2), [1, 2])", RuntimeError),
        ("rnn.pack_padded_sequence(lib.zeros(3, 2), [2, 0])", RuntimeError),
        ("rnn.pack_padded_sequence(lib.zeros(3, 2), [2])", RuntimeError),
        ("rnn.pack_padded_sequence(lib.zeros(0, 2), [2, 1])", RuntimeError),
        ("rnn.pad_sequence([])", RuntimeError),
        ("rnn.pad_sequence(3)", RuntimeError),
        ("rnn.pad_sequence([lib.zeros(2)], padding_side='x')", RuntimeError),
        ("rnn.pad_packed_sequence(rnn.pack_sequence([lib.zeros(2)]), total_length=1)", ValueError),
    ],
)
def test_wrong_arguments_raise_torchs_words(
    torch: Any, expression: str, error: type[Exception]
) -> None:
    messages = []
    for library in (plugrad, torch):
        with pytest.raises(error) as caught:
            eval(expression, {"nn": library.nn, "lib": library, "rnn": library.nn.utils.rnn})
        messages.append(str(caught.value).replace("plugrad.", "torch."))
    assert messages[0] == messages[1]


@pytest.mark.parametrize("batch_first", [False, True])
def test_packing_goes_back_and_forth(torch: Any, batch_first: bool) -> None:
    found = []
    for library in (plugrad, torch):
        module = library.nn.utils.rnn
        sequences = [library.arange(2.0 * n).reshape(n, 2) + n for n in (2, 4, 1, 2)]
        packed = module.pack_sequence(sequences, enforce_sorted=False)
        padded, lengths = module.pad_packed_sequence(packed, batch_first, -1.0, 5)
        found.append(
            [
                [None if field is None else field.tolist() for field in packed],
                padded.tolist(),
                lengths.tolist(),
                [sequence.tolist() for sequence in module.unpack_sequence(packed)],
                module.pad_sequence(sequences, batch_first, 2.0, "left").tolist(),
                module.pad_sequence(sequences, batch_first).tolist(),
                module.pack_padded_sequence(padded, lengths, batch_first, False).data.tolist(),
                str(packed.double().data.dtype).partition(".")[2],
            ]
        )
    assert found[0] == found[1]


def test_packed_sequence_keeps_what_it_was_sorted_by() -> None:
    packed = rnn.pack_sequence([plugrad.ones(1), plugrad.ones(3)], enforce_sorted=False)
    assert packed.cpu() is packed
    moved = packed.double()
    assert moved.sorted_indices is not None
    assert moved.sorted_indices.tolist() == [1, 0]
    assert rnn.invert_permutation(plugrad.tensor([2, 0, 1])).tolist() == [1, 2, 0]
    with pytest.raises(AssertionError, match="list or tuple of length 2"):
        rnn.PackedSequence(plugrad.ones(2))
