"""Indexing: values, gradients and errors of `x[index]` and `x[index] = value` are PyTorch's."""

from __future__ import annotations

import warnings
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import plugrad
from tests.core.drawing import drawn

MASK = [[True, False, True], [False, True, False]]


class One:
    def __index__(self) -> int:
        return 1


def outcome(index: Any, lib: Any) -> str:
    """`x[index(lib)]` as text, or the error, with PyTorch's name replaced by ours."""
    x = lib.arange(24).reshape(2, 3, 4)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            text = repr(x[index(lib)])
        except Exception as error:
            text = f"{type(error).__name__}: {error}"
    return text.replace("torch.", "plugrad.")


INDICES: dict[str, Any] = {
    "int": lambda lib: 1,
    "negative int": lambda lib: -2,
    "object with __index__": lambda lib: One(),
    "numpy int": lambda lib: np.int64(1),
    "ints": lambda lib: (1, -1, 2),
    "slices": lambda lib: (slice(1, None), slice(None, -1), slice(None, None, 2)),
    "slice beyond the end": lambda lib: slice(-10, 10),
    "empty slice": lambda lib: slice(2, 1),
    "slice of tensors": lambda lib: slice(lib.tensor(0), lib.tensor(1)),
    "None": lambda lib: None,
    "Ellipsis": lambda lib: ...,
    "two Ellipses": lambda lib: (..., ...),
    "empty tuple": lambda lib: (),
    "None, Ellipsis, int": lambda lib: (slice(0, 9), None, ..., 1),
    "True": lambda lib: True,
    "False": lambda lib: False,
    "True, False": lambda lib: (True, False),
    "slice, True": lambda lib: (slice(None), True),
    "list": lambda lib: [1, 0, 1],
    "empty list": lambda lib: [],
    "range": lambda lib: range(2),
    "tuple in a tuple": lambda lib: ((0, 1),),
    "nested list in a tuple": lambda lib: ([[0, 1], [1, 0]],),
    "list of lists": lambda lib: [[0, 1], [1, 0]],
    "list with a slice": lambda lib: [slice(None), 0],
    "list of bools": lambda lib: [True, False],
    "numpy array": lambda lib: np.array([0, 1]),
    "numpy mask": lambda lib: np.array([True, False]),
    "numpy 0-dim array": lambda lib: np.array(1),
    "0-dim tensor": lambda lib: lib.tensor(1),
    "0-dim int32 tensor": lambda lib: lib.tensor(1, dtype=lib.int32),
    "0-dim bool tensor": lambda lib: lib.tensor(True),
    "int32 tensor": lambda lib: lib.tensor([1], dtype=lib.int32),
    "uint8 mask": lambda lib: lib.tensor([1, 0], dtype=lib.uint8),
    "mask": lambda lib: lib.tensor(MASK),
    "mask, int": lambda lib: (lib.tensor(MASK), 0),
    "mask, slice": lambda lib: (lib.tensor(MASK), slice(1, 3)),
    "mask, None": lambda lib: (lib.tensor(MASK), None),
    "mask, tensor": lambda lib: (lib.tensor(MASK), lib.tensor([0, 1, 2])),
    "mask, True": lambda lib: (lib.tensor(MASK), True),
    "Ellipsis, mask": lambda lib: (..., lib.tensor([True, False, True, True])),
    "two tensors": lambda lib: (lib.tensor([0, 1]), lib.tensor([[2], [0]])),
    "tensors apart": lambda lib: (lib.tensor([0, 1]), slice(None), lib.tensor([0, 1])),
    "tensors apart by None": lambda lib: (lib.tensor([[0, 1]]), None, lib.tensor([0, 1])),
    "tensor last": lambda lib: (slice(None), slice(None), lib.tensor([3, 0, -1])),
    "int, slice, tensor": lambda lib: (0, slice(None), lib.tensor([0, 1])),
    "slice, int, tensor": lambda lib: (slice(None), 0, lib.tensor([0, 1])),
    "slice, empty list, int": lambda lib: (slice(None), [], 0),
    # What is refused:
    "float": lambda lib: 1.0,
    "str": lambda lib: "a",
    "dict": lambda lib: {},
    "numpy float": lambda lib: np.float32(1),
    "too many": lambda lib: (0, 0, 0, 0),
    "mask with too many dimensions": lambda lib: lib.ones(2, 3, 4, 1).to(lib.bool),
    "out of bounds": lambda lib: 5,
    "out of bounds from the end": lambda lib: -3,
    "out of bounds, second": lambda lib: (0, 5),
    "out of bounds after Ellipsis": lambda lib: (..., 5),
    "out of bounds in a list": lambda lib: [0, 7],
    "out of bounds in a tensor": lambda lib: lib.tensor([0, -3]),
    "negative step": lambda lib: slice(0, 2, -1),
    "zero step": lambda lib: slice(None, None, 0),
    "float in a slice": lambda lib: slice(0.5, 1),
    "float tensor": lambda lib: lib.tensor([0.5]),
    "short tensor type": lambda lib: lib.tensor([1], dtype=lib.int8),
    "mask of the wrong length": lambda lib: lib.tensor([True, False, True]),
    "second mask of the wrong length": lambda lib: (slice(None), lib.tensor([True, False])),
    "tensors that do not broadcast": lambda lib: (lib.tensor([0, 1]), lib.tensor([0, 1, 2])),
}


@pytest.mark.parametrize("case", INDICES)
def test_getitem_is_that_of_torch(torch_oracle: ModuleType, case: str) -> None:
    assert outcome(INDICES[case], plugrad) == outcome(INDICES[case], torch_oracle)


def test_a_0_dim_tensor_takes_no_int(torch_oracle: ModuleType) -> None:
    zero_dim = plugrad.tensor(5)
    assert zero_dim[None].tolist() == [5]
    assert zero_dim[...].tolist() == 5
    assert zero_dim[True].tolist() == [5]
    with pytest.raises(IndexError, match="invalid index of a 0-dim tensor"):
        zero_dim[0]


@pytest.mark.parametrize(
    "index", [0, slice(1), None, ..., (), (0, slice(None)), (slice(None), slice(None))]
)
def test_basic_indexing_gives_a_view(index: Any) -> None:
    x = plugrad.zeros(2, 3)
    y = x[index]
    assert y is not x
    y += 1
    assert x.sum().item() == y.numel()


@pytest.mark.parametrize("index", [[0], True, ([0, 1], [1, 2])])
def test_advanced_indexing_gives_a_copy(index: Any) -> None:
    x = plugrad.zeros(2, 3)
    x[index].add_(1)
    assert x.sum().item() == 0


@st.composite
def indices(draw: st.DrawFn) -> tuple[tuple[int, ...], tuple[Any, ...]]:
    """A shape, and a valid index of it with arrays in place of tensors."""
    shape = draw(st.lists(st.integers(1, 4), min_size=1, max_size=4).map(tuple))
    common = draw(st.lists(st.integers(1, 2), max_size=2).map(tuple))
    index: list[Any] = []
    dim = 0
    while dim < len(shape):
        size = shape[dim]
        kind = draw(st.sampled_from(["int", "slice", "none", "array", "mask", "true", "rest"]))
        if kind == "int":
            index.append(draw(st.integers(-size, size - 1)))
        elif kind == "slice":
            bound = st.none() | st.integers(-size - 1, size + 1)
            index.append(slice(draw(bound), draw(bound), draw(st.none() | st.integers(1, 2))))
        elif kind == "array":
            count = int(np.prod(common))
            entries = st.lists(st.integers(-size, size - 1), min_size=count, max_size=count)
            index.append(np.array(draw(entries), dtype=np.int64).reshape(common))
        elif kind == "mask":
            covered = shape[dim : dim + draw(st.integers(1, min(2, len(shape) - dim)))]
            mask = np.zeros(covered, dtype=bool)
            mask.reshape(-1)[draw(st.integers(0, mask.size - 1))] = True
            index.append(mask)
            dim += len(covered) - 1
        elif kind == "rest":
            index.append(...)
            break
        else:
            index.append(None if kind == "none" else True)
            dim -= 1
            assume(len(index) < 8)
        dim += 1
    return shape, tuple(index)


def with_tensors(index: tuple[Any, ...], lib: Any) -> tuple[Any, ...]:
    return tuple(lib.tensor(i) if isinstance(i, np.ndarray) else i for i in index)


@drawn(200)
@given(case=indices(), data=st.data())
def test_any_index_reads_writes_and_differentiates_as_in_torch(
    torch_oracle: ModuleType, case: tuple[tuple[int, ...], tuple[Any, ...]], data: st.DataObject
) -> None:
    shape, index = case
    values = np.arange(float(np.prod(shape))).reshape(shape)
    number = data.draw(st.booleans())
    seen: list[list[Any]] = []
    for lib in (plugrad, torch_oracle):
        key = with_tensors(index, lib)
        x = lib.tensor(values, requires_grad=True)
        read = x[key]
        weight = lib.arange(read.numel(), dtype=lib.float64).reshape(tuple(read.shape)) + 1
        (read * weight).sum().backward()
        y = lib.tensor(values, requires_grad=True)
        source = lib.tensor(read.detach().numpy() * 10, requires_grad=True)
        target = y * 1
        target[key] = 7 if number else source
        (target * target).sum().backward()
        source_grad = None if number else source.grad.numpy()
        seen.append([read.detach().numpy(), x.grad.numpy(), target.detach().numpy()])
        seen[-1].append(y.grad.numpy())
        # Of several writes to one place it is open which one counts.
        has_arrays = any(isinstance(i, np.ndarray) for i in index)
        seen[-1].append(None if number or has_arrays else source_grad)
    for ours, theirs in zip(*seen, strict=True):
        np.testing.assert_array_equal(ours, theirs)


def assigned(lib: Any, index: Any, value: Any, dtype: str = "float32") -> str:
    x = lib.zeros(2, 3, dtype=getattr(lib, dtype))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            x[index(lib) if callable(index) else index] = value(lib) if callable(value) else value
            text = repr(x)
        except Exception as error:
            text = f"{type(error).__name__}: {error}"
    return text.replace("torch.", "plugrad.")


ASSIGNMENTS: dict[str, tuple[Any, ...]] = {
    "number to a row": (0, 1.5),
    "number to everything": (..., 3),
    "number to an empty tuple": ((), 3),
    "number where True": (True, 3),
    "number where False": (False, 3),
    "number to None": (None, 3),
    "number by list": ([1, 0], 2),
    "number by mask": (lambda lib: lib.tensor(MASK), 5),
    "number by bool tensor": (lambda lib: lib.tensor(True), 3),
    "number by True and list": ((True, [0, 1]), 4),
    "row": (0, lambda lib: lib.tensor([1.0, 2, 3])),
    "row with leading ones": (0, lambda lib: lib.ones(1, 1, 3)),
    "row of another dtype": (0, lambda lib: lib.tensor([True, False, True])),
    "row where True": (True, lambda lib: lib.tensor([1.0, 2, 3])),
    "row to None, int": ((None, 0), lambda lib: lib.tensor([1.0, 2, 3])),
    "one element": ((0, 0), lambda lib: lib.tensor([4.0])),
    "points": (([0, 1], [1, 2]), lambda lib: lib.tensor([1.0, 2])),
    "points with leading ones": (([0, 1], [1, 2]), lambda lib: lib.ones(1, 1, 2)),
    "columns": ((slice(None), [0, 2]), lambda lib: lib.tensor([[1.0, 2], [3, 4]])),
    "columns broadcast": ((slice(None), [0, 2]), lambda lib: lib.tensor([1.0, 2])),
    "by mask": (lambda lib: lib.tensor(MASK), lambda lib: lib.tensor([1.0, 2, 3])),
    "by mask of rows": (lambda lib: lib.tensor([True, False]), lambda lib: lib.tensor([1.0, 2, 3])),
    "float into ints": (0, 1.7, "int64"),
    "float into ints by list": ([0], 1.7, "int64"),
    "float tensor into ints": (0, lambda lib: lib.tensor([1.7]), "int64"),
    "number into bools": (0, 3, "bool"),
    "complex": (0, 1j, "complex64"),
    "complex without imaginary part": (0, 2 + 0j),
    "complex without imaginary part by list": ([0], 2 + 0j),
    # What is refused:
    "too big": (0, 300, "uint8"),
    "too big by list": ([0], 300, "uint8"),
    "nan into ints": (0, float("nan"), "int64"),
    "complex into floats": (0, 1j),
    "row too short": (0, lambda lib: lib.ones(2)),
    "matrix too narrow": (slice(None), lambda lib: lib.ones(2, 2)),
    "too few points": (([0, 1], [1, 2]), lambda lib: lib.ones(3)),
    "too few by mask": (lambda lib: lib.tensor(MASK), lambda lib: lib.tensor([1.0, 2])),
    "another dtype by list": (([0],), lambda lib: lib.tensor([1, 2, 3])),
    "float tensor into ints by list": ([0], lambda lib: lib.tensor([1.7]), "int64"),
    "list": (0, [1, 2, 3]),
    "array": (0, np.array([1.0, 2, 3])),
    "str": (0, "a"),
    "None": (0, None),
    "too many indices": ((0, 0, 0), 3),
    "out of bounds": ((0, 9), 3),
    "out of bounds by list": ([0, 9], 3),
    "float as index": (1.5, 4),
}


@pytest.mark.parametrize("case", ASSIGNMENTS)
def test_setitem_is_that_of_torch(torch_oracle: ModuleType, case: str) -> None:
    assert assigned(plugrad, *ASSIGNMENTS[case]) == assigned(torch_oracle, *ASSIGNMENTS[case])


def test_setitem_counts_as_one_write() -> None:
    x = plugrad.zeros(3)
    before = x._version
    x[1] = 2
    assert x._version == before + 1


def test_setitem_on_a_leaf_that_requires_grad_is_refused() -> None:
    x = plugrad.zeros(3, requires_grad=True)
    with pytest.raises(RuntimeError, match="a view of a leaf Variable that requires grad is being"):
        x[0] = 1
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad is being used in a"):
        x[[0]] = 1


def test_gradient_reaches_both_sides_of_an_assignment() -> None:
    x = plugrad.ones(3, requires_grad=True)
    y = plugrad.tensor(5.0, requires_grad=True)
    z = x * 2
    z[1] = y
    (z * z).sum().backward()
    assert x.grad.tolist() == [8.0, 0.0, 8.0]
    assert y.grad.item() == 10.0
