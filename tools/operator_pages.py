"""A page for each operator of the core, one for each family, and a list of all of them.

An operator's description, derivative and examples come from core/plugrad/ops/*.yaml, its signatures
from the stub, the support by backends from docs/operators.md, and the variants of its kernels from
docs/variants.md. Both are in the repository, so the pages do not depend on what is installed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

from reference import ROOT, Family, Stub, anchor, block, families

# Where the pages are, below docs/.
FOLDER = "reference/operators"
LIST = f"{FOLDER}/index.md"
BACKENDS = ROOT / "docs" / "operators.md"
VARIANTS = ROOT / "docs" / "variants.md"
# Columns of that page with other contents.
NOT_BACKENDS = ("operator", "in-place", "gradient", "level", "made of")
# The distributions that provide the kernels in the other columns.
PROVIDERS = {"cpu": "plugrad-cpu", "jax": "plugrad-jax", "cuda": "plugrad-cuda"}
TITLES = {"ctc": "CTC loss", "lu": "LU decompositions", "nn": "Layers"}
# Cells of the rows of an operator.
Rows = dict[str, list[list[str]]]
# Formulas that the generator writes itself.
AUTOMATIC = {
    "auto_element_wise": "the derivative above, element by element",
    "auto_linear": "the operator itself on the tangents: it is linear",
}


def pages() -> dict[str, str]:
    """Markdown by path below docs/."""
    stub = Stub()
    known = rows_of(BACKENDS)
    variants = rows_of(VARIANTS)
    found = {LIST: overview()}
    for family in filled():
        found[family_page(family)] = contents(family)
        for name in family.operators:
            found[operator_page(name)] = page(name, family, stub, known, variants)
    return found


def navigation() -> list[Any]:
    """The pages in the order of the families, as mkdocs.yml would have them."""
    return [
        LIST,
        *(
            {
                short(family): [
                    family_page(family),
                    *({n: operator_page(n)} for n in family.operators),
                ]
            }
            for family in filled()
        ),
    ]


@cache
def filled() -> list[Family]:
    """The families that have public operators."""
    return [family for family in families() if family.operators]


def short(family: Family) -> str:
    """The name of a family in the navigation."""
    return TITLES.get(family.name) or family.name.replace("_", " ").capitalize()


def family_page(family: Family) -> str:
    return f"{FOLDER}/{family.name}/index.md"


def operator_page(name: str) -> str:
    """Without `plugrad.` the page of the operator `index` would be a folder's page."""
    return f"{FOLDER}/plugrad.{name}.md"


def overview() -> str:
    """Every operator in one table."""
    rows = {
        name: f"| [`{name}`](plugrad.{name}.md) | {summary(entries)} | {gradient(entries)} "
        f"| [{short(family)}]({family.name}/index.md) |"
        for family in filled()
        for name, entries in family.operators.items()
    }
    return (
        "# Operators\n\n"
        "Functions of `plugrad`; the page of each says which of them are methods of `Tensor`, too. "
        "Operators that can write into their first argument have a second name with an underscore "
        "at the end, such as `add_`. [Operators and backends](../../operators.md) says which "
        "backend has which kernels, and [Variants of kernels](../../variants.md) what the packages "
        "for speed have.\n\n"
        "| operator | what it computes | gradient | family |\n| --- | --- | --- | --- |\n"
        + "\n".join(rows[name] for name in sorted(rows))
        + "\n"
    )


def contents(family: Family) -> str:
    """The operators of one family."""
    rows = [
        f"| [`{name}`](../plugrad.{name}.md) | {summary(entries)} | {gradient(entries)} |"
        for name, entries in family.operators.items()
    ]
    return (
        f"# {short(family)}\n\n{family.title}.\n\n"
        "| operator | what it computes | gradient |\n| --- | --- | --- |\n" + "\n".join(rows) + "\n"
    )


def page(name: str, family: Family, stub: Stub, known: Rows, variants: Rows) -> str:
    """One operator, with all of its overloads."""
    entries = family.operators[name]
    code = [f"plugrad.{name}{line}" for line in stub.functions[name]]
    for method in (name, f"{name}_"):
        code += [f"Tensor.{method}{line}" for line in stub.methods[method]]
    parts = [f"# `{name}` {{ #{anchor(name)} }}", block(code)]
    for entry in entries:
        if len(entries) > 1:
            parts.append(f"## `{full_name(entry)}`")
        parts += explained(entry)
    parts += [
        "## Gradient",
        *gradients(entries),
        "## Backends",
        table(entries, known),
        made_of(entries, known),
        "## Variants",
        variants_of(entries, known, variants),
        f"What the words mean: [Operators and backends](../../operators.md). Family: "
        f"[{short(family)}]({family.name}/index.md).",
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def explained(entry: dict[str, Any]) -> list[str]:
    """What an overload computes, its arguments, an example, its schema and its source."""
    parts = [str(entry["doc"]).strip()]
    if "args" in entry:
        parts.append("\n".join(f"* `{name}`: {text}" for name, text in entry["args"].items()))
    examples = [entry[key] for key in ("example", "example_inplace") if key in entry]
    parts += [f"```pycon\n{str(example).strip()}\n```" for example in examples]
    parts.append(f"Schema:\n\n```text\n{entry['func']}\n```")
    if "source" in entry:
        parts.append(f"Source: {str(entry['source']).strip()}")
    return parts


def gradients(entries: list[dict[str, Any]]) -> list[str]:
    """The derivatives of each overload, for both modes."""
    parts = []
    for entry in entries:
        lines = []
        for inputs, expression in (entry.get("derivatives") or {}).items():
            lines.append(f"* `{inputs}`: `{squeezed(expression)}`")
        if "composite" in entry:
            lines.append("* Made of other operators, from which its gradient follows.")
        elif entry.get("differentiable") is False:
            lines.append("* Has none.")
        if "forward" in entry:
            formula = squeezed(entry["forward"])
            lines.append(f"* Forward mode: {AUTOMATIC.get(formula) or f'`{formula}`'}.")
        if len(entries) > 1:
            lines.insert(0, f"`{full_name(entry)}`:\n")
        parts.append("\n".join(lines))
    return parts


def rows_of(page: Path) -> Rows:
    """The rows of a page's tables by operator; the titles of their cells by the name ""."""
    found: Rows = {}
    for line in page.read_text(encoding="utf-8").splitlines():
        if line.startswith("| ") and not line.startswith("| ---"):
            name, *cells = (cell.strip() for cell in line.strip("|").split("|"))
            key = "" if name == "operator" else name.strip("`")
            if key or not found:
                found.setdefault(key, []).append(cells)
    return found


def table(entries: list[dict[str, Any]], known: Rows) -> str:
    """Each backend's way to compute each overload, and the packages of the kernels."""
    titles = known[""][0]
    chosen = [number for number, title in enumerate(titles) if title not in NOT_BACKENDS]
    heads = [titles[number] for number in chosen]
    heads = [f"{head}: {PROVIDERS[head]}" if head in PROVIDERS else head for head in heads]
    lines = [f"|  | {' | '.join(heads)} |", "| --- |" + " --- |" * len(chosen)]
    for entry in entries:
        name = full_name(entry)
        cells = [known[name][0][number] for number in chosen]
        lines.append(f"| `{name}` | {' | '.join(cells)} |")
    return "\n".join(lines)


def made_of(entries: list[dict[str, Any]], known: Rows) -> str:
    """The operators that decompositions call, with links."""
    public = {name for family in filled() for name in family.operators}
    lines = []
    for entry in entries:
        name = full_name(entry)
        needs = parts_of(name, known)
        if needs:
            where = f"`{name}` is" if len(entries) > 1 else "It is"
            lines.append(f"* {where} made of {', '.join(linked(needs, public))}.")
    if not lines:
        return ""
    return "Where a backend has no kernel:\n\n" + "\n".join(lines)


def parts_of(name: str, known: Rows) -> list[str]:
    """The operators that the decomposition of an operator calls."""
    column = known[""][0].index("made of")
    return re.findall(r"`([^`]+)`", known[name][0][column]) if name in known else []


def variants_of(entries: list[dict[str, Any]], known: Rows, variants: Rows) -> str:
    """The variants of its kernels; for an operator without kernels, its parts' variants."""
    names = [full_name(entry) for entry in entries]
    wanted = [each for name in names for each in (name, in_place(name))]
    wanted += [part for name in names for part in computed_by(name, known)]
    keys = dict.fromkeys(key for name in wanted for key in (name, name.partition(".")[0]))
    found = [(key, cells) for key in keys for cells in variants.get(key, ())]
    if not found:
        return "The packages of plugrad have none."
    lines = [f"| `{key}` | {' | '.join(cells)} |" for key, cells in found]
    return (
        "Kernels that come before the backend's own where they can run, in the order in which "
        "they are asked. `pip install plugrad[fast]` installs these packages; [Variants of "
        "kernels](../../variants.md) says more.\n\n"
        f"| kernel of | {' | '.join(variants[''][0])} |\n"
        f"| --- |{' --- |' * len(variants[''][0])}\n" + "\n".join(lines)
    )


def computed_by(name: str, known: Rows) -> list[str]:
    """The operators that compute an operator on the CPU if it has no kernel itself."""
    cpu = known[""][0].index("cpu")
    found: list[str] = []
    waiting = [name]
    seen = {name}
    while waiting:
        current = waiting.pop(0)
        if current in known and known[current][0][cpu] == "decomposed":
            following = [part for part in parts_of(current, known) if part not in seen]
            seen.update(following)
            waiting += following
        elif current != name:
            found.append(current)
    return found


def in_place(name: str) -> str:
    """The in-place variant of an operator: `add_.Tensor` of `add.Tensor`."""
    base, dot, overload = name.partition(".")
    return f"{base}_{dot}{overload}"


def linked(names: Iterable[str], public: set[str]) -> Iterable[str]:
    for name in names:
        base = name.partition(".")[0]
        yield f"[`{name}`](plugrad.{base}.md)" if base in public else f"`{name}`"


def full_name(entry: dict[str, Any]) -> str:
    return str(entry["func"]).partition("(")[0]


def summary(entries: list[dict[str, Any]]) -> str:
    """The first sentence about an operator, for a cell of a table."""
    first = squeezed(str(entries[0]["doc"]).strip().partition("\n\n")[0])
    return first.replace("|", r"\|")


def gradient(entries: list[dict[str, Any]]) -> str:
    differentiable = any("composite" in entry or entry.get("derivatives") for entry in entries)
    return "yes" if differentiable else "no"


def squeezed(text: object) -> str:
    """A text on one line."""
    return " ".join(str(text).split())
