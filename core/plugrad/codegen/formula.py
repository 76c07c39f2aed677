"""What a derivative expression uses: the tensors it must save, attributes, functions."""

from __future__ import annotations

import ast
import builtins
from dataclasses import dataclass, field

from plugrad.codegen.model import Entry, EntryError

# The attributes that an expression may use without saving the tensor.
SAVED_ATTRIBUTES = ("shape", "dtype", "device", "ndim")

# A derivative that is only this word raises, and names operator and argument.
NOT_IMPLEMENTED = "not_implemented"


@dataclass
class Formula:
    """One derivative expression, taken apart.

    Attributes:
        inputs: the inputs for which it gives gradients.
        code: the expression, with the local name `self_shape` for `self.shape`.
        tensors: arguments that must be saved.
        attributes: pairs of argument and attribute that must be saved.
        scalars: other arguments that must be saved.
        outputs: numbers of the forward outputs that must be saved.
        functions: free names: functions that must be imported.
    """

    inputs: tuple[str, ...]
    code: str
    tensors: list[str] = field(default_factory=list)
    attributes: list[tuple[str, str]] = field(default_factory=list)
    scalars: list[str] = field(default_factory=list)
    outputs: list[int] = field(default_factory=list)
    functions: list[str] = field(default_factory=list)
    uses_mask: bool = False
    uses_grads: bool = False


def analyse(entry: Entry, inputs: tuple[str, ...], expression: str) -> Formula:
    """Take one derivative expression of an entry apart; EntryError if it makes no sense."""
    where = f"{entry.family}.yaml: {entry.schema.full_name}: derivative of {', '.join(inputs)}"
    if expression == NOT_IMPLEMENTED:
        shown = "input" if inputs == ("self",) else ", ".join(inputs)
        expression = f"{NOT_IMPLEMENTED}({f'{entry.schema.name}: {shown}'!r})"
    try:
        tree = ast.parse(expression, mode="eval")
    except SyntaxError as error:
        raise EntryError(f"{where}: {error.msg}: {expression!r}") from error
    formula = Formula(inputs, "")
    rewriter = _Rewriter(entry, formula)
    formula.code = ast.unparse(rewriter.visit(tree))
    return formula


def _add(found: list[str], name: str) -> None:
    if name not in found:
        found.append(name)


class _Rewriter(ast.NodeTransformer):
    def __init__(self, entry: Entry, formula: Formula) -> None:
        self.formula = formula
        self.tensors = {a.name for a in entry.schema.arguments if a.type.base == "Tensor"}
        self.others = {a.name for a in entry.schema.arguments} - self.tensors
        self.local: set[str] = set()

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        if isinstance(node.value, ast.Name) and node.attr in SAVED_ATTRIBUTES:
            name = node.value.id
            if name in self.tensors:
                if (name, node.attr) not in self.formula.attributes:
                    self.formula.attributes.append((name, node.attr))
                return ast.Name(f"{local_name(name)}_{node.attr}", ast.Load())
        return self.generic_visit(node)

    def visit_Name(self, node: ast.Name) -> ast.AST:
        name = node.id
        if name == "mask" and name not in self.tensors:
            self.formula.uses_mask = True
        elif name == "grads":
            self.formula.uses_grads = True
            return ast.Name("given", ast.Load())
        elif name == "grad":
            pass
        elif name in self.tensors:
            _add(self.formula.tensors, name)
            return ast.Name(local_name(name), ast.Load())
        elif name in self.others:
            _add(self.formula.scalars, name)
            return ast.Name(local_name(name), ast.Load())
        elif name == "result" or (name.startswith("result") and name[6:].isdecimal()):
            number = int(name[6:] or 0)
            if number not in self.formula.outputs:
                self.formula.outputs.append(number)
            return ast.Name(f"result{number}", ast.Load())
        elif hasattr(builtins, name):
            if name not in ("True", "False", "None"):
                _add(self.formula.functions, name)
        elif name not in self.local:
            _add(self.formula.functions, name)
        return node

    def _visit_comprehension(self, node: ast.AST) -> ast.AST:
        for child in ast.walk(node):
            if isinstance(child, ast.comprehension):
                for target in ast.walk(child.target):
                    if isinstance(target, ast.Name):
                        self.local.add(target.id)
        return self.generic_visit(node)

    visit_ListComp = _visit_comprehension
    visit_GeneratorExp = _visit_comprehension


def local_name(argument: str) -> str:
    """The local variable for an argument inside `apply`, where `self` is the node."""
    return "self_" if argument == "self" else argument
