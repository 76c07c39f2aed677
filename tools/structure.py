"""Checks that there are no import cycles, and that no folder has too many modules.

The rules about layers are in pyproject.toml. `make lint` runs both.
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

import grimp

ROOT = Path(__file__).resolve().parents[1]
DISTRIBUTIONS = {
    "plugrad": "core",
    "plugrad_cpu": "backends/cpu",
    "plugrad_cuda": "backends/cuda",
    "plugrad_jax": "backends/jax",
    "plugrad_nn": "plugins/nn",
    "plugrad_distributed": "plugins/distributed",
    "plugrad_distributions": "plugins/distributions",
    "plugrad_native": "plugins/native",
    "plugrad_onednn": "plugins/onednn",
    "plugrad_onnx": "plugins/onnx",
    "plugrad_special": "plugins/special",
    "plugrad_as_torch": "plugins/as_torch",
    "plugrad_viewer": "plugins/viewer",
}
MOST_IN_A_FOLDER = 25
# Operators call operators: generated functions run decompositions and formulas, which call
# generated functions, but never at import.
OPERATORS = ("plugrad._generated.", "plugrad.ops.composite.", "plugrad.ops.formulas.")


def crowded() -> list[str]:
    """Folders with too many modules, including test folders; generated modules are not counted."""
    folders = [*DISTRIBUTIONS.values(), "tests", "tools", "benchmarks"]
    modules = [path for folder in folders for path in (ROOT / folder).rglob("*.py")]
    own = [path for path in modules if not {"_generated", "build"} & set(path.parts)]
    counts = Counter(path.parent for path in own if path.name != "__init__.py")
    return [
        f"{folder.relative_to(ROOT)} has {count} modules side by side, {MOST_IN_A_FOLDER} at most: "
        "make folders that say what belongs together"
        for folder, count in sorted(counts.items())
        if count > MOST_IN_A_FOLDER
    ]


def circles() -> list[str]:
    """Modules that import each other, at the top or within functions; imports for type checkers
    only do not count."""
    sys.path[:0] = [str(ROOT / folder) for folder in DISTRIBUTIONS.values()]
    graph = grimp.build_graph(*DISTRIBUTIONS, exclude_type_checking_imports=True, cache_dir=None)
    imported = {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}
    return [
        f"these modules import each other: {', '.join(sorted(component))}"
        for component in components(imported)
        if len(component) > 1 and not all(name.startswith(OPERATORS) for name in component)
    ]


def components(edges: dict[str, set[str]]) -> list[list[str]]:
    """The strongly connected components of a graph, by Tarjan's algorithm (1972)."""
    number: dict[str, int] = {}
    lowest: dict[str, int] = {}
    waiting: list[str] = []
    found: list[list[str]] = []

    def visit(node: str) -> None:
        number[node] = lowest[node] = len(number)
        waiting.append(node)
        for other in sorted(edges[node]):
            if other not in number:
                visit(other)
                lowest[node] = min(lowest[node], lowest[other])
            elif other in waiting:
                lowest[node] = min(lowest[node], number[other])
        if lowest[node] == number[node]:
            place = waiting.index(node)
            found.append(waiting[place:])
            del waiting[place:]

    for node in sorted(edges):
        if node not in number:
            visit(node)
    return found


def main() -> int:
    sys.setrecursionlimit(10_000)
    problems = [*crowded(), *circles()]
    for problem in problems:
        print(f"structure: {problem}", file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
