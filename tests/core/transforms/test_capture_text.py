"""A graph as text: its code, its source for graphviz, its pictures."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

import plugrad
from tests.core.transforms.rerun import code_of, rerun


def test_code_is_a_function() -> None:
    scale = plugrad.tensor([2.0, 3.0])

    def function(pair: Any, flag: bool, *, by: Any) -> Any:
        low, high = pair["x"].split(1)
        low.add_(by)
        return [high * scale, plugrad.full((2,), float("-inf"))], {"low": low}

    pair = {"x": plugrad.tensor([1.0, 2.0])}
    graph = rerun(function, pair, True, by=plugrad.ones(1))
    assert graph.code == (
        "import plugrad\n"
        "from plugrad import ops\n"
        "\n"
        "\n"
        "def function(args_0, args_1, *, by):\n"
        "    x0 = args_0['x']\n"
        "    x1 = by\n"
        "    split_0, split_1 = ops.plugrad.split.Tensor(x0, 1)  # float32[1]\n"
        "    ops.plugrad.add_.Tensor(split_0, x1)\n"
        "    mul = ops.plugrad.mul.Tensor(split_1, c0)  # float32[2]\n"
        "    full = ops.plugrad.full.default((2,), float('-inf'), dtype=plugrad.float32, "
        "device=plugrad.device('cpu'))  # float32[2]\n"
        "    return ([mul, full], {'low': split_0})\n"
    )
    (high, _), rest = code_of(graph)(pair, True, by=plugrad.ones(1))
    assert high.tolist() == [4.0, 6.0]
    assert rest["low"].tolist() == [2.0]
    assert repr(graph) == "<Graph of function: 2 inputs, 1 constants, 4 nodes>"


def test_named_tuples_and_operators_that_python_reads_otherwise() -> None:
    graph = rerun(lambda x: (x.sort(), x.bool() & x.bool()), plugrad.tensor([2.0, 1.0]))
    values, _ = code_of(graph)(plugrad.tensor([2.0, 1.0]))
    assert values.indices.tolist() == [1, 0]


def test_names_do_not_clash() -> None:
    def ops(first: Any, *, x0: Any, c0: Any, add: Any) -> Any:
        return plugrad.add(first.float(), x0) * scale + c0 + add

    scale = plugrad.tensor([2.0])
    x = plugrad.ones(1, dtype=plugrad.float64)
    graph = rerun(ops, x, x0=plugrad.ones(1), c0=1.0, add=plugrad.ones(1))
    assert str(graph).startswith("def ops_(x1, *, add, c0, x0):")
    assert code_of(graph)(x, x0=x.float(), c0=1.0, add=x.float()).tolist() == [6.0]


def test_callables_without_a_name() -> None:
    graph = rerun(plugrad.nn.Linear(2, 2), plugrad.ones(1, 2))
    assert graph.name == "captured"


def test_check_says_what_differs() -> None:
    offset = 1.0

    def function(x: Any) -> Any:
        return x + offset

    graph = plugrad.capture(function, plugrad.ones(2))
    offset = 2.0
    with pytest.raises(AssertionError, match=r"the result: elements differ by up to 1\.0"):
        graph.check(plugrad.ones(2))


def test_check_sees_writes() -> None:
    write = True

    def function(x: Any) -> Any:
        if write:
            x.add_(1)

    graph = plugrad.capture(function, plugrad.ones(2))
    write = False
    with pytest.raises(AssertionError, match=r"x0 after the run: elements differ by up to 1\.0"):
        graph.check(plugrad.ones(2))


def test_source_for_graphviz(tmp_path: Path) -> None:
    graph = plugrad.capture(lambda x: x.add_(1).exp(), plugrad.ones(2))
    graph.draw(tmp_path / "graph.dot")
    text = (tmp_path / "graph.dot").read_text(encoding="utf-8")
    assert text == graph.dot()
    edges = [line.strip() for line in text.splitlines() if "->" in line]
    assert edges == [
        "x0 -> node_0;",
        'node_0 -> node_1 [label="x0"];',
        'node_1 -> result [label="exp"];',
    ]


def test_pictures_are_made_by_graphviz(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = plugrad.capture(lambda x: x + 1, plugrad.ones(2))
    if shutil.which("dot") is not None:
        graph.draw(tmp_path / "graph.svg")
        assert "<svg" in (tmp_path / "graph.svg").read_text(encoding="utf-8")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(RuntimeError, match="install graphviz, or write the source text"):
        graph.draw(tmp_path / "graph.png")
