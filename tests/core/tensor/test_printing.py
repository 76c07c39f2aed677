"""Printing: equal to PyTorch's, character for character."""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import plugrad
from plugrad.plugins.printing import set_printed_name
from plugrad.tensor.printing import array_text, get_printoptions
from tests.core.drawing import drawn

REAL = ("float16", "bfloat16", "float32", "float64")
COMPLEX = ("complex64", "complex128")
INTEGER = ("uint8", "int8", "int16", "int32", "int64")


@pytest.fixture(autouse=True)
def default_options() -> Iterator[None]:
    yield
    plugrad.set_printoptions(profile="default")


def values_of(kind: int, count: int, rng: np.random.Generator) -> Any:
    """Doubles of one of the kinds that print differently, some of them special."""
    if kind == 0:
        values = rng.normal(size=count)
    elif kind == 1:
        values = rng.integers(-5, 5, count).astype(float)
    elif kind == 2:
        values = rng.normal(size=count) * 10.0 ** rng.integers(-8, 12, count)
    elif kind == 3:
        values = rng.normal(size=count) * 10.0 ** rng.integers(-8, 12)
    elif kind == 4:
        values = rng.integers(-(10**9), 10**9, count).astype(float)
    else:
        values = np.zeros(count)
    if count and rng.random() < 0.3:
        special = rng.integers(0, count, max(1, count // 4))
        values[special] = rng.choice([np.nan, np.inf, -np.inf, 0.0, -0.0], len(special))
    return values


def pair(torch: ModuleType, dtype: str, values: Any) -> tuple[Any, Any]:
    """The same data as a tensor of either library."""
    with np.errstate(all="ignore"):
        reference = torch.from_numpy(values).to(getattr(torch, dtype))
    if dtype == "bfloat16":
        array = reference.view(torch.int16).numpy().view(plugrad.bfloat16.numpy)
    else:
        array = reference.numpy()
    return reference, plugrad.from_numpy(array)


shapes = st.lists(st.sampled_from([0, 1, 1, 2, 3, 5, 7, 12]), max_size=4).map(tuple)
long_vectors = st.integers(1, 1500).map(lambda length: (length,))


@drawn(150)
@given(
    shape=shapes | long_vectors,
    dtype=st.sampled_from([*REAL, *COMPLEX, *INTEGER, "bool"]),
    kind=st.integers(0, 5),
    seed=st.integers(0, 2**32 - 1),
)
def test_elements_print_as_in_torch(
    torch_oracle: ModuleType, shape: tuple[int, ...], dtype: str, kind: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    count = int(np.prod(shape))
    values = values_of(kind, count, rng)
    if dtype in COMPLEX:
        values = values.astype(complex)
        values.imag = values_of(kind, count, rng)
    reference, ours = pair(torch_oracle, dtype, values.reshape(shape))
    expected = torch_oracle._tensor_str._tensor_str(reference, 7)
    assert array_text(ours.numpy(), 7) == expected


@drawn(100)
@given(
    shape=shapes | long_vectors,
    precision=st.integers(0, 8),
    threshold=st.sampled_from([0, 5, 100, 1000, float("inf")]),
    edgeitems=st.integers(0, 5),
    linewidth=st.integers(20, 160),
    sci_mode=st.sampled_from([None, True, False]),
    kind=st.integers(0, 5),
    seed=st.integers(0, 2**32 - 1),
)
def test_print_options_mean_what_they_mean_in_torch(
    torch_oracle: ModuleType,
    shape: tuple[int, ...],
    kind: int,
    seed: int,
    **options: Any,
) -> None:
    values = values_of(kind, int(np.prod(shape)), np.random.default_rng(seed)).reshape(shape)
    reference, ours = pair(torch_oracle, "float32", values)
    try:
        torch_oracle.set_printoptions(**options)
        plugrad.set_printoptions(**options)
        assert repr(ours) == repr(reference)
    finally:
        torch_oracle.set_printoptions(profile="default")
        plugrad.set_printoptions(profile="default")


@pytest.mark.parametrize("profile", ["default", "short", "full"])
def test_profiles_are_those_of_torch(torch_oracle: ModuleType, profile: str) -> None:
    values = np.linspace(0, 1, 1200).reshape(40, 30)
    reference, ours = pair(torch_oracle, "float32", values)
    try:
        torch_oracle.set_printoptions(profile=profile)
        plugrad.set_printoptions(profile=profile)
        assert repr(ours) == repr(reference)
    finally:
        torch_oracle.set_printoptions(profile="default")


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (lambda: plugrad.tensor([]), "tensor([])"),
        (lambda: plugrad.zeros(0, 3), "tensor([], size=(0, 3))"),
        (lambda: plugrad.zeros(0, dtype=plugrad.int64), "tensor([], dtype=plugrad.int64)"),
        (lambda: plugrad.tensor(3.0), "tensor(3.)"),
        (lambda: plugrad.tensor(2.5), "tensor(2.5000)"),
        (lambda: plugrad.tensor([1.0, 2.0]), "tensor([1., 2.])"),
        (lambda: plugrad.tensor([True, False]), "tensor([ True, False])"),
        (lambda: plugrad.tensor([1, 20]), "tensor([ 1, 20])"),
        (
            lambda: plugrad.tensor([1.0], dtype=plugrad.float64),
            "tensor([1.], dtype=plugrad.float64)",
        ),
        (lambda: plugrad.tensor([1], dtype=plugrad.int8), "tensor([1], dtype=plugrad.int8)"),
        (lambda: plugrad.tensor([1j]), "tensor([0.+1.j])"),
        (lambda: plugrad.tensor([float("nan"), 1.0]), "tensor([nan, 1.])"),
        (
            lambda: plugrad.tensor([1.0], requires_grad=True),
            "tensor([1.], requires_grad=True)",
        ),
    ],
)
def test_what_is_not_the_default_is_named(made: Any, expected: str) -> None:
    assert repr(made()) == expected
    assert str(made()) == expected


def test_grad_fn_is_named_instead_of_requires_grad() -> None:
    x = plugrad.tensor([1.0, 2.0], requires_grad=True)
    assert repr(x * 2) == "tensor([2., 4.], grad_fn=<MulBackward0>)"


def test_default_dtype_decides_which_dtype_is_named() -> None:
    plugrad.set_default_dtype(plugrad.float64)
    try:
        assert repr(plugrad.tensor([1.5])) == "tensor([1.5000])"
        single = plugrad.tensor([1.5], dtype=plugrad.float32)
        assert repr(single) == "tensor([1.5000], dtype=plugrad.float32)"
        assert repr(plugrad.tensor([1j])) == "tensor([0.+1.j])"
    finally:
        plugrad.set_default_dtype(plugrad.float32)


def test_suffix_that_does_not_fit_starts_a_line() -> None:
    text = repr(plugrad.ones(2, 15, requires_grad=True))
    assert text.endswith("]],\n       requires_grad=True)")


def test_a_subclass_prints_under_its_own_name() -> None:
    class Named(plugrad.Tensor):  # type: ignore[misc]
        pass

    assert repr(plugrad.Tensor._make_subclass(Named, plugrad.ones(1))) == "Named([1.])"


def test_str_follows_the_repr_of_a_subclass() -> None:
    class Framed(plugrad.Tensor):  # type: ignore[misc]
        _printed_as = "tensor"

        def __repr__(self) -> str:
            return "Framed: " + plugrad.Tensor.__repr__(self)

    framed = plugrad.Tensor._make_subclass(Framed, plugrad.ones(1))
    assert str(framed) == "Framed: tensor([1.])"


def test_get_printoptions_returns_what_was_set() -> None:
    before = get_printoptions()
    plugrad.set_printoptions(precision=2, linewidth=40)
    assert get_printoptions() == before | {"precision": 2, "linewidth": 40}


def test_objects_print_under_the_name_that_is_set() -> None:
    """Oracle: what PyTorch prints."""
    dual = plugrad.ones(2, dtype=plugrad.float64)
    before = set_printed_name("torch")
    try:
        shown = [
            *(repr(plugrad.int8), repr(plugrad.Size([2, 3])), repr(plugrad.channels_last)),
            *(repr(dual), dual.type(), dual.untyped_storage().type()),
            repr(plugrad.ones(1).max(0)).partition("(")[0],
        ]
    finally:
        set_printed_name(before)
    assert shown == [
        *("torch.int8", "torch.Size([2, 3])", "torch.channels_last"),
        *("tensor([1., 1.], dtype=torch.float64)", "torch.DoubleTensor", "torch.UntypedStorage"),
        "torch.return_types.max",
    ]
    assert (before, repr(plugrad.int8)) == ("plugrad", "plugrad.int8")
