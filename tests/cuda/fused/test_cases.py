"""Every public sample of the fused operators, on a backend with emulated fused kernels."""

from __future__ import annotations

import pytest

from plugrad.testing.cases import OpCase
from tests.core.backends.against_cpu import CASES, check_case
from tests.cuda.emulation.runtime import Emulation

# The fused operators, and operators composed of them.
NAMES = (
    "softmax", "log_softmax", "_softmax", "_log_softmax", "_softmax_backward_data",
    "_log_softmax_backward_data", "cross_entropy_loss", "nll_loss", "nll_loss_forward",
    "layer_norm", "native_layer_norm", "batch_norm", "native_batch_norm", "group_norm",
    "conv1d", "conv2d", "conv_transpose2d", "convolution", "convolution_backward", "max_pool2d",
    "max_pool2d_with_indices", "avg_pool2d", "adaptive_avg_pool2d", "embedding",
    "embedding_dense_backward", "linalg.lu", "linalg.lu_factor", "linalg.lu_factor_ex",
)  # fmt: skip


def _name(case: OpCase) -> str:
    """Without an overload; `linalg.lu` is a name of its own."""
    name = case.op.split("::")[-1]
    return name if name.startswith("linalg.") else name.split(".")[0]


FUSED = [case for case in CASES if _name(case) in NAMES]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("case", FUSED, ids=lambda case: case.op)
def test_results_and_gradients(
    case: OpCase, dtype: str, emulated_device: str, emulation: Emulation
) -> None:
    before = emulation.launched.total()
    assert check_case(case, dtype, emulated_device)
    assert emulation.launched.total() > before


@pytest.mark.parametrize("dtype", ["int64", "complex64"])
@pytest.mark.parametrize("case", FUSED, ids=lambda case: case.op)
def test_other_dtypes_go_to_the_kernels_beside(
    case: OpCase, dtype: str, emulated_device: str
) -> None:
    if dtype in case.dtypes:
        check_case(case, dtype, emulated_device)
