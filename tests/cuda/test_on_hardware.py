"""What needs a GPU: the kit, the engine on streams, graphs. Skipped exactly where there is none."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path
from typing import Any

import cupy
import pytest

import plugrad
from plugrad import nn, optim


def _gpus() -> int:
    try:
        return int(cupy.cuda.runtime.getDeviceCount())
    except cupy.cuda.runtime.CUDARuntimeError:
        return 0


pytestmark = pytest.mark.skipif(_gpus() == 0, reason="CUDA finds no GPU")
ROOT = Path(__file__).parents[2]
MANY = 1 << 22


def run(*command: str) -> str:
    done = subprocess.run([sys.executable, *command], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    return done.stdout


def test_the_conformance_kit_at_level_full() -> None:
    run("-m", "plugrad.cli", "certify", "cuda", "--level", "full")


def test_the_benchmarks_run() -> None:
    assert "small_ops" in run("-m", "benchmarks.cuda", "--smoke")


def test_operators_agree_with_the_host() -> None:
    plugrad.manual_seed(0)
    x = plugrad.randn(64, 128)
    for function in (plugrad.exp, plugrad.tanh, lambda a: a.softmax(1), lambda a: a @ a.T):
        there = function(x.to("cuda")).cpu()
        plugrad.testing.assert_close(there, function(x), rtol=1e-4, atol=1e-5)


def beside_the_host(function: Any, *inputs: Any) -> None:
    """Results and gradients on the GPU are the host's."""
    outcomes = []
    for device in ("cpu", "cuda"):
        leaves = [x.to(device).detach().requires_grad_(x.is_floating_point()) for x in inputs]
        found = function(*leaves)
        results = list(found) if isinstance(found, tuple) else [found]
        wanted = [x for x in leaves if x.requires_grad]
        outputs = [part for part in results if part.requires_grad]
        if outputs:
            total = sum([part.square().sum() for part in outputs])
            results += plugrad.autograd.grad(total, wanted, allow_unused=True)
        outcomes.append([part.detach().cpu() for part in results if part is not None])
    for ours, theirs in zip(*outcomes, strict=True):
        plugrad.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("is_causal", [False, True])
def test_attention(is_causal: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    attention = importlib.import_module("plugrad_cuda.kernels.attention")
    monkeypatch.setattr(attention, "_BLOCK", 4000)
    plugrad.manual_seed(0)
    query, key, value = plugrad.randn(2, 3, 50, 8), plugrad.randn(2, 1, 70, 8), plugrad.randn(70, 8)
    mask = plugrad.rand(50, 70) > 0.3

    def attend(q: Any, k: Any, v: Any) -> Any:
        given = mask.to(q.device)
        return plugrad.scaled_dot_product_attention(q, k, v, given, is_causal=is_causal)

    beside_the_host(attend, query, key, value)


LINEAR_ALGEBRA = {
    "lu_factor": lambda a, b: plugrad.linalg.lu_factor(a),
    "lu": lambda a, b: plugrad.linalg.lu(a),
    "lu_solve": lambda a, b: plugrad.linalg.lu_solve(*plugrad.linalg.lu_factor(a), b),
    "lu_solve from the right": lambda a, b: plugrad.linalg.lu_solve(
        *plugrad.linalg.lu_factor(a), b.mT, left=False, adjoint=True
    ),
    "solve_triangular": lambda a, b: plugrad.linalg.solve_triangular(a, b, upper=True),
    "solve": plugrad.linalg.solve,
    "inv": lambda a, b: plugrad.linalg.inv(a),
    "slogdet": lambda a, b: plugrad.linalg.slogdet(a)[1],
    "eigvals": lambda a, b: plugrad.linalg.eigvals(a).abs().sort().values,
    "geqrf": lambda a, b: plugrad.geqrf(a.detach()),
}


@pytest.mark.parametrize("order", [5, 40, 100])
@pytest.mark.parametrize("batch", [(), (3,)])
@pytest.mark.parametrize("name", LINEAR_ALGEBRA)
def test_linear_algebra(name: str, batch: tuple[int, ...], order: int) -> None:
    plugrad.manual_seed(0)
    # Far from singular, so that both sides round alike.
    a = plugrad.randn(*batch, order, order, dtype=plugrad.float64) + order * plugrad.eye(order)
    b = plugrad.randn(order, 2, dtype=plugrad.float64)
    beside_the_host(LINEAR_ALGEBRA[name], a, b)


def test_unique() -> None:
    plugrad.manual_seed(0)
    x = plugrad.randint(0, 50, (1000,))
    beside_the_host(lambda a: plugrad.unique(a, return_inverse=True, return_counts=True), x)


def test_singular_matrices_raise_what_the_host_raises() -> None:
    a = plugrad.zeros(3, 3, device="cuda")
    with pytest.raises(plugrad.linalg.LinAlgError, match="singular"):
        plugrad.linalg.inv(a)
    assert plugrad.linalg.lu_factor_ex(a).info.item() == 1


def test_deterministic_sums_have_the_same_bits() -> None:
    plugrad.manual_seed(0)
    index = plugrad.randint(0, 10, (100_000,)).to("cuda")
    values = plugrad.randn(100_000).to("cuda")
    plugrad.use_deterministic_algorithms(True)
    try:
        sums = [plugrad.zeros(10, device="cuda").index_add(0, index, values) for _ in range(10)]
    finally:
        plugrad.use_deterministic_algorithms(False)
    assert all(plugrad.equal(sums[0], other) for other in sums)
    wanted = plugrad.zeros(10).index_add(0, index.cpu(), values.cpu())
    plugrad.testing.assert_close(sums[0].cpu(), wanted, rtol=1e-3, atol=1e-3)


def test_streams_are_ordered_by_the_engine() -> None:
    x = plugrad.ones(MANY, device="cuda", requires_grad=True)
    side, other = plugrad.cuda.Stream(), plugrad.cuda.Stream()
    here = plugrad.cuda.current_stream()
    for _ in range(20):
        x.grad = None
        branches = []
        for stream in (side, other):
            stream.wait_stream(here)
            with plugrad.cuda.stream(stream):
                y = x
                for _ in range(5):
                    y = y * 1.5
                branches.append(y)
            here.wait_stream(stream)
            y.record_stream(here)
        (branches[0] + branches[1]).sum().backward()
        assert bool((x.grad == 2 * 1.5**5).all())


def test_events_take_the_time() -> None:
    start, end = plugrad.cuda.Event(enable_timing=True), plugrad.cuda.Event(enable_timing=True)
    x = plugrad.ones(MANY, device="cuda")
    start.record()
    for _ in range(10):
        x = x * 1.01
    end.record()
    end.synchronize()
    assert start.elapsed_time(end) > 0
    assert end.query()


def test_copies_through_pinned_memory_overlap_and_arrive() -> None:
    host = plugrad.arange(float(MANY)).pin_memory()
    stream = plugrad.cuda.Stream()
    with plugrad.cuda.stream(stream):
        there = host.to("cuda", non_blocking=True)
        back = (there * 2).to("cpu", non_blocking=True)
    stream.synchronize()
    assert bool((back == host * 2).all())


def training(device: str) -> tuple[Any, Any, Any, Any]:
    plugrad.manual_seed(0)
    model = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 1)).to(device)
    optimizer = optim.SGD(model.parameters(), lr=0.05)
    x = plugrad.randn(32, 16).to(device)
    y = x.sum(1, keepdim=True)

    def step(x: Any, y: Any) -> Any:
        optimizer.zero_grad(set_to_none=True)
        loss = (model(x) - y).square().mean()
        loss.backward()
        optimizer.step()
        return loss

    return model, step, x, y


def test_a_captured_step_trains_as_the_eager_one() -> None:
    eager, step, x, y = training("cuda")
    for _ in range(13):
        step(x, y)
    model, other, x, y = training("cuda")
    captured = plugrad.cuda.capture(other, x, y, warmup=3)
    for _ in range(10):
        captured(x, y)
    plugrad.cuda.synchronize()
    for a, b in zip(model.parameters(), eager.parameters(), strict=True):
        plugrad.testing.assert_close(a.detach().cpu(), b.detach().cpu(), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "complex64"])
def test_captured_products(dtype: str) -> None:
    """While a graph is captured, CuPy leaves matrix products to us."""
    plugrad.manual_seed(0)
    kind = getattr(plugrad, dtype)
    a, b = plugrad.randn(4, 3, 5), plugrad.randn(4, 5, 7)
    a, b = a.to("cuda", kind), b.to("cuda", kind)

    def products(a: Any, b: Any) -> list[Any]:
        wide, vector = b[0].T, a[0, 0]
        return [a @ b, a[:, :, 1:4] @ b[:, 1:4], wide @ b[0], vector @ b, a @ vector, a[0] @ b]

    captured = plugrad.cuda.capture(products, a, b)
    for ours, eager in zip(captured(a, b), products(a, b), strict=True):
        assert ours.dtype == kind
        plugrad.testing.assert_close(ours, eager, rtol=2e-2, atol=2e-2)


def test_a_replay_draws_new_numbers() -> None:
    graph = plugrad.cuda.CUDAGraph()
    plugrad.rand(4, device="cuda")
    with plugrad.cuda.graph(graph):
        x = plugrad.rand(1000, device="cuda")
    graph.replay()
    first = x.cpu()
    graph.replay()
    assert not bool((x.cpu() == first).all())


def test_graphed_callables_have_gradients() -> None:
    layer = nn.Linear(8, 8).to("cuda")
    x = plugrad.randn(4, 8).to("cuda").requires_grad_()
    expected = plugrad.autograd.grad(layer(x).square().sum(), [x, layer.weight])
    graphed = plugrad.cuda.make_graphed_callables(layer, (x,))
    found = plugrad.autograd.grad(graphed(x).square().sum(), [x, layer.weight])
    for a, b in zip(found, expected, strict=True):
        plugrad.testing.assert_close(a.cpu(), b.cpu(), rtol=1e-4, atol=1e-5)


def test_memory_is_counted() -> None:
    before = plugrad.cuda.memory_allocated()
    plugrad.cuda.reset_peak_memory_stats()
    x = plugrad.zeros(MANY, device="cuda")
    assert plugrad.cuda.memory_allocated() >= before + 4 * MANY
    del x
    assert plugrad.cuda.max_memory_allocated() >= before + 4 * MANY


@pytest.mark.skipif(_gpus() < 2, reason="CUDA finds one GPU")
def test_a_graph_over_two_gpus() -> None:
    x = plugrad.tensor([1.0, 2.0], device="cuda:0", requires_grad=True)
    y = (x * 3).to("cuda:1")
    (y * y).sum().backward()
    assert x.grad.tolist() == [18.0, 36.0]
