"""The README's code runs from top to bottom, as a reader would type it."""

from __future__ import annotations

import re

import pytest

from tests.docs import pages

README = pages.ROOT / "README.md"


def test_code_runs(capsys: pytest.CaptureFixture[str]) -> None:
    with pages.typed_into("readme") as module:
        blocks = pages.run(README, module)
        gradient = module.__dict__["x"].grad.tolist()
    assert len(blocks) >= 4
    printed = capsys.readouterr()
    assert "tensor(13., grad_fn=<MeanBackward0>)" in printed.out
    assert "[call] op=[plugrad::mul.Tensor], key=[AutogradCPU]" in printed.out + printed.err
    assert gradient == pytest.approx([1.0, 2 * 2.718281828], rel=1e-6)


def test_links_lead_to_files() -> None:
    links = re.findall(r"\]\(([^)#:]+)\)", README.read_text(encoding="utf-8"))
    assert links
    for link in links:
        assert (README.parent / link).exists(), link
