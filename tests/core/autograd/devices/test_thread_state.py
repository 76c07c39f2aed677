"""What holds on the thread that calls backward holds in its nodes, on whatever thread they run."""

from __future__ import annotations

import linecache
import threading
import time
import weakref
from collections.abc import Callable
from typing import Any

import pytest

import plugrad
from plugrad.dispatch import keys
from plugrad.dispatch.local_state import current_state
from plugrad.dispatch.scope import ExcludeKeys, IncludeKeys
from tests.core.autograd.devices.graphs import SECONDS, leaf, then
from tests.core.autograd.devices.toy import ToyBackend
from tests.core.autograd.together import run_together

PLACES = ["cpu", "toy:0"]
HARMLESS = 1 << (keys.BACKEND_SHIFT + keys.MAX_BACKENDS - 2)  # the bit of an unused backend


def in_a_node(place: str, look: Callable[[], Any], **kwargs: Any) -> Any:
    """What `look` gives in a node on a device, during a pass from here."""
    seen: list[Any] = []
    then(leaf(place), lambda grad: seen.append(look())).sum().backward(**kwargs)
    return seen[0]


@pytest.mark.parametrize("place", PLACES)
def test_grad_mode_is_that_of_create_graph(toy: ToyBackend, place: str) -> None:
    assert in_a_node(place, plugrad.is_grad_enabled) is False
    with pytest.warns(UserWarning, match="create_graph=True will create a reference cycle"):
        assert in_a_node(place, plugrad.is_grad_enabled, create_graph=True) is True
    with plugrad.no_grad():
        x = leaf(place)
    seen: list[bool] = []
    y = then(x, lambda grad: seen.append(plugrad.is_grad_enabled())).sum()
    with plugrad.no_grad():
        plugrad.autograd.grad(y, x, create_graph=True)
    assert seen == [True]


@pytest.mark.parametrize("place", PLACES)
def test_what_nodes_make_with_create_graph_is_recorded(toy: ToyBackend, place: str) -> None:
    x = leaf(place)
    y = (x * x * x).to("toy:1").sum()
    (first,) = plugrad.autograd.grad(y, x, create_graph=True)
    (second,) = plugrad.autograd.grad(first.sum(), x)
    assert second.tolist() == [6.0, 12.0]


@pytest.mark.parametrize("place", PLACES)
def test_inference_mode(toy: ToyBackend, place: str) -> None:
    seen: list[bool] = []
    y = then(leaf(place), lambda grad: seen.append(plugrad.is_inference_mode_enabled())).sum()
    grad = plugrad.ones((), dtype=plugrad.float64, device=place)
    with plugrad.inference_mode():
        y.backward(grad)
    assert seen == [True]
    assert in_a_node(place, plugrad.is_inference_mode_enabled) is False


@pytest.mark.parametrize("place", PLACES)
def test_excluded_and_included_keys(toy: ToyBackend, place: str) -> None:
    def masks() -> tuple[bool, bool]:
        state = current_state()
        return bool(state.included & HARMLESS), bool(state.kept & HARMLESS)

    assert in_a_node(place, masks) == (False, True)
    with IncludeKeys(HARMLESS):
        assert in_a_node(place, lambda: masks()[0]) is True
    with ExcludeKeys(HARMLESS):
        assert in_a_node(place, masks) == (False, False)
    assert in_a_node(place, masks) == (False, True)


@pytest.mark.parametrize("place", PLACES)
def test_saved_tensors_hooks(toy: ToyBackend, place: str) -> None:
    packed: list[str] = []

    def pack(tensor: Any) -> Any:
        packed.append(threading.current_thread().name)
        return tensor

    x = leaf(place)
    y = (x * x).sum()
    with plugrad.autograd.graph.saved_tensors_hooks(pack, lambda packed: packed):
        plugrad.autograd.grad(y, x, create_graph=True)
    assert packed
    assert set(packed) == {"MainThread" if place == "cpu" else "plugrad-toy:0"}


@pytest.mark.parametrize("place", PLACES)
def test_saved_tensors_hooks_can_be_forbidden(toy: ToyBackend, place: str) -> None:
    def use_hooks() -> None:
        with plugrad.autograd.graph.saved_tensors_hooks(lambda x: x, lambda x: x):
            pass

    in_a_node(place, use_hooks)
    with (
        plugrad.autograd.graph.disable_saved_tensors_hooks("not here"),
        pytest.raises(RuntimeError, match="not here"),
    ):
        in_a_node(place, use_hooks)
    in_a_node(place, use_hooks)


@pytest.mark.parametrize("place", PLACES)
def test_dispatch_traces(toy: ToyBackend, place: str) -> None:
    x = leaf(place)
    y = (x * x).sum()
    with plugrad.record_dispatch_trace() as events:
        y.backward()
    key = "CPU" if place == "cpu" else "Toy"
    assert ("plugrad::mul.Tensor", key) in [(event.op, event.key) for event in events]


@pytest.mark.parametrize("place", PLACES)
def test_anomaly_mode_finds_nans(toy: ToyBackend, place: str) -> None:
    x = leaf(place, 0.0)
    with plugrad.autograd.detect_anomaly():
        y = (x / x).sqrt().sum()
        with (
            pytest.warns(UserWarning, match="Traceback of forward call that caused the error"),
            pytest.raises(RuntimeError, match="returned nan values in its 0th output"),
        ):
            y.backward()


@pytest.mark.parametrize("place", PLACES)
def test_anomaly_mode_knows_in_whose_run_a_node_was_made(toy: ToyBackend, place: str) -> None:
    x = leaf(place)
    with plugrad.autograd.detect_anomaly():
        y = x * x
        (first,) = plugrad.autograd.grad(y.sum(), x, create_graph=True)
        node = first.grad_fn
        while node is not None and node.metadata.get("parent_") is not y.grad_fn:
            node = node.next_functions[0][0]
        assert node is not None


@pytest.mark.parametrize("nested", [False, True], ids=["outermost", "nested"])
@pytest.mark.parametrize("place", PLACES)
def test_anomaly_mode_warns_at_the_line_that_called_backward(
    toy: ToyBackend, place: str, nested: bool
) -> None:
    def run(_: Any) -> None:
        with plugrad.enable_grad():
            (leaf(place, 0.0) / 0.0).sqrt().sum().backward()  # called here

    def run_in_a_node(_: Any) -> None:
        then(leaf("toy:1"), run).sum().backward()  # called here

    start = run_in_a_node if nested else run
    with (
        plugrad.autograd.detect_anomaly(),
        pytest.warns(UserWarning, match="Traceback of forward call") as caught,
        pytest.raises(RuntimeError, match="returned nan values"),
    ):
        start(None)
    found = [each for each in caught if "Error detected in" in str(each.message)]
    assert len(found) == 1 + nested
    for each in found:
        assert linecache.getline(each.filename, each.lineno).rstrip().endswith("# called here")


def test_a_node_that_was_made_on_the_thread_of_a_device_has_no_stack(toy: ToyBackend) -> None:
    x = leaf("toy:0")
    with plugrad.autograd.detect_anomaly():
        (grad,) = plugrad.autograd.grad((x**3).sum(), x, create_graph=True)
    assert grad.grad_fn.metadata["traceback_"] == []
    assert "test_thread_state.py" in "".join(
        grad.grad_fn.metadata["parent_"].metadata["traceback_"]
    )


@pytest.mark.parametrize("place", PLACES)
def test_what_a_node_changes_does_not_outlive_the_pass(toy: ToyBackend, place: str) -> None:
    def change(grad: Any) -> None:
        state = current_state()
        plugrad.set_grad_enabled(True)
        state.included |= HARMLESS
        state.inference_mode = True
        state.multithreading = False

    then(leaf(place), change).sum().backward()

    def look() -> Any:
        state = current_state()
        return (
            state.grad_enabled,
            bool(state.included & HARMLESS),
            state.inference_mode,
            state.multithreading,
        )

    assert look() == (True, False, False, True)
    assert in_a_node(place, look) == (False, False, False, True)


@pytest.mark.parametrize("place", PLACES)
def test_what_a_node_changes_does_not_outlive_an_error(toy: ToyBackend, place: str) -> None:
    def change(grad: Any) -> None:
        current_state().inference_mode = True
        raise ValueError

    with pytest.raises(ValueError):
        then(leaf(place), change).sum().backward()
    assert current_state().inference_mode is False
    assert current_state().graph_task is None
    assert in_a_node(place, plugrad.is_inference_mode_enabled) is False


@pytest.mark.parametrize("place", PLACES)
def test_grad_mode_is_set_for_every_node_anew(toy: ToyBackend, place: str) -> None:
    seen: list[bool] = []
    x = then(leaf(place), lambda grad: seen.append(plugrad.is_grad_enabled()))
    then(x, lambda grad: plugrad.set_grad_enabled(True) and None).sum().backward()
    assert seen == [False]


def test_passes_of_several_callers_keep_their_states_apart(toy: ToyBackend) -> None:
    def work(create_graph: bool, mask: int) -> Callable[[], None]:
        def run() -> None:
            for _ in range(50):
                x = leaf("toy:0")
                seen: list[Any] = []

                def look(grad: Any, seen: list[Any] = seen) -> None:
                    state = current_state()
                    seen.append((state.grad_enabled, bool(state.included & HARMLESS)))

                y = then(then(x, look).to("toy:1"), look).sum()
                with IncludeKeys(mask):
                    plugrad.autograd.grad(y, x, create_graph=create_graph)
                assert seen == [(create_graph, bool(mask))] * 2

        return run

    run_together(work(True, HARMLESS), work(False, 0), work(True, 0), work(False, HARMLESS))


def test_an_idle_thread_holds_nothing_of_the_last_pass(toy: ToyBackend) -> None:
    class Pack:
        def __call__(self, tensor: Any) -> Any:
            return tensor

    pack = Pack()
    gone = weakref.ref(pack)
    y = (leaf("toy:0") * 2).sum()
    with plugrad.autograd.graph.saved_tensors_hooks(pack, lambda packed: packed):
        y.backward()
    del pack
    end = time.monotonic() + SECONDS
    while gone() is not None:  # the thread comes to rest a moment after the pass is over
        assert time.monotonic() < end
        time.sleep(0.0001)


def test_state_travels_to_the_pool(toy: ToyBackend) -> None:
    from plugrad.autograd.engine.engine import MAX_DEPTH

    seen: list[Any] = []

    def nested(level: int) -> Any:
        def run(grad: Any) -> None:
            if level == 0:
                seen.append((bool(current_state().included & HARMLESS), plugrad.is_grad_enabled()))
                return
            with plugrad.enable_grad():
                then(leaf("cpu"), nested(level - 1)).sum().backward()

        return run

    y = then(leaf("cpu"), nested(MAX_DEPTH + 1)).sum()
    with IncludeKeys(HARMLESS):
        y.backward()
    y = then(leaf("cpu"), nested(MAX_DEPTH + 1)).sum()
    y.backward()
    assert seen == [(True, False), (False, False)]


@pytest.mark.parametrize("places", [["cpu"], ["toy:0"], ["toy:0", "toy:1"]], ids="+".join)
@pytest.mark.parametrize("nested", [False, True], ids=["beside", "nested"])
def test_passes_in_a_group_recompute_once(toy: ToyBackend, places: list[str], nested: bool) -> None:
    checkpoint = plugrad.utils.checkpoint
    runs: list[str] = []

    def block(x: Any) -> Any:
        runs.append(threading.current_thread().name)
        y = x.sin()
        return y, y.cos()

    def around(x: Any) -> Any:
        return checkpoint.checkpoint(block, x, use_reentrant=False) if nested else block(x)

    def gradients() -> list[Any]:
        found = []
        for x, (y, z) in zip(xs, results, strict=True):
            (grad,) = plugrad.autograd.grad(z.sum(), y)
            found += plugrad.autograd.grad(y, x, grad)
        return [grad.tolist() for grad in found]

    def run() -> list[Any]:
        return [checkpoint.checkpoint(around, x, use_reentrant=False) for x in xs]

    xs = [leaf(place) for place in places]
    results = run()
    apart = gradients()
    without = len(runs)
    runs.clear()
    results = run()
    with checkpoint.GraphExecGroup():
        assert gradients() == apart
    # Forward ran the block once for each place; each pass of its own would run it again.
    repeated = len(runs) - len(places)
    assert without - len(places) == 2 * repeated
    assert set(runs[len(places) :]) == (
        {"MainThread"} if places == ["cpu"] else {f"plugrad-{place}" for place in places}
    )
    assert current_state().checkpoint_group == 0
