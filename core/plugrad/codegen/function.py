"""Emits the public functions of a family: exact signatures, argument checks, `out=`."""

from __future__ import annotations

from dataclasses import dataclass

from plugrad.codegen.documentation import function_text
from plugrad.codegen.groups import Group
from plugrad.codegen.model import Entry
from plugrad.codegen.signature import (
    Parameter,
    parameters,
    returns_one_tensor,
    returns_tensors,
    takes_out,
    takes_varargs,
)
from plugrad.codegen.source import Source

# PyTorch takes NumPy's names for these two arguments everywhere.
NUMPY_NAMES = {"dim": "axis", "keepdim": "keepdims"}


@dataclass(frozen=True)
class Header:
    """The parameters of a public function.

    Attributes:
        text: the text between the parentheses.
        before: lines that run before the checks.
        values: an expression of the given value for each parameter, without NumPy's names.
    """

    text: str
    before: list[str]
    values: list[str]


def emit_function(out: Source, group: Group) -> None:
    """The public function of a group that has the function variant."""
    if not any(entry.is_function for entry in group.entries):
        return
    out.line()
    out.line()
    if group.kind == "overloaded":
        _emit_overloaded(out, group)
    else:
        _emit_exact(out, group)


def emit_overload_table(out: Source, group: Group) -> None:
    """`OVERLOADS_max`: what the run-time resolution chooses from."""
    out.line()
    out.line(f"OVERLOADS_{group.name}: Final = overload_table([")
    for entry in group.entries:
        out.line(f"    OP_{entry.identifier}, call_{entry.identifier},")
    out.line("])")


def _emit_overloaded(out: Source, group: Group) -> None:
    with out.block(f"def {group.name}(*args: Any, **kwargs: Any) -> Any:"):
        out.docstring(function_text(group))
        if group.first.number_first:
            out.line("args = tensor_first(args)")
        out.line(f"return call_overload({group.name!r}, OVERLOADS_{group.name}, args, kwargs)")


def _emit_exact(out: Source, group: Group) -> None:
    entry = group.first
    has_out = takes_out(entry)
    returned = "Tensor" if returns_one_tensor(entry) else "Any"
    header = python_header(entry, group, has_out)
    emit_typing(out, group.name, header.text, returned)
    with out.block(f"def {group.name}({header.text}) -> Any:"):
        out.docstring(function_text(group))
        for line in header.before:
            out.line(line)
        if entry.number_first:
            first, second = (parameter.name for parameter in parameters(entry)[:2])
            with out.block(f"if not isinstance({first}, TensorBase):"):
                out.line(f"{first}, {second} = tensor_first(({first}, {second}))")
        emit_conversions(out, entry, group, skip=())
        # An argument can have the function's name, as in `threshold`.
        hidden = group.name in header.values
        itself = f"FUNCTION_{group.name}" if hidden else group.name
        emit_override(out, f"override({itself}, ({', '.join(header.values)},))")
        emit_result(out, entry, group, has_out)
    if hidden:
        out.line(f"{itself}: Final[Any] = {group.name}")


def emit_typing(out: Source, name: str, parameters: str, returned: str) -> None:
    """Declare that a function returns a Tensor, although its result is not checked.

    An override may return anything. Compiled code may still rely on the type, since formulas and
    composites run where nothing overrides: overloads are for the callers only.
    """
    if returned == "Any":
        return
    for _ in range(2):
        out.line("@overload")
        out.line(f"def {name}({parameters}) -> {returned}: ...")


def emit_override(out: Source, call: str) -> None:
    """Offer the call to the classes of the arguments. As in PyTorch, the arguments have been
    checked first, and the checks may have found a class that overrides functions."""
    with out.block("if OVERRIDES.active:"):
        out.line(f"handled = {call}")
        with out.block("if handled is not PROCEED:"):
            out.line("return handled")


def _deprecated_orders(
    entry: Entry, group: Group, is_method: bool, positional: list[str]
) -> tuple[list[str], list[str]]:
    """Parameters behind the positional ones for a deprecated order of arguments, and the lines
    that put what was given in that order where it belongs."""
    own = [name for name in positional if not (is_method and name == "input")]
    orders = [
        tuple(name for name in order if not (is_method and name == "self"))
        for order in entry.deprecated
    ]
    orders = [tuple("input" if name == "self" else name for name in order) for order in orders]
    if not orders:
        return [], []
    more = [f"argument{index}" for index in range(len(own) + 1, max(map(len, orders)) + 1)]
    moved = ", ".join(sorted(set().union(*orders)))
    given = ", ".join([*own, *more])
    return more, [
        f"if {more[0]} is not MISSING:",
        f"    {moved} = deprecated_order({group.name!r}, ({given},), {orders!r}, "
        f"{tuple(sorted(set().union(*orders)))!r}, ({moved},))",
        f"    {' = '.join(more)} = MISSING",
    ]


def python_header(entry: Entry, group: Group, has_out: bool, is_method: bool = False) -> Header:
    """Parameters of the public function, and lines that run before its checks.

    Those gather separate integers into a tuple, and read `axis` and `keepdims` where the schema
    has `dim` and `keepdim`. A required `dim` may then come under either name, so that it and the
    required ones behind it get a default, and are looked for by explicit code.
    """
    varargs = takes_varargs(entry)
    positional: list[str] = []
    keyword_only: list[str] = []
    aliases: list[str] = []
    required: list[str] = []
    before: list[str] = []
    positional_values: list[str] = []
    keyword_values: list[str] = []
    for parameter in parameters(entry):
        name = parameter.name
        default = parameter.default
        if varargs is not None and parameter.argument is varargs:
            positional.append("*args: Any")
            positional_values.append("args")
            keyword_values.append(name)
            keyword_only.append(f"{name}: Any = None")
            before.append(
                f"{name} = gather_varargs(args, {name}, {group.name!r}, "
                f"{name!r}, {default or 'MISSING'})"
            )
            continue
        alias = NUMPY_NAMES.get(name)
        if alias is not None:
            aliases.append(f"{alias}: Any = None")
            before.append(f"if {alias} is not None:")
            before.append(
                f"    {name} = keyword_alias({name}, {default or 'MISSING'}, {alias}, "
                f"{group.name!r}, {alias!r})"
            )
        if not default and not parameter.kwarg_only and (alias is not None or required):
            required.append(name)
            default = "MISSING"
        text = f"{name}: Any" + (f" = {default}" if default else "")
        (keyword_only if parameter.kwarg_only else positional).append(text)
        (keyword_values if parameter.kwarg_only else positional_values).append(name)
    more, lines = _deprecated_orders(entry, group, is_method, positional_values)
    positional.extend(f"{name}: Any = MISSING" for name in more)
    positional_values.extend(more)
    before.extend(lines)
    if required:
        values = ", ".join(required)
        names = ", ".join(repr(name) for name in required)
        before.append("if " + " or ".join(f"{name} is MISSING" for name in required) + ":")
        before.append(f"    raise_missing({group.name!r}, ({values},), ({names},))")
    if has_out and entry.takes_requires_grad:
        before.append("if out is not None:")
        before.append(f"    dtype, device = like_out({group.name!r}, out, dtype, device)")
    elif has_out and any(argument.name == "dtype" for argument in entry.schema.arguments):
        before.append("if out is not None:")
        first = parameters(entry)[0].name
        before.append(f"    dtype = accumulated_dtype({group.name!r}, {first}, out, dtype)")
    if has_out:
        keyword_only.append("out: Any = None")
        keyword_values.append("out")
    if entry.takes_requires_grad:
        before.append("if layout is not None or pin_memory is not None:")
        before.append(f"    check_memory({group.name!r}, layout, pin_memory)")
        keyword_only.extend(["layout: Any = None", "pin_memory: Any = None"])
        keyword_values.extend(["layout", "pin_memory"])
        keyword_only.append("requires_grad: bool = False")
        keyword_values.append("requires_grad")
    keyword_only.extend(aliases)
    if keyword_only and varargs is None:
        positional.append("*")
    text = ", ".join(positional + keyword_only)
    return Header(text, before, positional_values + keyword_values)


def emit_conversions(out: Source, entry: Entry, group: Group, skip: tuple[str, ...]) -> None:
    """Check and normalise each argument; `skip` names those that are right already."""
    taken = _emit_operands(out, entry, group.name, skip)
    receivers = 0
    for index, parameter in enumerate(parameters(entry)):
        # Positions count what is given between the parentheses.
        position = 0 if parameter.kwarg_only else index + 1 - receivers
        receivers += parameter.name in skip
        if parameter.name in skip:
            continue
        if parameter.name in taken:
            continue
        if index == group.position:
            with out.block(f"if not isinstance({parameter.name}, TensorBase):"):
                out.line(
                    f"scalar_value = scalar_argument({parameter.name}, {group.name!r}, "
                    f"{parameter.name!r}, {position}, True)"
                )
            continue
        emit_conversion(out, parameter, group.name, index, position)


def _emit_operands(out: Source, entry: Entry, function: str, skip: tuple[str, ...]) -> list[str]:
    """Some functions take numbers for tensors. Returns the names of such arguments."""
    if not entry.numbers:
        return []
    found = [(i, p) for i, p in enumerate(parameters(entry)) if p.argument.type.base == "Tensor"]
    names = [parameter.name for _, parameter in found]
    values = ["self" if name in skip else name for name in names]
    asked = [
        (index, name) for (index, _), name in zip(found, names, strict=True) if name not in skip
    ]
    receivers = len(names) - len(asked)
    with out.block(f"if {' and '.join(f'isinstance({name}, TensorBase)' for _, name in asked)}:"):
        for index, name in asked:
            out.line(f"a{index} = {name}")
    with out.block("else:"):
        locals_ = ", ".join(f"a{index}" for index, _ in asked)
        given = f"({', '.join(values)},), {function!r}, {tuple(names)!r}, {receivers}"
        rest = f"[{receivers}:]" if receivers else ""
        out.line(f"{locals_}, = operands({given}){rest}")
    return names


def emit_conversion(
    out: Source, parameter: Parameter, function: str, index: int, position: int
) -> None:
    if parameter.converter in ("any_argument", "optional_any_argument"):
        out.line(f"a{index} = {parameter.name}")
        return
    size = parameter.argument.type.list_size
    expand = f", {size}" if parameter.argument.type.base == "int" and size is not None else ""
    out.line(
        f"a{index} = {parameter.converter}({parameter.name}, {function!r}, {parameter.name!r}, "
        f"{position}{expand})"
    )


def emit_result(out: Source, entry: Entry, group: Group, has_out: bool, module: str = "") -> None:
    """Call the operator with the converted arguments `a0, a1, ...`, and return."""
    if has_out:
        # What is given has its dtype already.
        with out.block("if out is not None:"):
            _emit_call(out, entry, group, _call_into(entry, group))
    _emit_call(out, entry, group, f"result = {module}call_{{}}({{}})")
    if entry.takes_requires_grad:
        with out.block("if requires_grad:"):
            out.line("require_grad(result)")
    # Operators give a list of tensors, functions and methods a tuple, as in PyTorch.
    out.line("return tuple(result)" if returns_tensors(entry) else "return result")


def _call_into(entry: Entry, group: Group) -> str:
    """The line that calls an overload, `{}`, with arguments, `{}`, for a tensor given as `out`."""
    read = [
        parameter.name if index == group.position else f"a{index}"
        for index, parameter in enumerate(parameters(entry))
        if parameter.argument.type.base == "Tensor"
    ]
    apart = f"({', '.join(read)},)" if read else "()"
    call = f"{group.name!r}, out, call_{{}}, ({{}},), {apart}, {bool(entry.structure)}"
    if returns_one_tensor(entry):
        return f'return cast("Tensor", compute_into({call}))'
    return f"return compute_into({call})"


def _emit_call(out: Source, entry: Entry, group: Group, line: str) -> None:
    """Emit the line with the call and its arguments; twice if it depends on a type."""
    names = [f"a{index}" for index in range(len(entry.schema.arguments))]
    if group.kind != "scalar_or_tensor":
        out.line(line.format(entry.identifier, ", ".join(names)))
        return
    position = group.position
    parameter = parameters(entry)[position].name
    with out.block(f"if isinstance({parameter}, TensorBase):"):
        out.line(f"tensor_value = {parameter}")
        names[position] = "tensor_value"
        out.line(line.format(group.by_type("Tensor").identifier, ", ".join(names)))
    with out.block("else:"):
        names[position] = "scalar_value"
        out.line(line.format(group.by_type("Scalar").identifier, ", ".join(names)))
