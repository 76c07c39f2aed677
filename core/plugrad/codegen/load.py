"""The generator at load time: a third party's YAML becomes operators in this process."""

from __future__ import annotations

import re
import threading
import types
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from plugrad.codegen.formula import analyse
from plugrad.codegen.forward import terms_of
from plugrad.codegen.generate import entries_of, generate_family
from plugrad.codegen.groups import group_entries
from plugrad.codegen.model import Entry, EntryError
from plugrad.codegen.parts import PYTHON_NAMES
from plugrad.dispatch.fork import hold_while_forking
from plugrad.dispatch.plugin_hooks import note
from plugrad.dispatch.scope import Locked

if TYPE_CHECKING:
    from plugrad.dispatch.operator import Operator

Functions: TypeAlias = Mapping[str, Any] | types.ModuleType

# What `load` made, by namespace: expressions see the operators of families loaded before.
_families: dict[str, list[types.ModuleType]] = {}
_lock = threading.Lock()
hold_while_forking(_lock)


def load(
    source: str | Path,
    *,
    namespace: str,
    functions: Functions | Iterable[Functions] | None = None,
    name: str | None = None,
    kept: list[types.ModuleType] | None = None,
) -> types.ModuleType:
    """Define the operators of a YAML file or text; returns the module with their functions.

    Args:
        source: path of a YAML file, or its text.
        namespace: the operators' namespace: ``special`` gives ``special::erfcx``.
        functions: what the entries name: prepare, composite and formula functions, as a module,
            a mapping or a list of these. Expressions see the operators defined here first, then
            these functions, then the operators of the namespace's families that were loaded
            before, then every operator of plugrad.
        name: name of the family, by default the file's stem.
        kept: gets the module before it defines anything.

    Raises:
        EntryError: an entry is wrong, or names a missing function; the message names operator and
            key. Then nothing is defined.
        RuntimeError: an operator of that name is defined already.

    >>> from plugrad.codegen import load, unload
    >>> ops = load('''
    ... - func: double(Tensor self) -> Tensor
    ...   composite: double
    ...   doc: Twice the input.
    ... ''', namespace="demo_load", functions={"double": lambda x: x + x})
    >>> import plugrad
    >>> ops.double(plugrad.ones(2))
    tensor([2., 2.])
    >>> unload(ops)
    """
    is_path = isinstance(source, Path) or "\n" not in source
    text = Path(source).read_text() if is_path else str(source)
    family = name or (Path(source).stem if is_path else namespace)
    try:
        return _load(text, namespace, functions, family, kept)
    except EntryError as error:
        if is_path:
            error.place = f"{source}:{_line_of(error, text)}"
        raise


def _line_of(error: EntryError, text: str) -> int:
    """The line of the entry that an error names, 1 if it names none."""
    mark = getattr(error.__cause__, "problem_mark", None)
    if mark is not None:
        return int(mark.line) + 1
    named = re.match(r"[^:]*: ([\w.]+)", str(error))
    for number, line in enumerate(text.splitlines(), 1):
        entry = re.match(r"- *func: *([\w.]+)", line)
        if named and entry and entry[1] == named[1]:
            return number
    return 1


def _load(
    text: str,
    namespace: str,
    functions: Functions | Iterable[Functions] | None,
    family: str,
    kept: list[types.ModuleType] | None,
) -> types.ModuleType:
    import yaml

    from plugrad._generated import functions as core_functions

    try:
        # libyaml's loader, where PyYAML was built with it, takes a tenth of the time.
        data = yaml.load(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except yaml.YAMLError as error:
        raise EntryError(f"{family}.yaml: {error}") from error
    entries = entries_of(data, family)
    given = _gathered(functions)
    known = _Functions(core_functions, _families.get(namespace, []))
    formula_functions = _formula_functions(entries, given, known)
    _check_functions(entries, given, formula_functions, known)
    module = types.ModuleType(f"{namespace}.{family}", f"Operators of {namespace}: {family}.")
    scope = vars(module)
    own = types.SimpleNamespace(**given)
    scope["prepare"] = scope["composite"] = scope["formulas"] = own
    scope["F"] = _Functions(core_functions, [module, *_families.get(namespace, [])])
    groups = group_entries(entries)
    scope["__all__"] = [
        group.name for group in groups if any(entry.is_function for entry in group.entries)
    ]
    code = generate_family(family, entries, groups, formula_functions, namespace)
    code += "\nfrom plugrad._generated.unpack import unpack, unpack_optional, unpack_result\n"
    note(module)
    if kept is not None:
        kept.append(module)
    try:
        exec(compile(code, f"<plugrad.codegen: {namespace}.{family}>", "exec"), scope)
        with Locked(_lock):
            _families[namespace] = [*_families.get(namespace, ()), module]
    except BaseException:
        unload(module)
        raise
    return module


def is_loaded(module: types.ModuleType) -> bool:
    """Whether `load` made a module, and `unload` has not undone it."""
    return any(module is family for families in list(_families.values()) for family in families)


def _gathered(functions: Functions | Iterable[Functions] | None) -> dict[str, Any]:
    if functions is None:
        return {}
    if isinstance(functions, types.ModuleType) or isinstance(functions, Mapping):  # noqa: SIM101
        parts: Iterable[Functions] = (functions,)
    else:
        parts = functions
    found: dict[str, Any] = {}
    for part in parts:
        found.update(vars(part) if isinstance(part, types.ModuleType) else part)
    return {key: value for key, value in found.items() if not key.startswith("__")}


def unload(module: types.ModuleType) -> None:
    """Undo `load`: remove the operators that it defined. Idempotent.

    Graphs that were recorded with them can still be run backwards.
    """
    from plugrad.dispatch.operator import retract
    from plugrad.tensor.calls.overridable import OVERRIDES

    with Locked(_lock):
        for namespace, families in list(_families.items()):
            _families[namespace] = [family for family in families if family is not module]
    for op in operators_of(module):
        retract(op)
        function = OVERRIDES.functions.get((op.namespace, op.name))
        if function is not None and function is vars(module).get(op.name):
            del OVERRIDES.functions[op.namespace, op.name]


def operators_of(module: types.ModuleType) -> list[Operator]:
    """The operators that `load` defined for a module, in the order of the file."""
    from plugrad.dispatch.operator import Operator

    return [
        value
        for name, value in vars(module).items()
        if name.startswith("OP_") and isinstance(value, Operator)
    ]


def _formula_functions(
    entries: list[Entry], given: Mapping[str, Any], known: _Functions
) -> set[str]:
    """Which of the functions given an expression means by their name.

    Not those that have the name of an operator in the same file, nor one that an entry names as
    its `prepare` or decomposition, if there is an operator of that name.
    """
    operators = {entry.schema.name for entry in entries}
    parts = {part for entry in entries for part in (entry.prepare, entry.composite, entry.explicit)}
    shadowed = {name for name in parts if hasattr(known, name)}
    return {name for name in given if name not in operators | shadowed}


def _check_functions(
    entries: list[Entry],
    given: Mapping[str, Any],
    formula_functions: set[str],
    known: _Functions,
) -> None:
    """EntryError if an entry names a function that was not passed."""
    operators = {entry.schema.name for entry in entries}
    for entry in entries:
        if entry.functional is not None:
            continue
        where = f"{entry.family}.yaml: {entry.schema.full_name}"
        for key in ("prepare", "composite", "explicit"):
            wanted = getattr(entry, key)
            if not wanted:
                continue
            if wanted not in given:
                raise EntryError(
                    f"{where}: {key} names {wanted!r}, which is not among the functions given"
                    f"{_hint(wanted, given)}"
                )
            if not callable(given[wanted]):
                raise EntryError(
                    f"{where}: {key} names {wanted!r}, which is not a function but of type "
                    f"{type(given[wanted]).__name__}"
                )
        uses = [
            (f"derivative of {', '.join(inputs)}", analyse(entry, inputs, expression).functions)
            for inputs, expression in entry.derivatives
        ]
        uses += [("forward", term.functions) for term in terms_of(entry)]
        for what, functions in uses:
            for used in functions:
                if used in operators | formula_functions | PYTHON_NAMES or hasattr(known, used):
                    continue
                raise EntryError(
                    f"{where}: {what} uses {used!r}, which is neither "
                    f"an operator nor among the functions given"
                    f"{_hint(used, [*given, *operators, *dir(known)])}"
                )


def _hint(name: str, valid: Iterable[str]) -> str:
    near = get_close_matches(name, list(valid), 1)
    return f"; did you mean {near[0]!r}?" if near else ""


class _Functions:
    """Where an expression's free names are found: the namespace's operators, then plugrad's."""

    def __init__(self, core: types.ModuleType, families: Sequence[types.ModuleType]) -> None:
        self._core = core
        self._families = families

    def __getattr__(self, name: str) -> Any:
        for family in self._families:
            if name in family.__all__:
                return getattr(family, name)
        found = getattr(self._core, name, None)
        if found is None:
            raise AttributeError(f"a derivative uses {name!r}, neither an operator nor a function")
        return found

    def __dir__(self) -> list[str]:
        own = [name for family in self._families for name in family.__all__]
        return [*own, *self._core.__all__]
