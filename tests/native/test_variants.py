"""The package as its users have it: small tensors take its kernels, and the rest does not."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import pytest

import plugrad
import plugrad.nn.functional as F
from plugrad.plugins import get_manager
from plugrad.testing import assert_close

compiled = pytest.importorskip("plugrad_native.compiled")


def ran(work: Any) -> list[tuple[str, str]]:
    """The operators for which a variant has run, and its name."""
    with plugrad.record_dispatch_trace() as events:
        work()
    return [
        (event.op.removeprefix("plugrad::"), event.kernel.rpartition(" ")[2])
        for event in events
        if event.kind == "variant"
    ]


def step(x: Any, classes: Any) -> tuple[Any, ...]:
    """A step that goes through many of them; the loss, and the gradient."""
    x = x.detach().requires_grad_()
    y = F.silu(F.gelu(F.layer_norm(x, x.shape[-1:])).tanh())
    loss = F.cross_entropy(plugrad.cat([y, x]).relu(), classes) + F.mse_loss(y, x) + y.mean()
    loss.backward()
    return loss.detach(), x.grad


@pytest.mark.parametrize("dtype", [plugrad.float32, plugrad.float64])
def test_a_step_on_small_tensors_uses_them_and_gives_the_same(request: Any, dtype: Any) -> None:
    x = plugrad.linspace(-3, 3, 8 * 16, dtype=dtype).reshape(8, 16)
    classes = plugrad.arange(16)
    expected = step(x, classes)
    request.getfixturevalue("native")
    assert {name for name, _ in ran(lambda: step(x, classes))} >= {
        *("native_layer_norm", "native_layer_norm_backward", "gelu", "gelu_backward", "tanh"),
        *("silu", "silu_backward", "cat", "threshold_backward", "_log_softmax", "mean", "relu"),
        "tanh_backward",
        *("_log_softmax_backward_data", "nll_loss_forward", "nll_loss_backward", "mse_loss"),
    }
    for found, plain in zip(step(x, classes), expected, strict=True):
        assert_close(found, plain, rtol=1e-5, atol=1e-6)


@pytest.mark.usefixtures("native")
def test_other_dtypes_and_layouts_take_the_plain_kernels() -> None:
    x = plugrad.linspace(-3, 3, 8 * 16).reshape(8, 16)
    for y in (x.bfloat16(), x.long(), x.cdouble()):
        assert ran(lambda y=y: y.sum()) == []
    turned = x.t()
    assert ran(lambda: F.gelu(turned)) == []
    assert_close(F.gelu(x.t()), F.gelu(x).t())
    assert ran(lambda: x.softmax(0)) == []


@pytest.mark.usefixtures("native")
def test_some_are_for_small_arrays() -> None:
    for size, found in ((1 << 12, [("argmax", "native")]), ((1 << 12) + 1, [])):
        x = plugrad.ones(size)
        assert ran(lambda x=x: x.argmax(0)) == found
        assert ran(lambda x=x: x.sum()) == [("sum", "native")]


@pytest.mark.usefixtures("native")
def test_which_of_two_variants_runs_depends_on_the_size() -> None:
    large = "native-wide" if compiled.name == "_avx512" else "native-large"
    for size, name in ((1 << 15, "native"), ((1 << 15) + 1, large)):
        x = plugrad.ones(size, requires_grad=True)
        assert ("gelu", "native") in ran(lambda x=x: F.gelu(x))
        y = F.gelu(x).sum()
        assert ("gelu_backward", name) in ran(y.backward)


@pytest.mark.usefixtures("native")
def test_the_configuration_rules_them_out() -> None:
    x = plugrad.ones(4, 4)
    assert ran(lambda: F.gelu(x)) == [("gelu", "native")]
    with plugrad.config.set(disable=["native", "plugrad-native", "plugrad-onednn"]):
        assert ran(lambda: F.gelu(x)) == []
    with plugrad.config.set(kernels={"cpu.gelu": "plugrad-cpu"}):
        assert ran(lambda: F.gelu(x)) == []
    with plugrad.config.set(cpu_capability="default"):
        used = [("gelu", "native")] if compiled.name == "_portable" else []
        assert ran(lambda: F.gelu(x)) == used


@pytest.mark.usefixtures("native")
def test_errors_are_those_of_the_plain_kernels() -> None:
    x = plugrad.ones(3, 4)
    with pytest.raises(IndexError, match="Target 4 is out of bounds"):
        F.cross_entropy(x, plugrad.tensor([0, 4, 1]))
    with pytest.raises(IndexError, match="Dimension out of range"):
        x.softmax(2)


@pytest.mark.usefixtures("native")
def test_a_second_derivative_goes_through_them() -> None:
    x = plugrad.linspace(-2, 2, 12, dtype=plugrad.float64).reshape(3, 4).requires_grad_()
    for function in (F.gelu, F.silu, lambda t: t.softmax(1), lambda t: F.layer_norm(t, (4,))):
        assert plugrad.autograd.gradgradcheck(lambda t, f=function: f(t) ** 2, (x,))


WITHOUT = """
import sys
for name in sys.argv[1:]:
    sys.modules["plugrad_native." + name] = None
import plugrad
from plugrad.plugins import get_manager
from plugrad_native import plugin
get_manager().register(plugin, "native")
print(plugrad.nn.functional.gelu(plugrad.ones(2)).sum().item())
from plugrad.cli.doctor import examine
print([note for note in examine().notes if "'native' of" in note][0])
"""


def test_without_a_compiler_the_plain_kernels_compute_and_the_doctor_says_why() -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-W", "error", "-c", WITHOUT, *compiled.NEEDS]
    found = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert found.returncode == 0, found.stderr
    assert found.stdout.startswith("1.68")
    assert "its C code is not compiled" in found.stdout


def test_the_features_that_they_need_are_known_to_the_backend() -> None:
    known = get_manager().backend("cpu").features("")
    assert {name for needs in compiled.NEEDS.values() for name in needs} <= set(known)


@pytest.mark.parametrize("allowed", ["avx2", "avx512", "default"])
def test_the_configuration_chooses_among_the_modules(allowed: str) -> None:
    here = get_manager().backend("cpu").features("" if allowed == "default" else allowed)
    runs = [name for name, needs in compiled.NEEDS.items() if all(here[one] for one in needs)]
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(sys.path),
        "PLUGRAD_CPU_CAPABILITY": allowed,
    }
    program = "from plugrad_native import compiled; print(compiled.name)"
    found = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )
    assert found.stdout.split() == runs[:1], found.stderr
