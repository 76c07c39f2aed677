"""Pooling, padding and normalisation at the edges, as in PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import pytest

import plugrad
from tests.core.ops.against_torch.edges import INF, check, gradients, outcome


def least_pool(dtype: str) -> Callable[[Any], Any]:
    """Windows in which nothing exceeds the padding."""

    def program(lib: Any) -> Any:
        kind = getattr(lib, dtype)
        least = -INF if kind.is_floating_point else lib.iinfo(kind).min
        image = lib.full((1, 3, 4), least, dtype=kind)
        image[0, 2, 3] = 7
        pool = lib.nn.functional.max_pool2d
        return [
            pool(image, 2, 1, padding=1, return_indices=True),
            pool(image, 3, 2, padding=1, dilation=2, return_indices=True),
        ]

    return program


PROGRAMS: Final[dict[str, Callable[[Any], Any]]] = {
    **{f"max_pool2d of the least {t}": least_pool(t) for t in ("float32", "int64", "uint8")},
    "empty stride": lambda L: L.nn.functional.avg_pool2d(L.ones(1, 4, 4), 2, []),
    "a convolution over no dimensions": lambda L: L.convolution(
        L.ones(1, 2), L.ones(2, 2), None, [1], [0], [1], False, [0], 1
    ),
    "one output padding for two dimensions": lambda L: L.convolution(
        L.ones(1, 1, 3, 3), L.ones(1, 1, 2, 2), None, [2], [0], [1], True, [1], 1
    ),
    "three output paddings": lambda L: L.convolution(
        L.ones(1, 1, 3, 3), L.ones(1, 1, 2, 2), None, [1], [0], [1], True, [0, 0, 0], 1
    ),
    "three kernel sizes": lambda L: L.nn.functional.avg_pool2d(L.ones(1, 4, 4), [2, 2, 2]),
    "finer windows": lambda L: gradients(
        lambda x: L.nn.functional.adaptive_avg_pool2d(x, (7, 3))[..., ::2, :],
        L.arange(24.0).reshape(2, 3, 4),
    ),
    "batch_norm of 2 dims": lambda L: L.nn.functional.batch_norm(
        L.arange(6.0).reshape(2, 3), L.zeros(3), L.ones(3), training=True
    ),
    "adaptive_avg_pool2d without channels": (
        lambda L: L.nn.functional.adaptive_avg_pool2d(L.ones(2, 0, 3, 3), (2, 4))
    ),
    "adaptive_avg_pool2d without rows": (
        lambda L: L.nn.functional.adaptive_avg_pool2d(L.ones(2, 3, 0, 3), (2, 4))
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_windows_at_edges_are_those_of_pytorch(torch_oracle: Any, name: str) -> None:
    check(torch_oracle, PROGRAMS[name])


@pytest.mark.parametrize("mode", ["circular", "reflect", "replicate"])
@pytest.mark.parametrize(
    ("shape", "widths"),
    [
        ((1, 2, 4), (2, 3)), ((2, 4), (-1, 3)), ((1, 1, 3, 4), (1, 2, -1, 1)),
        ((1, 3, 4), (1, 2, 1, 1)), ((1, 1, 3, 4), (1, 2)), ((4,), (1, 2)), ((2, 3), (5, 0)),
        ((1, 1, 2, 3, 2), (1, 1, 0, 2, 1, -1)), ((2, 4), (-2, -1)),
    ],
)  # fmt: skip
def test_padding_is_that_of_pytorch(
    torch_oracle: Any, mode: str, shape: tuple[int, ...], widths: tuple[int, ...]
) -> None:
    def padded(lib: Any) -> Any:
        count = 1
        for size in shape:
            count *= size
        x = lib.arange(float(count)).reshape(shape)
        return gradients(lambda x: lib.nn.functional.pad(x, widths, mode=mode).square(), x)

    expected = outcome(torch_oracle, padded)
    actual = outcome(plugrad, padded)
    if isinstance(expected, tuple):
        assert isinstance(actual, tuple)
        assert actual[0] == expected[0]
    else:
        assert actual == expected


@pytest.mark.parametrize("spatial", [1, 2, 3])
@pytest.mark.parametrize("leading", [(0,), (2, 0), (0, 2), (0, 0)])
@pytest.mark.parametrize("size", [0, 4])
@pytest.mark.parametrize("name", ["adaptive_avg_pool", "adaptive_max_pool", "max_unpool"])
def test_windows_of_nothing_are_those_of_pytorch(
    torch_oracle: Any, name: str, size: int, leading: tuple[int, ...], spatial: int
) -> None:
    """Without a batch, there may be no channels: they count as one."""
    shape = (*leading, *(size,) * spatial)

    def program(lib: Any) -> Any:
        function = getattr(lib.nn.functional, f"{name}{spatial}d")

        def pooled(x: Any) -> Any:
            if name == "max_unpool":
                return function(x, lib.zeros(shape, dtype=lib.int64), 2)
            return function(x, 2)

        x = lib.zeros(shape)
        # PyTorch's gradient of a batch without channels is an error.
        return gradients(pooled, x) if leading == (0,) else pooled(x)

    # The largest of signals are unpooled as images in PyTorch, whose message shows that.
    ours, theirs = outcome(plugrad, program), outcome(torch_oracle, program)
    if "Error" in theirs[0]:
        assert ours[0] == theirs[0]
        assert "to have non-zero size for non-batch dimensions" in ours[1]
    else:
        assert ours == theirs
