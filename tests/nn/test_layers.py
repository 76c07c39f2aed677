"""Layers: outputs and gradients in float64 against PyTorch's with the same weights."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import plugrad
from plugrad import nn

CASES = [
    ("Linear(5, 3)", (4, 5)),
    ("Linear(5, 3, bias=False)", (2, 4, 5)),
    ("Linear(5, 3)", (5,)),
    ("Conv2d(2, 4, 3)", (3, 2, 6, 5)),
    ("Conv2d(2, 4, (3, 2), stride=(2, 1), padding=(1, 2), dilation=(1, 2))", (3, 2, 8, 7)),
    ("Conv2d(4, 6, 3, groups=2, bias=False)", (2, 4, 5, 5)),
    ("Conv2d(2, 3, 3, padding='same')", (2, 2, 5, 4)),
    ("Conv2d(2, 3, (2, 4), padding='same', dilation=(1, 1))", (2, 2, 5, 6)),
    ("Conv2d(2, 3, 3, padding='valid')", (2, 2, 5, 4)),
    ("Conv2d(2, 3, 3, padding=1, padding_mode='reflect')", (2, 2, 5, 4)),
    ("Conv2d(2, 3, 3, padding=(2, 1), padding_mode='replicate')", (2, 2, 5, 4)),
    ("Conv2d(2, 3, 3, padding='same', padding_mode='circular')", (2, 2, 5, 4)),
    ("Conv2d(2, 4, 3)", (2, 6, 5)),
    ("Conv1d(2, 4, 3)", (3, 2, 6)),
    ("Conv1d(4, 6, 3, stride=2, padding=2, dilation=2, groups=2, bias=False)", (3, 4, 9)),
    ("Conv1d(2, 3, 3, padding='same', padding_mode='reflect')", (2, 2, 5)),
    ("Conv1d(2, 3, 3, padding='valid')", (2, 5)),
    ("MaxPool2d(2)", (2, 3, 6, 5)),
    ("MaxPool2d(3, stride=2, padding=1, dilation=1, ceil_mode=True)", (2, 3, 6, 6)),
    ("AvgPool1d(3, 2, 1, ceil_mode=True, count_include_pad=False)", (2, 3, 7)),
    ("AvgPool2d(2)", (2, 3, 6, 5)),
    ("AvgPool2d(3, stride=2, padding=1, ceil_mode=True, count_include_pad=False)", (2, 3, 6, 6)),
    ("AvgPool2d(2, divisor_override=3)", (2, 3, 6, 6)),
    ("AdaptiveAvgPool2d(1)", (2, 3, 5, 4)),
    ("AdaptiveAvgPool2d((3, 2))", (2, 3, 5, 4)),
    ("AdaptiveAvgPool2d((None, 2))", (3, 5, 4)),
    ("BatchNorm1d(3)", (5, 3)),
    ("BatchNorm1d(3, momentum=None)", (5, 3, 4)),
    ("BatchNorm1d(3, affine=False, track_running_stats=False)", (5, 3)),
    ("BatchNorm2d(3, momentum=0.3, eps=0.1)", (4, 3, 2, 2)),
    ("BatchNorm2d(3).eval()", (4, 3, 2, 2)),
    ("LayerNorm(5)", (4, 5)),
    ("LayerNorm((3, 5), eps=0.1)", (4, 3, 5)),
    ("LayerNorm(5, bias=False)", (2, 4, 5)),
    ("LayerNorm(5, elementwise_affine=False)", (4, 5)),
    ("RMSNorm(5)", (4, 5)),
    ("RMSNorm((3, 5), eps=0.1)", (4, 3, 5)),
    ("RMSNorm(5, elementwise_affine=False)", (4, 5)),
    ("GroupNorm(2, 4)", (3, 4)),
    ("GroupNorm(2, 6, eps=0.1)", (3, 6, 2, 2)),
    ("GroupNorm(3, 6, affine=False)", (3, 6, 4)),
    ("Unflatten(1, (2, -1))", (3, 6, 2)),
    ("Flatten()", (2, 3, 4)),
    ("Flatten(0, 1)", (2, 3, 4)),
    ("Identity(3)", (2, 3)),
    ("Dropout(0.5).eval()", (2, 3)),
    ("Dropout(0.0)", (2, 3)),
    ("ReLU()", (4, 5)),
    ("GELU()", (4, 5)),
    ("GELU('tanh')", (4, 5)),
    ("SiLU()", (4, 5)),
    ("Sigmoid()", (4, 5)),
    ("Tanh()", (4, 5)),
    ("Softplus(2.0, 1.0)", (4, 5)),
    ("LeakyReLU(0.2)", (4, 5)),
    ("ELU(0.7)", (4, 5)),
    ("ReLU6()", (4, 5)),
    ("SELU()", (4, 5)),
    ("CELU(0.7)", (4, 5)),
    ("Mish()", (4, 5)),
    ("Hardsigmoid()", (4, 5)),
    ("Hardswish()", (4, 5)),
    ("Hardtanh(-0.3, 0.7)", (4, 5)),
    ("Threshold(0.1, 20.0)", (4, 5)),
    ("LogSigmoid()", (4, 5)),
    ("GLU(0)", (4, 5)),
    ("PReLU()", (4, 5)),
    ("PReLU(5, init=0.5)", (4, 5)),
    ("Softmax(dim=-1)", (4, 5)),
    ("LogSoftmax(dim=0)", (4, 5)),
]


@pytest.mark.parametrize(("expression", "shape"), CASES)
def test_layer_agrees_with_torch(
    torch: Any,
    rng: np.random.Generator,
    same_parameters: Callable[..., None],
    assert_equal_to_torch: Callable[..., None],
    expression: str,
    shape: tuple[int, ...],
) -> None:
    values = rng.standard_normal(shape)
    module = eval(f"nn.{expression}", {"nn": nn}).double()
    expected_module = eval(f"nn.{expression}", {"nn": torch.nn}).double()
    same_parameters(module, expected_module)
    x = plugrad.tensor(values, requires_grad=True)
    expected_x = torch.tensor(values, requires_grad=True)

    actual, expected = module(x), expected_module(expected_x)
    assert_equal_to_torch(actual, expected)

    cotangent = rng.standard_normal(tuple(expected.shape))
    (actual * plugrad.tensor(cotangent)).sum().backward()
    (expected * torch.tensor(cotangent)).sum().backward()
    assert_equal_to_torch(x.grad, expected_x.grad, atol=1e-8)
    for (name, parameter), (expected_name, expected_parameter) in zip(
        module.named_parameters(), expected_module.named_parameters(), strict=True
    ):
        assert name == expected_name
        assert_equal_to_torch(parameter.grad, expected_parameter.grad, atol=1e-8)
    for buffer, expected_buffer in zip(module.buffers(), expected_module.buffers(), strict=True):
        assert_equal_to_torch(buffer, expected_buffer)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"padding_idx": 1},
        {"max_norm": 1.0},
        {"max_norm": 0.5, "norm_type": 1.0},
        {"scale_grad_by_freq": True},
    ],
)
def test_embedding_agrees_with_torch(
    torch: Any,
    rng: np.random.Generator,
    same_parameters: Callable[..., None],
    assert_equal_to_torch: Callable[..., None],
    options: dict[str, Any],
) -> None:
    indices = [[1, 2, 1], [0, 3, 1]]
    layer = nn.Embedding(5, 4, **options).double()
    expected_layer = torch.nn.Embedding(5, 4, **options).double()
    same_parameters(layer, expected_layer)
    actual = layer(plugrad.tensor(indices))
    expected = expected_layer(torch.tensor(indices))
    assert_equal_to_torch(actual, expected)
    cotangent = rng.standard_normal((2, 3, 4))
    (actual * plugrad.tensor(cotangent)).sum().backward()
    (expected * torch.tensor(cotangent)).sum().backward()
    assert_equal_to_torch(layer.weight.grad, expected_layer.weight.grad)
    assert_equal_to_torch(layer.weight, expected_layer.weight)


def test_embedding_padding_row_starts_at_zero() -> None:
    assert nn.Embedding(3, 2, padding_idx=-1).weight[2].tolist() == [0.0, 0.0]
    assert nn.Embedding(np.uint8(3), np.uint8(2), padding_idx=-1).padding_idx == 2


def test_embedding_from_pretrained_is_frozen() -> None:
    table = plugrad.tensor([[1.0, 2.0], [3.0, 4.0]])
    layer = nn.Embedding.from_pretrained(table)
    assert not layer.weight.requires_grad
    assert layer(plugrad.tensor([1])).tolist() == [[3.0, 4.0]]


def test_batch_norm_uses_running_statistics_after_training(
    torch: Any, rng: np.random.Generator, assert_equal_to_torch: Callable[..., None]
) -> None:
    layer, expected = nn.BatchNorm2d(3).double(), torch.nn.BatchNorm2d(3).double()
    for _ in range(3):
        values = rng.standard_normal((4, 3, 2, 2))
        layer(plugrad.tensor(values))
        expected(torch.tensor(values))
    values = rng.standard_normal((4, 3, 2, 2))
    assert_equal_to_torch(
        layer.eval()(plugrad.tensor(values)), expected.eval()(torch.tensor(values))
    )
    assert layer.num_batches_tracked is not None
    assert layer.num_batches_tracked.item() == 3


def test_dropout_keeps_the_mean_and_zeroes_the_given_share() -> None:
    x = plugrad.ones(200, 100)
    out = nn.Dropout(0.25)(x)
    dropped = float((out == 0).to(plugrad.float32).mean().item())
    assert abs(dropped - 0.25) < 0.02
    kept = out[out != 0]
    assert abs(float(kept.max().item()) - 4 / 3) < 1e-6


def test_dropout_inplace_writes_into_its_input() -> None:
    x = plugrad.ones(100)
    out = nn.Dropout(0.5, inplace=True)(x)
    assert out is x
    assert float(x.min().item()) == 0.0


@pytest.mark.parametrize(
    "expression",
    [
        *("ReLU(True)", "SiLU(True)", "ELU(1.0, True)", "ReLU6(True)", "Hardtanh(inplace=True)"),
        *("Threshold(0.0, 3.0, True)", "Mish(True)", "CELU(0.5, True)"),
    ],
)
def test_inplace_activation_writes_into_its_input(expression: str) -> None:
    x = plugrad.tensor([-1.0, 2.0])
    expected = eval(f"nn.{expression.replace('True', 'False')}")(x.clone()).tolist()
    assert eval(f"nn.{expression}")(x) is x
    assert x.tolist() == expected


def test_inplace_relu_is_differentiable() -> None:
    x = plugrad.tensor([-1.0, 2.0], requires_grad=True)
    nn.ReLU(inplace=True)(x * 3).sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [0.0, 3.0]


@pytest.mark.parametrize(
    ("expression", "error"),
    [
        ("Dropout(2)", ValueError),
        ("Conv2d(3, 4, 3, groups=2)", ValueError),
        ("Conv2d(4, 3, 3, groups=2)", ValueError),
        ("Conv2d(4, 4, 3, groups=0)", ValueError),
        ("Conv2d(4, 4, 3, stride=2, padding='same')", ValueError),
        ("GroupNorm(2, 3)", ValueError),
        ("GroupNorm(2, 4)(lib.ones(2, 3))", RuntimeError),
        ("Hardtanh(1.0, 0.0)", AssertionError),
        ("Conv1d(4, 4, 3, stride=2, padding='same')", ValueError),
        ("Embedding(3, 4, padding_idx=5)", AssertionError),
        ("BatchNorm2d(3)(lib.ones(2, 3))", ValueError),
        ("BatchNorm1d(3)(lib.ones(3))", ValueError),
        ("BatchNorm1d(3)(lib.ones(1, 3))", ValueError),
    ],
)
def test_wrong_arguments_raise_torchs_words(
    torch: Any, expression: str, error: type[Exception]
) -> None:
    messages = []
    for library in (plugrad, torch):
        with pytest.raises(error) as caught:
            eval(f"nn.{expression}", {"nn": library.nn, "lib": library})
        messages.append(str(caught.value).replace("plugrad.", "torch."))
    assert messages[0] == messages[1]


def test_max_pool_can_return_where_the_values_were() -> None:
    image = plugrad.tensor([[[1.0, 5.0], [7.0, 2.0]]])
    values, indices = nn.MaxPool2d(2, return_indices=True)(image)
    assert values.tolist() == [[[7.0]]]
    assert indices.tolist() == [[[2]]]


def test_unknown_padding_is_named() -> None:
    with pytest.raises(ValueError, match="Invalid padding string 'x', should be one of"):
        nn.Conv2d(4, 4, 3, padding="x")
    with pytest.raises(ValueError, match="padding_mode must be one of"):
        nn.Conv2d(4, 4, 3, padding_mode="x")


@pytest.mark.parametrize("expression", ["Linear(40, 300)", "Conv2d(4, 30, (5, 2), groups=2)"])
def test_weights_start_uniform_within_torchs_bound(expression: str) -> None:
    layer = eval(f"nn.{expression}")
    bound = 1 / np.sqrt(np.prod(layer.weight.shape[1:]))
    for parameter in layer.parameters():
        largest = float(parameter.abs().max().item())
        assert 0.9 * bound < largest <= bound


def test_same_seed_gives_the_same_weights() -> None:
    plugrad.manual_seed(3)
    first = nn.Linear(4, 4).weight.tolist()
    plugrad.manual_seed(3)
    assert nn.Linear(4, 4).weight.tolist() == first


def test_layers_accept_dtype() -> None:
    for layer in (nn.Linear(2, 2, dtype=plugrad.float64), nn.LayerNorm(2, dtype=plugrad.float64)):
        assert all(parameter.dtype == plugrad.float64 for parameter in layer.parameters())


def test_hardtanh_knows_its_limits_by_their_old_names(torch_oracle: Any) -> None:
    for library in (plugrad, torch_oracle):
        with pytest.warns(FutureWarning, match="`min_value` is deprecated and renamed"):
            layer = library.nn.Hardtanh(min_value=0.0)
        assert layer(library.tensor([-2.0, 0.5, 2.0])).tolist() == [0.0, 0.5, 1.0]
        with pytest.warns(FutureWarning, match="`max_value` is deprecated"):
            layer = library.nn.Hardtanh(max_value=0.25)
        assert layer(library.tensor([-2.0, 0.5])).tolist() == [-1.0, 0.25]


@pytest.mark.parametrize(
    "layer",
    [nn.BatchNorm1d(3), nn.BatchNorm2d(3), nn.Flatten(), nn.Unflatten(1, (2, -1)), nn.Linear(3, 2)],
    ids=repr,
)
@pytest.mark.parametrize("wrong", [1.0, None, "x", [1.0]])
def test_what_is_no_tensor_is_refused_by_name(layer: Any, wrong: Any) -> None:
    with pytest.raises(TypeError, match=rf"must be Tensor, not {type(wrong).__name__}"):
        layer(wrong)


def test_numbers_of_groups_are_integers() -> None:
    with pytest.raises(TypeError, match="must be int, not float"):
        nn.GroupNorm(1.5, 3)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="must be divisible by num_groups"):
        nn.GroupNorm(0, 3)
    assert nn.GroupNorm(np.int64(3), np.int64(6))(plugrad.ones(1, 6)).tolist() == [[0.0] * 6]
