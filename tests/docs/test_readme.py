"""The README's Python blocks run from top to bottom, as a reader would type them."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

README = Path(__file__).parents[2] / "README.md"
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.fixture
def reader() -> Iterator[ModuleType]:
    """The module that a reader types into; the plugin it registers is taken out again."""
    plugins = pytest.importorskip("plugrad.plugins")
    module = ModuleType("readme")
    sys.modules[module.__name__] = module
    yield module
    del sys.modules[module.__name__]
    if "foo" in plugins.get_manager().discovered():
        plugins.get_manager().unregister("foo")


def test_python_blocks_run(reader: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    text = README.read_text()
    blocks = list(BLOCK.finditer(text))
    assert len(blocks) >= 4
    for block in blocks:
        # Blank lines in front make a traceback point at the line of the README.
        code = "\n" * text.count("\n", 0, block.start(1)) + block[1]
        exec(compile(code, str(README), "exec"), reader.__dict__)
    printed = capsys.readouterr()
    assert "tensor(13., grad_fn=<MeanBackward0>)" in printed.out
    assert "[call] op=[plugrad::mul.Tensor], key=[AutogradCPU]" in printed.out + printed.err
    values = reader.__dict__
    assert values["x"].grad.tolist() == pytest.approx([1.0, 2 * 2.718281828], rel=1e-6)


def test_links_lead_to_files() -> None:
    links = re.findall(r"\]\(([^)#:]+)\)", README.read_text())
    assert links
    for link in links:
        assert (README.parent / link).exists(), link
