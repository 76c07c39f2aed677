"""Writes the generated modules: one per family, and those that collect functions and methods."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

from plugrad.codegen import documentation, forward, settings_code, stub
from plugrad.codegen.declaration import emit_declaration, emit_registrations
from plugrad.codegen.formula import Formula
from plugrad.codegen.function import emit_function, emit_overload_table, python_header
from plugrad.codegen.groups import Group, group_entries
from plugrad.codegen.handwritten import Sources, with_texts
from plugrad.codegen.kernel import (
    emit_autograd_kernel,
    emit_call,
    emit_node,
    formulas_of,
)
from plugrad.codegen.methods import emit_methods, takes_sizes_or_dtype
from plugrad.codegen.model import Entry, EntryError, parse_entries
from plugrad.codegen.on_demand import (
    FUNCTIONS_LATER,
    ON_DEMAND,
    family_files,
    made_later,
    on_demand_module,
)
from plugrad.codegen.parts import HEADER, PYTHON_NAMES, check_forward, defined_functions
from plugrad.codegen.signature import returns_one_tensor, takes_out
from plugrad.codegen.source import Source

IMPORTS = """from typing import TYPE_CHECKING, Any, Final, cast, final, overload

from mypy_extensions import i64

from plugrad._generated import settings
from plugrad.dispatch.keys import AFTER_AUTOGRAD, BACKEND_SELECT_BIT
from plugrad.dispatch.local_state import LocalState, current_state
from plugrad.dtype import FLOATING, DType, dtype_by_name
from plugrad.errors import OperatorNotFoundError
from plugrad.dispatch.adapters import needed_by
from plugrad.dispatch.operator import Operator, declare_new
from plugrad.graph.history import (
    any_needs_grad,
    check_inplace,
    link,
    link_optional,
    optional_edge,
    optional_needs_grad,
    rebase_history,
    replace_history,
    set_history,
)
from plugrad.graph.node import Edge, Node
from plugrad.graph.saved_variable import (
    Kept,
    SavedVariable,
    keep,
    keep_optional,
    raise_freed,
    stamp_of,
    stamp_of_optional,
)
from plugrad.memory_format import memory_format_by_name
from plugrad.graph.support import (
    any_defined,
    wants_any,
    copy_of,
    not_implemented,
    save_list,
    set_history_list,
    unpack_list,
)
from plugrad.tensor.calls.arguments import (
    MISSING,
    any_argument,
    bool_argument,
    bool_list_argument,
    defaulted_int_list_argument,
    deprecated_order,
    device_argument,
    dtype_argument,
    float_argument,
    float_list_argument,
    gather_varargs,
    generator_argument,
    int_argument,
    int_list_argument,
    keyset_of_list,
    keyword_alias,
    memory_format_argument,
    optional_bool_argument,
    optional_device_argument,
    optional_dtype_argument,
    optional_float_argument,
    optional_float_list_argument,
    optional_generator_argument,
    optional_int_argument,
    optional_int_list_argument,
    optional_keyset,
    optional_memory_format_argument,
    optional_scalar_argument,
    optional_str_argument,
    optional_tensor_argument,
    optional_tensor_list_argument,
    raise_missing,
    require_grad,
    scalar_argument,
    scalar_list_argument,
    str_argument,
    tensor_argument,
    tensor_list_argument,
)
from plugrad.tensor.base import TensorBase, needs_grad, sizes_of
from plugrad.ops.declaration import name_nodes, register_kernels
from plugrad.ops.running import (
    is_composed,
    is_recorded,
    run,
    run_factory,
    run_inplace,
    run_numbers,
    run_scaled_numbers,
    run_scaled_tensors,
    run_tensors,
    run_unary,
    run_view,
)
from plugrad.tensor.calls.elementwise import operands
from plugrad.tensor.calls.foreign_operands import foreign_operand, operand_of_array
from plugrad.tensor.calls.memory_options import check_memory
from plugrad.tensor.calls.outputs import accumulated_dtype, compute_into, like_out
from plugrad.tensor.creation.from_data import tensor_first
from plugrad.tensor.calls.overloads import call_overload, overload_table
from plugrad.tensor.calls.overridable import (
    OVERRIDES,
    PROCEED,
    override,
    override_method,
    override_operator,
)
from plugrad.tensor.calls.promotion import is_scalar
"""

METHODS_TYPE = """
from plugrad._generated.unpack import unpack, unpack_optional, unpack_result

if TYPE_CHECKING:
    from plugrad._generated.methods import TensorMethods as Tensor

"""


def generate(source: Path, target: Path) -> list[Path]:
    """Generate every module for the YAML files in `source`; files that did not change stay.

    Returns the generated Python files.
    """
    import yaml

    families = [
        (path.stem, parse_entries(path.stem, yaml.safe_load(path.read_text()) or []))
        for path in family_files(source)
    ]
    later = {path.stem for path in family_files(source) if path.parent.name == ON_DEMAND}
    groups = group_entries([entry for _, entries in families for entry in entries])
    documentation.check_documented(groups)
    stub.check_typed(groups)
    by_family = {
        family: [group for group in groups if group.first.family == family]
        for family, _ in families
    }
    files = {
        "__init__.py": '"""Written by plugrad.codegen from ops/*.yaml."""\n',
        "unpack.py": UNPACK,
        "settings.py": _settings_module(),
        "functions.py": _functions_module(by_family, later),
        "calls.py": _calls_module(_without(by_family, later)),
        "methods.py": _methods_module(_without(by_family, later), Sources(source.parent)),
        "signatures.py": _signatures_module(groups),
        "forward_rules.py": _forward_module(
            source, [family for family in families if family[0] not in later]
        ),
        "on_demand.py": on_demand_module({family: by_family[family] for family in sorted(later)}),
    }
    for family, entries in families:
        place = source / ON_DEMAND if family in later else source
        functions = defined_functions(place / "formulas" / f"{family}.py")
        text = generate_family(
            family, entries, by_family[family], functions, "plugrad", family in later
        )
        if family in later:
            text = made_later(text, source, family, entries, by_family[family])
        files[f"{family}.py"] = text
    target.mkdir(parents=True, exist_ok=True)
    for old in target.glob("*.py"):
        if old.name not in files:
            old.unlink()
    for name, text in files.items():
        _write_if_changed(target / name, text)
    stub_modules = {
        "__init__.pyi": _stub_module(source, groups),
        "return_types.pyi": _return_types_module(groups),
    }
    for name, text in stub_modules.items():
        _write_if_changed(target.parent / name, text)
        # If a package has a folder of stubs next to it, pyright reads stubs only from there.
        _write_if_changed(target.parent.parent / "plugrad-stubs" / name, text)
    return [target / name for name in files]


def _without(by_family: dict[str, list[Group]], later: set[str]) -> dict[str, list[Group]]:
    return {family: groups for family, groups in by_family.items() if family not in later}


def _write_if_changed(path: Path, text: str) -> None:
    if not path.exists() or path.read_text() != text:
        path.write_text(text)


def generate_family(
    family: str,
    entries: list[Entry],
    groups: list[Group],
    formula_functions: set[str],
    namespace: str,
    later: bool = False,
) -> str:
    """The text of one family's module; `later`: it is loaded on demand."""
    taken = [(entry, formulas_of(entry)) for entry in entries]
    names = _node_names(entries)
    out = Source()
    for entry, formulas in taken:
        for formula in formulas:
            formula.code = _qualify(formula, formula_functions)
        if formulas:
            if entry.node_owner is entry:
                emit_node(out, entry, formulas)
            emit_autograd_kernel(out, entry, formulas)
    for entry in entries:
        emit_call(out, entry)
        if entry.settings is not None:
            returned = "Tensor" if returns_one_tensor(entry) else "Any"
            settings_code.emit_call_with(out, entry, entry.settings, returned)
            settings_code.emit_adapters(out, entry, entry.settings)
    for group in groups:
        emit_function(out, group)
    title = f"Operators: {family.replace('_', ' ')}"
    text = HEADER.format(title=title, origin=f"ops/{family}.yaml") + IMPORTS
    if namespace == "plugrad":
        text += METHODS_TYPE
    # Formula and composite modules import the families in turn: by now these are defined.
    last = Source()
    last.line()
    last.line()
    if namespace == "plugrad":
        last.lines(_family_imports(family, entries, taken, formula_functions, later))
    for entry in entries:
        emit_declaration(last, entry, namespace)
        if entry.settings is not None and namespace == "plugrad":
            gathered = f"gathered_{entry.identifier}"
            last.line(f"settings.GATHERED[{entry.schema.full_name!r}] = {gathered}")
    emit_registrations(last, entries, names)
    if namespace != "plugrad":
        last.lines(forward.IMPORTS)
        known = formula_functions
        forward.emit_forward(
            last, entries, lambda _, name: _qualified_name(name, known, "formulas"), "OP_{}"
        )
    for group in groups:
        if group.kind == "overloaded":
            emit_overload_table(last, group)
            if any(entry.is_function for entry in group.entries):
                key = f"({namespace!r}, {group.name!r})"
                last.line(f"OVERRIDES.functions[{key}] = {group.name}")
    return text + out.text() + last.text()


def _family_imports(
    family: str,
    entries: list[Entry],
    taken: list[tuple[Entry, list[Formula]]],
    formula_functions: set[str],
    later: bool,
) -> str:
    parts = f"plugrad.ops.{ON_DEMAND}" if later else "plugrad.ops"
    lines = ["from plugrad._generated import functions as F"]
    if any(entry.prepare for entry in entries):
        lines.append(f"from {parts}.prepare import {family} as prepare")
    if any(entry.composite or entry.explicit for entry in entries):
        lines.append(f"from {parts}.composite import {family} as composite")
    if any(
        name in formula_functions
        for _, formulas in taken
        for formula in formulas
        for name in formula.functions
    ):
        lines.append(f"from {parts}.formulas import {family} as formulas")
    return "\n".join(lines) + "\n"


def _qualify(formula: Formula, formula_functions: set[str]) -> str:
    """Put the module in front of every function name in an expression."""

    class Qualifier(ast.NodeTransformer):
        def visit_Name(self, node: ast.Name) -> ast.AST:
            if node.id in formula_functions:
                return ast.Attribute(ast.Name("formulas", ast.Load()), node.id, ast.Load())
            if node.id in formula.functions and node.id not in PYTHON_NAMES:
                return ast.Attribute(ast.Name("F", ast.Load()), node.id, ast.Load())
            return node

    return ast.unparse(Qualifier().visit(ast.parse(formula.code, mode="eval")))


def _qualified_name(name: str, formula_functions: set[str], module: str) -> str:
    if name in formula_functions:
        return f"{module}.{name}"
    return name if name in PYTHON_NAMES else f"F.{name}"


def _forward_module(source: Path, families: list[tuple[str, list[Entry]]]) -> str:
    """The forward rules of all families, which are loaded when a dual tensor needs one."""
    places: dict[str, dict[str, str]] = {}
    out = Source()
    out.lines(forward.IMPORTS)
    out.line()
    out.line("from plugrad._generated import functions as F")
    out.line("from plugrad._generated import settings")
    for family, entries in families:
        check_forward(family, entries)
        places[family] = {}
        for folder in ("formulas", "tangents"):
            functions = defined_functions(source / folder / f"{family}.py")
            if functions:
                out.line(f"from plugrad.ops.{folder} import {family} as {folder}_{family}")
            places[family].update({name: f"{folder}_{family}.{name}" for name in functions})
        if any(entry.derivatives for entry in entries):
            out.line(f"from plugrad._generated import {family} as {family}_operators")

    def qualify(entry: Entry, name: str) -> str:
        return places[entry.family].get(name, name if name in PYTHON_NAMES else f"F.{name}")

    for family, entries in families:
        forward.emit_forward(out, entries, qualify, family + "_operators.OP_{}")
    header = HEADER.format(title="Forward rules", origin="ops/*.yaml")
    return header + "# Interpreted: it is loaded when somebody uses forward mode.\n" + out.text()


def _node_names(entries: list[Entry]) -> dict[str, str]:
    """`MulBackward0` for `mul.Tensor`, by PyTorch's rule: the base name, numbered by overload.

    A Scalar overload has the same name as the Tensor overload, and so does an in-place variant.
    """
    names: dict[str, str] = {}
    counters: dict[str, int] = {}
    groups = {group.name: group for group in group_entries(entries)}
    for entry in entries:
        if not entry.derivatives:
            continue
        owner = entry.node_owner
        if owner is not entry:
            names[entry.schema.full_name] = names[owner.schema.full_name]
            continue
        # `title` makes letters behind digits great, too: FftR2C, Log1P.
        base = entry.schema.name.title().replace("_", "")
        if entry.node:
            names[entry.schema.full_name] = entry.node
            continue
        if entry.overwrites:
            # For comparisons, PyTorch lists the overload with a number first.
            names[entry.schema.full_name] = f"{base}Backward{len(entry.overwrites) - 1}"
            continue
        group = groups[entry.python_name]
        if group.kind == "scalar_or_tensor":
            names[entry.schema.full_name] = f"{base}Backward0"
            continue
        number = counters.get(base, 0)
        counters[base] = number + 1
        names[entry.schema.full_name] = f"{base}Backward{number}"
    return names


def _functions_module(by_family: dict[str, list[Group]], later: set[str]) -> str:
    out = Source()
    exported: list[str] = []
    out.line("from typing import TYPE_CHECKING, Any")
    out.line()
    for family, groups in by_family.items():
        names = [g.name for g in groups if any(e.is_function for e in g.entries)]
        if not names:
            continue
        indent = "    " if family in later else ""
        if family in later:
            out.line("if TYPE_CHECKING:")
        else:
            exported += names
        out.line(f"{indent}from plugrad._generated.{family} import (")
        for name in names:
            out.line(f"{indent}    {name} as {name},")
        out.line(f"{indent})")
    out.line()
    out.lines(FUNCTIONS_LATER)
    out.line()
    out.line("__all__ = [")
    for name in sorted(exported):
        out.line(f"    {name!r},")
    out.line("]")
    header = HEADER.format(title="Every operator as a public function", origin="ops/*.yaml")
    return header + out.text()


def _signatures_module(groups: list[Group]) -> str:
    """For the override protocol, which passes on only the arguments that a caller gave."""
    out = Source()
    out.line("# Interpreted: it is read by `inspect`, and only once somebody overrides a function.")
    out.line("from typing import Any")
    out.line()
    out.line("from plugrad.dtype import dtype_by_name")
    out.line("from plugrad.memory_format import memory_format_by_name")
    out.line("from plugrad.tensor.calls.arguments import MISSING")
    for group in groups:
        only_method = not any(entry.is_function for entry in group.entries)
        if group.kind == "overloaded" and not (only_method and takes_sizes_or_dtype(group)):
            continue
        entry = group.first
        has_out = takes_out(entry)
        text = python_header(entry, group, has_out).text.replace(": bool", ": Any")
        out.line()
        out.line()
        out.line(f"def {group.name}({text}) -> Any: ...")
    header = HEADER.format(title="The signatures of the public functions", origin="ops/*.yaml")
    return header + out.text()


def _settings_module() -> str:
    """The classes of the table of settings, for arguments that go together."""
    out = Source()
    out.lines(settings_code.IMPORTS)
    settings_code.emit_classes(out)
    header = HEADER.format(title="Arguments that go together", origin="ops/settings/table.yaml")
    return header + out.text()


def _calls_module(by_family: dict[str, list[Group]]) -> str:
    """For code that has checked arguments already: the typed entries into dispatch."""
    out = Source()
    for family, groups in by_family.items():
        # One statement per family: each is much code, and mypyc needs quadratic memory for it.
        out.line(f"from plugrad._generated.{family} import (")
        for group in groups:
            for entry in group.entries:
                names = [f"call_{entry.identifier}"]
                if entry.settings is not None:
                    names.append(f"call_{entry.identifier}_with")
                out.lines("\n".join(f"    {name} as {name}," for name in names))
        out.line(")")
    header = HEADER.format(title="Every operator, unchecked", origin="ops/*.yaml")
    return header + out.text()


def _methods_module(by_family: dict[str, list[Group]], sources: Sources) -> str:
    out = Source()
    groups = [group for family in by_family.values() for group in family]
    out.line()
    out.line()
    out.line("@mypyc_attr(allow_interpreted_subclasses=True)")
    with out.block("class TensorMethods(TensorBase):"):
        out.docstring("A tensor with every operator as a method.")
        emit_methods(out, groups)
        out.line()
        out.line("@final")
        with out.block("def item(self) -> Any:"):
            out.docstring(sources.method_text("item", {}))
            out.line("return values.item(self)")
        out.line()
        with out.block("def __hash__(self) -> builtins.int:"):
            out.line("return id(self)")
    out.line()
    out.line()
    out.line("Tensor = TensorMethods")
    modules = Source()
    for family, members in by_family.items():
        if members:
            modules.line(f"from plugrad._generated import {family}")
    header = HEADER.format(title="Every operator as a method of Tensor", origin="ops/*.yaml")
    imports = IMPORTS.replace(
        "from typing import TYPE_CHECKING", "import builtins\nfrom typing import TYPE_CHECKING"
    ).replace("from mypy_extensions import i64", "from mypy_extensions import i64, mypyc_attr")
    modules.line("from plugrad.tensor.interop import values")
    return header + imports + modules.text() + out.text()


RETURN_TYPES = """# Generated from plugrad/ops/*.yaml; not to be edited.
from typing import Any, NamedTuple

from plugrad import Tensor
from plugrad.dispatch.operator import Operator

def result_type_of(op: Operator) -> Any: ...
def result_type(name: str, fields: tuple[str, ...]) -> Any: ...
"""

UNPACK = (
    HEADER.format(title="Unpacking saved tensors as Tensor", origin="nothing")
    + '''
from typing import TYPE_CHECKING, Any, cast

from mypy_extensions import i64

from plugrad.graph.node import Node
from plugrad.graph.saved_variable import Kept, SavedVariable, kept_tensor, raise_freed

if TYPE_CHECKING:
    from plugrad._generated.methods import TensorMethods as Tensor


def unpack(kept: Kept, stamp: i64, node: Node) -> Tensor:
    """The saved input; RuntimeError if it was let go or modified."""
    return cast("Tensor", kept_tensor(kept, stamp, node))


def unpack_optional(kept: Kept, stamp: i64, node: Node) -> Any:
    """`unpack` for an argument that may have been None."""
    return None if kept is None else kept_tensor(kept, stamp, node)


def unpack_result(saved: SavedVariable | None, node: Node) -> Tensor:
    """The saved result; RuntimeError if it was let go or modified."""
    if saved is None:
        raise_freed()
    return cast("Tensor", saved.unpack(node))
'''
)


def _stub_module(source: Path, groups: list[Group]) -> str:
    """`plugrad/__init__.pyi`: the hand-written part with the operators put in."""
    template = (source.parent / "codegen" / "public.pyi.in").read_text()
    functions = Source()
    stub.emit_function_stubs(functions, groups, "return_types.{}")
    methods = Source()
    methods._depth = 1
    stub.emit_method_stubs(methods, groups, "return_types.{}")
    texts = {group.name: documentation.function_text(group) for group in groups}
    described = with_texts(template, Sources(source.parent), texts)
    return described.replace("#@METHODS@", methods.text()).replace("#@FUNCTIONS@", functions.text())


def _return_types_module(groups: list[Group]) -> str:
    """`plugrad/return_types.pyi`: the classes, which are made at run time."""
    out = Source()
    for name, fields in stub.named_results(groups).items():
        stub.emit_result_class(out, name, fields)
    return RETURN_TYPES + out.text()


def entries_of(data: Any, family: str) -> list[Entry]:
    """Entries of parsed YAML; raises EntryError, which names the mistake."""
    if data is None:
        raise EntryError(f"{family}.yaml: the file is empty")
    return parse_entries(family, data)
