"""Reads programs, without running them, for names of PyTorch that plugrad lacks."""

from __future__ import annotations

import ast
import importlib.util
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from plugrad_as_torch.layout import instead
from plugrad_as_torch.lookup import has_module, is_known, lacks

# What programs catch when a name is optional for them.
_CAUGHT: Final = {"AttributeError", "Exception", "ImportError", "ModuleNotFoundError"}


@dataclass(frozen=True)
class Lack:
    """A name that a file uses and plugrad lacks."""

    file: Path
    lines: tuple[int, ...]
    name: str

    @property
    def note(self) -> str:
        """What to use in its place, or that PyTorch has no such name."""
        if use := instead(self.name):
            return use
        parent = self.name.rpartition(".")[0]
        is_listed = is_known(self.name) or not has_module(parent)
        is_private = "._" in self.name
        return "" if is_listed or is_private else "plugrad's list of PyTorch 2.13 does not have it"


def files_of(target: str) -> list[Path]:
    """The files of a program: a file, a folder, or a package or module that can be imported.

    Raises:
        FileNotFoundError: nothing has that name.
    """
    path = Path(target)
    if path.is_dir():
        return sorted(path.rglob("*.py"))
    if path.is_file():
        return [path]
    # Only the first part is looked up: Python would run a package to find what is in it.
    first, *rest = target.split(".")
    spec = importlib.util.find_spec(first) if first.isidentifier() else None
    if spec is None:
        raise FileNotFoundError(f"no file, folder or package {target!r}")
    if spec.submodule_search_locations is None:
        return [Path(str(spec.origin))]
    inside = [Path(place).joinpath(*rest) for place in spec.submodule_search_locations]
    modules = [place.with_suffix(".py") for place in inside if rest]
    found = [place for place in (*inside, *modules) if place.exists()]
    if not found:
        raise FileNotFoundError(f"no file, folder or package {target!r}")
    return [file for place in found for file in files_of(str(place))]


def lacking(files: Iterable[Path]) -> Iterator[Lack]:
    """What files use and plugrad lacks, in order.

    Raises:
        SyntaxError: a file is not valid Python.
    """
    for file in files:
        lines: dict[str, list[int]] = {}
        for line, name in uses(ast.parse(file.read_bytes(), str(file))):
            if missing := lacks(name):
                lines.setdefault(missing, []).append(line)
        for name, where in lines.items():
            yield Lack(file, tuple(dict.fromkeys(where)), name)


def uses(tree: ast.Module) -> list[tuple[int, str]]:
    """The names of PyTorch that a program uses, with their lines. Names that it tests for first, or
    for which it catches errors, are left out."""
    reader = _Reader()
    reader.visit(tree)
    found = sorted(reader.used + reader.chains(tree))
    return [(line, name) for line, name in found if name not in reader.asked]


class _Reader(ast.NodeVisitor):
    """Notes what is imported, and under which name."""

    def __init__(self) -> None:
        self.used: list[tuple[int, str]] = []
        self.asked: set[str] = set()
        self._meaning: dict[str, str] = {}
        self._optional: set[ast.AST] = set()

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            if _is_torch(alias.name):
                self._note(node, alias.name)
                self._meaning[alias.asname or "torch"] = alias.name if alias.asname else "torch"

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        if node.level or not _is_torch(node.module or ""):
            return
        for alias in node.names:
            name = str(node.module) if alias.name == "*" else f"{node.module}.{alias.name}"
            self._note(node, name)
            self._meaning[alias.asname or alias.name] = name

    def visit_Try(self, node: ast.Try) -> None:
        if any(_catches(handler.type) for handler in node.handlers):
            self._leave_out(node.body)
        self.generic_visit(node)

    def visit_If(self, node: ast.If) -> None:
        # Type checkers read it, and nothing runs it.
        if ast.unparse(node.test).rpartition(".")[2] == "TYPE_CHECKING":
            self._leave_out(node.body)
        self.generic_visit(node)

    def chains(self, tree: ast.Module) -> list[tuple[int, str]]:
        """The attributes read from imported modules; each chain once, as a whole."""
        inner = {node.value for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
        left_out = inner | self._optional
        found = []
        for node in ast.walk(tree):
            if isinstance(node, ast.Call):
                self._note_question(node)
            elif isinstance(node, ast.Attribute) and node not in left_out:
                found.append((node.lineno, self._dotted(node)))
        return [(line, name) for line, name in found if name]

    def _note(self, node: ast.stmt, name: str) -> None:
        if node not in self._optional:
            self.used.append((node.lineno, name))

    def _leave_out(self, body: list[ast.stmt]) -> None:
        self._optional.update(inside for statement in body for inside in ast.walk(statement))

    def _note_question(self, node: ast.Call) -> None:
        """`hasattr(torch, "x")` and `getattr(torch, "x", None)`."""
        match node:
            case ast.Call(
                func=ast.Name(id="hasattr" | "getattr"),
                args=[of, ast.Constant(value=str(name)), *_],
            ) if module := self._dotted(of):
                self.asked.add(f"{module}.{name}")

    def _dotted(self, node: ast.expr) -> str:
        """The name of PyTorch that an expression spells, or nothing."""
        if isinstance(node, ast.Name):
            return self._meaning.get(node.id, "")
        if isinstance(node, ast.Attribute) and (of := self._dotted(node.value)):
            return f"{of}.{node.attr}"
        return ""


def _is_torch(module: str) -> bool:
    return module == "torch" or module.startswith("torch.")


def _catches(caught: ast.expr | None) -> bool:
    if caught is None:
        return True
    kinds = caught.elts if isinstance(caught, ast.Tuple) else [caught]
    return any(isinstance(kind, ast.Name) and kind.id in _CAUGHT for kind in kinds)
