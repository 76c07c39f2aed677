"""Layers that are called with what they do not take: the same kind of error, or the same result."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import plugrad
from tests.nn.modules.test_families import CASES as FAMILIES
from tests.nn.test_layers import CASES as LAYERS

# Layers that no other table has with all that they are called with.
MORE: list[tuple[str, list[Any]]] = [
    *((f"{name}Loss()", [(3, 4), (3, 4)]) for name in ("MSE", "L1", "SmoothL1", "Huber")),
    ("CrossEntropyLoss()", [(3, 4), "lib.tensor([0, 1, 2])"]),
    ("NLLLoss()", [(3, 4), "lib.tensor([0, 1, 2])"]),
    ("BCELoss()", ["lib.full((3,), 0.25)", "lib.full((3,), 0.5)"]),
    ("BCEWithLogitsLoss()", [(3,), "lib.full((3,), 0.5)"]),
    ("KLDivLoss(reduction='batchmean')", [(3, 4), "lib.full((3, 4), 0.5)"]),
    *((f"{name}(3, 4)", [(5, 2, 3)]) for name in ("LSTM", "GRU", "RNN")),
    *((f"{name}Cell(3, 4)", [(2, 3)]) for name in ("LSTM", "GRU", "RNN")),
    ("MultiheadAttention(4, 2)", [(3, 2, 4)] * 3),
    ("TransformerEncoderLayer(4, 2, 8)", [(3, 2, 4)]),
    ("TransformerDecoderLayer(4, 2, 8)", [(3, 2, 4), (3, 2, 4)]),
    ("Transformer(4, 2, 1, 1, 8)", [(3, 2, 4), (3, 2, 4)]),
    ("Embedding(5, 3)", ["lib.tensor([0, 1])"]),
]
WRONG = (
    *("lib.ones(())", "lib.ones(3)", "lib.ones(2, 3)", "lib.ones(2, 3, 4)", "lib.ones(2, 3, 4, 5)"),
    *("lib.ones(1, 2, 3, 4, 5)", "lib.ones(1, 2, 3, 4, 5, 6)", "lib.ones(0, 4)"),
    *(f"lib.ones(2, 4, dtype=lib.{dtype})" for dtype in ("int64", "complex64", "float16")),
    *(f"lib.ones(2, 4, 5, 6, dtype=lib.{dtype})" for dtype in ("bool", "float64")),
)
# Where the kinds differ: both refuse, but for different reasons; or PyTorch accepts what its
# message excludes, such as an input without channels.
OTHER_REASONS = {
    *("AdaptiveMaxPool1d", "AvgPool2d", "BatchNorm1d", "CTCLoss", "Conv2d", "ConvTranspose2d"),
    *("ConvTranspose3d", "CrossEntropyLoss", "Dropout1d", "Dropout2d", "Dropout3d"),
    *("EmbeddingBag", "FeatureAlphaDropout", "Fold", "InstanceNorm3d", "KLDivLoss", "LPPool2d"),
    *("NLLLoss", "Transformer", "Unfold", "Upsample", "UpsamplingNearest2d"),
    "UpsamplingBilinear2d",
}


def calls() -> Iterator[tuple[str, list[Any]]]:
    yield from ((expression, [shape]) for expression, shape in LAYERS)
    yield from FAMILIES
    yield from MORE


def outcome(library: Any, expression: str, given: list[Any], place: int, wrong: str) -> Any:
    """Shapes, dtypes and sums of the results, or the kind of the error."""
    library.manual_seed(0)
    rng = np.random.default_rng(0)
    names = {"lib": library, "nn": library.nn, "rng": rng}
    layer = eval(f"nn.{expression}", names)
    inputs = [
        eval(item, names)
        if isinstance(item, str)
        else library.tensor(rng.standard_normal(item), dtype=library.float32)
        for item in given
    ]
    inputs[place] = eval(wrong, names)
    try:
        result = layer(*inputs)
    except Exception as error:
        return type(error).__name__
    tensors = [x for x in (result if isinstance(result, tuple) else (result,)) if x is not None]
    tensors = [x for x in tensors if hasattr(x, "dtype")]
    return [(tuple(x.shape), str(x.dtype).partition(".")[2]) for x in tensors]


@pytest.mark.filterwarnings("ignore")
def test_wrong_inputs_raise_the_kind_of_error_of_torch(torch: Any) -> None:
    compared, differing = 0, []
    for expression, given in calls():
        if expression.partition("(")[0] in OTHER_REASONS:
            continue
        for place in range(len(given)):
            for wrong in WRONG:
                sides = [outcome(lib, expression, given, place, wrong) for lib in (plugrad, torch)]
                compared += 1
                if sides[0] != sides[1]:
                    differing.append((expression, place, wrong, *sides))
    assert differing == []
    assert compared > 1500


@pytest.mark.filterwarnings("ignore")
def test_none_of_them_is_taken_that_torch_refuses(torch: Any) -> None:
    """Where both refuse for other reasons, both refuse."""
    taken = set()
    for expression, given in calls():
        if expression.partition("(")[0] not in OTHER_REASONS:
            continue
        for place in range(len(given)):
            for wrong in WRONG:
                sides = [outcome(lib, expression, given, place, wrong) for lib in (plugrad, torch)]
                if isinstance(sides[0], list) and sides[0] != sides[1]:
                    taken.add(expression.partition("(")[0])
    # Dropout of complex numbers, which nothing speaks against.
    assert taken == {"Dropout1d", "Dropout2d", "Dropout3d", "FeatureAlphaDropout"}


@pytest.mark.filterwarnings("ignore:.*weight_norm. is deprecated:FutureWarning")
@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (
            lambda nn: nn.FractionalMaxPool3d((2, 2, 2, 2), 3),
            TypeError,
            r"^FractionalMaxPool3d\(\): argument 'kernel_size' .* 3 ints, not \(2, 2, 2, 2\)",
        ),
        (
            lambda nn: nn.FractionalMaxPool2d(2, "ab"),
            TypeError,
            r"^FractionalMaxPool2d\(\): argument 'output_size' .* 2 ints, not str",
        ),
        (
            lambda nn: nn.FractionalMaxPool2d(2, output_ratio={}),
            TypeError,
            r"^FractionalMaxPool2d\(\): argument 'output_ratio' .* 2 floats, not dict",
        ),
        (
            lambda nn: nn.CrossMapLRN2d(np.array("a"))(plugrad.ones(1, 2, 3, 3)),
            TypeError,
            r"^CrossMapLRN2d\(\): argument 'size' .* must be int, not numpy.ndarray",
        ),
        (
            lambda nn: nn.CrossMapLRN2d(2)(7),
            TypeError,
            r"argument 'input' .* must be Tensor, not int",
        ),
        (
            lambda nn: nn.DataParallel(plugrad.ones(2)),
            TypeError,
            r"^DataParallel\(\): argument 'module' \(position 1\) must be Module, not Tensor",
        ),
        *(
            (
                lambda nn, kind=kind, name=name: getattr(nn.utils, kind)(
                    nn.Linear(2, 2, False), name
                ),
                ValueError,
                words,
            )
            for kind, of in (("spectral_norm", "SpectralNorm"), ("weight_norm", "WeightNorm"))
            for name, words in (
                ("other", "^Module 'Linear.*' has no parameter with name 'other'"),
                ("bias", f"^`{of}` cannot be applied as parameter `bias` is None"),
            )
        ),
        (lambda nn: nn.RNNBase(np.array("a"), 2, 2), ValueError, "^Unrecognized RNN mode: a"),
    ],
)
def test_constructors_name_what_is_wrong(make: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        make(plugrad.nn)
