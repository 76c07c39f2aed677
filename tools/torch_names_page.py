"""Writes docs/torch_names.md, the names of PyTorch that plugrad lacks:
`python tools/torch_names_page.py`.

Run it again when plugrad has new names of PyTorch; a test fails until then. It does not need
PyTorch.
"""

from __future__ import annotations

import tomllib
from pathlib import Path

import plugrad
from plugrad_as_torch.layout import TORCH_VERSION, instead, torch_names
from plugrad_as_torch.lookup import lacks

COUNTED = Path(__file__).with_name("torch_names_counted.toml")
PAGE = Path(__file__).resolve().parents[1] / "docs" / "torch_names.md"

INTRODUCTION = """\
# Names of PyTorch that are missing

These are the public names of PyTorch {version} that plugrad lacks: {missing} of {all}. A name that
exists in several modules of PyTorch is counted once, in the outermost. Quantized and sparse
tensors, exporters, and names for other devices and their libraries are left out. `plugrad check`
lists the missing names that a program uses: see [Coming from PyTorch](coming_from_pytorch.md).
`python tools/torch_names_page.py` writes this page.
"""


def _is_elsewhere(module: str, name: str) -> bool:
    """Whether an outer module also has the name."""
    outer = module.rpartition(".")[0]
    while outer:
        if outer != "torch" and name in torch_names().get(outer, ()):
            return True
        outer = outer.rpartition(".")[0]
    return False


def _is_missing(module: str, name: str) -> bool:
    if module == "torch.Tensor":
        return name not in dir(plugrad.zeros(1))
    return bool(lacks(f"{module}.{name}"))


def _section(module: str, missing: list[str], count: int) -> str:
    use = instead(module)
    lines = [f"## `{module}`", f"{len(missing)} of {count}{f': {use}' if use else ''}"]
    return "\n\n".join([*lines, " ".join(f"`{name}`" for name in missing)]) + "\n"


def _reason(name: str, reasons: dict[str, str]) -> str:
    """Why a name is missing: the reason given for it, or for its nearest module.

    Raises:
        LookupError: there is no reason.
    """
    part = name
    while part:
        if part in reasons:
            return reasons[part]
        part = part.rpartition(".")[0]
    raise LookupError(f"{name} is missing: say why in {COUNTED.name}")


def counted() -> str:
    """The section about the counted names: how many exist, and why the others do not."""
    table = tomllib.loads(COUNTED.read_text(encoding="utf-8"))
    reasons = table.pop("reasons")
    objects = {"torch.Tensor": plugrad.zeros(1), "torch.Generator": plugrad.Generator()}
    total = sum(entry["all"] for entry in table.values())
    groups: dict[str, list[str]] = {}
    for module, entry in table.items():
        for name in entry.get("lacked", "").split():
            full = f"{module}.{name}"
            there = module in objects and hasattr(objects[module], name)
            if not there and (module in objects or lacks(full)):
                groups.setdefault(_reason(full, reasons), []).append(full)
    missing = sum(map(len, groups.values()))
    lines = [
        "## Those that programs use most",
        f"Of {total} names of tensors, layers, optimizers and functions, {total - missing} are "
        f"there ({(total - missing) / total:.1%}). These are not:",
        "| name | why |\n|---|---|\n"
        + "\n".join(
            f"| {' '.join(f'`{name}`' for name in names)} | {why} |"
            for why, names in groups.items()
        ),
    ]
    return "\n\n".join(lines) + "\n"


def render() -> str:
    """The expected contents of the page."""
    parts = []
    total = lacking = 0
    for module, all_names in sorted(torch_names().items()):
        names = sorted(name for name in all_names if not _is_elsewhere(module, name))
        missing = [name for name in names if _is_missing(module, name)]
        total += len(names)
        lacking += len(missing)
        if missing:
            parts.append(_section(module, missing, len(names)))
    head = INTRODUCTION.format(version=TORCH_VERSION, missing=lacking, all=total)
    return "\n".join([head, counted(), *parts])


if __name__ == "__main__":
    PAGE.write_text(render(), encoding="utf-8")
