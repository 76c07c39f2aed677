"""DLPack: memory is exchanged with other libraries, and not copied where it can be shared."""

from __future__ import annotations

import numpy as np
import pytest

import plugrad
from plugrad.testing.conformance.kit.compare import on_host
from plugrad.testing.conformance.kit.matrix import each, in_dtypes
from plugrad.testing.conformance.kit.subject import Subject, skip

HOST = 1
# What DLPack's first versions, and so the libraries on the other side, have no word for.
UNCOMMON = ("bool", "bfloat16", "float8_e4m3fn", "float8_e5m2")


@each("dtype", in_dtypes)
def test_there_and_back(subject: Subject, dtype: str) -> None:
    subject.needs_capability("dlpack")
    if dtype in UNCOMMON:
        skip(f"DLPack of {dtype} is not required")
    x = subject.tensor([[1, 2, 3], [4, 5, 6]], dtype)
    again = plugrad.from_dlpack(x, device=subject.device)
    assert again.dtype is x.dtype
    assert again.device == x.device
    assert again.tolist() == x.tolist()


def test_memory_is_shared(subject: Subject) -> None:
    subject.needs_capability("dlpack")
    subject.needs_capability("mutable")
    subject.needs("add_.Scalar")
    x = subject.tensor([1.0, 2.0])
    again = plugrad.from_dlpack(x, device=subject.device)
    x.add_(1)
    assert on_host(again).tolist() == [2.0, 3.0]


def test_views_keep_their_layout(subject: Subject) -> None:
    subject.needs_capability("dlpack")
    subject.needs("permute", "slice.Tensor")
    x = subject.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    for view in (x.transpose(0, 1), x[:, 1:]):
        assert plugrad.from_dlpack(view, device=subject.device).tolist() == view.tolist()


def test_numpy_reads_memory_of_the_host(subject: Subject) -> None:
    subject.needs_capability("dlpack")
    x = subject.tensor([1.0, 2.0])
    if x.__dlpack_device__()[0] != HOST:
        skip("its memory is not the host's")
    np.testing.assert_array_equal(np.from_dlpack(x), [1.0, 2.0])


def test_a_tensor_that_requires_grad_is_not_exported(subject: Subject) -> None:
    subject.needs_capability("dlpack")
    with pytest.raises(BufferError, match="require gradient"):
        subject.tensor([1.0]).requires_grad_().__dlpack__()


def test_without_the_capability_it_is_a_buffer_error(subject: Subject) -> None:
    if "dlpack" in subject.capabilities:
        return
    with pytest.raises(BufferError):
        subject.backend.from_dlpack(np.zeros(2), 0)
