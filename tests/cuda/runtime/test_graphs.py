"""CUDA graphs: what is captured where, and a replay's calls of CUDA."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import plugrad
from tests.cuda.runtime.fake_cupy import FakeCupy


def said(fake: FakeCupy, *words: str) -> list[Any]:
    """The calls of CUDA of some kinds."""
    return [entry for entry in fake.log if isinstance(entry, tuple) and entry[0] in words]


def test_a_capture_is_on_a_stream_of_its_own_and_launched_on_the_current(cuda: FakeCupy) -> None:
    x = plugrad.ones(3, device="cuda:0")
    captured = plugrad.cuda.CUDAGraph()
    with plugrad.cuda.graph(captured) as nothing:
        assert nothing is None
        assert plugrad.cuda.is_current_stream_capturing()
        y = x * 2
    (begun,), (ended,) = said(cuda, "begin capture"), said(cuda, "end capture")
    assert begun[1] == ended[1] != "default 0 of 0"
    inside = cuda.log[cuda.log.index(begun) + 1 : cuda.log.index(ended)]
    assert ("kernel", begun[1]) in inside
    assert not plugrad.cuda.is_current_stream_capturing()
    side = plugrad.cuda.Stream(0)
    cuda.log.clear()
    captured.replay()
    with plugrad.cuda.stream(side):
        captured.replay()
    assert cuda.log == [("launch", "default 0 of 0"), ("launch", side._raw.name)]
    assert y.tolist() == [2.0, 2.0, 2.0]


def test_memory_of_a_capture_is_the_graph_s(cuda: FakeCupy) -> None:
    x = plugrad.ones(300, device="cuda:0", requires_grad=True)
    usual = cuda.allocator
    captured = plugrad.cuda.CUDAGraph()
    with plugrad.cuda.graph(captured):
        y = x * 2
        before = cuda.pool.used_bytes()
        y.register_hook(lambda grad: plugrad.ones(5000, device="cuda:0"))  # the engine's thread
        with pytest.raises(RuntimeError, match="changed the size"):
            (y * y).sum().backward()
        assert cuda.pool.used_bytes() == before
    pool = captured.pool()
    assert pool.pool.used_bytes() >= 4 * (5000 + 300)
    assert cuda.allocator == usual
    other = plugrad.cuda.CUDAGraph()
    with plugrad.cuda.graph(other, pool=pool):
        x.detach() * 3
    assert other.pool() is pool


def test_what_cannot_be_captured_says_so(cuda: FakeCupy) -> None:
    captured = plugrad.cuda.CUDAGraph()
    with pytest.raises(RuntimeError, match="non-default stream"):
        captured.capture_begin()
    with pytest.raises(RuntimeError, match="without a preceding successful capture"):
        captured.replay()
    with pytest.raises(RuntimeError, match="without a preceding"):
        captured.pool()
    with pytest.raises(RuntimeError, match="without capture_begin"):
        captured.capture_end()
    with plugrad.cuda.stream(plugrad.cuda.Stream(0)):
        with pytest.raises(ValueError, match="must be one of"):
            captured.capture_begin(capture_error_mode="bold")
        captured.capture_begin()
        with pytest.raises(RuntimeError, match="already owns a captured graph"):
            captured.capture_begin()
        captured.capture_end()
    captured.reset()
    with pytest.raises(RuntimeError, match="before a capture"):
        captured.debug_dump("nowhere")


def test_an_error_ends_the_capture(cuda: FakeCupy) -> None:
    usual = cuda.allocator
    with (
        pytest.raises(ValueError, match="no"),
        plugrad.cuda.graph(plugrad.cuda.CUDAGraph()),
    ):
        raise ValueError("no")
    assert said(cuda, "end capture")
    assert cuda.allocator == usual
    assert plugrad.cuda.current_stream() == plugrad.cuda.default_stream()


def test_a_graph_can_be_drawn(cuda: FakeCupy, tmp_path: Path) -> None:
    captured = plugrad.cuda.CUDAGraph()
    with plugrad.cuda.graph(captured):
        plugrad.ones(2, device="cuda:0")
    captured.debug_dump(str(tmp_path / "graph.dot"))
    assert (tmp_path / "graph.dot").read_text() == "digraph {}"


def test_a_step_is_captured_after_it_ran_and_replayed_with_one_launch(cuda: FakeCupy) -> None:
    ran: list[str] = []
    weight = plugrad.ones(3, device="cuda:0", requires_grad=True)

    def step(x: Any) -> Any:
        ran.append(plugrad.cuda.current_stream(0)._raw.name)
        weight.grad = None
        loss = (weight * x).sum()
        loss.backward()
        with plugrad.no_grad():
            weight.sub_(weight.grad)
        return loss

    x = plugrad.ones(3, device="cuda:0")
    captured = plugrad.cuda.capture(step, x, warmup=2)
    assert len(ran) == 3
    assert len(set(ran)) == 1
    (begun,) = said(cuda, "begin capture")
    (ended,) = said(cuda, "end capture")
    inside = cuda.log[cuda.log.index(begun) : cuda.log.index(ended)]
    assert {entry[1] for entry in inside if entry[0] == "kernel"} == {begun[1]}
    assert not [entry for entry in inside if entry[0] in ("wait", "record")]
    static = captured.inputs[0]
    assert static is not x
    cuda.log.clear()
    assert captured(x * 5) is captured.outputs
    assert static.tolist() == [5.0, 5.0, 5.0]
    assert [entry for entry in cuda.log if entry[0] == "launch"] == [("launch", "default 0 of 0")]
    assert len(ran) == 3


def test_a_captured_step_takes_what_it_was_captured_with(cuda: FakeCupy) -> None:
    captured = plugrad.cuda.capture(lambda x: x * 2, plugrad.ones(3, device="cuda:0"))
    with pytest.raises(RuntimeError, match=r"captured with plugrad.float32 \[3\], got .* \[4\]"):
        captured(plugrad.ones(4, device="cuda:0"))
    with pytest.raises(TypeError, match="expected 1 tensors, got 2"):
        captured(1, 2)
    with pytest.raises(ValueError, match="run the step once"):
        plugrad.cuda.capture(lambda x: x, warmup=0)


def test_random_numbers_go_on_with_every_replay(cuda: FakeCupy) -> None:
    plugrad.manual_seed(3)
    generator = plugrad.random.default_generator
    captured = plugrad.cuda.CUDAGraph()
    with plugrad.cuda.graph(captured):
        plugrad.rand(4, device="cuda:0")
        plugrad.rand(4, device="cuda:0")
        with pytest.raises(RuntimeError, match="while a graph is being captured"):
            plugrad.cuda.manual_seed(4)
    with plugrad.device("cuda:0"):
        assert generator().draws == 0  # nothing was drawn yet
        cell = captured._draws[0]._cell
        captured.replay()
        assert (generator().draws, cell.item()) == (2, 0)
        plugrad.rand(4)
        captured.replay()
        assert (generator().draws, cell.item()) == (5, 3)
        plugrad.cuda.manual_seed(3)
        captured.replay()
        assert (generator().draws, cell.item()) == (2, 0)


def test_graphed_callables_replay_forward_and_backward(cuda: FakeCupy) -> None:
    weight = plugrad.full((3,), 2.0, device="cuda:0").requires_grad_()

    class Scale:
        def parameters(self) -> list[Any]:
            return [weight]

        def __call__(self, x: Any) -> Any:
            return x * weight

    x = plugrad.ones(3, device="cuda:0", requires_grad=True)
    graphed = plugrad.cuda.make_graphed_callables(Scale(), (x,))
    assert len(said(cuda, "begin capture")) == 2
    cuda.log.clear()
    y = graphed(plugrad.ones(3, device="cuda:0", requires_grad=True))
    assert len(said(cuda, "launch")) == 1
    y.sum().backward()
    assert len(said(cuda, "launch")) == 2
    assert weight.grad.shape == (3,)
    with pytest.raises(TypeError, match="expected 1 tensors"):
        graphed()


def test_several_callables_are_graphed_at_once(cuda: FakeCupy) -> None:
    x = plugrad.ones(3, device="cuda:0")
    double, triple = plugrad.cuda.make_graphed_callables(
        (lambda a: a * 2, lambda a: (a * 3, a)), ((x,), (x,))
    )
    assert double(x).shape == (3,)
    assert len(triple(x)) == 2
