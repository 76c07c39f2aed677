"""Emits, for one operator: its node, its autograd kernel and its call function."""

from __future__ import annotations

from plugrad.codegen.formula import Formula, analyse, local_name
from plugrad.codegen.model import ELEMENTWISE, INPLACE_VIEW, Entry
from plugrad.codegen.signature import default_source, native_type, returns_one_tensor
from plugrad.codegen.source import Source
from plugrad.dispatch.schema import Argument


def formulas_of(entry: Entry) -> list[Formula]:
    return [analyse(entry, inputs, expression) for inputs, expression in entry.derivatives]


def node_class_name(entry: Entry) -> str:
    """The name of the generated class."""
    return f"Node_{entry.node_owner.identifier}"


def function_of(entry: Entry, part: str) -> str:
    """The function that an entry names as one of its parts, or the adapter around it."""
    if entry.settings is not None:
        return f"{part}_{entry.identifier}"
    return f"{'prepare' if part == 'prepare' else 'composite'}.{getattr(entry, part)}"


def emit_node(out: Source, entry: Entry, formulas: list[Formula]) -> None:
    """The node class: saved values, `apply`, `release_variables`."""
    saved = _saved_tensors(entry, formulas)
    results = _saved_outputs(formulas)
    attributes = _saved_attributes(formulas)
    scalars = _saved_scalars(formulas)
    lists = {a.name for a in entry.tensor_arguments() if a.type.is_list}
    inputs = differentiable_arguments(entry)
    counted = [argument.name for argument in inputs if argument.type.is_list]
    fields = [f"saved_{name}" for name in saved]
    fields += [_result_field(entry, number) for number in results]
    out.line()
    out.line()
    out.line("@final")
    with out.block(f"class {node_class_name(entry)}(Node):"):
        with out.block("def __init__(self, sequence_nr: i64) -> None:"):
            out.line("super().__init__(sequence_nr)")
            for argument in saved:
                if argument in lists:
                    out.line(f"self.saved_{argument}: list[SavedVariable | None] | None = None")
                else:
                    out.line(f"self.saved_{argument}: Kept = None")
                    out.line(f"self.stamp_{argument}: i64 = 0")
            for field in fields[len(saved) :]:
                out.line(f"self.{field}: SavedVariable | None = None")
            for attribute in [*_attribute_names(attributes), *scalars]:
                out.line(f"self.with_{attribute}: Any = None")
            for argument in counted:
                out.line(f"self.count_{argument}: i64 = 0")
        out.line()
        header = "def apply(self, grads: list[TensorBase | None]) -> list[TensorBase | None]:"
        with out.block(header):
            number = _stands_for_tensor(entry, scalars)
            if fields or number:
                with out.block("if self._released:"):
                    out.line("raise_freed()")
            _emit_apply(out, entry, formulas, lists)
        if fields or number:
            always = number or any(name in lists for name in saved)
            _emit_release(out, fields, always)


def _stands_for_tensor(entry: Entry, scalars: list[str]) -> bool:
    """Whether a saved number is one that PyTorch makes a tensor of, which is freed like others."""
    return any(a.type.base == "Scalar" and a.name == "other" for a in entry.schema.arguments) and (
        "other" in scalars
    )


def _counts_number(entry: Entry) -> bool:
    """Whether PyTorch makes a tensor of the second operand, which then has an edge to nowhere."""
    return entry.schema.name.removesuffix("_") in ("add", "sub", "mul", "div") and any(
        a.type.base == "Scalar" and a.name == "other" for a in entry.schema.arguments
    )


def _emit_release(out: Source, fields: list[str], always: bool) -> None:
    """Only a node that did save something complains when it runs again."""
    out.line()
    with out.block("def _release_variables(self) -> None:"):
        if always:
            out.line("self._released = True")
            for field in fields:
                out.line(f"self.{field} = None")
        else:
            with out.block(f"if {' or '.join(f'self.{field} is not None' for field in fields)}:"):
                out.line("self._released = True")
                for field in fields:
                    out.line(f"self.{field} = None")


def _result_field(entry: Entry, number: int) -> str:
    """Where output `number` is saved: `saved_result`, or under its name among several."""
    owner = entry.node_owner
    returns = owner.schema.returns
    if returns_one_tensor(owner):
        return "saved_result"
    name = returns[number].name if number < len(returns) else None
    if name is None or any(name == argument.name for argument in owner.schema.arguments):
        return f"saved_result{number}"
    return f"saved_{name}"


def _emit_apply(out: Source, entry: Entry, formulas: list[Formula], lists: set[str]) -> None:
    inputs = differentiable_arguments(entry)
    has_lists = any(argument.type.is_list for argument in inputs)
    total = len(inputs) + _counts_number(entry)
    count = "self._edge_count" if has_lists else str(total)
    if not any(formula.uses_grads for formula in formulas):
        out.line("grad_in = grads[0]")
        with out.block("if grad_in is None:"):
            out.line(f"return [None] * {count}" if has_lists else _nones(total))
        out.line('grad = cast("Tensor", grad_in)')
    else:
        with out.block("if not any_defined(grads):"):
            out.line(f"return [None] * {count}")
        out.line("given: list[Any] = list(grads)")
    out.line(
        f"found: list[TensorBase | None] = [None] * {count}"
        if has_lists
        else f"found: list[TensorBase | None] = [{', '.join(['None'] * total)}]"
    )
    if any(formula.uses_mask for formula in formulas):
        out.line("mask: Any = ()")
    if any(
        len(formula.inputs) > 1 or inputs[_place(inputs, formula.inputs[0])].type.is_list
        for formula in formulas
    ):
        out.line("several: Any = ()")
    shared = _emit_shared_unpack(out, entry, formulas, lists)
    for formula in formulas:
        places = [_place(inputs, name) for name in formula.inputs]
        condition = " or ".join(_wanted(inputs, place) for place in places)
        with out.block(f"if {condition}:"):
            _emit_unpack(out, entry, formula, lists, shared)
            if formula.uses_mask:
                out.line(f"mask = ({', '.join(_wanted(inputs, place) for place in places)},)")
            if len(places) > 1:
                out.line(f"several = {formula.code}")
                for position, place in enumerate(places):
                    with out.block(f"if {_wanted(inputs, place)}:"):
                        out.line(f"found[{_offset(inputs, place)}] = several[{position}]")
            elif inputs[places[0]].type.is_list:
                start = _offset(inputs, places[0])
                name = inputs[places[0]].name
                out.line(f"several = {formula.code}")
                with (
                    out.block(f"for position in range(self.count_{name}):"),
                    # Hooks see all results of the formula; a pass for some inputs uses only theirs.
                    out.block(f"if not self._partial or self._wants({start} + position):"),
                ):
                    out.line(f"found[{start} + position] = several[position]")
            else:
                out.line(f"found[{_offset(inputs, places[0])}] = {formula.code}")
    out.line("return found")


def _nones(count: int) -> str:
    return f"return [{', '.join(['None'] * count)}]"


def _emit_shared_unpack(
    out: Source, entry: Entry, formulas: list[Formula], lists: set[str]
) -> set[str]:
    """Unpack what several formulas use, once: an unpack hook may be costly, or good for one call.

    Returns the local names that exist now.
    """
    inputs = differentiable_arguments(entry)
    users: dict[str, list[Formula]] = {}
    for formula in formulas:
        for local in _unpacked_names(formula):
            users.setdefault(local, []).append(formula)
    shared = {local for local, found in users.items() if len(found) > 1}
    for local in [name for name in users if name in shared]:
        wanted = {name for formula in users[local] for name in formula.inputs}
        line = _unpack_line(entry, local, lists)
        if wanted == {argument.name for argument in inputs}:
            out.line(line)
        else:
            places = [i for i, argument in enumerate(inputs) if argument.name in wanted]
            with out.block(f"if {' or '.join(_wanted(inputs, place) for place in places)}:"):
                out.line(line)
    return shared


def _unpacked_names(formula: Formula) -> list[str]:
    """The local variables for the saved tensors that a formula uses."""
    return [
        *(local_name(name) for name in formula.tensors),
        *(f"result{number}" for number in formula.outputs),
    ]


def _unpack_line(entry: Entry, local: str, lists: set[str]) -> str:
    for argument in entry.tensor_arguments():
        if local_name(argument.name) == local:
            kept = f"self.saved_{argument.name}"
            if argument.name in lists:
                return f"{local} = unpack_list({kept}, self)"
            unpack = "unpack_optional" if argument.type.optional else "unpack"
            return f"{local} = {unpack}({kept}, self.stamp_{argument.name}, self)"
    field = _result_field(entry, int(local.removeprefix("result")))
    return f"{local} = unpack_result(self.{field}, self)"


def _emit_unpack(
    out: Source, entry: Entry, formula: Formula, lists: set[str], shared: set[str]
) -> None:
    for local in _unpacked_names(formula):
        if local not in shared:
            out.line(_unpack_line(entry, local, lists))
    for name, attribute in formula.attributes:
        out.line(f"{local_name(name)}_{attribute} = self.with_{name}_{attribute}")
    for name in formula.scalars:
        out.line(f"{local_name(name)} = self.with_{name}")


def _place(inputs: list[Argument], name: str) -> int:
    return next(index for index, argument in enumerate(inputs) if argument.name == name)


def _offset(inputs: list[Argument], place: int) -> str:
    """Where an input's edges start: lists before it count with all their tensors."""
    lists = [a.name for a in inputs[:place] if a.type.is_list]
    fixed = place - len(lists)
    return " + ".join([str(fixed), *(f"self.count_{name}" for name in lists)])


def _wanted(inputs: list[Argument], place: int) -> str:
    start = _offset(inputs, place)
    argument = inputs[place]
    if argument.type.is_list:
        return f"wants_any(self, {start}, self.count_{argument.name})"
    return f"self._wants({start})"


def differentiable_arguments(entry: Entry) -> list[Argument]:
    """The arguments that have a derivative, in schema order: the node's edges."""
    named = {name for inputs, _ in entry.derivatives for name in inputs}
    return [argument for argument in entry.schema.arguments if argument.name in named]


def _saved_tensors(entry: Entry, formulas: list[Formula]) -> list[str]:
    used = {name for formula in formulas for name in formula.tensors}
    return [a.name for a in entry.schema.arguments if a.name in used]


def _saved_outputs(formulas: list[Formula]) -> list[int]:
    return sorted({number for formula in formulas for number in formula.outputs})


def saved_results(entry: Entry, formulas: list[Formula]) -> list[tuple[str, int]]:
    """The fields of the node that hold results, and which ones."""
    return [(_result_field(entry, number), number) for number in _saved_outputs(formulas)]


def _saved_attributes(formulas: list[Formula]) -> list[tuple[str, str]]:
    return sorted({pair for formula in formulas for pair in formula.attributes})


def _attribute_names(attributes: list[tuple[str, str]]) -> list[str]:
    return [f"{name}_{attribute}" for name, attribute in attributes]


def _saved_scalars(formulas: list[Formula]) -> list[str]:
    return sorted({name for formula in formulas for name in formula.scalars})


def emit_autograd_kernel(out: Source, entry: Entry, formulas: list[Formula]) -> None:
    """The kernel of the Autograd key: record a node if an input requires gradients, redispatch."""
    arguments = entry.schema.arguments
    names = [argument.name for argument in arguments]
    inputs = differentiable_arguments(entry)
    single = returns_one_tensor(entry)
    inplace = entry.schema.is_inplace
    returned = "TensorBase" if single else "Any"
    typed = ", ".join(f"{a.name}: {native_type(a.type)}" for a in arguments)
    passed = "".join(f", {name}" for name in names)
    out.line()
    out.line()
    with out.block(f"def autograd_{entry.identifier}(keyset: i64, {typed}) -> {returned}:"):
        out.line(f"return record_{entry.identifier}(current_state(), keyset{passed})")
    out.line()
    out.line()
    parameters = f"state: LocalState, keyset: i64, {typed}"
    with out.block(f"def record_{entry.identifier}({parameters}) -> {returned}:"):
        run = _run(entry, "keyset & AFTER_AUTOGRAD", "True")
        result = f'cast("TensorBase", {run})' if single else run
        wanted = " or ".join(_needs_grad(argument) for argument in inputs)
        if inplace and entry.structure != INPLACE_VIEW:
            # Integers have no gradient, whatever is written to them.
            wanted = f"({wanted}) and self.dtype.category >= FLOATING"
        with out.block(f"if not (state.grad_enabled and ({wanted})):"):
            out.line(f"return {result}")
        if inplace:
            out.line("check_inplace(self)")
        out.line("number = state.sequence_nr")
        out.line("state.sequence_nr = number + 1")
        out.line(f"node = {node_class_name(entry)}(number)")
        _emit_edges(out, inputs, _counts_number(entry))
        _emit_saves(out, entry, formulas)
        out.line(f"out: {returned} = {result}")
        _emit_history(out, entry, formulas)
        for number in _saved_outputs(formulas):
            output = "out" if single else f"out[{number}]"
            if inplace:
                output = "self"
            out.line(f"node.{_result_field(entry, number)} = SavedVariable({output}, {number})")
        out.line("return out")


def _run(entry: Entry, keyset: str, below: str) -> str:
    """The call that runs the kernel; see plugrad/ops/running.py.

    Args:
        keyset: source of the key set.
        below: source of whether autograd redispatches.
    """
    arguments = entry.schema.arguments
    names = [argument.name for argument in arguments]
    beginning = f"state, OP_{entry.identifier}, {keyset}, {below}, "
    listed = ", ".join(names)
    gathered = f"({listed}{',' if names else ''})"
    if entry.schema.is_inplace and not arguments[0].type.is_list:
        others = "".join(f"{name}, " for name in names[1:])
        return f"run_inplace({beginning}{names[0]}, ({others}))"
    if entry.structure == "unary":
        return f"run_unary({beginning}{listed})"
    if entry.structure and entry.structure != ELEMENTWISE:
        both = [argument.type.base for argument in arguments[:2]] == ["Tensor"] * 2
        kind = f"{'scaled_' if len(names) > 2 else ''}{'tensors' if both else 'numbers'}"
        return f"run_{kind}({beginning}{listed})"
    if entry.schema.is_view and not entry.composite:
        return f"run_view({beginning}{gathered})"
    return f"run({beginning}{gathered})"


def _needs_grad(argument: Argument) -> str:
    if argument.type.is_list:
        return f"any_needs_grad({argument.name})"
    if argument.type.optional:
        return f"optional_needs_grad({argument.name})"
    return f"needs_grad({argument.name})"


def _emit_edges(out: Source, inputs: list[Argument], counts_number: bool) -> None:
    if not any(argument.type.is_list for argument in inputs):
        for position, argument in enumerate(inputs):
            function = "link_optional" if argument.type.optional else "link"
            out.line(f"wanted{position} = {function}(node, {argument.name})")
        if counts_number:
            out.line("node._append_edge(None, 0)")
        return
    out.line("edge_list: list[Edge] = []")
    for argument in inputs:
        name = argument.name
        if argument.type.is_list:
            out.line(f"for item in {name}:")
            out.line("    edge_list.append(optional_edge(item))")
            out.line(f"node.count_{name} = len({name})")
        else:
            out.line(f"edge_list.append(optional_edge({name}))")
    out.line("edges = tuple(edge_list)")
    out.line("node._set_next_edges(edges)")


def _emit_saves(out: Source, entry: Entry, formulas: list[Formula]) -> None:
    """Save a tensor only if a formula that uses it will be requested."""
    inputs = differentiable_arguments(entry)
    by_name = {argument.name: argument for argument in entry.schema.arguments}
    has_lists = any(argument.type.is_list for argument in inputs)
    for name in _saved_tensors(entry, formulas):
        users = [formula for formula in formulas if name in formula.tensors]
        needed = {user for formula in users for user in formula.inputs}
        argument = by_name[name]
        if argument.type.is_list:
            save = f"node.saved_{name} = save_list({name})"
        elif entry.schema.is_inplace and name == "self":
            save = f"node.saved_{name} = SavedVariable(copy_of(self))"
        else:
            ending = "_optional" if argument.type.optional else ""
            save = (
                f"node.saved_{name} = keep{ending}({name})\n"
                f"node.stamp_{name} = stamp_of{ending}({name})"
            )
        if has_lists or needed == {a.name for a in inputs}:
            out.lines(save)
        else:
            places = [i for i, a in enumerate(inputs) if a.name in needed]
            condition = " or ".join(f"wanted{place}" for place in places)
            with out.block(f"if {condition}:"):
                out.lines(save)
    for name, attribute in _saved_attributes(formulas):
        argument = by_name[name]
        read = {
            "shape": "sizes_of({})",
            "dtype": "{}.dtype",
            "device": "{}.device",
            "ndim": "len(sizes_of({}))",
        }[attribute]
        if argument.type.is_list:
            value = f"[{read.format('item')} for item in {name}]"
        elif argument.type.optional:
            value = f"None if {name} is None else {read.format(name)}"
        else:
            value = read.format(name)
        out.line(f"node.with_{name}_{attribute} = {value}")
    for name in _saved_scalars(formulas):
        out.line(f"node.with_{name} = {name}")


def _emit_history(out: Source, entry: Entry, formulas: list[Formula]) -> None:
    if entry.structure == INPLACE_VIEW:
        out.line("replace_history(self, node)")
    elif entry.schema.is_inplace:
        out.line("rebase_history(self, node)")
    elif returns_one_tensor(entry):
        out.line("set_history(out, node)")
    elif len(entry.schema.returns) == 1:
        out.line("set_history_list(out, node)")
    else:
        # Formulas with `grad` use only the first result's gradient.
        all_have = any(formula.uses_grads for formula in formulas)
        for number, item in enumerate(
            entry.schema.returns if all_have else entry.schema.returns[:1]
        ):
            if item.type.base == "Tensor":
                out.line(f"set_history(out[{number}], node)")


def emit_call(out: Source, entry: Entry) -> None:
    """The typed entry into dispatch, with the key set computed in line."""
    arguments = entry.schema.arguments
    names = [argument.name for argument in arguments]
    op = f"OP_{entry.identifier}"
    returned = "Tensor" if returns_one_tensor(entry) else "Any"
    typed = ", ".join(
        f"{a.name}: {native_type(a.type)}"
        + (f" = {default_source(a)}" if _trails(arguments, i) else "")
        for i, a in enumerate(arguments)
    )
    out.line()
    out.line()
    with out.block(f"def call_{entry.identifier}({typed}) -> {returned}:"):
        out.line("state = current_state()")
        out.line(f"keyset = ({_keyset(entry)} | state.included) & state.kept")
        result = f'cast("{returned}", {{}})' if returned != "Any" else "{}"
        if entry.derivatives:
            # The generated kernel is called natively, unless another has taken its place.
            recorded = f"record_{entry.identifier}({', '.join(['state', 'keyset', *names])})"
            with out.block(f"if is_recorded(state, {op}, keyset):"):
                out.line(f"return {result.format(recorded)}")
        elif entry.composite and entry.functional is None and not entry.is_factory:
            # A function of the core, unless something else has taken its place in the table.
            given = ", ".join(
                f'cast("Any", {a.name})' if a.type.base == "Tensor" else a.name for a in arguments
            )
            composed = f"{function_of(entry, 'composite')}({given})"
            with out.block(f"if is_composed(state, {op}, keyset):"):
                with out.block("try:"):
                    out.line(f"return {result.format(composed)}")
                with out.block("except OperatorNotFoundError as error:"):
                    out.line(f"raise needed_by({op}, error) from None")
        if entry.is_factory:
            given = f"({', '.join(names)}{',' if names else ''})"
            out.line(f"return {result.format(f'run_factory(state, {op}, keyset, {given})')}")
        else:
            out.line(f"return {result.format(_run(entry, 'keyset', 'False'))}")


def _trails(arguments: tuple[Argument, ...], index: int) -> bool:
    """Whether an argument and all after it have defaults."""
    return all(argument.has_default for argument in arguments[index:])


def _keyset(entry: Entry) -> str:
    parts: list[str] = []
    for argument in entry.tensor_arguments():
        name = argument.name
        if argument.type.is_list:
            parts.append(f"keyset_of_list({name})")
        elif argument.type.optional:
            parts.append(f"optional_keyset({name})")
        else:
            parts.append(f"{name}._keyset")
    if not parts:
        return "BACKEND_SELECT_BIT"
    return " | ".join(parts)
