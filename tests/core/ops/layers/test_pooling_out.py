"""`out=` of pooling that returns maxima and where they are; the oracle is the call without it."""

from __future__ import annotations

from typing import Any

import pytest

import plugrad

IMAGE = plugrad.arange(16.0).reshape(1, 1, 4, 4)
CALLS: dict[str, tuple[Any, ...]] = {
    "max_pool2d_with_indices": (IMAGE, 2),
    "max_pool3d_with_indices": (IMAGE.unsqueeze(2), (1, 2, 2)),
    "adaptive_max_pool2d": (IMAGE, 3),
    "adaptive_max_pool3d": (IMAGE.unsqueeze(2), (1, 3, 3)),
    "fractional_max_pool2d": (IMAGE, 2, 2, plugrad.full((1, 1, 2), 0.3)),
}


@pytest.mark.parametrize("name", CALLS)
def test_maxima_and_indices_are_written_to_out(name: str) -> None:
    pool = getattr(plugrad, name)
    out = plugrad.empty(0), plugrad.empty(0, dtype=plugrad.int64)
    found = pool(*CALLS[name], out=out)
    assert found[0] is out[0]
    assert found[1] is out[1]
    for written, expected in zip(out, pool(*CALLS[name]), strict=True):
        assert plugrad.equal(written, expected)
