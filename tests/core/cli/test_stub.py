"""`plugrad stub`."""

from __future__ import annotations

from pathlib import Path

from plugrad.codegen import stubs
from tests.core.cli.conftest import Run

DOUBLED = """
- func: doubled(Tensor self) -> Tensor
  composite: doubled
  doc: Twice the input.
"""


def test_the_command_writes_a_stub(run: Run, tmp_path: Path) -> None:
    file, written = tmp_path / "waves.yaml", tmp_path / "waves.pyi"
    file.write_text(DOUBLED)
    assert "def doubled(input: Tensor) -> Tensor:" in run("stub", str(file)).stdout
    assert run("stub", str(file), "-o", str(written)).exit_code == 0
    assert written.read_text() == stubs([file])
    file.write_text(DOUBLED.replace("doc:", "dog:"))
    result = run("stub", str(file))
    assert result.exit_code == 2
    assert "did you mean 'doc'?" in result.stderr
