"""Collectives that write to tensors, on ranks that are threads. Each rank's input has a closed
form, and so have the results."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import plugrad
from plugrad import distributed as dist

RANKS = [1, 2, 3]
SHAPES = [(), (1,), (5,), (2, 3), (0, 3)]
DTYPES = [
    "float64",
    "float32",
    "float16",
    "bfloat16",
    "complex64",
    "int64",
    "int32",
    "uint8",
    "bool",
]


def given(rank: int, shape: tuple[int, ...], dtype: Any = plugrad.float64) -> Any:
    """The tensor of a rank."""
    size = int(np.prod(shape))
    if dtype == plugrad.bool:
        return (plugrad.arange(size) % (rank + 2) == 0).reshape(shape)
    return (plugrad.arange(size) * 2 + rank + 1).reshape(shape).to(dtype)


def everyone(size: int, shape: tuple[int, ...], dtype: Any = plugrad.float64) -> list[Any]:
    return [given(rank, shape, dtype) for rank in range(size)]


def same(found: Any, wanted: Any) -> None:
    assert found.dtype == wanted.dtype
    assert found.tolist() == wanted.tolist()


REDUCTIONS: dict[str, Any] = {
    "sum": lambda x: x.sum(0),
    "product": lambda x: x.prod(0),
    "min": lambda x: x.amin(0),
    "max": lambda x: x.amax(0),
    "avg": lambda x: x.sum(0) / x.shape[0],
}


@pytest.mark.parametrize("size", RANKS)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("op", REDUCTIONS)
def test_all_reduce(size: int, shape: tuple[int, ...], op: str) -> None:
    def program() -> Any:
        x = given(dist.get_rank(), shape)
        dist.all_reduce(x, op)
        return x

    wanted = REDUCTIONS[op](plugrad.stack(everyone(size, shape)))
    for found in dist.run_ranks(program, size):
        same(found, wanted)


@pytest.mark.parametrize("dtype", DTYPES)
def test_sums_of_all_dtypes(dtype: str) -> None:
    kind = getattr(plugrad, dtype)

    def program() -> Any:
        x = given(dist.get_rank(), (4,), kind)
        dist.all_reduce(x)
        return x

    a, b = everyone(2, (4,), kind)
    for found in dist.run_ranks(program, 2):
        same(found, a | b if dtype == "bool" else a + b)


@pytest.mark.parametrize(("op", "ufunc"), [("band", "and"), ("bor", "or"), ("bxor", "xor")])
def test_reductions_of_bits(op: str, ufunc: str) -> None:
    def program() -> Any:
        x = given(dist.get_rank(), (4,), plugrad.int64)
        dist.all_reduce(x, op)
        return x

    a, b, c = everyone(3, (4,), plugrad.int64)
    combine = getattr(plugrad, f"bitwise_{ufunc}")
    for found in dist.run_ranks(program, 3):
        same(found, combine(combine(a, b), c))


@pytest.mark.parametrize("async_op", [False, True])
@pytest.mark.parametrize("contiguous", [True, False])
def test_memory_that_is_no_row_is_written_to(async_op: bool, contiguous: bool) -> None:
    def program() -> Any:
        whole = given(dist.get_rank(), (3, 4))
        part = whole[:2] if contiguous else whole.t()[1:3]
        before = part._version
        work = dist.all_reduce(part, async_op=async_op)
        assert (work is not None) == async_op
        if work is not None:
            assert work.wait()
            assert work.is_completed()
            assert work.result()[0] is part
        assert part._version > before
        return whole

    wanted = given(0, (3, 4))
    other = given(1, (3, 4))
    if contiguous:
        wanted[:2] += other[:2]
    else:
        wanted[:, 1:3] += other[:, 1:3]
    same(dist.run_ranks(program, 2)[0], wanted)


@pytest.mark.parametrize("size", RANKS)
@pytest.mark.parametrize("shape", SHAPES)
def test_broadcast_and_reduce(size: int, shape: tuple[int, ...]) -> None:
    root = size - 1

    def program() -> Any:
        x, y = given(dist.get_rank(), shape), given(dist.get_rank(), shape)
        dist.broadcast(x, root)
        dist.reduce(y, root)
        return x, y

    total = sum(everyone(size, shape))
    for rank, (sent, reduced) in enumerate(dist.run_ranks(program, size)):
        same(sent, given(root, shape))
        same(reduced, total if rank == root else given(rank, shape))


@pytest.mark.parametrize("size", RANKS)
@pytest.mark.parametrize("shape", SHAPES)
def test_gathering(size: int, shape: tuple[int, ...]) -> None:
    def program() -> Any:
        x = given(dist.get_rank(), shape)
        parts = [plugrad.zeros_like(x) for _ in range(size)]
        dist.all_gather(parts, x)
        whole = plugrad.zeros((size, *shape), dtype=x.dtype)
        dist.all_gather_into_tensor(whole, x)
        own = [plugrad.zeros_like(x) for _ in range(size)] if dist.get_rank() == 0 else None
        dist.gather(x, own)
        return parts, whole, own

    wanted = everyone(size, shape)
    for rank, (parts, whole, own) in enumerate(dist.run_ranks(program, size)):
        for found, expected in zip(parts, wanted, strict=True):
            same(found, expected)
        same(whole, plugrad.stack(wanted))
        if rank == 0:
            for found, expected in zip(own, wanted, strict=True):
                same(found, expected)


def test_parts_of_several_sizes_are_gathered() -> None:
    def program() -> Any:
        rank = dist.get_rank()
        parts = [plugrad.zeros(n) for n in (1, 0, 3)]
        dist.all_gather(parts, plugrad.full((len(parts[rank]),), float(rank)))
        return [part.tolist() for part in parts]

    assert dist.run_ranks(program, 3) == [[[0.0], [], [2.0, 2.0, 2.0]]] * 3


@pytest.mark.parametrize("size", RANKS)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("op", ["sum", "max", "avg"])
def test_scattering(size: int, shape: tuple[int, ...], op: str) -> None:
    def program() -> Any:
        rank = dist.get_rank()
        whole = plugrad.stack([given(rank + 10 * part, shape) for part in range(size)])
        one, two, three = (plugrad.zeros(shape, dtype=whole.dtype) for _ in range(3))
        dist.reduce_scatter_tensor(one, whole, op)
        dist.reduce_scatter(two, list(whole), op)
        dist.scatter(three, list(whole) if rank == size - 1 else None, size - 1)
        return one, two, three

    for rank, (one, two, three) in enumerate(dist.run_ranks(program, size)):
        parts = plugrad.stack([given(other + 10 * rank, shape) for other in range(size)])
        wanted = REDUCTIONS[op](parts)
        same(one, wanted)
        same(two, wanted)
        same(three, given(size - 1 + 10 * rank, shape))


@pytest.mark.parametrize("size", RANKS)
def test_all_to_all(size: int) -> None:
    """Rank r sends rank s the number 10 r + s, s + 1 times where sizes may differ."""

    def program() -> Any:
        rank = dist.get_rank()
        even = plugrad.zeros(size, dtype=plugrad.int64)
        dist.all_to_all_single(even, plugrad.arange(size) + 10 * rank)
        sent = [plugrad.full((other + 1,), 10 * rank + other) for other in range(size)]
        outs = [plugrad.zeros(rank + 1, dtype=plugrad.int64) for _ in range(size)]
        dist.all_to_all(outs, sent)
        joined = plugrad.zeros(size * (rank + 1), dtype=plugrad.int64)
        sizes = [other + 1 for other in range(size)]
        dist.all_to_all_single(joined, plugrad.cat(sent), [rank + 1] * size, sizes)
        return even, outs, joined

    for rank, (even, outs, joined) in enumerate(dist.run_ranks(program, size)):
        wanted = [10 * other + rank for other in range(size)]
        assert even.tolist() == wanted
        assert [out.tolist() for out in outs] == [[n] * (rank + 1) for n in wanted]
        assert joined.tolist() == [n for n in wanted for _ in range(rank + 1)]


def test_messages_have_tags_and_senders() -> None:
    def program() -> Any:
        rank = dist.get_rank()
        if rank > 0:
            dist.send(plugrad.tensor([rank, 1]), 0, tag=1)
            dist.send(plugrad.tensor([rank, 2]), 0, tag=2)
            return None
        found = []
        x = plugrad.zeros(2, dtype=plugrad.int64)
        for tag in (2, 1):
            for source in (2, 1):
                assert dist.recv(x, source, tag=tag) == source
                found.append(x.tolist())
        return found

    assert dist.run_ranks(program, 3)[0] == [[2, 2], [1, 2], [2, 1], [1, 1]]


def test_a_message_from_anyone() -> None:
    def program() -> Any:
        if dist.get_rank() == 1:
            dist.send(plugrad.ones(2), 0)
            return None
        x = plugrad.zeros(2)
        sender = dist.recv(x) if dist.get_rank() == 0 else -1
        return sender, x.tolist()

    assert dist.run_ranks(program, 2)[0] == (1, [1.0, 1.0])


def test_a_batch_of_messages_goes_round() -> None:
    def program() -> Any:
        rank, size = dist.get_rank(), dist.get_world_size()
        out = plugrad.zeros(1, dtype=plugrad.int64)
        works = dist.batch_isend_irecv(
            [
                dist.P2POp(dist.isend, plugrad.tensor([rank]), (rank + 1) % size),
                dist.P2POp(dist.irecv, out, (rank - 1) % size),
            ]
        )
        for work in works:
            work.wait()
        return out.item()

    assert dist.run_ranks(program, 3) == [2, 0, 1]


def test_objects() -> None:
    def program() -> Any:
        rank, size = dist.get_rank(), dist.get_world_size()
        everything: list[Any] = [None] * size
        dist.all_gather_object(everything, {"rank": rank, "more": "x" * rank})
        told: list[Any] = ["a", 2] if rank == 1 else [None, None]
        dist.broadcast_object_list(told, 1)
        at_root: list[Any] | None = [None] * size if rank == 0 else None
        dist.gather_object(rank * 10, at_root)
        one: list[Any] = [None]
        dist.scatter_object_list(one, ["p", ("q", 1), None] if rank == 2 else None, 2)
        if rank == 0:
            dist.send_object_list([{"n": 1}, 2], 1)
        received: list[Any] = [None, None]
        if rank == 1:
            dist.recv_object_list(received, 0)
        return everything, told, at_root, one, received

    for rank, found in enumerate(dist.run_ranks(program, 3)):
        everything, told, at_root, one, received = found
        assert everything == [{"rank": n, "more": "x" * n} for n in range(3)]
        assert told == ["a", 2]
        assert at_root == ([0, 10, 20] if rank == 0 else None)
        assert one == [["p", ("q", 1), None][rank]]
        assert received == ([{"n": 1}, 2] if rank == 1 else [None, None])


def test_another_device() -> None:
    device = "jax"
    pytest.importorskip("plugrad_jax", reason="plugrad-jax is not installed")

    def program() -> Any:
        x = plugrad.ones(3, device=device) * (dist.get_rank() + 1)
        dist.all_reduce(x)
        parts = [plugrad.zeros(3, device=device) for _ in range(2)]
        dist.all_gather(parts, x + dist.get_rank())
        assert x.device.type == device
        return x.tolist(), [part.tolist() for part in parts]

    assert dist.run_ranks(program, 2)[1] == ([3.0] * 3, [[3.0] * 3, [4.0] * 3])


def test_gradients_do_not_see_what_is_written_in_place() -> None:
    def program() -> Any:
        x = plugrad.ones(2, requires_grad=True)
        dist.all_reduce(x)
        assert x.is_leaf
        (x * x).sum().backward()
        return x.tolist(), x.grad

    for value, grad in dist.run_ranks(program, 2):
        assert value == [2.0, 2.0]
        assert grad.tolist() == [4.0, 4.0]


WRONG = {
    "no tensor": (lambda: dist.all_reduce([1.0]), TypeError, "all_reduce.*`tensor`.*Tensor.*list"),
    "no reduction": (lambda: dist.all_reduce(plugrad.ones(1), "mean"), ValueError, "op.*'mean'"),
    "average of integers": (
        lambda: dist.all_reduce(plugrad.ones(1, dtype=plugrad.int64), "avg"),
        ValueError,
        "floating point.*int64",
    ),
    "bits of floats": (lambda: dist.all_reduce(plugrad.ones(1), "bor"), ValueError, "integers"),
    "order of complex": (
        lambda: dist.all_reduce(plugrad.ones(1, dtype=plugrad.complex64), "max"),
        ValueError,
        "complex",
    ),
    "no such rank": (lambda: dist.broadcast(plugrad.ones(1), 5), ValueError, "src: rank 5.*0, 1"),
    "two numbers of a rank": (
        lambda: dist.broadcast(plugrad.ones(1), 0, group_src=0),
        ValueError,
        "both src and group_src",
    ),
    "size": (
        lambda: dist.all_gather_into_tensor(plugrad.ones(3), plugrad.ones(2)),
        ValueError,
        r"output_tensor must have 2 times.*\(2\).*got 3",
    ),
    "dtypes": (
        lambda: dist.all_gather_into_tensor(plugrad.ones(4), plugrad.ones(2).double()),
        TypeError,
        "one dtype",
    ),
    "places": (
        lambda: dist.all_gather([plugrad.ones(1)], plugrad.ones(1)),
        ValueError,
        "tensor_list.*each of the 2 ranks.*got 1",
    ),
    "shapes of places": (
        lambda: dist.all_gather([plugrad.ones(2)] * 2, plugrad.ones(1)),
        ValueError,
        "tensor_list",
    ),
    "a list that only the source gives": (
        lambda: dist.scatter(plugrad.ones(1), [plugrad.ones(1)] * 2, 1 - dist.get_rank()),
        ValueError,
        "scatter_list.*must NOT",
    ),
    "splits": (
        lambda: dist.all_to_all_single(plugrad.ones(4), plugrad.ones(4), [1, 2], [2, 2]),
        ValueError,
        "output_split_sizes.*sum 4.*1, 2",
    ),
    "what cannot be divided": (
        lambda: dist.all_to_all_single(plugrad.ones(3), plugrad.ones(3)),
        ValueError,
        "divisible by the 2",
    ),
    "to oneself": (lambda: dist.send(plugrad.ones(1), dist.get_rank()), ValueError, "another rank"),
    "tag": (lambda: dist.send(plugrad.ones(1), 1 - dist.get_rank(), tag=-1), ValueError, "tag.*-1"),
    "group": (
        lambda: dist.all_reduce(plugrad.ones(1), group=3),
        TypeError,
        "group.*ProcessGroup.*int",
    ),
    "operation": (
        lambda: dist.P2POp(dist.send, plugrad.ones(1), 0),
        ValueError,
        "isend",
    ),
    "objects": (lambda: dist.all_gather_object([None], 1), ValueError, "object_list.*2 ranks"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong_is_told(case: str) -> None:
    function, error, message = WRONG[case]

    def program() -> None:
        with pytest.raises(error, match=message):
            function()

    dist.run_ranks(program, 2)


def lazily(rank: int) -> Any:
    """Tensors with conjugates or negatives of their values in memory."""
    x = plugrad.tensor([1 + 2j, 3 - 1j]) * (rank + 1)
    return (x.conj(), x.conj().imag)


@pytest.mark.parametrize("which", [0, 1], ids=["conjugate", "negative"])
def test_conjugates_and_negatives_that_were_not_computed_yet(which: int) -> None:
    def program() -> Any:
        rank = dist.get_rank()
        summed, copied, sent = (lazily(rank)[which] for _ in range(3))
        assert summed.is_neg() if which else summed.is_conj()
        dist.all_reduce(summed)
        dist.broadcast(copied, 1)
        if rank == 0:
            dist.send(sent, 1)
            # Where a message is received, it may be such a tensor.
            dist.recv(sent, 1)
        else:
            plain = plugrad.zeros(2, dtype=sent.dtype)
            dist.recv(plain, 0)
            dist.send(plain, 0)
            sent = plain
        return summed.tolist(), copied.tolist(), sent.tolist()

    first, second = (lazily(rank)[which].numpy(force=True) for rank in range(2))
    wanted = ((first + second).tolist(), second.tolist(), first.tolist())
    assert dist.run_ranks(program, 2) == [wanted, wanted]
