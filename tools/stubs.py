"""Writes the stubs of the namespaces that our plugins add to plugrad: `python tools/stubs.py`.

Run it again when modules of a namespace or operators of plugins/special change; a test fails until
then. Type checkers find `plugrad.nn` by its files in `plugrad-stubs`, which nothing imports.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from plugrad.codegen import stubs
from plugrad_special import special
from plugrad_special.plugin import FAMILIES, OPS

ROOT = Path(__file__).resolve().parent.parent
HEADER = "# For type checkers: `{name}`. Written by tools/stubs.py.\n"

# The folder of a distribution, and the namespaces in its package.
NAMESPACES = {
    "plugins/nn": (
        "plugrad_nn",
        ("hub", "multiprocessing", "nn", "optim", "serialization", "utils"),
    ),
    "plugins/special": ("plugrad_special", ("quasirandom", "special")),
    "plugins/distributed": ("plugrad_distributed", ("distributed", "futures")),
    "plugins/distributions": ("plugrad_distributions", ("distributions",)),
    "plugins/onnx": ("plugrad_onnx", ("onnx",)),
    "plugins/as_torch": ("plugrad_as_torch", ("as_torch",)),
    "plugins/viewer": ("plugrad_viewer", ("viewer",)),
    "backends/cuda": ("plugrad_cuda", ("cuda",)),
}


def modules_of(package: Path, namespace: str) -> Iterator[Path]:
    """The files of a namespace, relative to its package, without stubs."""
    if (package / namespace).is_dir():
        files = sorted((package / namespace).rglob("*.py"))
        yield from (file.relative_to(package) for file in files)
    else:
        yield Path(f"{namespace}.py")


def forwarding() -> dict[Path, str]:
    """The stub of each module of a namespace, by file: it exports the contents of the plugin's
    module.

    Each is a package, because otherwise pyright warns that it finds no source.
    """
    written: dict[Path, str] = {}
    for folder, (package, namespaces) in NAMESPACES.items():
        for namespace in namespaces:
            for file in modules_of(ROOT / folder / package, namespace):
                name = ".".join(file.with_suffix("").parts).removesuffix(".__init__")
                stub = ROOT / folder / "plugrad-stubs" / name.replace(".", "/") / "__init__.pyi"
                line = f"from {package}.{name} import *\n"
                written[stub] = HEADER.format(name=f"plugrad.{name}") + line
    return written


def special_stub() -> str:
    """The stub of `plugrad_special.special`, which creates its functions when it is loaded."""
    aliases = [
        # An import in a stub is private under another name.
        f"from plugrad import {real}" + (f" as {name}" if name == real else f"\n{name} = {real}")
        for name, real in special.ALIASES.items()
    ]
    functions = stubs(OPS / f"{family}.yaml" for family in FAMILIES)
    return functions + "\n" + "\n".join(aliases) + "\n\nALIASES: dict[str, str]\n"


def all_stubs() -> dict[Path, str]:
    return forwarding() | {Path(str(special.__file__)).with_suffix(".pyi"): special_stub()}


if __name__ == "__main__":
    for path, text in all_stubs().items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
