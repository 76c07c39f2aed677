"""Properties: what is saved in the format "pt" comes back, from plugrad and from PyTorch."""

from __future__ import annotations

import io
import math
from collections import OrderedDict
from typing import Any

import hypothesis.strategies as st
import numpy as np
from hypothesis import given, settings

import plugrad

DTYPES = ["float32", "float64", "int64", "int8", "uint8", "bool", "complex64", "bfloat16", "uint16"]

plain = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
plain = plain | st.binary(max_size=300) | st.complex_numbers(allow_nan=False)
keys = st.text(max_size=8) | st.integers() | st.tuples(st.integers(), st.booleans())
values = st.recursive(
    plain,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.tuples(inner, inner)
        | st.dictionaries(keys, inner, max_size=4)
        | st.dictionaries(keys, inner, max_size=3).map(OrderedDict)
    ),
    max_leaves=20,
)


def saved(obj: Any, new: bool, protocol: int) -> io.BytesIO:
    file = io.BytesIO()
    plugrad.save(
        obj,
        file,
        format="pt",
        pickle_protocol=protocol,
        _use_new_zipfile_serialization=new,
    )
    file.seek(0)
    return file


@settings(max_examples=200, deadline=None, derandomize=True)
@given(values, st.booleans(), st.integers(2, 5))
def test_containers_and_values_come_back(value: Any, new: bool, protocol: int) -> None:
    found = plugrad.load(saved(value, new, protocol))
    assert found == value
    assert repr(found) == repr(value)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(values, st.booleans())
def test_pytorch_reads_containers_and_values(torch_oracle: Any, value: Any, new: bool) -> None:
    assert torch_oracle.load(saved(value, new, 2), weights_only=True) == value


@st.composite
def views(draw: Any) -> tuple[str, int, list[tuple[tuple[int, ...], tuple[int, ...], int]]]:
    """A dtype, the length of a memory, and views of it: sizes, strides, offsets."""
    length = draw(st.integers(1, 30))
    found = []
    for _ in range(draw(st.integers(1, 4))):
        offset = draw(st.integers(0, length - 1))
        left, sizes, strides = length - 1 - offset, [], []
        for _ in range(draw(st.integers(0, 3))):
            step = draw(st.integers(0, 4))
            most = 4 if step == 0 else left // step + 1
            size = draw(st.integers(0, min(most, 5)))
            left -= max(size - 1, 0) * step
            sizes.append(size)
            strides.append(step)
        found.append((tuple(sizes), tuple(strides), offset))
    return draw(st.sampled_from(DTYPES)), length, found


@settings(max_examples=200, deadline=None, derandomize=True)
@given(views(), st.booleans())
def test_views_of_one_memory_come_back(
    torch_oracle: Any, case: tuple[str, int, list[Any]], new: bool
) -> None:
    name, length, layouts = case
    if name == "uint16" and not new:
        return  # PyTorch cannot read these from the old format
    base = plugrad.arange(length).to(getattr(plugrad, name))
    tensors = [base, *(base.as_strided(*layout) for layout in layouts)]
    file = saved(tensors, new, 2)
    found = plugrad.load(file)
    file.seek(0)
    theirs = torch_oracle.load(file, weights_only=True)
    for (sizes, strides, offset), ours, other in zip(layouts, found[1:], theirs[1:], strict=True):
        expected = base.as_strided(sizes, strides, offset).tolist()
        assert ours.tolist() == other.tolist() == expected
        assert tuple(ours.shape) == tuple(other.shape) == sizes
        if math.prod(sizes):
            # The step of a single element means nothing, and arrays do not keep it.
            steps = [step for size, step in zip(sizes, strides, strict=True) if size > 1]
            for one in (ours, other):
                pairs = zip(one.shape, one.stride(), strict=True)
                assert [step for size, step in pairs if size > 1] == steps
            assert ours.untyped_storage() == found[0].untyped_storage()
            assert (ours.storage_offset(), other.storage_offset()) == (offset, offset)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(views(), st.sampled_from(["C", "F"]))
def test_arrays_of_any_layout_come_back(case: Any, order: Any) -> None:
    _, length, layouts = case
    memory = np.array(np.arange(length * 2.0).reshape(2, length), order=order)
    for sizes, strides, offset in layouts:
        part = np.lib.stride_tricks.as_strided(
            memory.ravel("K")[offset:], sizes, [8 * step for step in strides]
        )
        tensor = plugrad.from_numpy(part)
        assert plugrad.load(saved(tensor, True, 2)).tolist() == part.tolist()
