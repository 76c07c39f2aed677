"""Emits forward rules, which compute the tangents of an operator's results from its arguments'
tangents."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass, field

from plugrad.codegen.formula import NOT_IMPLEMENTED, SAVED_ATTRIBUTES, local_name
from plugrad.codegen.kernel import differentiable_arguments, formulas_of, saved_results
from plugrad.codegen.model import AUTO_ELEMENT_WISE, AUTO_LINEAR, Entry, EntryError
from plugrad.codegen.source import Source

# Under names that no operator has, since code for third parties is all in one module.
IMPORTS = """from functools import partial as _partial
from typing import Any

from plugrad.dispatch.operator import MISSING_RULE as _MISSING_RULE
from plugrad.graph import forward_rule as _rule
"""


@dataclass
class Term:
    """One input's contribution to the tangents of the results.

    Attributes:
        input: the input's name; "" if the expression covers all inputs.
        code: the expression, in local names; of `AUTO_ELEMENT_WISE`, in terms of `grad`.
        element_wise: whether it is a derivative, to be applied between two conjugations.
        needs_self: whether it uses the former value of the first argument.
        of_each_result: whether it is a derivative in terms of `grads`, one for each result.
        functions: free names: functions that must be qualified.
        results: numbers of the results that it uses.
    """

    input: str
    code: str
    element_wise: bool = False
    needs_self: bool = False
    of_each_result: bool = False
    functions: list[str] = field(default_factory=list)
    results: list[int] = field(default_factory=list)


def terms_of(entry: Entry) -> list[Term]:
    """The terms of an entry's rule that need code; EntryError if an expression makes no sense."""
    found: list[Term] = []
    for name, expression in entry.forward or ():
        if expression == NOT_IMPLEMENTED:
            continue
        if expression == AUTO_LINEAR:
            if name:
                found.append(_analyse(entry, name, _call_of(entry, name)))
            continue
        if expression == AUTO_ELEMENT_WISE:
            derivative = _derivative(entry, name)
            if derivative.startswith("zeros_like("):
                continue
            term = _analyse(entry, name, derivative)
            term.element_wise = True
            found.append(term)
        else:
            found.append(_analyse(entry, name, expression))
    return found


def _derivative(entry: Entry, name: str) -> str:
    """The expression of one input's derivative; out of several in one go, that one alone."""
    inputs, expression = next(pair for pair in entry.derivatives if name in pair[0])
    if expression == NOT_IMPLEMENTED:
        return f"{NOT_IMPLEMENTED}({f'{entry.schema.name}: {name}'!r})"
    if len(inputs) == 1:
        return expression
    return f"({expression})[{inputs.index(name)}]"


def _mask(entry: Entry, name: str) -> str:
    inputs = next(inputs for inputs, _ in entry.derivatives if name in inputs)
    return f"({''.join(f'{other == name}, ' for other in inputs)})"


def _call_of(entry: Entry, name: str) -> str:
    """The operator itself, on one tangent and the other arguments."""
    owner = entry if entry.functional is None else entry.functional
    arguments = [a.name for a in owner.schema.arguments]
    given = ", ".join(f"{a}_t" if a == name else a for a in arguments)
    return f"_rule.call(operator, ({given},))"


def _analyse(entry: Entry, name: str, expression: str) -> Term:
    where = f"{entry.family}.yaml: {entry.schema.full_name}: forward"
    try:
        tree = ast.parse(expression, mode="eval")
    except SyntaxError as error:
        raise EntryError(f"{where}: {error.msg}: {expression!r}") from error
    term = Term(name, "")
    term.code = ast.unparse(_Rewriter(entry, term).visit(tree))
    return term


class _Rewriter(ast.NodeTransformer):
    """Takes an expression apart, as the one for derivatives does."""

    def __init__(self, entry: Entry, term: Term) -> None:
        self.entry = entry
        self.term = term
        self.arguments = [argument.name for argument in entry.schema.arguments]
        self.tangents = {f"{argument.name}_t" for argument in differentiable_arguments(entry)}
        self.local: set[str] = {"grad", "_rule", "operator"}

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        if isinstance(node.value, ast.Name) and node.value.id in self.arguments:
            if node.attr not in SAVED_ATTRIBUTES and node.value.id == self.arguments[0]:
                self.term.needs_self = True
            node.value.id = local_name(node.value.id)
            return node
        return self.generic_visit(node)

    def visit_Name(self, node: ast.Name) -> ast.AST:
        name = node.id
        if name in self.local or name in self.tangents:
            return node
        if name in self.arguments:
            if name == self.arguments[0]:
                self.term.needs_self = True
            return ast.Name(local_name(name), ast.Load())
        if name == "result" or (name.startswith("result") and name[6:].isdecimal()):
            number = int(name[6:] or 0)
            if number not in self.term.results:
                self.term.results.append(number)
            return ast.Name(f"result{number}", ast.Load())
        if name == "grads":
            self.term.of_each_result = True
            return node
        if name == "mask" and self.term.input:
            return ast.parse(_mask(self.entry, self.term.input), mode="eval").body
        if name in ("True", "False", "None"):
            return node
        if name not in self.term.functions:
            self.term.functions.append(name)
        return node

    def visit_ListComp(self, node: ast.ListComp) -> ast.AST:
        for generator in node.generators:
            for target in ast.walk(generator.target):
                if isinstance(target, ast.Name):
                    self.local.add(target.id)
        return self.generic_visit(node)


def emit_rule(out: Source, entry: Entry, terms: list[Term]) -> None:
    """The function of a rule that has an expression."""
    if not terms:
        return
    inputs = differentiable_arguments(entry)
    arguments = "".join(f"{local_name(a.name)}, " for a in entry.schema.arguments)
    tangents = "".join(f"{a.name}_t, " for a in inputs)
    results = sorted({number for term in terms for number in term.results})
    several = len(entry.schema.returns) > 1
    out.line()
    out.line()
    parameters = "args: Any, tangents: Any, out: Any"
    if any("_rule.call(operator" in term.code for term in terms):
        out.line(f"def rule_{entry.identifier}({parameters}, operator: Any) -> Any:")
    else:
        out.line(f"def rule_{entry.identifier}({parameters}) -> Any:")
    out._depth += 1
    out.line(f"{arguments}= args")
    out.line(f"{tangents}= tangents")
    for number in results:
        out.line(f"result{number} = out[{number}]" if several else f"result{number} = out")
    if len(terms) == 1 and not terms[0].element_wise and (len(inputs) == 1 or not terms[0].input):
        out.line(f"return {terms[0].code}")
        out._depth -= 1
        return
    lists = {a.name for a in inputs if a.type.is_list}
    out.line("total: Any = None")
    for number, term in enumerate(terms):
        given = f"{term.input}_t"
        needs = f"{given} is not None"
        if term.input in lists:
            needs = f"any(t is not None for t in {given})"
        with out.block(f"if {needs}:" if term.input else "if True:"):
            code = term.code
            if term.element_wise:
                first = "out[0]" if several else "out"
                out.line(f"conjugated = {given}.dtype.is_complex or {first}.dtype.is_complex")
                out.line(f"grad = {given}.conj() if conjugated else {given}")
                if term.of_each_result:
                    count = len(entry.schema.returns)
                    out.line(f"term = [{code} for grads in _rule.one_by_one(grad, {count})]")
                    code = "[item.conj() for item in term] if conjugated else term"
                else:
                    out.line(f"term = {code}")
                    code = "term.conj() if conjugated else term"
            out.line(f"total = {code}" if number == 0 else f"total = _rule.plus(total, {code})")
    out.line("return total")
    out._depth -= 1


def emit_assignment(out: Source, entry: Entry, terms: list[Term], op: str, functional: str) -> None:
    """Give the operator its rule.

    Args:
        op: source of the operator.
        functional: source of the operator with the rule's arguments and results: for an in-place
            operator, its functional form.
    """
    if not entry.derivatives:
        return
    if entry.forward in (None, (("", NOT_IMPLEMENTED),)):
        out.line(f"{op}.forward_rule = _MISSING_RULE")
        return
    inputs = differentiable_arguments(entry)
    names = [argument.name for argument in entry.schema.arguments]
    positions = tuple(names.index(argument.name) for argument in inputs)
    saved = tuple(saved_results(entry, formulas_of(entry)))
    if entry.forward == (("", AUTO_LINEAR),):
        in_place = entry.schema.is_inplace and entry.functional is None
        options = ", in_place=True" if in_place else ""
        out.line(f"{op}.forward_rule = _rule.Linear({functional}, {positions}, {saved}{options})")
        return
    linear = {name for name, expression in entry.forward if expression == AUTO_LINEAR}
    if linear == {argument.name for argument in inputs}:
        out.line(f"{op}.forward_rule = _rule.Multilinear({functional}, {positions}, {saved})")
        return
    if not terms:
        out.line(f"{op}.forward_rule = _rule.Formula(_rule.no_tangents, {positions}, (), {saved})")
        return
    needs = tuple(
        any(term.needs_self for term in terms if term.input in ("", argument.name))
        for argument in inputs
    )
    function = f"rule_{entry.node_owner.identifier}"
    if any("_rule.call(operator" in term.code for term in terms):
        function = f"_partial({function}, operator={functional})"
    out.line(f"{op}.forward_rule = _rule.Formula({function}, {positions}, {needs}, {saved})")


def emit_forward(
    out: Source, entries: list[Entry], qualify: Callable[[Entry, str], str], operator: str
) -> None:
    """Emit the rules of entries, and the code that attaches them to the operators.

    Args:
        qualify: the source of a function that an entry's expression calls by its name.
        operator: source of an operator, with ``{}`` for its identifier.
    """
    taken = [(entry, terms_of(entry)) for entry in entries if entry.derivatives]
    for entry, terms in taken:
        if entry.node_owner is entry:
            for term in terms:
                term.code = _qualified(entry, term, qualify)
            emit_rule(out, entry, terms)
    out.line()
    out.line()
    for entry, terms in taken:
        owner = entry.node_owner
        emit_assignment(
            out, entry, terms, operator.format(entry.identifier), operator.format(owner.identifier)
        )


def _qualified(entry: Entry, term: Term, qualify: Callable[[Entry, str], str]) -> str:
    class Qualifier(ast.NodeTransformer):
        def visit_Name(self, node: ast.Name) -> ast.AST:
            if node.id in term.functions:
                return ast.parse(qualify(entry, node.id), mode="eval").body
            return node

    return ast.unparse(Qualifier().visit(ast.parse(term.code, mode="eval")))
