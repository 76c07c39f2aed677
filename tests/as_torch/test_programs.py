"""Programs as PyTorch's tutorials have them print here what they print on PyTorch."""

from __future__ import annotations

import io
import re
import runpy
import sys
from contextlib import redirect_stdout
from typing import Any

import pytest

from tests.as_torch.programs import FOLDER, PROGRAMS, printed


def test_every_program_is_tried() -> None:
    assert {path.stem for path in FOLDER.glob("*.py")} == set(PROGRAMS)


@pytest.mark.filterwarnings("ignore:enable_nested_tensor")
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_prints_the_same(
    torch_oracle: Any, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    script = str(FOLDER / f"{name}.py")
    monkeypatch.setattr(sys, "argv", [script, *PROGRAMS[name]])
    before = torch_oracle.get_rng_state()
    expected = io.StringIO()
    with redirect_stdout(expected):
        runpy.run_path(script, run_name="__main__")
    torch_oracle.set_rng_state(before)
    assert re.search(r"\d\.\d\d\d", expected.getvalue())
    assert printed(name) == expected.getvalue()
