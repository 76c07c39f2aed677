"""What a captured step sees when something changes, and what it refuses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

pytest.importorskip("jax")

import plugrad
import plugrad_jax

CaptureError = plugrad_jax.CaptureError


def ones(*sizes: int) -> Any:
    return plugrad.ones(*sizes, device="jax")


def values(tensor: Any) -> Any:
    return tensor.detach().cpu().numpy()


@pytest.mark.parametrize(
    "ask",
    [
        lambda x: x.sum().item(),
        lambda x: float(x.sum()),
        lambda x: int(x.sum()),
        lambda x: bool(x.sum() > 3),
        lambda x: repr(x),
        lambda x: x.tolist(),
        lambda x: x.numpy(force=True),
        lambda x: np.asarray(x.cpu()),
    ],
    ids=["item", "float", "int", "bool", "repr", "tolist", "numpy", "array"],
)
def test_asking_for_values_names_the_line_and_a_way_out(ask: Callable[[Any], Any]) -> None:
    @plugrad_jax.jit
    def step(x: Any) -> Any:
        return ask(x * 2)

    with pytest.raises(CaptureError, match=r"test_jit_rules\.py:\d+: .*plugrad\.where") as raised:
        step(ones(2))
    assert isinstance(raised.value, RuntimeError)


def test_after_an_error_everything_is_as_before() -> None:
    layer = plugrad.nn.Linear(2, 2).to("jax")
    optimizer = plugrad.optim.Adam(layer.parameters())
    generator = plugrad.manual_seed(3)
    weight, array = layer.weight, layer.weight.array
    grad = layer.weight.grad = ones(2, 2)
    version = weight._version

    @plugrad_jax.jit
    def step(x: Any) -> None:
        optimizer.zero_grad()
        plugrad.nn.functional.dropout(layer(x)).sum().backward()
        optimizer.step()
        layer.extra = x * 2
        if layer.weight.sum() > 0:
            raise AssertionError

    with pytest.raises(CaptureError):
        step(ones(1, 2))
    assert layer.weight is weight
    assert weight.array is array
    assert weight._version == version
    assert weight.grad is grad
    assert layer.bias.grad is None
    assert not optimizer.state
    assert optimizer.param_groups[0]["lr"] == 1e-3
    assert not hasattr(layer, "extra")
    assert generator is not None
    layer(ones(1, 2)).sum().backward()


def test_dropout_draws_new_numbers_and_those_of_eager_execution() -> None:
    @plugrad_jax.jit
    def step(x: Any) -> Any:
        return plugrad.nn.functional.dropout(x, 0.5)

    x = ones(64)
    plugrad.manual_seed(5)
    eager = [values(plugrad.nn.functional.dropout(x, 0.5)) for _ in range(3)]
    plugrad.manual_seed(5)
    captured = [values(step(x)) for _ in range(3)]
    np.testing.assert_array_equal(captured, eager)
    assert not np.array_equal(captured[1], captured[2])
    assert step.traces == 1
    after = values(plugrad.rand(3, device="jax"))
    plugrad.manual_seed(5)
    for _ in range(3):
        plugrad.nn.functional.dropout(x, 0.5)
    np.testing.assert_array_equal(after, values(plugrad.rand(3, device="jax")))


def test_a_generator_of_ones_own_goes_on() -> None:
    generator = plugrad.Generator("jax").manual_seed(1)

    @plugrad_jax.jit
    def step() -> Any:
        return plugrad.rand(4, generator=generator, device="jax")

    captured = [values(step()) for _ in range(2)]
    generator.manual_seed(1)
    eager = [values(plugrad.rand(4, generator=generator, device="jax")) for _ in range(2)]
    np.testing.assert_array_equal(captured, eager)


def test_running_statistics_and_training_mode() -> None:
    def build(device: str) -> Any:
        plugrad.manual_seed(0)
        return plugrad.nn.Sequential(plugrad.nn.BatchNorm1d(3)).to(device)

    host, model = build("cpu"), build("jax")
    step = plugrad_jax.jit(lambda x: model(x))
    x = plugrad.arange(12.0).reshape(4, 3)
    for train in (True, True, False, True, False):
        host.train(train)
        model.train(train)
        np.testing.assert_allclose(values(step(x.to("jax"))), values(host(x)), rtol=1e-5, atol=1e-6)
    for name, value in host[0].named_buffers():
        np.testing.assert_allclose(values(getattr(model[0], name)), values(value), rtol=1e-6)
    assert step.traces == 2
    assert "training" in step.cache_info().reasons[0]


def test_new_shapes_and_numbers_are_traced_once_each() -> None:
    @plugrad_jax.jit
    def step(x: Any, scale: float = 1.0) -> Any:
        return (x * scale).sum()

    for _ in range(2):
        assert step(ones(2)).item() == 2
        assert step(ones(3)).item() == 3
        assert step(ones(3), scale=2.0).item() == 6
        assert step(ones(3).to(plugrad.int64)).item() == 3
    assert step.traces == 4
    assert step.cache_info().hits == 4
    step.cache_clear()
    assert step(ones(2)).item() == 2
    assert step.traces == 5


def test_freezing_a_parameter_is_seen() -> None:
    layer = plugrad.nn.Linear(2, 1).to("jax")

    @plugrad_jax.jit
    def step(x: Any) -> None:
        layer.zero_grad()
        layer(x).sum().backward()

    for _ in range(3):
        step(ones(1, 2))
    assert layer.weight.grad is not None
    assert step.traces == 2
    layer.weight.requires_grad_(False)
    step(ones(1, 2))
    assert layer.weight.grad is None
    assert layer.bias.grad is not None
    assert "requires grad no longer" in step.cache_info().reasons[-1]


def test_gradients_accumulate() -> None:
    w = ones(2).requires_grad_()

    @plugrad_jax.jit
    def step(x: Any) -> None:
        (w * x).sum().backward()

    for _ in range(3):
        step(ones(2) * 2)
    np.testing.assert_array_equal(values(w.grad), [6, 6])


def test_arguments_can_be_written_to_and_returned() -> None:
    @plugrad_jax.jit
    def step(x: Any, y: Any) -> Any:
        x.add_(y)
        return {"x": x, "both": [x * y, 3, None]}

    for start in (0.0, 5.0):
        x = plugrad.full((2,), start, device="jax")
        result = step(x, ones(2))
        assert result["x"] is x
        assert result["both"][1:] == [3, None]
        np.testing.assert_array_equal(values(x), [start + 1] * 2)
        np.testing.assert_array_equal(values(result["both"][0]), [start + 1] * 2)
        assert x._version == 1
    assert step.traces == 1


def test_a_closure_that_gets_another_tensor_uses_it() -> None:
    weight = ones(2)
    step = plugrad_jax.jit(lambda x: (x * weight).sum())
    assert step(ones(2)).item() == 2
    weight = ones(2) * 3
    assert step(ones(2)).item() == 6
    assert step.traces == 1


def test_a_tensor_that_outlives_the_step_is_named() -> None:
    kept = []

    @plugrad_jax.jit
    def step(x: Any) -> Any:
        kept.append((x * 2).sum())
        return x

    with pytest.raises(CaptureError, match=r"another length|outlives"):
        step(ones(2))
    assert not kept


def test_a_tensor_hidden_from_the_walk_is_named() -> None:
    class Hidden:
        __slots__ = ("tensor",)

    hidden = Hidden()

    @plugrad_jax.jit
    def step(x: Any) -> Any:
        hidden.tensor = x * 2
        return x + 1

    with pytest.raises(CaptureError, match=r"shape \(2,\), made by mul\(\), outlives"):
        step(ones(2))


def test_a_python_value_that_changes_is_named() -> None:
    layer = plugrad.nn.Linear(2, 1).to("jax")
    layer.calls = 0

    @plugrad_jax.jit
    def step(x: Any) -> Any:
        layer.calls += 1
        return layer(x)

    with pytest.raises(CaptureError, match=r"'calls'.*from 0 to 1"):
        step(ones(1, 2))
    assert layer.calls == 0


def test_a_tensor_on_another_device_is_named() -> None:
    mask = plugrad.ones(2)
    with pytest.raises(CaptureError, match="mask is on device cpu"):
        plugrad_jax.jit(lambda x: x * mask)(ones(2))
    with pytest.raises(RuntimeError, match="tensor 0 of the arguments is on device cpu"):
        plugrad_jax.jit(lambda x: x * 2)(mask)


def test_numpy_arrays_are_refused() -> None:
    with pytest.raises(TypeError, match="takes tensors, not NumPy arrays"):
        plugrad_jax.jit(lambda x: x)(np.ones(2))


def test_gradients_inside_of_a_step() -> None:
    @plugrad_jax.jit
    def step(x: Any) -> Any:
        x = x.detach().requires_grad_()
        y = (x**3).sum()
        (first,) = plugrad.autograd.grad(y, x, create_graph=True)
        (second,) = plugrad.autograd.grad(first.sum(), x, retain_graph=True)
        return first.detach(), second

    first, second = step(ones(2) * 2)
    np.testing.assert_allclose(values(first), [12, 12])
    np.testing.assert_allclose(values(second), [12, 12])


def test_views_in_a_step_write_through() -> None:
    x = plugrad.zeros(2, 3, device="jax")

    @plugrad_jax.jit
    def step() -> None:
        x[0].add_(1)
        x.view(-1)[4:].mul_(2).add_(5)

    y = x.detach()
    step()
    step()
    expected = np.array([[2, 2, 2], [0, 15, 15]], np.float32)
    np.testing.assert_array_equal(values(x), expected)
    np.testing.assert_array_equal(values(y), expected)
    assert step.traces <= 2


def test_methods_can_be_decorated() -> None:
    class Trainer:
        def __init__(self) -> None:
            self.layer = plugrad.nn.Linear(2, 1).to("jax")
            self.scale = 2.0

        @plugrad_jax.jit
        def step(self, x: Any) -> Any:
            return self.layer(x) * self.scale

    trainer = Trainer()
    x = ones(1, 2)
    np.testing.assert_allclose(values(trainer.step(x)), values(trainer.layer(x) * 2))
    trainer.scale = 3.0
    np.testing.assert_allclose(values(trainer.step(x)), values(trainer.layer(x) * 3), rtol=1e-6)


def test_plugrad_compile_captures() -> None:
    step = plugrad.compile(lambda x: x * 2, device="jax")
    assert isinstance(step, plugrad_jax.Captured)
    np.testing.assert_array_equal(values(step(ones(2))), [2, 2])


def test_checkpoints_draw_the_same_numbers_again() -> None:
    checkpoint = plugrad.utils.checkpoint.checkpoint
    w = ones(8).requires_grad_()

    def block(x: Any) -> Any:
        return plugrad.nn.functional.dropout(x, 0.5)

    @plugrad_jax.jit
    def step() -> Any:
        y = checkpoint(block, w * 2, use_reentrant=False)
        y.sum().backward()
        return y

    y = values(step())
    np.testing.assert_array_equal(values(w.grad), y)


def test_an_optimizer_that_is_not_found_is_asked_for() -> None:
    class Hidden:
        __slots__ = ("optimizer",)

    w = ones(2).requires_grad_()
    hidden = Hidden()
    hidden.optimizer = plugrad.optim.Adam([w])

    def step(x: Any) -> None:
        (w * x).sum().backward()
        hidden.optimizer.step()

    with pytest.raises(CaptureError, match=r"Adam, that was not found.*state=optimizer"):
        plugrad_jax.jit(step)(ones(2))
    captured = plugrad_jax.jit(step, state=hidden.optimizer)
    for _ in range(3):
        captured(ones(2))
    assert hidden.optimizer.state[w]["step"] == 3


def test_a_schedule_within_the_step_is_refused() -> None:
    layer = plugrad.nn.Linear(2, 1).to("jax")
    optimizer = plugrad.optim.SGD(layer.parameters(), lr=0.1)
    schedule = plugrad.optim.lr_scheduler.StepLR(optimizer, 1)

    def step(x: Any) -> None:
        layer(x).sum().backward()
        optimizer.step()
        schedule.step()

    with pytest.raises(CaptureError, match=r"sets 'lr' of an optimizer.*set it outside"):
        plugrad_jax.jit(step)(ones(1, 2))
    assert optimizer.param_groups[0]["lr"] == 0.1
    assert schedule.last_epoch == 0


def test_what_a_step_sets_on_its_object() -> None:
    class Trainer:
        def __init__(self) -> None:
            self.calls = 0
            self.last: Any = None

        def keep(self, x: Any) -> None:
            self.last = x * 2

        def count(self, x: Any) -> None:
            self.calls += 1

    trainer = Trainer()
    keep = plugrad_jax.jit(trainer.keep)
    for value in (1.0, 3.0, 4.0):
        keep(ones(2) * value)
        np.testing.assert_array_equal(values(trainer.last), [2 * value] * 2)
    with pytest.raises(CaptureError, match=r"changes .*'calls'.* from 0 to 1"):
        plugrad_jax.jit(trainer.count)(ones(2))
    assert trainer.calls == 0
