"""Copies the docstrings of handwritten code into the stub, so editors show what `help()` shows.

The build fails if a public function or method in the stub's template has no docstring in the
sources.
"""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Mapping
from pathlib import Path

from plugrad.codegen.docstrings import Scope, read
from plugrad.codegen.model import EntryError

# Where tensors have their methods from, in the order in which Python looks for them.
_TENSOR = (
    ("_tensor/classes.py", "Tensor"),
    ("_torch_names/attributes.py", "TensorAttributes"),
    ("_torch_names/older_names.py", "OlderNames"),
    ("tensor/base.py", "TensorBase"),
)


class Sources:
    """The texts of a package, read from its files without importing it."""

    def __init__(self, package: Path) -> None:
        self._package = package
        self._trees: dict[Path, ast.Module] = {}
        self._scopes: dict[Path, Scope] = {}

    def function_text(self, name: str, file: str = "__init__.py") -> str:
        """The docstring of the function or class `name` that a module defines or imports; "" if
        none."""
        path = self._package / file
        scope, tree = self._scope(path), self._trees[path]
        if name in scope.classes:
            return scope.classes[name].text or ""
        if text := scope.text_of(name):
            return text
        for statement in ast.walk(tree):
            if isinstance(statement, ast.ImportFrom) and statement.module is not None:
                for alias in statement.names:
                    if (alias.asname or alias.name) == name:
                        found = self._file_of(statement.module)
                        return self.function_text(alias.name, found) if found else ""
        return ""

    def method_text(self, name: str, entries: Mapping[str, str]) -> str:
        """The docstring of the method or property `name` of Tensor; `entries` are operators'
        texts."""
        for file, cls in _TENSOR:
            scope = self._scope(self._package / file)
            if text := scope.classes[cls].text_of(name):
                return text
            if text := self._property_text(file, cls, name, entries):
                return text
        # The generator writes the rest, from functions of these names.
        return self.function_text(name, "tensor/interop/values.py")

    def tensor_text(self) -> str:
        return self._scope(self._package / _TENSOR[0][0]).classes["Tensor"].text or ""

    def _property_text(self, file: str, cls: str, name: str, entries: Mapping[str, str]) -> str:
        """The docstring of ``name = property(function, ..., doc=...)`` or ``name =
        _never(...)``."""
        tree = self._trees[self._package / file]
        classes = [node for node in tree.body if isinstance(node, ast.ClassDef)]
        for statement in next(node.body for node in classes if node.name == cls):
            if not isinstance(statement, ast.Assign) or ast.unparse(statement.targets[0]) != name:
                continue
            call = statement.value
            if not isinstance(call, ast.Call):
                return self.method_text(ast.unparse(call).rpartition(".")[2], entries)
            said = [keyword.value for keyword in call.keywords if keyword.arg == "doc"]
            for value in (*said, *call.args[:1]):
                if isinstance(value, ast.Constant):
                    return str(value.value)
                if isinstance(value, ast.Attribute) and isinstance(value.value, ast.Name):
                    if value.attr in entries:
                        return entries[value.attr]
                    return self._imported_text(tree, value.value.id, value.attr)
        return ""

    def _imported_text(self, tree: ast.Module, module: str, name: str) -> str:
        """The docstring of the function `name` of a module that a file imports by ``from package
        import``."""
        for statement in tree.body:
            if isinstance(statement, ast.ImportFrom) and statement.module is not None:
                names = [alias.asname or alias.name for alias in statement.names]
                if module in names:
                    file = self._file_of(f"{statement.module}.{module}")
                    return self.function_text(name, file) if file else ""
        return ""

    def _file_of(self, module: str) -> str:
        """Relative to the package; "" for a module that is generated or not plugrad's."""
        parts = module.split(".")[1:]
        for path in (
            Path(*parts).with_suffix(".py") if parts else Path(),
            Path(*parts, "__init__.py"),
        ):
            if (self._package / path).is_file():
                return path.as_posix()
        return ""

    def _scope(self, path: Path) -> Scope:
        if path not in self._scopes:
            source = path.read_text(encoding="utf-8")
            self._trees[path] = ast.parse(source)
            self._scopes[path] = read(source)
        return self._scopes[path]


def with_texts(template: str, sources: Sources, entries: Mapping[str, str]) -> str:
    """A stub with the docstrings of its functions and methods; operators' stay as they are.

    Raises:
        EntryError: a public name of the stub has no text in the sources.
    """
    lines = template.split("\n")
    insertions: list[tuple[int, list[str]]] = []
    seen: set[tuple[str, str]] = set()
    for owner, function in _functions(ast.parse(template)):
        name = function.name
        if name.startswith("_") or (owner, name) in seen:
            continue
        seen.add((owner, name))
        text = sources.method_text(name, entries) if owner else sources.function_text(name)
        if not text:
            where = f"{owner}.{name}" if owner else name
            raise EntryError(f"public.pyi.in: {where} has no docstring in the sources")
        body = function.body[0]
        last = lines[body.lineno - 1]
        lines[body.lineno - 1] = last[: body.col_offset].rstrip()
        insertions.append((body.lineno, _quoted(text, "    " * (2 if owner else 1))))
    for number, text_lines in sorted(insertions, reverse=True):
        lines[number:number] = text_lines
    return "\n".join(lines).replace(
        "class Tensor:\n", "\n".join(["class Tensor:", *_quoted(sources.tensor_text(), "    "), ""])
    )


def _functions(tree: ast.Module) -> list[tuple[str, ast.FunctionDef]]:
    """The functions and methods of a stub that have no text yet, with the name of their class."""
    found: list[tuple[str, ast.FunctionDef]] = []
    for node in tree.body:
        owner = node.name if isinstance(node, ast.ClassDef) else ""
        items = node.body if isinstance(node, ast.ClassDef) else [node]
        found.extend((owner, item) for item in items if isinstance(item, ast.FunctionDef))
    return found


def _quoted(text: str, indent: str) -> list[str]:
    escaped = text.replace("\\", "\\\\").replace('"""', '\\"\\"\\"')
    lines = textwrap.dedent(escaped).strip().split("\n")
    if len(lines) == 1:
        return [f'{indent}"""{lines[0]}"""']
    body = [f"{indent}{line}".rstrip() for line in lines[1:]]
    return [f'{indent}"""{lines[0]}', *body, f'{indent}"""']
