"""Arguments that several operators share: reads the table `ops/settings/table.yaml`.

Each line of the table becomes a class. If an entry names one, its functions get an object of that
class in place of the first of these arguments, and do not get the others.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from plugrad.dispatch.schema import Argument, FunctionSchema, parse_schema

# What expressions and functions call the object, and generated code the module of the classes.
NAME: Final = "settings"
_TABLE: Final = Path(__file__).parent.parent / "ops" / "settings" / "table.yaml"


@dataclass(frozen=True)
class SettingsClass:
    """One line of the table.

    Attributes:
        members: the arguments, in the order in which raw kernels get them.
        args: pairs of a member and its text in `help()`.
    """

    name: str
    doc: str
    members: tuple[Argument, ...]
    args: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Settings:
    """The settings in an operator's entry.

    Attributes:
        kind: the class.
        values: pairs of a member and the source of its value, in the schema's names.
        taken: the arguments of the schema that the object replaces, in the schema's order.
    """

    kind: SettingsClass
    values: tuple[tuple[str, str], ...]
    taken: tuple[str, ...]

    def source(self, given: Mapping[str, str] | None = None) -> str:
        """The source of an object, with other values for some members."""
        values = {**dict(self.values), **(given or {})}
        return f"{NAME}.{self.kind.name}({', '.join(values.values())})"

    def in_place(self, arguments: tuple[Argument, ...], value: str) -> list[str]:
        """The arguments' names, with `value` in place of the arguments that the object replaces."""
        first = self.taken[0]
        names = [value if a.name == first else a.name for a in arguments]
        return [name for name in names if name not in self.taken]


@cache
def settings_classes() -> Mapping[str, SettingsClass]:
    """The table, by name."""
    import yaml

    found: dict[str, SettingsClass] = {}
    for item in yaml.safe_load(_TABLE.read_text()):
        schema = parse_schema(f"{item['settings']} -> Tensor")
        args = tuple((name, str(text)) for name, text in item.get("args", {}).items())
        found[schema.name] = SettingsClass(schema.name, item["doc"], schema.arguments, args)
    return found


def parse_settings(schema: FunctionSchema, text: str) -> Settings:
    """The settings that an entry names: a class, and values for members that differ.

    `BatchNorm(training=train)` is the class `BatchNorm` with the argument `train` as its member
    `training`. Other members come from the arguments of the same name, or have their defaults.

    Raises:
        ValueError: there is no such class, or a member has no value.
    """
    node = ast.parse(text, mode="eval").body
    given: dict[str, str] = {}
    if isinstance(node, ast.Call):
        given = {str(keyword.arg): ast.unparse(keyword.value) for keyword in node.keywords}
        node = node.func
    name = ast.unparse(node)
    kind = settings_classes().get(name)
    if kind is None:
        raise ValueError(f"settings must be among {', '.join(settings_classes())}; got {name!r}")
    arguments = [argument.name for argument in schema.arguments]
    values: dict[str, str] = {}
    for member in kind.members:
        if member.name in given:
            values[member.name] = given.pop(member.name)
        elif member.name in arguments:
            values[member.name] = member.name
        elif member.has_default:
            values[member.name] = repr(member.default)
        else:
            raise ValueError(f"settings: {name} needs {member.name!r}, which the schema lacks")
    if given:
        raise ValueError(f"settings: {name} has no member {next(iter(given))!r}")
    used = set(values.values())
    taken = tuple(argument for argument in arguments if argument in used)
    return Settings(kind, tuple(values.items()), taken)


def expand(settings: Settings, expression: str) -> str:
    """An expression with the object spelled out: `settings`, or `settings(bias=None)`."""
    if NAME not in expression:
        return expression

    class Expander(ast.NodeTransformer):
        def visit_Call(self, node: ast.Call) -> ast.AST:
            if isinstance(node.func, ast.Name) and node.func.id == NAME:
                given = {str(k.arg): ast.unparse(k.value) for k in node.keywords}
                return ast.parse(settings.source(given), mode="eval").body
            return self.generic_visit(node)

        def visit_Name(self, node: ast.Name) -> ast.AST:
            if node.id != NAME:
                return node
            return ast.parse(settings.source(), mode="eval").body

    return ast.unparse(Expander().visit(ast.parse(expression, mode="eval")))
