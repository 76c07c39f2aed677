"""Pages of the documentation site for generated code: plugrad, Tensor, plugrad.special.

Operators come from core/plugrad/ops/*.yaml, Python signatures from the stub, other docstrings from
plugrad itself. mkdocstrings reads the handwritten modules.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from plugrad.codegen.on_demand import family_files

ROOT = Path(__file__).resolve().parents[1]
OPERATORS = ROOT / "core" / "plugrad" / "ops"
SPECIAL = ROOT / "plugins" / "special" / "plugrad_special" / "ops"
STUB = ROOT / "core" / "plugrad" / "__init__.pyi"

# Names that the stub must qualify because plugrad has attributes called int, float and so on.
BUILTINS = re.compile(r"\bbuiltins\.")
# From a prompt to the next blank line, at any indentation.
EXAMPLE = re.compile(r"^([ \t]*)>>> .*(?:\n[ \t]*\S.*)*", re.MULTILINE)
CLASSES = ("dtype", "device", "finfo", "iinfo", "Size", "Generator")


@dataclass
class Family:
    """One YAML file: its title, and its entries by the operators' base names."""

    name: str
    title: str
    operators: dict[str, list[dict[str, Any]]] = field(default_factory=lambda: defaultdict(list))


class Stub:
    """Signatures of plugrad's functions and of Tensor's methods, and Tensor's properties."""

    def __init__(self) -> None:
        tree = ast.parse(STUB.read_text(encoding="utf-8"))
        (tensor,) = (
            node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == "Tensor"
        )
        self.functions = _signatures(tree.body)
        self.methods = _signatures(tensor.body)
        self.properties = [
            node.name
            for node in tensor.body
            if isinstance(node, ast.FunctionDef) and _is_property(node)
        ]


def _signatures(body: list[ast.stmt]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = defaultdict(list)
    for node in body:
        if isinstance(node, ast.FunctionDef) and not _is_property(node):
            result = f" -> {ast.unparse(node.returns)}" if node.returns else ""
            line = BUILTINS.sub("", f"({ast.unparse(node.args)}){result}")
            line = re.sub(r"^\(self(, )?", "(", line)
            if line not in found[node.name]:
                found[node.name].append(line)
    return found


def _is_property(node: ast.FunctionDef) -> bool:
    return any(ast.unparse(decorator) == "property" for decorator in node.decorator_list)


def families(folder: Path = OPERATORS) -> list[Family]:
    """The operators of a folder, by default the core's, family by family."""
    found = []
    for path in family_files(folder):
        text = path.read_text(encoding="utf-8")
        family = Family(path.stem, text.partition("\n")[0].lstrip("# ").rstrip("."))
        for entry in yaml.safe_load(text):
            base = re.split(r"[.(]", entry["func"], maxsplit=1)[0]
            if not base.startswith("_"):
                family.operators[base].append(entry)
        found.append(family)
    return found


def pages() -> dict[str, str]:
    """Markdown by path below docs/."""
    stub = Stub()
    return {
        "reference/plugrad.md": face(stub),
        "reference/tensor.md": tensor(stub),
        "reference/special.md": special(),
    }


def operator_names() -> set[str]:
    """Names of operators, and of their in-place variants, which have no separate entry."""
    names = {name for family in families() for name in family.operators}
    return names | {f"{name}_" for name in names}


def overload(entry: dict[str, Any]) -> str:
    """The description of one overload of an operator."""
    lines = [str(entry.get("doc", "")).strip(), "", f"* Schema: `{entry['func']}`"]
    for inputs, expression in (entry.get("derivatives") or {}).items():
        lines.append(f"* Derivative of `{inputs}`: `{str(expression).strip()}`")
    if "composite" in entry:
        lines.append("* Made of other operators, from which its gradient follows.")
    elif entry.get("differentiable") is False:
        lines.append("* Has no gradient.")
    if "source" in entry:
        lines.append(f"* Source: {str(entry['source']).strip()}")
    if "example" in entry:
        lines += ["", f"```pycon\n{str(entry['example']).strip()}\n```"]
    return "\n".join(lines)


def special() -> str:
    """The operators of plugrad-special."""
    parts = [
        "# plugrad.special",
        "What plugrad-special adds; [Special functions](../special.md) says how to use it.",
    ]
    for family in families(SPECIAL):
        parts.append(f"## {family.title}")
        for name, entries in family.operators.items():
            parts += [f"### `{name}` {{ #plugrad.special.{name} }}", *map(overload, entries)]
    parts.append("## Operators of the core")
    module = importlib.import_module("plugrad_special.special")
    known = {name for family in families(SPECIAL) for name in family.operators}
    for name in sorted(set(module.__all__) - known):
        of_the_core = getattr(module, name).__name__
        parts.append(f"### `{name}` {{ #plugrad.special.{name} }}")
        parts.append(f"`plugrad.{of_the_core}` under the name of `torch.special`.")
    return "\n\n".join(parts) + "\n"


def face(stub: Stub) -> str:
    """The contents of `plugrad` besides operators and modules."""
    plugrad = importlib.import_module("plugrad")
    operators = operator_names()
    parts = ["# plugrad", "Operators have [pages of their own](operators/index.md)."]
    for name in CLASSES:
        parts += [heading(name), *described(getattr(plugrad, name))]
    for name, lines in sorted(stub.functions.items()):
        if name not in operators and not name.startswith("_"):
            code = block([f"plugrad.{name}{line}" for line in lines])
            parts += [heading(name), code, *described(getattr(plugrad, name))]
    return "\n\n".join(parts) + "\n"


def tensor(stub: Stub) -> str:
    """The attributes of `Tensor` besides operators."""
    cls = importlib.import_module("plugrad").Tensor
    operators = operator_names()
    parts = [
        "# Tensor",
        *described(cls),
        "Methods that are operators are explained on [their pages](operators/index.md).",
        "## Properties",
        "\n".join(
            f"* `{name}`: {_first_line(getattr(cls, name))}"
            for name in sorted(stub.properties)
            if not name.startswith("_")
        ),
    ]
    for name, lines in sorted(stub.methods.items()):
        if name not in operators and not name.startswith("_"):
            code = block([f"Tensor.{name}{line}" for line in lines])
            parts += [f"## `{name}`", code, *described(getattr(cls, name))]
    return "\n\n".join(parts) + "\n"


def anchor(name: str) -> str:
    return f"plugrad.{name}"


def heading(name: str) -> str:
    return f"## `{name}` {{ #{anchor(name)} }}"


def block(lines: list[str]) -> str:
    return "```python\n" + "\n".join(lines) + "\n```" if lines else ""


def described(thing: object) -> list[str]:
    """A docstring as Markdown: its sections become lists, its examples blocks."""
    return [_section(part) for part in re.split(r"\n\s*\n", inspect.getdoc(thing) or "")]


def fenced(text: str) -> str:
    """A text with fenced examples, because Markdown would read prompts as quotes."""
    return EXAMPLE.sub(lambda found: f"{found[1]}```pycon\n{found[0]}\n{found[1]}```", text)


def _first_line(thing: object) -> str:
    return (inspect.getdoc(thing) or "").partition("\n\n")[0].replace("\n", " ")


def _section(text: str) -> str:
    if text.lstrip().startswith(">>>"):
        return fenced(inspect.cleandoc(text))
    head, _, rest = text.partition("\n")
    if not re.fullmatch(r"[A-Z][a-z]+:", head) or not rest:
        return text
    # An entry begins at the least indentation; deeper lines continue it.
    entries = re.sub(r"\n\s{2,}", " ", inspect.cleandoc(rest)).split("\n")
    items = (re.sub(r"^([^:`]+):", r"`\1`:", entry) for entry in entries)
    return "\n".join([f"**{head}**", "", *(f"* {item}" for item in items)])
