"""`plugrad check`: what programs use and plugrad lacks, read and not run."""

from __future__ import annotations

from pathlib import Path

import pytest

from plugrad_as_torch.checking import files_of, lacking

LACKS = "sparse_coo_tensor"


def found(tmp_path: Path, source: str) -> list[tuple[str, tuple[int, ...]]]:
    file = tmp_path / "program.py"
    file.write_text(source)
    return [(lack.name, lack.lines) for lack in lacking([file])]


@pytest.mark.parametrize(
    "source",
    [
        "import torch\n\ntorch.NAME(1).x",
        "import torch as th\n\nx = lambda: th.NAME",
        "import torch.nn\nimport numpy\ntorch.NAME",
        "\n\nfrom torch import NAME, ones",
        "from torch import NAME as S\n\nS()\nS()",
    ],
)
def test_a_missing_name_is_found(tmp_path: Path, source: str) -> None:
    (lack,) = found(tmp_path, source.replace("NAME", LACKS))
    assert lack[0] == f"torch.{LACKS}"
    line = next(n for n, text in enumerate(source.splitlines(), 1) if "NAME" in text)
    assert lack[1][0] == line


@pytest.mark.parametrize(
    "source",
    [
        "import torch\ntorch.nn.functional.relu(torch.ones(1)).NAME",
        "try:\n    from torch import NAME\nexcept ImportError:\n    pass",
        "import torch\ntry:\n    torch.NAME\nexcept (AttributeError, OSError):\n    pass",
        "import torch\nif hasattr(torch, 'NAME'):\n    torch.NAME",
        "import typing\nif typing.TYPE_CHECKING:\n    from torch import NAME",
        "import numpy as torch\ntorch.NAME",
        "from . import torch\nfrom .torch import NAME",
    ],
)
def test_what_is_there_or_not_needed_is_left_out(tmp_path: Path, source: str) -> None:
    assert found(tmp_path, source.replace("NAME", LACKS)) == []


def test_the_lines_of_a_name_stand_together(tmp_path: Path) -> None:
    source = "import torch.fx as fx\nfx.Proxy\nfx.Proxy()\nfrom torch.nn import no_such_layer"
    lacks = found(tmp_path, source)
    assert lacks == [("torch.fx.Proxy", (2, 3)), ("torch.nn.no_such_layer", (4,))]


def test_programs_are_files_folders_and_packages(tmp_path: Path) -> None:
    (tmp_path / "inside").mkdir()
    file = tmp_path / "inside" / "program.py"
    file.touch()
    assert files_of(str(tmp_path)) == files_of(str(file)) == [file]
    names = [path.name for path in files_of("plugrad_as_torch")]
    assert "checking.py" in names
    assert [path.name for path in files_of("plugrad_as_torch.checking")] == ["checking.py"]
    with pytest.raises(FileNotFoundError, match="no file, folder or package 'no_such_thing'"):
        files_of("no_such_thing")


def test_the_command_tells_and_fails(tmp_path: Path) -> None:
    pytest.importorskip("rich")
    typer = pytest.importorskip("typer")
    testing = pytest.importorskip("typer.testing")
    from plugrad_as_torch.commands import add_to

    app = typer.Typer()
    add_to(app)
    file = tmp_path / "program.py"
    file.write_text(f"import torch\ntorch.{LACKS}\n")
    (tmp_path / "whole.py").write_text("import torch\ntorch.ones(2)\n")
    told = testing.CliRunner().invoke(app, ["check", str(tmp_path)])
    assert told.exit_code == 1
    assert f"torch.{LACKS}" in told.stdout
    assert "use dense tensors" in told.stdout
    assert "2 files, 1 name that plugrad lacks" in told.stdout
    whole = testing.CliRunner().invoke(app, ["check", str(tmp_path / "whole.py")])
    assert (whole.exit_code, whole.stdout) == (0, "1 file, 0 names that plugrad lacks\n")
    assert testing.CliRunner().invoke(app, ["check", "no_such_thing"]).exit_code == 2
