"""Checkpoints: what is written is read, by other numbers of ranks, and a crash leaves the last
whole one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

import plugrad
from plugrad import distributed as dist
from plugrad import nn, optim
from plugrad.distributed import checkpoint
from plugrad.distributed.checkpoint import CheckpointError, Piece, pieces_of
from plugrad_distributed.distributed.checkpoint import writing
from plugrad_distributed.distributed.checkpoint.pieces import Pieces


class Rows(plugrad.Tensor):
    """Rows of a matrix, from one on; `total` is the number of all."""

    first: int
    total: int


@pieces_of.register(Rows)
def _(rows: Rows) -> Pieces:
    plain = rows.as_subclass(plugrad.Tensor)
    return Pieces((rows.total, *plain.shape[1:]), [Piece((rows.first, 0), plain)], writes=True)


def rows_of(whole: Any, rank: int, size: int) -> Rows:
    ends = [number * len(whole) // size for number in range(size + 1)]
    found: Any = whole[ends[rank] : ends[rank + 1]].clone().as_subclass(Rows)
    found.first, found.total = ends[rank], len(whole)
    return found


DTYPES = [
    *("float64", "float32", "float16", "bfloat16", "complex64", "complex128", "int64", "uint8"),
    *("bool", "float8_e4m3fn", "uint16"),
]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (5,), (0, 3), (2, 3, 4)])
def test_each_dtype_and_shape(tmp_path: Path, dtype: str, shape: tuple[int, ...]) -> None:
    kind = getattr(plugrad, dtype)
    x = (plugrad.rand(shape) * 5).to(kind)
    checkpoint.save({"x": x}, checkpoint_id=tmp_path)
    y = plugrad.zeros(shape).to(kind)
    state = {"x": y}
    checkpoint.load(state, checkpoint_id=str(tmp_path))
    assert state["x"] is y
    assert y.tolist() == x.tolist()


def test_nested_values(tmp_path: Path) -> None:
    state = {
        "model": {"w": plugrad.ones(2), "layers": [{"b": plugrad.zeros(1)}, 5]},
        "groups": [{"lr": 0.5, "betas": (0.9, 0.99), "params": [0, 1], "name": None}],
        3: "three",
        "flag": True,
        "by number": {0: 1.5},
    }
    checkpoint.save(state, checkpoint_id=tmp_path)
    other: dict[Any, Any] = {
        "model": {"w": plugrad.zeros(2), "layers": [{"b": plugrad.ones(1)}, 0]},
        "groups": None,
        3: "",
        "flag": False,
        "by number": {0: 0.0},
    }
    checkpoint.load(other, checkpoint_id=tmp_path)
    assert other["model"]["w"].tolist() == [1.0, 1.0]
    assert other["model"]["layers"][0]["b"].tolist() == [0.0]
    assert other["model"]["layers"][1] == 5
    assert other["groups"] == state["groups"]
    assert (other[3], other["flag"], other["by number"]) == ("three", True, {0: 1.5})


def test_modules_and_optimizers_go_on_where_they_were(tmp_path: Path) -> None:
    def make(seed: int) -> tuple[Any, Any]:
        plugrad.manual_seed(seed)
        model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 1))
        return model, optim.Adam(model.parameters(), lr=0.1)

    def train(model: Any, optimizer: Any, steps: int) -> None:
        for step in range(steps):
            x = plugrad.arange(6.0).reshape(2, 3) + step
            optimizer.zero_grad()
            model(x).square().mean().backward()
            optimizer.step()

    model, optimizer = make(0)
    train(model, optimizer, 3)
    checkpoint.save({"model": model, "optimizer": optimizer}, checkpoint_id=tmp_path)
    train(model, optimizer, 2)
    other, theirs = make(1)
    train(other, theirs, 1)
    checkpoint.load({"model": other, "optimizer": theirs}, checkpoint_id=tmp_path)
    train(other, theirs, 2)
    for a, b in zip(model.parameters(), other.parameters(), strict=True):
        assert a.tolist() == b.tolist()


@pytest.mark.parametrize(("writers", "readers"), [(4, 3), (1, 4), (3, 1), (2, 2)])
def test_other_numbers_of_ranks_read(tmp_path: Path, writers: int, readers: int) -> None:
    whole = plugrad.arange(35.0).reshape(7, 5)
    plain = {f"p{n}": plugrad.full((n + 1,), float(n)) for n in range(5)}

    def write() -> None:
        rank = dist.get_rank()
        state = {"rows": rows_of(whole, rank, writers), "plain": plain, "rank": rank}
        checkpoint.save(state, checkpoint_id=tmp_path)

    def read() -> Any:
        rows = rows_of(plugrad.zeros(7, 5), dist.get_rank(), readers)
        state: dict[str, Any] = {
            "rows": rows,
            "plain": {name: plugrad.zeros_like(x) for name, x in plain.items()},
            "rank": None,
        }
        checkpoint.load(state, checkpoint_id=tmp_path)
        return state

    dist.run_ranks(write, writers)
    found = dist.run_ranks(read, readers)
    joined = plugrad.cat([state["rows"].as_subclass(plugrad.Tensor) for state in found])
    assert joined.tolist() == whole.tolist()
    for state in found:
        assert state["rank"] == 0  # plain values are the first rank's
        for name, x in plain.items():
            assert state["plain"][name].tolist() == x.tolist()
    # Ranks share out what all have, and notes are gone.
    files = sorted(path.name for path in tmp_path.iterdir())
    assert len(files) == writers + 1
    assert files[0] == "index.json"
    index = json.loads((tmp_path / "index.json").read_text())
    used = {index["tensors"][f"plain.p{n}"]["pieces"][0]["file"][:5] for n in range(5)}
    assert len(used) == writers


def test_the_background_writes_what_was_there_at_the_call(tmp_path: Path) -> None:
    x = plugrad.ones(3)
    future = checkpoint.async_save({"x": x}, checkpoint_id=tmp_path)
    x.zero_()
    future.result()
    checkpoint.load({"x": x}, checkpoint_id=tmp_path)
    assert x.tolist() == [1.0] * 3


def test_a_second_checkpoint_takes_the_place_of_the_first(tmp_path: Path) -> None:
    for value in (1.0, 2.0):
        checkpoint.save({"x": plugrad.full((2,), value)}, checkpoint_id=tmp_path)
    x = plugrad.zeros(2)
    checkpoint.load({"x": x}, checkpoint_id=tmp_path)
    assert x.tolist() == [2.0, 2.0]
    assert len(list(tmp_path.iterdir())) == 2


CRASH = """
import os, sys
import plugrad
from plugrad.distributed import checkpoint
from plugrad_distributed.distributed.checkpoint import index, writing

left = int(sys.argv[2])
for name in ("replace", "fsync"):
    def counted(*args, real=getattr(os, name), **kwargs):
        global left
        left -= 1
        if left < 0:
            os._exit(9)
        return real(*args, **kwargs)
    setattr(os, name, counted)
checkpoint.save({"x": plugrad.full((2,), 2.0)}, checkpoint_id=sys.argv[1])
"""


@pytest.mark.parametrize("moment", range(0, 10, 2))
def test_a_crash_at_any_moment_leaves_a_whole_checkpoint(tmp_path: Path, moment: int) -> None:
    """The process ends at the n-th change of the folder: before the index is written, the
    checkpoint is the previous one, afterwards the new one."""
    checkpoint.save({"x": plugrad.ones(2)}, checkpoint_id=tmp_path)
    done = subprocess.run(
        [sys.executable, "-c", CRASH, str(tmp_path), str(moment)], check=False, env=os.environ
    )
    x = plugrad.zeros(2)
    checkpoint.load({"x": x}, checkpoint_id=tmp_path)
    assert done.returncode in (0, 9)
    assert x.tolist() == ([2.0, 2.0] if done.returncode == 0 or moment >= 8 else [1.0, 1.0])
    # What the crash left behind goes with the next one.
    checkpoint.save({"x": x}, checkpoint_id=tmp_path)
    assert len(list(tmp_path.iterdir())) == 2


def test_a_rank_that_cannot_write_tells_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = writing._write_tensors

    def full(path: Path, arrays: Any) -> None:
        if "rank1" in path.name:
            raise OSError("no space left on device")
        real(path, arrays)

    checkpoint.save({"x": plugrad.ones(1)}, checkpoint_id=tmp_path)
    monkeypatch.setattr(writing, "_write_tensors", full)

    def program() -> None:
        future = checkpoint.async_save({"x": plugrad.zeros(1)}, checkpoint_id=tmp_path)
        error = future.exception()
        if dist.get_rank() == 1:
            assert isinstance(error, OSError)
        else:
            assert isinstance(error, CheckpointError)
            assert "no space left" in str(error)

    dist.run_ranks(program, 3)
    x = plugrad.zeros(1)
    checkpoint.load({"x": x}, checkpoint_id=tmp_path)
    assert x.tolist() == [1.0]


def test_a_rank_that_never_comes_is_named(tmp_path: Path) -> None:
    def program() -> None:
        token = "0" * 16
        index, arrays = writing._snapshot({"x": plugrad.ones(1)}, 0, 2, "rank0-x.safetensors")
        with pytest.raises(CheckpointError, match="rank 1 did not write its part"):
            writing._write(tmp_path, token, 0, 2, index, arrays, 0.05)

    program()


def test_threads_that_write_are_no_daemons(tmp_path: Path) -> None:
    """A program that ends waits for its checkpoint."""
    future = checkpoint.async_save({"x": plugrad.ones(1)}, checkpoint_id=tmp_path)
    assert not any(
        thread.daemon for thread in threading.enumerate() if thread.name.startswith("checkpoint")
    )
    future.result()


WRONG: dict[str, tuple[Any, type[Exception], str]] = {
    "no dict": ([1], TypeError, "state_dict must be a dict, got list"),
    "keys": ({("a",): 1}, TypeError, "keys of state_dict must be str or int, got tuple"),
    "values": ({"a": {"b": object()}}, TypeError, r"state_dict\['a.b'\].*object"),
    "names": ({"a.b": 1, "a": {"b": 2}}, ValueError, "two entries named 'a.b'"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_cannot_be_written(case: str, tmp_path: Path) -> None:
    state, error, message = WRONG[case]
    with pytest.raises(error, match=message):
        checkpoint.save(state, checkpoint_id=tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_what_does_not_fit_changes_nothing(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"no checkpoint in .*index.json"):
        checkpoint.load({}, checkpoint_id=tmp_path)
    checkpoint.save({"weight": plugrad.ones(2), "n": 1}, checkpoint_id=tmp_path)
    x = plugrad.zeros(2)
    cases = [
        ({"a": x, "wieght": x}, "no tensor 'a'"),
        ({"weight": x, "wieght": x}, "no tensor 'wieght'; did you mean 'weight'"),
        ({"weight": x, "m": 0}, "no value 'm'"),
        ({"weight": plugrad.zeros(3)}, r"of shape \[2\] in the checkpoint, expected \[3\]"),
        ({"weight": plugrad.zeros(2).double()}, "of dtype float32.*expected float64"),
    ]
    for state, message in cases:
        with pytest.raises(CheckpointError, match=message):
            checkpoint.load(state, checkpoint_id=tmp_path)
    assert x.tolist() == [0.0, 0.0]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{",
        '{"format": "other", "version": 1}',
        '{"format": "plugrad.distributed.checkpoint"}',
    ],
)
def test_an_index_that_is_broken(tmp_path: Path, text: str) -> None:
    (tmp_path / "index.json").write_text(text)
    with pytest.raises(CheckpointError, match=r"index|format"):
        checkpoint.load({}, checkpoint_id=tmp_path)


def test_an_index_that_leads_elsewhere(tmp_path: Path) -> None:
    checkpoint.save({"x": plugrad.ones(1)}, checkpoint_id=tmp_path)
    path = tmp_path / "index.json"
    index = json.loads(path.read_text())
    index["tensors"]["x"]["pieces"][0]["file"] = "../secret.safetensors"
    path.write_text(json.dumps(index))
    with pytest.raises(CheckpointError, match="elsewhere"):
        checkpoint.load({"x": plugrad.ones(1)}, checkpoint_id=tmp_path)
