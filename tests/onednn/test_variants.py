"""The package as its users have it: large tensors take oneDNN's kernels, small ones do not."""

from __future__ import annotations

import gc
import multiprocessing
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import plugrad
import plugrad.nn.functional as F
from plugrad.testing import assert_close
from tests.onednn.conftest import SOURCES

primitives = pytest.importorskip("plugrad_onednn.primitives")
library = pytest.importorskip("plugrad_onednn.library")
softmax = pytest.importorskip("plugrad_onednn.kernels.softmax")


def ran(work: Any) -> list[str]:
    """The operators for which a variant has run."""
    with plugrad.record_dispatch_trace() as events:
        work()
    return [event.op for event in events if event.kind == "variant"]


def step(x: Any, weight: Any) -> tuple[Any, ...]:
    """A step that goes through all of them; the gradients, with the value."""
    x, weight = x.detach().requires_grad_(), weight.detach().requires_grad_()
    y = F.gelu(F.conv2d(x, weight, padding=1))
    y = F.silu(F.layer_norm(y, y.shape[-2:]))
    y = (y.softmax(-1) * plugrad.sigmoid(y) * y.log_softmax(-1)).sum()
    y.backward()
    return y.detach(), x.grad, weight.grad


NAMES = {
    *("convolution", "convolution_backward", "gelu", "gelu_backward", "native_layer_norm"),
    *("native_layer_norm_backward", "silu", "silu_backward", "_softmax", "_log_softmax"),
    *("_softmax_backward_data", "_log_softmax_backward_data", "sigmoid"),
}


@pytest.mark.usefixtures("threads")
def test_a_step_on_large_tensors_uses_them_and_gives_the_same(request: Any, draw: Any) -> None:
    x, weight = plugrad.tensor(draw(8, 16, 32, 32)), plugrad.tensor(draw(16, 16, 3, 3))
    expected = step(x, weight)
    request.getfixturevalue("onednn")
    operators = set(ran(lambda: step(x, weight)))
    # For some processors oneDNN has but a reference implementation of these.
    optional = {"_softmax_backward_data", "_log_softmax_backward_data"}
    assert operators | {f"plugrad::{name}" for name in optional} == {
        f"plugrad::{name}" for name in NAMES
    }
    for found, plain in zip(step(x, weight), expected, strict=True):
        assert_close(found, plain, rtol=1e-3, atol=1e-3)


@pytest.mark.usefixtures("onednn")
def test_small_tensors_and_other_dtypes_take_the_plain_kernels(draw: Any) -> None:
    small, wide = plugrad.tensor(draw(4, 8)), plugrad.tensor(draw(200, 200)).double()
    for x in (small, wide, wide.bfloat16(), plugrad.zeros(0, 4)):
        assert ran(lambda x=x: (F.gelu(x), x.softmax(-1), F.layer_norm(x, x.shape[-1:]))) == []


@pytest.mark.usefixtures("onednn")
def test_arrays_that_are_not_contiguous_are_computed(draw: Any) -> None:
    x = plugrad.tensor(draw(200, 300))
    assert ran(lambda: F.gelu(x.t())) == []
    assert_close(F.gelu(x.t()), F.gelu(x).t(), rtol=1e-5, atol=1e-5)
    assert_close(x.t().softmax(0), x.softmax(1).t(), rtol=1e-5, atol=1e-6)


@pytest.mark.skipif(bool(library.problem_of_bfloat16()), reason="needs AVX-512 BF16")
@pytest.mark.usefixtures("onednn", "threads")
def test_large_products_of_bfloat16_take_them(draw: Any) -> None:
    x, weight, bias = (plugrad.tensor(draw(*size)) for size in ((3, 70, 130), (90, 130), (90,)))
    x, weight, bias = (one.bfloat16().requires_grad_() for one in (x, weight, bias))
    wide = [one.detach().float().requires_grad_() for one in (x, weight, bias)]

    def step(x: Any, weight: Any, bias: Any) -> Any:
        out = F.linear(x, weight, bias)
        out = out + (x @ weight.t()) + x.bmm(weight.t().expand(3, 130, 90).contiguous())
        out.sum().backward()
        return out

    found: list[Any] = []
    operators = ran(lambda: found.append(step(x, weight, bias)))
    assert {"plugrad::linear", "plugrad::linear_backward", "plugrad::bmm"} <= set(operators)
    expected = step(*wide)
    assert_close(found[0].float(), expected, rtol=2e-2, atol=0.3)
    for one, other in zip((x, weight, bias), wide, strict=True):
        assert one.grad is not None
        assert one.grad.dtype is plugrad.bfloat16
        assert_close(one.grad.float(), other.grad, rtol=2e-2, atol=1.0)
    assert ran(lambda: x[0, :4] @ weight.t()) == []  # small


@pytest.mark.usefixtures("onednn")
def test_the_configuration_rules_them_out(draw: Any) -> None:
    x = plugrad.tensor(draw(200, 300))
    assert ran(lambda: F.gelu(x)) == ["plugrad::gelu"]
    with plugrad.config.set(disable=["onednn", "plugrad-native", "plugrad-onednn"]):
        assert ran(lambda: F.gelu(x)) == []


@pytest.mark.usefixtures("onednn")
def test_a_second_derivative_goes_through_them(draw: Any) -> None:
    x = plugrad.tensor(draw(64, 64), requires_grad=True)
    (first,) = plugrad.autograd.grad(F.silu(x).sum(), x, create_graph=True)
    (second,) = plugrad.autograd.grad(first.sum(), x)
    wide = x.detach().double().requires_grad_()
    (first,) = plugrad.autograd.grad(F.silu(wide).sum(), wide, create_graph=True)
    (expected,) = plugrad.autograd.grad(first.sum(), wide)
    assert_close(second.double(), expected, rtol=1e-4, atol=1e-5)


def test_threads_do_not_disturb_each_other(draw: Any) -> None:
    # Of one shape, so that they share a plan.
    arrays = [draw(64, 128) for _ in range(4)]
    expected = [softmax.softmax(array, 1, False) for array in arrays]
    wrong: list[int] = []

    def work(number: int) -> None:
        for _ in range(200):
            found = softmax.softmax(arrays[number], 1, False)
            if not np.array_equal(found, expected[number]):
                wrong.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(len(arrays))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def _resident() -> int:
    """Bytes of memory that the process has."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def test_plans_are_bounded_and_give_their_memory_back(draw: Any) -> None:
    def shapes(first: int) -> None:
        for size in range(first, first + 1500):
            assert softmax.softmax(np.ones((2, size), np.float32), 1, False) is not NotImplemented

    shapes(10)
    gc.collect()
    before = _resident()
    shapes(2000)
    assert len(primitives._plans) <= primitives._PLANS
    gc.collect()
    assert _resident() - before < 1 << 24


def _gelu_of_a_child(sender: Any) -> None:
    x = plugrad.linspace(-3, 3, 1 << 18)
    sender.send(F.gelu(x).sum().item())


@pytest.mark.usefixtures("onednn")
@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")
def test_the_child_of_a_fork_computes_with_one_thread(threads: int) -> None:
    x = plugrad.linspace(-3, 3, 1 << 18)
    expected = F.gelu(x).sum().item()
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(False)
    child = context.Process(target=_gelu_of_a_child, args=(sender,))
    child.start()
    try:
        assert receiver.poll(60), "the child hangs"
        assert receiver.recv() == pytest.approx(expected, rel=1e-5)
    finally:
        child.kill()
        child.join()


def run(code: str) -> subprocess.CompletedProcess[str]:
    """Run code in a process of its own, which finds the package as this one does."""
    path = os.pathsep.join([str(SOURCES), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": path}
    command = [sys.executable, "-c", code]
    return subprocess.run(command, capture_output=True, text=True, env=environment)


WITHOUT = """
import sys
import plugrad_onednn.library as library
library.paths = lambda: iter({paths})
import plugrad
from plugrad.plugins import get_manager
from plugrad_onednn import plugin
get_manager().register(plugin, "onednn")
x = plugrad.ones(1 << 17)
y = plugrad.nn.functional.gelu(x)
from plugrad.cli.doctor import examine
print([note for note in examine().notes if "oneDNN" in note or "libdnnl" in note][0])
"""


@pytest.mark.parametrize(
    ("paths", "told"),
    [
        ([], "libdnnl.so.3 of oneDNN is not installed: `pip install onednn-cpu-gomp`"),
        (["/nowhere/libdnnl.so.3"], "/nowhere/libdnnl.so.3 cannot be opened: "),
    ],
)
def test_without_the_library_the_plain_kernels_compute_and_the_doctor_says_why(
    paths: list[str], told: str
) -> None:
    code = WITHOUT.replace("{paths}", repr(paths))
    found = run(code)
    assert found.returncode == 0, found.stderr
    assert found.stderr == ""
    assert "The variant 'onednn' of" in found.stdout
    assert told in found.stdout


def test_importing_plugrad_does_not_open_the_library() -> None:
    code = """
import plugrad
from plugrad.plugins import get_manager
from plugrad_onednn import plugin
get_manager().register(plugin, "onednn")
import plugrad_onednn.library as library
plugrad.nn.functional.gelu(plugrad.ones(4))
print(library.opened.cache_info().currsize)
plugrad.nn.functional.gelu(plugrad.ones(5000))
print(library.opened.cache_info().currsize)
"""
    found = run(code)
    assert found.stdout.split() == ["0", "1"], found.stderr
