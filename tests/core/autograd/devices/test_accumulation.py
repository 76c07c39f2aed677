"""How gradients add up: what is taken over, what is written to, and what must not be."""

from __future__ import annotations

from typing import Any

import pytest

import plugrad
from tests.core.autograd.devices.graphs import leaf, then
from tests.core.autograd.devices.toy import ToyBackend
from tests.core.autograd.together import run_together

PLACES = ["cpu", "toy:0"]


def times(factor: float, made: list[int] | None = None, kept: list[Any] | None = None) -> Any:
    """A node's function that gives a fresh gradient; notes which array it is, or keeps it."""

    def run(grad: Any) -> Any:
        result = grad * factor
        if made is not None:
            made.append(id(result.array))
        if kept is not None:
            kept.append(result)
        return result

    return run


@pytest.mark.parametrize("place", PLACES)
def test_a_gradient_that_nobody_else_holds_is_taken_over(toy: ToyBackend, place: str) -> None:
    x = leaf(place)
    made: list[int] = []
    then(x, times(3.0, made)).sum().backward()
    assert id(x.grad.array) == made[0]
    assert x.grad.tolist() == [3.0, 3.0]


@pytest.mark.parametrize("place", PLACES)
def test_a_gradient_that_somebody_holds_is_copied(toy: ToyBackend, place: str) -> None:
    x = leaf(place)
    kept: list[Any] = []
    then(x, times(3.0, kept=kept)).sum().backward()
    assert x.grad.array is not kept[0].array
    (x * 1).sum().backward()
    assert x.grad.tolist() == [4.0, 4.0]
    assert kept[0].tolist() == [3.0, 3.0]


@pytest.mark.parametrize("place", PLACES)
def test_a_gradient_given_to_backward_is_copied(toy: ToyBackend, place: str) -> None:
    x = leaf(place)
    grad = plugrad.ones(2, dtype=plugrad.float64, device=place)
    x.backward(grad)
    x.backward(grad)
    assert grad.tolist() == [1.0, 1.0]
    assert x.grad.tolist() == [2.0, 2.0]


@pytest.mark.parametrize("place", PLACES)
def test_leaves_do_not_share_a_gradient(toy: ToyBackend, place: str) -> None:
    x, y = leaf(place), leaf(place)
    (x + y).sum().backward()
    assert x.grad.array is not y.grad.array
    x.grad += 1
    assert y.grad.tolist() == [1.0, 1.0]


@pytest.mark.parametrize("place", PLACES)
def test_the_second_gradient_is_added_in_place(toy: ToyBackend, place: str) -> None:
    x = leaf(place)
    (x * 2).sum().backward()
    first, version = x.grad, x.grad._version
    array = first.array
    (x * 3).sum().backward()
    assert x.grad is first
    assert first.array is array
    assert first._version == version + 1
    assert first.tolist() == [5.0, 5.0]


@pytest.mark.parametrize("place", PLACES)
def test_with_a_graph_of_its_own_it_is_added_out_of_place(toy: ToyBackend, place: str) -> None:
    x = leaf(place)
    (x * x).sum().backward()
    first = x.grad
    with pytest.warns(UserWarning, match="reference cycle"):
        (x * x * x).sum().backward(create_graph=True)
    assert x.grad is not first
    assert first.tolist() == [2.0, 4.0]
    assert x.grad.tolist() == [5.0, 16.0]
    assert x.grad.requires_grad
    x.grad = None


@pytest.mark.parametrize("place", PLACES)
def test_the_gradient_lies_in_memory_as_the_leaf_does(toy: ToyBackend, place: str) -> None:
    x = plugrad.ones(2, 3, device=place).t().detach().requires_grad_()
    assert x.stride() == (1, 3)
    (x * 2).sum().backward()
    assert x.grad.stride() == (1, 3)
    assert x.grad._version == 0
    (x * 2).sum().backward()
    assert x.grad.stride() == (1, 3)
    y = plugrad.ones(2, 3, device=place, requires_grad=True)
    (y.t() * plugrad.ones(3, 2, device=place)).sum().backward()
    assert y.grad.stride() == (3, 1)


@pytest.mark.parametrize("place", PLACES)
def test_the_policy_for_layouts_can_be_relaxed(toy: ToyBackend, place: str) -> None:
    x = plugrad.ones(2, 3, device=place).t().detach().requires_grad_()
    with plugrad.autograd.enforce_grad_layout_policy(False):
        then(x, lambda grad: plugrad.ones(3, 2, device=place)).sum().backward()
    assert x.grad.stride() == (2, 1)
    x.grad = None
    then(x, lambda grad: plugrad.ones(3, 2, device=place)).sum().backward()
    assert x.grad.stride() == (1, 3)


@pytest.mark.parametrize("place", PLACES)
def test_the_gradient_of_a_leaf_with_gaps_has_none(toy: ToyBackend, place: str) -> None:
    x = plugrad.ones(2, 4, device=place)[:, :2].detach().requires_grad_()
    assert x.stride() == (4, 1)
    (x.t() * plugrad.ones(2, 2, device=place)).sum().backward()
    assert x.grad.stride() == (2, 1)


@pytest.mark.parametrize("place", PLACES)
def test_a_sum_of_gradients_is_made_in_the_first_one(toy: ToyBackend, place: str) -> None:
    x = leaf(place)
    made: list[int] = []
    uses = [then(x, times(float(factor), made)) for factor in (1, 2, 4)]
    (uses[0] + uses[1] + uses[2]).sum().backward()
    assert x.grad.tolist() == [7.0, 7.0]
    assert id(x.grad.array) == made[0]


@pytest.mark.parametrize("place", PLACES)
def test_a_sum_is_not_made_in_what_somebody_holds(toy: ToyBackend, place: str) -> None:
    x = leaf(place)
    kept: list[Any] = []
    uses = [then(x, times(float(factor), kept=kept)) for factor in (1, 2, 4)]
    (uses[0] + uses[1] + uses[2]).sum().backward()
    assert x.grad.tolist() == [7.0, 7.0]
    assert sorted(grad.tolist()[0] for grad in kept) == [1.0, 2.0, 4.0]
    assert all(grad._version == 0 for grad in kept)


@pytest.mark.parametrize("place", PLACES)
def test_a_sum_may_be_made_in_a_sum(toy: ToyBackend, place: str) -> None:
    # The first sum is a new tensor, since its parts are held; the next is made in it.
    x = leaf(place)
    kept: list[Any] = []
    sums: list[int] = []
    before: list[Any] = []

    def note(grad: Any) -> None:
        sums.append(id(grad.array))
        before.append(grad._version)

    x.register_hook(note)
    uses = [then(x, times(float(factor), kept=kept)) for factor in (1, 2, 4, 8)]
    plugrad.stack(uses).sum().backward()
    assert x.grad.tolist() == [15.0, 15.0]
    assert sums[0] not in [id(grad.array) for grad in kept]
    assert before == [0]


@pytest.mark.parametrize("place", PLACES)
def test_a_view_is_not_written_to(toy: ToyBackend, place: str) -> None:
    base = plugrad.ones(4, dtype=plugrad.float64, device=place)
    x = leaf(place)
    a = then(x, lambda grad: base[:2])
    b = then(x, lambda grad: base[2:])
    (a + b).sum().backward()
    assert base.tolist() == [1.0] * 4
    assert x.grad.tolist() == [2.0, 2.0]


@pytest.mark.parametrize("place", PLACES)
def test_with_create_graph_no_sum_is_made_in_place(toy: ToyBackend, place: str) -> None:
    x = leaf(place)
    made: list[int] = []
    y = then(x * 1, times(2.0, made)) + then(x * 1, times(3.0, made))
    (grad,) = plugrad.autograd.grad(y.sum(), x, create_graph=True)
    assert grad.tolist() == [5.0, 5.0]
    assert id(grad.array) not in made


@pytest.mark.parametrize("place", PLACES)
def test_the_gradient_that_a_pass_starts_from_is_not_written_to(
    toy: ToyBackend, place: str
) -> None:
    x = leaf(place)
    y = x * 1
    grad = plugrad.ones(2, dtype=plugrad.float64, device=place)
    plugrad.autograd.backward([y, y], [grad, grad])
    assert grad.tolist() == [1.0, 1.0]
    assert x.grad.tolist() == [2.0, 2.0]


@pytest.mark.parametrize("place", PLACES)
def test_callers_add_to_one_leaf_at_once(toy: ToyBackend, place: str) -> None:
    x = leaf(place)

    def work() -> None:
        for _ in range(100):
            (x * 3).sum().backward()

    run_together(work, work, work, work)
    assert x.grad.tolist() == [1200.0, 1200.0]


def test_callers_run_over_one_graph_at_once(toy: ToyBackend) -> None:
    x = leaf("toy:0")
    y = x * x
    z = ((y.to("toy:1") * y.to("toy:1")).to("cpu") + y.to("cpu")).sum()
    expected = [4.0 + 2.0, 32.0 + 4.0]

    def work() -> None:
        for _ in range(40):
            (grad,) = plugrad.autograd.grad(z, x, retain_graph=True)
            assert grad.tolist() == expected

    run_together(work, work, work, work)
    for _ in range(20):
        z.backward(retain_graph=True)
    assert x.grad.tolist() == [20 * value for value in expected]


def test_of_callers_that_free_a_graph_at_once_some_are_told(toy: ToyBackend) -> None:
    # As in PyTorch: who comes too late gets an error, and no wrong gradient.
    for _ in range(20):
        x = leaf("toy:0")
        z = ((x * x).to("toy:1") * 2).sum()
        found: list[list[float]] = []
        late: list[str] = []

        def work(z: Any = z, x: Any = x, found: Any = found, late: Any = late) -> None:
            try:
                found.append(plugrad.autograd.grad(z, x)[0].tolist())
            except RuntimeError as error:
                late.append(str(error))

        run_together(work, work, work)
        assert len(found) + len(late) == 3
        assert all(grad == [4.0, 8.0] for grad in found)
        assert all("backward through the graph a second time" in message for message in late)
