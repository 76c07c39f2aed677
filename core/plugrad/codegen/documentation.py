"""Writes the docstrings of public functions and methods, from the operators' entries.

If an entry has no text for an argument, it comes from the schema and from the usual meaning of that
name, so every docstring describes its arguments.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Mapping
from typing import Final

from plugrad.codegen.groups import Group
from plugrad.codegen.model import Entry, EntryError
from plugrad.codegen.signature import Parameter, parameters, returns_tensors, takes_out
from plugrad.dispatch.schema import SchemaType

# One and several of each type of a schema.
_TYPES: Final[Mapping[str, tuple[str, str]]] = {
    "Tensor": ("a tensor", "tensors"),
    "Scalar": ("a number", "numbers"),
    "int": ("an int", "ints"),
    "float": ("a float", "floats"),
    "bool": ("a bool", "bools"),
    "str": ("a string", "strings"),
    "ScalarType": ("a dtype", "dtypes"),
    "Device": ("a device or its name", "devices"),
    "Generator": ("a `Generator`", "generators"),
    "MemoryFormat": ("a memory format", "memory formats"),
}
# The meaning of arguments with these names, unless an entry describes them under `args:`.
_MEANINGS: Final[Mapping[str, str]] = {
    "atol": "the absolute tolerance",
    "bias": "is added to the result",
    "ceil_mode": "round the number of windows up, not down",
    "copy": "copy even if there is nothing to convert",
    "count_include_pad": "count the padding as elements of a window",
    "descending": "sort from the largest to the smallest",
    "device": "the device of the result; the default device if it is None",
    "dim": "the dimension; negative ones count from the end",
    "dim0": "a dimension; negative ones count from the end",
    "dim1": "a dimension; negative ones count from the end",
    "dim2": "a dimension; negative ones count from the end",
    "dims": "the dimensions; negative ones count from the end",
    "dtype": "the dtype of the result",
    "end": "where the range ends; it is not part of it",
    "equal_nan": "whether nan equals nan",
    "fill_value": "the value of all elements",
    "generator": "draws the random numbers; the default generator if it is None",
    "groups": "how many blocks of channels are handled apart from each other",
    "ignore_index": "a class that does not count",
    "index": "the positions",
    "indices": "the positions",
    "keepdim": "keep the dimensions that are reduced, with length 1",
    "kernel_size": "the size of a window",
    "largest": "the largest elements, not the smallest",
    "mask": "where to do it, of dtype bool",
    "max": "the upper bound",
    "memory_format": "the order of the result's elements in memory",
    "min": "the lower bound",
    "non_blocking": "do not wait for the copy, where the backend can do so",
    "num_samples": "how many to draw",
    "offset": "which diagonal; 0 is the main one, positive ones are above it",
    "reduction": '"none", "mean" or "sum" of the losses',
    "repeats": "how often each is repeated",
    "rounding_mode": '"floor", "trunc", or None for no rounding',
    "rtol": "the relative tolerance",
    "size": "the sizes of the result",
    "sorted": "whether the result is in order",
    "sorter": "the order that sorts `sorted_sequence`",
    "stable": "keep the order of elements that are equal",
    "start": "where the range begins",
    "step": "the distance between two elements of the range",
    "steps": "how many elements the result has",
    "storage_offset": "where the first element is, counted in elements of the storage",
    "stride": "the step from one window, or element, to the next",
    "target": "the tensor or number to compare with",
    "training": "whether to act as in training",
    "unbiased": "divide by n - 1, not n",
    "weight": "the weights",
}
_ALIAS: Final = re.compile(r"Alias of `")
_INTERNAL: Final = re.compile(r"_.*|.*_(?:backward|backward_data|forward)")


def function_text(group: Group) -> str:
    """The text of `help()` for the public function of a group."""
    return _text(group, "", _out(group.first))


def method_text(group: Group) -> str:
    """The text of `help()` for the method of a group: `input` is the receiver."""
    return _text(group, "input", [])


def _out(entry: Entry) -> list[str]:
    if not takes_out(entry):
        return []
    several = len(entry.schema.returns) > 1 or returns_tensors(entry)
    given = "tensors, one for each result" if several else "a tensor"
    return [f"out: {given}, or None; the result is written there"]


def check_documented(groups: Iterable[Group]) -> None:
    """Check that operators which users call have an example; their text is checked with the entry.

    Raises:
        EntryError: one has none. An alias and an in-place operator need none of their own.
    """
    for group in groups:
        entry = group.first
        is_public = entry.is_function or entry.is_method
        if not is_public or entry.example or entry.functional is not None:
            continue
        if _INTERNAL.fullmatch(group.name) is None and _ALIAS.match(entry.doc) is None:
            raise EntryError(
                f"{entry.family}.yaml: {entry.schema.full_name}: an operator that users call "
                "needs an 'example:'"
            )


def _text(group: Group, receiver: str, more_arguments: list[str]) -> str:
    entry = group.first
    parts = [entry.doc or f"The operator plugrad::{entry.schema.full_name}."]
    others = [other.doc for other in group.entries[1:]]
    parts.extend(doc for doc in dict.fromkeys(others) if doc and doc not in parts)
    parts.extend(_operands(entry))
    if arguments := [*_arguments(group, receiver), *more_arguments]:
        parts.append("\n".join(["Args:", *(f"    {line}" for line in arguments)]))
    parts.extend(_derivatives(entry))
    if entry.source:
        parts.append(f"Source: {entry.source}")
    parts.append(_code("Schema", (str(item.schema) for item in group.entries)))
    if entry.example:
        parts.append(entry.example)
    text = "\n\n".join(parts)
    return text.replace("\\", "\\\\").replace('"""', '\\"\\"\\"')


def _code(title: str, lines: Iterable[str]) -> str:
    """A title and, below it, lines that Markdown shows as they are."""
    return f"{title}:\n\n" + "\n".join(f"    {line}" for line in lines)


def _entry(text: str) -> str:
    """One argument, continued further in where the line is long."""
    return "\n        ".join(textwrap.wrap(text, 72, break_long_words=False))


def _operands(entry: Entry) -> list[str]:
    """Shapes and dtypes of an elementwise operator."""
    if not entry.structure or entry.functional is not None:
        return []
    shapes = "Any shape" if len(entry.tensor_arguments()) == 1 else "Operands are broadcast"
    dtypes = {
        "float": "; integers give the default dtype",
        "complex": "; integers give the default dtype",
        "bool": "; the result is of dtype bool",
    }.get(entry.result, "")
    return [f"{shapes}{dtypes}."]


def _arguments(group: Group, receiver: str) -> list[str]:
    """A line for each argument of any overload: its type, its default, its meaning."""
    types: dict[str, dict[str, None]] = {}
    found: dict[str, Parameter] = {}
    meanings: dict[str, str] = {}
    for entry in group.entries:
        for parameter in parameters(entry):
            found.setdefault(parameter.name, parameter)
            types.setdefault(parameter.name, {})[_type(parameter.argument.type)] = None
            known = () if entry.settings is None else entry.settings.kind.args
            if text := dict((*known, *entry.args)).get(parameter.argument.name):
                meanings.setdefault(parameter.name, text)
    lines: list[str] = []
    for name, parameter in found.items():
        if name == receiver:
            continue
        words = " or ".join(types[name])
        if parameter.argument.has_default and parameter.argument.default is not None:
            words += f", default {parameter.argument.default!r}"
        elif parameter.argument.type.optional:
            words += ", or None"
        meaning = meanings.get(name) or _MEANINGS.get(name, "")
        lines.append(_entry(f"{name}: {words}" + (f"; {meaning}" if meaning else "")))
    return lines


def _type(type: SchemaType) -> str:
    one, several = _TYPES.get(type.base, (f"a {type.base}", f"several {type.base}"))
    if not type.is_list:
        return one
    return f"{one} or {several}" if type.base == "int" and type.list_size is not None else several


def _derivatives(entry: Entry) -> list[str]:
    """The formulas of the entry, with the names that the function has for its arguments."""
    if entry.functional is not None:
        return []
    if not entry.differentiable:
        return ["The result has no gradient."]
    lines = [f"{', '.join(names)}: {formula}" for names, formula in entry.derivatives]
    named = [re.sub(r"\bself\b", "input", line) for line in lines]
    return [_code("Derivatives", named)] if named else []
