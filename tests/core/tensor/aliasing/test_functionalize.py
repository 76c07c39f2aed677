"""Views and writes on immutable arrays; the oracle is the CPU, where memory is shared.

The whole suites of views and in-place operators run on immutable arrays as well: `ANY_ARRAYS` in
tests/core/autograd/conftest.py.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

import plugrad
from tests.core.drawing import drawn

Both = Callable[[Callable[[str], Any]], tuple[Any, Any]]


def test_the_arrays_cannot_be_written_to(immutable: str) -> None:
    x = plugrad.zeros(2, device=immutable)
    with pytest.raises((ValueError, TypeError), match=r"read-only|immutable"):
        x.array[0] = 1


VIEWS: dict[str, Callable[[Any], Any]] = {
    "slice": lambda x: x[1:, ::2],
    "select": lambda x: x[1],
    "permute": lambda x: x.permute(1, 0),
    "transpose of a slice": lambda x: x[:, 1:].t(),
    "slice of a transpose": lambda x: x.t()[1:3],
    "view": lambda x: x.view(2, 6),
    "flat, then a slice": lambda x: x.view(-1)[3:9],
    "unsqueeze": lambda x: x.unsqueeze(1),
    "squeeze": lambda x: x.unsqueeze(0).squeeze(),
    "diagonal": lambda x: x.diagonal(1),
    "part of a split": lambda x: x.split(2, dim=1)[1],
    "row of unbind": lambda x: x.unbind()[2],
    "unfold": lambda x: x.unfold(1, 2, 2),
    "windows of a transpose": lambda x: x.t().unfold(0, 2, 2),
    "narrow": lambda x: x.narrow(1, 1, 2),
    "movedim": lambda x: x.movedim(0, 1),
    "expand without repeating": lambda x: x.expand(3, 4),
    "detach": lambda x: x.detach(),
    "data": lambda x: x.data[1:],
    "the first of a chunk of a diagonal": lambda x: x.diagonal().chunk(3)[0],
}


@pytest.mark.parametrize("take", VIEWS.values(), ids=VIEWS)
def test_a_write_to_a_view_reaches_all_that_share_it(
    take: Callable[[Any], Any], on_both: Both
) -> None:
    def program(device: str) -> Any:
        x = plugrad.arange(12.0, device=device).view(3, 4)
        view, other = take(x), x[0]
        view.mul_(10).add_(view.sum())
        return [x.tolist(), view.tolist(), other.tolist(), view._version == x._version]

    got, expected = on_both(program)
    assert got == expected


@pytest.mark.parametrize("take", VIEWS.values(), ids=VIEWS)
def test_a_view_follows_a_write_to_its_base(take: Callable[[Any], Any], on_both: Both) -> None:
    def program(device: str) -> Any:
        x = plugrad.arange(12.0, device=device).view(3, 4)
        view = take(x)
        x.mul_(2)
        x[1, 1:] = 7
        return [x.tolist(), view.tolist()]

    got, expected = on_both(program)
    assert got == expected


@pytest.mark.parametrize("take", VIEWS.values(), ids=VIEWS)
def test_gradients_through_a_write_to_a_view(take: Callable[[Any], Any], on_both: Both) -> None:
    def program(device: str) -> Any:
        leaf = plugrad.arange(1.0, 13.0, device=device).requires_grad_()
        x = leaf.view(3, 4) * 1
        view = take(x)
        try:
            view.square_()
        except RuntimeError as error:  # one of several results of an operator, say
            return str(error)
        (x * x).sum().backward()
        return [x.tolist(), leaf.grad.tolist()]

    got, expected = on_both(program)
    assert got == expected


def test_views_of_complex_numbers_write_their_part(on_both: Both) -> None:
    def program(device: str) -> Any:
        z = plugrad.tensor([1 + 2j, 3 - 1j], device=device)
        z.real.mul_(2)
        z.imag[1:].fill_(9)
        plugrad.view_as_real(z)[0, 1] += 1
        pairs = plugrad.ones(2, 2, device=device)
        plugrad.view_as_complex(pairs).mul_(1j)
        return [z.tolist(), pairs.tolist()]

    got, expected = on_both(program)
    assert got == expected


def test_views_by_dtype_write_to_the_same_memory(on_both: Both) -> None:
    """Views of 7 numbers of 4 bytes: 6 of them as 3 numbers of 8 bytes, and parts of these."""

    def program(device: str) -> Any:
        x = plugrad.arange(7.0, device=device)
        wide = x[:6].view(plugrad.complex64)
        bits = wide[1:].view(plugrad.int32)
        bits[3] = 0x40000000  # 2.0
        wide.mul_(2)
        wide.as_strided((2,), (2,), 0).add_(1j)
        copied = x[1:].view(plugrad.uint8).clone()
        found = [x.tolist(), wide.tolist(), bits.tolist(), copied.tolist()]
        return [*found, bits.storage_offset(), bits._version, x._version]

    got, expected = on_both(program)
    assert got == expected


@pytest.mark.parametrize("write", ["add_", "fill_"])
def test_repeated_elements_are_refused_where_memory_would_be(write: str, on_both: Both) -> None:
    def program(device: str) -> Any:
        x = plugrad.zeros(2, 1, device=device)
        wide = x.expand(2, 3)
        try:
            getattr(wide, write)(1)
        except RuntimeError as error:
            return str(error)
        return x.tolist()

    got, expected = on_both(program)
    assert got == expected


PARTS: dict[str, Callable[[Any], Any]] = {
    "a row": lambda wide: wide[1],
    "an element": lambda wide: wide[1, 0, 1:2],
    "a column of a column": lambda wide: wide[:1].transpose(0, 2)[1],
    "the other dimension": lambda wide: wide.select(1, 1),
    "windows": lambda wide: wide[0].unfold(1, 2, 2),
}


@pytest.mark.parametrize("take", PARTS.values(), ids=PARTS)
def test_a_part_of_what_repeats_can_be_written_to(
    take: Callable[[Any], Any], on_both: Both
) -> None:
    def program(device: str) -> Any:
        x = plugrad.arange(4.0, device=device).view(1, 1, 4)
        wide = x.expand(2, 3, 4)
        try:
            take(wide).add_(5)
        except RuntimeError as error:
            return str(error)
        return [x.tolist(), wide.tolist()]

    got, expected = on_both(program)
    assert got == expected


def test_a_write_in_inference_mode_reaches_views(immutable: str) -> None:
    with plugrad.inference_mode():
        x = plugrad.zeros(3, device=immutable)
        view = x[1:]
        x.add_(1)
        view.add_(1)
    assert x.tolist() == [1.0, 2.0, 2.0]
    assert view.tolist() == [2.0, 2.0]


def test_assigned_data_is_shared_with_where_it_came_from(on_both: Both) -> None:
    def program(device: str) -> Any:
        x, y = plugrad.zeros(3, device=device), plugrad.ones(3, device=device)
        former = x[:2]
        x.data = y
        y.add_(1)
        former.add_(5)
        return [x.tolist(), y.tolist(), former.tolist()]

    got, expected = on_both(program)
    assert got == expected


def test_a_parameter_shares_its_tensor(immutable: str) -> None:
    x = plugrad.zeros(2, device=immutable)
    parameter = plugrad.nn.Parameter(x)
    x.add_(1)
    assert parameter.tolist() == [1.0, 1.0]


def test_a_smaller_source_is_broadcast(immutable: str) -> None:
    x = plugrad.zeros(2, 2, device=immutable)
    x.copy_(plugrad.tensor([1.0, 2.0]))
    assert x.tolist() == [[1.0, 2.0], [1.0, 2.0]]


@pytest.mark.parametrize("name", ["t_", "unsqueeze_", "squeeze_", "transpose_"])
def test_a_tensor_that_has_views_becomes_a_view_of_itself(name: str, on_both: Both) -> None:
    arguments = {"unsqueeze_": (0,), "transpose_": (0, -1)}.get(name, ())

    def program(device: str) -> Any:
        x = plugrad.arange(6.0, device=device).view(2, 3).clone()
        row = x[1]
        getattr(x, name)(*arguments)
        after = x[0]
        row.mul_(10)
        x.add_(1)
        after.mul_(2)
        tensors = [x, row, after]
        return [(t.tolist(), t.storage_offset(), t._version) for t in tensors]

    got, expected = on_both(program)
    assert got == expected


@pytest.mark.parametrize("take", VIEWS.values(), ids=VIEWS)
def test_views_have_the_strides_that_memory_would_have(
    take: Callable[[Any], Any], torch_oracle: Any, immutable: str
) -> None:
    view = take(plugrad.arange(12.0, device=immutable).view(3, 4))
    expected = take(torch_oracle.arange(12.0).view(3, 4))
    assert view.stride() == expected.stride()
    assert view.storage_offset() == expected.storage_offset()
    assert view.is_contiguous() == expected.is_contiguous()


@pytest.mark.parametrize("take", VIEWS.values(), ids=VIEWS)
def test_strides_of_a_view_count_in_the_memory(take: Callable[[Any], Any], on_both: Both) -> None:
    def program(device: str) -> Any:
        x = plugrad.arange(12.0, device=device).view(3, 4)
        found = take(x).as_strided((2, 2), (3, 1), 1)
        found.mul_(10)
        x[0].sub_(1)
        return [x.tolist(), found.tolist(), take(x).as_strided((2,), (2,)).tolist()]

    got, expected = on_both(program)
    assert got == expected


def test_strides_count_in_the_numbers_of_the_dtype(on_both: Both) -> None:
    def program(device: str) -> Any:
        z = plugrad.tensor([1 + 2j, 3 - 1j, 4 + 5j], device=device)
        z.imag.as_strided((2,), (2,), 2).mul_(10)
        pairs = plugrad.arange(8.0, device=device)
        numbers = plugrad.view_as_complex(pairs.view(4, 2)[1:])
        numbers.as_strided((2,), (2,), 0).zero_()
        return [z.tolist(), z.real.stride(), pairs.tolist(), numbers.storage_offset()]

    got, expected = on_both(program)
    assert got == expected


@pytest.mark.parametrize("size", [(2, 6), (12,), (3, 2, 2), (4, 3)])
def test_shapes_that_memory_does_not_allow_are_refused(
    size: tuple[int, ...], on_both: Both
) -> None:
    def program(device: str) -> Any:
        x = plugrad.arange(12.0, device=device).view(3, 4)
        try:
            x.t().view(size)
        except RuntimeError as error:
            return str(error)
        return "a view"

    got, expected = on_both(program)
    assert got == expected


def test_what_memory_cannot_show_in_a_shape_is_copied(on_both: Both) -> None:
    def program(device: str) -> Any:
        x = plugrad.arange(12.0, device=device).view(3, 4)
        copied, viewed = x.t().reshape(12), x.t()[:, :1].reshape(2, 2)
        x.zero_()
        return [copied.tolist(), viewed.tolist()]

    got, expected = on_both(program)
    assert got == expected


def test_as_strided_stays_within_the_memory(on_both: Both) -> None:
    def program(device: str) -> Any:
        x = plugrad.zeros(2, 3, device=device)
        with pytest.raises(RuntimeError, match="setStorage: sizes") as raised:
            x.t().as_strided((2, 3), (3, 2), 1)
        return str(raised.value)

    got, expected = on_both(program)
    assert got == expected


STEPS = st.sampled_from(
    [
        lambda t: t[..., 1:] if t.ndim and t.shape[-1] > 1 else t,
        lambda t: t[..., ::2] if t.ndim else t,
        lambda t: t[0] if t.ndim > 1 else t,
        lambda t: t.transpose(0, -1) if t.ndim else t,
        lambda t: t.unsqueeze(0) if t.ndim < 4 else t,
        lambda t: t.diagonal() if t.ndim > 1 else t,
        lambda t: t.unfold(-1, 1, 1) if t.ndim in (1, 2) else t,
        lambda t: t.detach(),
    ]
)
WRITES = st.sampled_from(
    [
        lambda t: t.add_(1),
        # Small integers, so that no library rounds.
        lambda t: t.mul_(t.flatten().cumsum(0).reshape(t.shape)).remainder_(97),
        lambda t: t.copy_(t.flip(0) if t.ndim else t),
        lambda t: t.masked_fill_(t > 5, -1),
    ]
)


@drawn(60, HealthCheck.function_scoped_fixture)
@given(program=st.lists(st.tuples(st.integers(0, 5), STEPS, WRITES), min_size=1, max_size=6))
def test_any_program_of_views_and_writes_gives_what_memory_gives(
    program: list[Any], on_both: Both
) -> None:
    def run(device: str) -> list[Any]:
        tensors = [plugrad.arange(24.0, device=device).view(2, 3, 4)]
        for which, step, write in program:
            tensors.append(step(tensors[which % len(tensors)]))
            write(tensors[-1])
        return [np.asarray(tensor.cpu()).tolist() for tensor in tensors]

    got, expected = on_both(run)
    assert got == expected
