"""Who runs a captured step: the backend's compiler, a lowering by its name, or the tape."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import plugrad
from plugrad.dispatch.backends.active import activate_backend, deactivate_backend
from plugrad.plugins import Backend
from plugrad.plugins.compiling.lowerings import lowering_of, register_lowering
from plugrad_cpu.backend import CpuBackend


class Compiling(CpuBackend):
    """Counts calls of what it made one program."""

    def __init__(self) -> None:
        Backend.__init__(self, "compiling", array_type=plugrad.ones(1).numpy().__class__)
        self.seen: list[dict[str, Any]] = []

    def jit(self, function: Callable[..., Any], **options: Any) -> Callable[..., Any]:
        self.seen.append(options)
        return lambda *args: ("compiled", function(*args))


@pytest.fixture
def compiling() -> Iterator[Compiling]:
    backend = Compiling()
    activate_backend(backend)
    yield backend
    deactivate_backend("compiling")


def double(x: Any) -> Any:
    return x * 2


class Lowering(CpuBackend):
    """Lowers captured steps itself: by running their calls one by one."""

    def __init__(self) -> None:
        Backend.__init__(self, "lowering", array_type=np.ndarray)
        self.steps: list[Any] = []

    def compile(self, step: Any) -> Any:
        self.steps.append(step)

        def run(*inputs: Any) -> list[Any]:
            values = [*inputs, *step.constants]
            for name, args, results in step.calls:
                found = OPERATIONS[name](*[values[v.number] for v in args if hasattr(v, "number")])
                assert results == [len(values)]
                values.append(found)
            return [values[number] for number in step.outputs]

        return run


OPERATIONS = {"plugrad::mul.Tensor": np.multiply, "plugrad::sin": np.sin}


class Plain(CpuBackend):
    """A backend of a third party: kernels on arrays, and nothing for compiled steps."""

    def __init__(self) -> None:
        Backend.__init__(self, "plain", array_type=np.ndarray)

    def arena(self, size: int, parts: Any) -> None:
        return None


@pytest.fixture
def lowering() -> Iterator[Lowering]:
    backend = Lowering()
    activate_backend(backend)
    yield backend
    deactivate_backend("lowering")


@pytest.fixture
def plain() -> Iterator[None]:
    activate_backend(Plain())
    yield
    deactivate_backend("plain")


def calls(run: Any, *args: Any, times: int = 3) -> list[Any]:
    return [run(*args) for _ in range(times)]


@pytest.mark.parametrize("backend", [None, "tape"])
def test_a_backend_without_a_compiler_gets_the_tape(backend: str | None) -> None:
    run: Any = plugrad.compile(double, device="cpu", backend=backend)
    assert [found.tolist() for found in calls(run, plugrad.ones(1))] == [[2], [2], [2]]
    assert run.cache_info().hits == 2
    assert "1 kernels called directly" in run.explain()


def test_a_third_partys_backend_gets_the_tape(plain: None) -> None:
    weight = plugrad.ones(2, 3, device="plain", requires_grad=True)

    def step(x: Any) -> Any:
        weight.grad = None
        loss = (x @ weight).relu().sum()
        loss.backward()
        with plugrad.no_grad():
            weight.sub_(weight.grad, alpha=0.5)
        return loss

    run: Any = plugrad.compile(step)
    x = plugrad.ones(1, 2, device="plain")
    assert [found.item() for found in calls(run, x)] == [6, 3, 0]
    assert run.cache_info().hits == 1, run.explain()


def test_generators_of_other_backends_have_states_of_any_type(plain: None) -> None:
    class Counter:
        def manual_seed(self, seed: int) -> None:
            pass

        def get_state(self) -> Any:
            return np.arange(2)

        def set_state(self, state: Any) -> None:
            pass

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Plain, "make_generator", lambda self, index: Counter())
        deactivate_backend("plain")
        activate_backend(Plain())
        run: Any = plugrad.compile(double)
        assert [found.item() for found in calls(run, plugrad.ones(1))] == [2, 2, 2]
        assert run.cache_info().hits == 2


def test_a_backend_lowers_captured_steps(lowering: Lowering) -> None:
    weight = plugrad.full((2,), 3.0, device="lowering")
    run: Any = plugrad.compile(lambda x: (x * weight).sin())
    x = plugrad.ones(2, device="lowering")
    for found in calls(run, x):
        assert plugrad.equal(found, (x * weight).sin())
    (step,) = lowering.steps
    assert list(step.inputs) == [((2,), np.dtype("float32")), ((2,), np.dtype("float32"))]
    assert list(step.outputs) == [3]
    assert run.cache_info().hits == 2


def test_a_lowering_that_cannot_lower_a_step() -> None:
    def lower(step: Any) -> Any:
        raise NotImplementedError("no sines here")

    run: Any = plugrad.compile(lambda x: x.sin(), backend=lower)
    calls(run, plugrad.ones(1))
    assert "no sines here" in run.explain()


def test_a_lowering_with_an_error_never_stops_the_step() -> None:
    def lower(step: Any) -> Any:
        raise ZeroDivisionError("oh")

    run: Any = plugrad.compile(double, backend=lower)
    assert [found.item() for found in calls(run, plugrad.ones(1))] == [2, 2, 2]
    assert "lowering failed with ZeroDivisionError: oh" in run.explain()


def test_custom_operators_are_on_the_tape() -> None:
    @plugrad.library.custom_op("tape_tests::twice_plus", mutates_args=())
    def twice_plus(x: plugrad.Tensor, number: float) -> plugrad.Tensor:
        return x * 2 + number

    run: Any = plugrad.compile(lambda x: twice_plus(x, 0.5).sin())
    x = plugrad.ones(2)
    for found in calls(run, x):
        assert plugrad.equal(found, (x * 2 + 0.5).sin())
    assert [node.op.op.qualified_name for node in run.graphs()[0].nodes] == [
        "tape_tests::twice_plus",
        "plugrad::sin",
    ]


def test_names_of_lowerings() -> None:
    register_lowering("of_these_tests", lambda step: lowering_of("tape")(step))
    run: Any = plugrad.compile(double, backend="of_these_tests")
    assert [found.item() for found in calls(run, plugrad.ones(1))] == [2, 2, 2]
    with pytest.raises(ValueError, match="a lowering called 'tape' already"):
        register_lowering("tape", lambda step: step)
    with pytest.raises(
        ValueError, match=r"there is no lowering called 'tapes'; expected one of .*'tape'"
    ):
        plugrad.compile(double, backend="tapes")
    with pytest.raises(ValueError, match="the backend 'cpu' has no compiler of its own"):
        plugrad.compile(double, backend="cpu")
    with pytest.raises(TypeError, match="argument 'backend' must be str or a function, not int"):
        plugrad.compile(double, backend=3)  # type: ignore[call-overload]  # that is the test


def test_options_of_the_tape() -> None:
    with pytest.raises(TypeError, match="the tape has no option 'donat'"):
        plugrad.compile(double, donat=True)
    with pytest.raises(ValueError, match="limit must be a positive int, got 0"):
        plugrad.compile(double, limit=0)


def test_a_named_backend_compiles(compiling: Compiling) -> None:
    assert plugrad.compile(double, backend="compiling", donate=True)(2) == ("compiled", 4)
    assert compiling.seen == [{"donate": True}]


def test_the_backend_of_the_device_compiles(compiling: Compiling) -> None:
    assert "jit" in compiling.capabilities()
    assert plugrad.compile(double, device="compiling", donate=False)(2) == ("compiled", 4)
    assert compiling.seen == [{"donate": False}]


def test_the_default_device_is_asked(compiling: Compiling) -> None:
    with plugrad.device("compiling"):
        assert plugrad.compile(double)(2) == ("compiled", 4)
    assert plugrad.compile(double)(2) == 4


def test_it_is_a_decorator_with_options(compiling: Compiling) -> None:
    @plugrad.compile(device="compiling", name="twice")
    def twice(x: Any) -> Any:
        return x * 2

    assert twice(3) == ("compiled", 6)
    assert compiling.seen == [{"name": "twice"}]


def test_a_module_is_no_step() -> None:
    with pytest.raises(TypeError, match="whole step, got the module Linear"):
        plugrad.compile(plugrad.nn.Linear(2, 2))


def test_what_is_no_function_is_refused() -> None:
    with pytest.raises(TypeError, match="expected a function, got int"):
        plugrad.compile(3)
