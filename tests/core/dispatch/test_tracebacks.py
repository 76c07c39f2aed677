"""Frames of the core in tracebacks: they name real files, and only the outermost is shown.

The compiled core is asked; of the interpreted one, Python itself shows every frame.
"""

from __future__ import annotations

import os
import traceback
from pathlib import Path

import pytest

import plugrad
from plugrad.autograd import Function
from tests.conftest import core_kind

PACKAGE = str(Path(plugrad.__file__).parent)
COMPILED = core_kind() == "compiled"


def frames_of_a_failed_product() -> list[traceback.FrameSummary]:
    with pytest.raises(RuntimeError) as caught:
        plugrad.ones(2) @ plugrad.ones(3)
    return traceback.extract_tb(caught.tb)


def of_the_core(frames: list[traceback.FrameSummary]) -> list[traceback.FrameSummary]:
    return [frame for frame in frames if frame.filename.startswith(PACKAGE + os.sep)]


def test_every_frame_names_a_real_file_and_shows_its_line() -> None:
    frames = frames_of_a_failed_product()
    assert all(Path(frame.filename).is_file() and frame.line for frame in frames)
    # Interpreted, what looks at the receiver comes first.
    assert "__matmul__" in [frame.name for frame in of_the_core(frames)[:2]]


def test_inner_frames_are_hidden() -> None:
    inside = of_the_core(frames_of_a_failed_product())
    assert (len(inside) == 1) is COMPILED


def test_all_frames_are_shown_on_request(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLUGRAD_FULL_TRACEBACK", "1")
    inside = of_the_core(frames_of_a_failed_product())
    assert len(inside) > 3
    assert inside[-1].name != "__matmul__"


def test_frames_of_the_caller_are_kept_wherever_they_stand() -> None:
    class Failing(Function):
        @staticmethod
        def forward(ctx: object, x: plugrad.Tensor) -> plugrad.Tensor:
            return x.clone()

        @staticmethod
        def backward(ctx: object, grad: plugrad.Tensor) -> plugrad.Tensor:
            return grad @ plugrad.ones(3)

    x = plugrad.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError) as caught:
        Failing.apply(x).sum().backward()
    frames = traceback.extract_tb(caught.tb)
    here = [frame.name for frame in frames if frame.filename == __file__]
    assert here == ["test_frames_of_the_caller_are_kept_wherever_they_stand", "backward"]
