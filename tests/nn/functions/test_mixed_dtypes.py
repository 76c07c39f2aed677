"""Parameters and masks of another dtype than the input: taken and refused as in PyTorch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import plugrad

DTYPES = ("float64", "float32", "float16", "bfloat16")
CALLS = {
    "group_norm": lambda F, x, w: F.group_norm(x, 2, w, w),
    "layer_norm": lambda F, x, w: F.layer_norm(x, (4,), w, w),
    "instance_norm": lambda F, x, w: F.instance_norm(x[..., None] * x, weight=w, bias=w),
    "batch_norm": lambda F, x, w: F.batch_norm(x, None, None, w, w, True),
    "rms_norm": lambda F, x, w: F.rms_norm(x, (4,), w),
    "attention": lambda F, x, w: F.scaled_dot_product_attention(x, x, x, w[:3].expand(3, 3)),
}


@pytest.mark.filterwarnings("ignore:Mismatch dtype between input and weight")
@pytest.mark.parametrize("other", DTYPES)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", CALLS)
def test_other_dtypes_are_taken_as_in_torch(torch: Any, name: str, dtype: str, other: str) -> None:
    rng = np.random.default_rng(4)
    values, weights = rng.standard_normal((3, 4)), rng.standard_normal(4)
    found = []
    for library in (plugrad, torch):
        x = library.tensor(values).to(getattr(library, dtype)).requires_grad_()
        w = library.tensor(weights).to(getattr(library, other)).requires_grad_()
        try:
            result = CALLS[name](library.nn.functional, x, w)
        except RuntimeError as error:
            found.append(str(error).replace("plugrad", "torch"))
            continue
        (result * library.cos(result.detach())).sum().backward()
        sides = [result, x.grad, w.grad]
        names = [str(side.dtype).partition(".")[2] for side in sides]
        found.append((names, [side.detach().double().numpy() for side in sides]))
    if isinstance(found[1], str):
        assert found[0] == found[1]
        return
    assert found[0][0] == found[1][0]
    narrow = max(plugrad.finfo(getattr(plugrad, each)).eps for each in (dtype, other))
    for mine, theirs in zip(found[0][1], found[1][1], strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=8 * narrow, atol=16 * narrow)
