"""plugrad.utils.tensorboard: tensors reach tensorboardX as numbers and arrays."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import plugrad
from plugrad.utils import tensorboard
from plugrad_nn.utils.tensorboard import as_numpy


def test_tensors_become_numbers_and_arrays() -> None:
    x = plugrad.ones(2, dtype=plugrad.bfloat16, requires_grad=True)
    found = as_numpy({"a": [plugrad.tensor(1.5), (x, "text")], "b": 3})
    assert found["a"][0] == 1.5
    assert found["a"][1][0].dtype == np.float32
    assert (found["a"][1][1], found["b"]) == ("text", 3)


def test_what_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    tensorboard_module: Any = sys.modules["plugrad_nn.utils.tensorboard"]
    tensorboard_module._writer_class.cache_clear()
    monkeypatch.setitem(sys.modules, "tensorboardX", None)
    with pytest.raises(ImportError, match="pip install tensorboardX"):
        tensorboard.SummaryWriter  # noqa: B018  # it is made now
    with pytest.raises(AttributeError, match="no attribute 'Writer'"):
        tensorboard.Writer  # noqa: B018


def test_a_log_has_what_was_added(tmp_path: Path) -> None:
    pytest.importorskip("tensorboardX")
    from tensorboardX.proto.event_pb2 import Event
    from tensorboardX.record_writer import RecordWriter  # noqa: F401  # the format is its

    with tensorboard.SummaryWriter(log_dir=str(tmp_path)) as writer:
        writer.add_scalar("loss", plugrad.tensor(0.25, requires_grad=True), 3, new_style=True)
        writer.add_scalars("both", {"a": plugrad.tensor(1), "b": 2.0}, 1)
        writer.add_histogram("weights", plugrad.arange(10.0), 1)
        writer.add_image("image", plugrad.rand(3, 4, 4), 1)
        writer.add_images("images", plugrad.rand(2, 3, 4, 4), 1)
        writer.add_pr_curve("curve", plugrad.tensor([0, 1]), plugrad.tensor([0.2, 0.7]))
        writer.add_text("text", "hello")
        assert writer.get_logdir() == str(tmp_path)
        with pytest.raises(NotImplementedError, match=r"plugrad\.capture"):
            writer.add_graph(plugrad.nn.Linear(1, 1))
    (path,) = [path for path in tmp_path.iterdir() if path.is_file()]
    data, place, found = path.read_bytes(), 0, {}
    while place < len(data):
        length = int.from_bytes(data[place : place + 8], "little")
        event = Event.FromString(data[place + 12 : place + 12 + length])
        place += 16 + length
        for value in event.summary.value:
            found[value.tag] = (event.step, value)
    step, value = found["loss"]
    assert (step, value.simple_value) == (3, 0.25)
    assert {"weights", "image", "curve"} <= set(found)
    assert found["weights"][1].histo.num == 10
