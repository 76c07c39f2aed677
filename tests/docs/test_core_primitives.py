"""The table of core primitives in the docs matches the registry, and is sufficient."""

from __future__ import annotations

import re
import sys

import plugrad
from plugrad import nn
from plugrad.dispatch.backends.primitives import core_primitives, is_primitive
from plugrad.dispatch.operator import all_operators
from plugrad.plugins import get_manager
from tests.docs.pages import ROOT, blocks_of, typed_into

PAGE = ROOT / "docs" / "writing_a_backend.md"
NAME = re.compile(r"`(\w+)`")


def documented() -> set[str]:
    text = PAGE.read_text(encoding="utf-8").partition("<!-- core primitives -->")[2]
    rows = text.partition("\n\n")[0].strip().splitlines()[2:]
    return {name for row in rows for name in NAME.findall(row.split("|")[1])}


def test_every_core_primitive_is_in_the_table() -> None:
    assert documented() == {op.name for op in core_primitives()}


def test_there_are_few_of_them() -> None:
    assert len(core_primitives()) <= 45
    own = [op for op in all_operators() if op.namespace == "plugrad" and is_primitive(op)]
    assert len(own) < 80


def test_other_primitives_are_named_below_the_table() -> None:
    text = PAGE.read_text(encoding="utf-8").partition("For level full")[2].partition("\n\n")[0]
    others = {op.name for op in all_operators() if op.namespace == "plugrad" and is_primitive(op)}
    assert set(NAME.findall(text)) == others - documented()


def test_the_backend_of_the_page_has_these_kernels_and_trains_a_network() -> None:
    with typed_into("toy_page") as page:
        program = next(block for block in blocks_of(PAGE) if block.kind == "python")
        exec(program.code, vars(page))
        kernels = vars(page)["ToyBackend"]().kernels()
        # Its arrays are immutable.
        assert {name.partition(".")[0] for name in kernels} == documented() - {"copy_"}
        get_manager().register(sys.modules["toy_page"], "toy_page")
        x = plugrad.randn(8, 1, 6, 6)
        labels = plugrad.arange(8) % 3
        losses = {}
        for device in ("cpu", "toy"):
            plugrad.manual_seed(1)
            model = nn.Sequential(
                nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.GELU(), nn.MaxPool2d(2), nn.Flatten(),
                nn.Linear(16, 8), nn.LayerNorm(8), nn.Tanh(), nn.Linear(8, 3),
            ).to(device)  # fmt: skip
            optimizer = plugrad.optim.Adam(model.parameters(), lr=0.1)
            for _ in range(3):
                optimizer.zero_grad()
                loss = nn.functional.cross_entropy(model(x.to(device)), labels.to(device))
                loss.backward()
                optimizer.step()
            losses[device] = loss.item()
    assert abs(losses["toy"] - losses["cpu"]) < 1e-4
