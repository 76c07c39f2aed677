"""plugrad.utils.flop_counter and module_tracker: counts are PyTorch's."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

import plugrad
from plugrad import nn
from plugrad.utils.flop_counter import FlopCounterMode, flop_registry, register_flop_formula
from plugrad.utils.module_tracker import ModuleTracker

ops: Any = plugrad.ops.plugrad


def mlp(lib: Any) -> tuple[Any, Any]:
    n = lib.nn
    return n.Sequential(n.Linear(4, 5), n.ReLU(), n.Linear(5, 3)), lib.ones(2, 4)


def images(lib: Any) -> tuple[Any, Any]:
    n = lib.nn
    model = n.Sequential(
        n.Conv2d(2, 4, 3, padding=1, groups=2),
        n.Sequential(n.ConvTranspose2d(4, 3, 2, stride=2), n.Flatten()),
        n.Linear(192, 2),
    )
    return model, lib.ones(2, 2, 4, 4)


def matrices(lib: Any) -> tuple[Any, Any]:
    class Model(lib.nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.w = lib.nn.Parameter(lib.ones(3, 4, 5))

        def forward(self, x: Any) -> Any:
            y = lib.einsum("bij,bjk->bik", x, self.w)
            return lib.baddbmm(y, y @ y, y) + lib.addmm(y[0], y[0], y[0])

    return Model(), lib.ones(3, 5, 4, requires_grad=True)


def recurrent(lib: Any) -> tuple[Any, Any]:
    class Model(lib.nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.cell = lib.nn.LSTMCell(3, 4)

        def forward(self, x: Any) -> Any:
            return self.cell(x)[0]

    return Model(), lib.ones(2, 3)


def sequences(lib: Any) -> tuple[Any, Any]:
    class Model(lib.nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            # Of float32 numbers, PyTorch counts none in an LSTM.
            self.lstm = lib.nn.LSTM(3, 4).double()
            self.gru = lib.nn.GRU(4, 2, bidirectional=True).double()

        def forward(self, x: Any) -> Any:
            return self.gru(self.lstm(x)[0])[0]

    return Model(), lib.ones(5, 2, 3, dtype=lib.float64)


@pytest.mark.parametrize("make", [mlp, images, matrices, recurrent, sequences])
def test_counts_are_those_of_pytorch(
    make: Callable[[Any], tuple[Any, Any]], torch_oracle: ModuleType
) -> None:
    from torch.utils.flop_counter import FlopCounterMode as Theirs

    found = []
    for lib, counter in (
        (plugrad, FlopCounterMode(display=False)),
        (torch_oracle, Theirs(display=False)),
    ):
        model, x = make(lib)
        with counter:
            model(x).sum().backward()
        counts = counter.get_flop_counts()
        found.append({name: sum(each.values()) for name, each in counts.items()})
    assert found[0] == found[1]


def test_attention_is_counted_as_its_products() -> None:
    q, k, v = plugrad.rand(2, 3, 4, 5), plugrad.rand(2, 3, 6, 5), plugrad.rand(2, 3, 6, 7)
    q.requires_grad_()
    with FlopCounterMode(display=False) as counter:
        y = nn.functional.scaled_dot_product_attention(q, k, v)
        forward = counter.get_total_flops()
        y.sum().backward()
    pairs = 2 * 3 * 4 * 6
    assert forward == 2 * pairs * (5 + 7)
    # The scores again, and two products for each of the two.
    assert counter.get_total_flops() - forward == 2 * pairs * (5 + 2 * (5 + 7))


def test_the_table_goes_as_deep_as_asked(capsys: pytest.CaptureFixture[str]) -> None:
    model = nn.Sequential(nn.Sequential(nn.Linear(4, 3)), nn.Linear(3, 1))
    with FlopCounterMode(depth=1) as counter:
        model(plugrad.ones(2, 4))
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["Module", "FLOP", "%", "Total"]
    assert [line.split() for line in lines[1:]] == [
        ["Sequential", "60", "100.00%"],
        ["-", "plugrad.linear", "60", "100.00%"],
    ]
    assert "Sequential.0.0" in counter.get_table(depth=3)


def test_large_counts_have_letters() -> None:
    a = plugrad.empty(1000, 1000, device="meta")
    with FlopCounterMode(display=False) as counter:
        a @ a
    assert "2000.000M" in counter.get_table()


def test_formulas_of_ones_own() -> None:
    def on_tensors(x: Any, out_val: Any = None) -> int:
        assert isinstance(x, plugrad.Tensor)
        return int(out_val.numel())

    on_tensors._get_raw = True  # type: ignore[attr-defined]
    mapping = {ops.exp: on_tensors, ops.sin: lambda shape, out_shape=None: 2 * shape[0]}
    with FlopCounterMode(display=False, custom_mapping=mapping) as counter:
        plugrad.ones(3).exp().sin()
    assert counter.get_flop_counts()["Global"] == {ops.exp: 3, ops.sin: 6}


def test_registered_formulas_count_for_everyone() -> None:
    try:

        @register_flop_formula(ops.cos)
        def cosine(shape: Any, out_shape: Any = None) -> int:
            return int(shape[0])

        with FlopCounterMode(display=False) as counter:
            plugrad.ones(3).cos()
        assert counter.get_total_flops() == 3
        with pytest.raises(RuntimeError, match=r"duplicate registrations for plugrad\.cos"):
            register_flop_formula(ops.cos)(cosine)
    finally:
        flop_registry.pop(ops.cos, None)


def test_what_is_no_operator_is_refused() -> None:
    with pytest.raises(ValueError, match=r"register_flop_formula\(targets\).*got 3"):
        register_flop_formula(3)(lambda: 0)


def test_a_second_block_counts_anew() -> None:
    model = nn.Linear(2, 1)
    counter = FlopCounterMode(display=False)
    for _ in range(2):
        with counter:
            model(plugrad.ones(1, 2))
    assert counter.get_total_flops() == 4


def test_a_tracker_knows_where_backward_is() -> None:
    seen = []

    class Wave(nn.Module):
        def forward(self, x: Any) -> Any:
            y = x.sin()
            y.register_hook(lambda grad: seen.append((set(tracker.parents), tracker.is_bw)))
            return y.cos()

    model = nn.Sequential(nn.Linear(2, 3), Wave(), nn.Tanh())
    with ModuleTracker() as tracker:
        model(plugrad.ones(1, 2)).sum().backward()
        assert tracker.parents == {"Global"}
    assert seen == [({"Global", "Sequential", "Sequential.1"}, True)]
    assert not tracker.is_bw


def test_a_tracker_leaves_modules_that_fail() -> None:
    class Failing(nn.Module):
        def forward(self, x: Any) -> Any:
            raise ValueError

    with ModuleTracker() as tracker:
        with pytest.raises(ValueError):
            Failing()(plugrad.ones(1))
        assert tracker.parents == {"Global"}
        with pytest.raises(RuntimeError, match="entered already"):
            tracker.__enter__()
