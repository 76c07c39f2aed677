"""The generator's input: an operator's YAML entry, checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from typing import Any

from plugrad.codegen.settings import Settings, expand, parse_settings
from plugrad.dispatch.schema import (
    Alias,
    Argument,
    FunctionSchema,
    Return,
    SchemaType,
    parse_schema,
)

ENTRY_KEYS = (
    "func",
    "level",
    "variants",
    "dunder",
    "structure",
    "result",
    "settings",
    "prepare",
    "composite",
    "explicit",
    "derivatives",
    "forward",
    "differentiable",
    "overwrites",
    "deprecated",
    "number_first",
    "numbers",
    "node",
    "doc",
    "args",
    "example",
    "example_inplace",
    "source",
)
VARIANTS = ("function", "method", "inplace", "out")
# Those that have an in-place form, such as `__iadd__`.
AUGMENTED_DUNDERS = frozenset(
    {
        *("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul"),
        *("and", "or", "xor", "lshift", "rshift"),
    }
)
# Like `t_`: makes its tensor a view of itself, and writes no element.
INPLACE_VIEW = "inplace_view"
# Any number of tensors, promoted and broadcast together; numbers are taken for any of them.
ELEMENTWISE = "elementwise"
STRUCTURES = ("", "unary", "binary", "binary_alpha", ELEMENTWISE, INPLACE_VIEW)
RESULTS = ("promote", "float", "bool", "real", "complex")
LEVELS = ("core", "full")
# Forward rules that need no expression: the operator on the tangents, and the derivatives, since
# the Jacobian of each input is diagonal.
AUTO_LINEAR = "auto_linear"
AUTO_ELEMENT_WISE = "auto_element_wise"


class EntryError(ValueError):
    """An operator's YAML entry is wrong; the message names the file, the operator and the key.

    Attributes:
        place: file and line of the entry, empty if it does not come from a file.
    """

    place = ""


@dataclass(frozen=True)
class Entry:
    """One operator.

    Attributes:
        family: the YAML file's stem; names the modules its functions come from.
        args: pairs of an argument and its description in `help()`, if its name does not explain it.
        example_inplace: the example of the in-place form, if any.
        derivatives: pairs of input names and the expression for their gradients.
        forward: the forward rule, as pairs of a differentiable input and the term of its tangent:
            an expression, `AUTO_LINEAR` or `AUTO_ELEMENT_WISE`. The input "" stands for all of them
            together. None if the entry has no rule.
        overwrites: for an operator that is not differentiable, the arguments that get zero
            gradients from its in-place form; empty means the first one.
        functional: for an in-place operator made by `variants`, the entry it was made from.
        deprecated: orders of arguments that PyTorch still accepts by position.
        settings: the arguments that its functions get as one object, if it names any.
        number_first: whether the function takes a number for its first tensor.
        numbers: whether it takes numbers for some of its tensors, but not for all.
        level: "core" if every backend must be able to compute it, else "full".
    """

    family: str
    schema: FunctionSchema
    variants: frozenset[str]
    dunder: tuple[str, ...] = ()
    structure: str = ""
    result: str = "promote"
    settings: Settings | None = None
    prepare: str = ""
    composite: str = ""
    explicit: str = ""
    derivatives: tuple[tuple[tuple[str, ...], str], ...] = ()
    forward: tuple[tuple[str, str], ...] | None = None
    differentiable: bool = True
    overwrites: tuple[str, ...] = ()
    deprecated: tuple[tuple[str, ...], ...] = ()
    number_first: bool = False
    numbers: bool = False
    node: str = ""
    doc: str = ""
    args: tuple[tuple[str, str], ...] = ()
    example: str = ""
    example_inplace: str = ""
    source: str = ""
    functional: Entry | None = field(default=None, compare=False)
    level: str = "full"

    @property
    def node_owner(self) -> Entry:
        """The entry that defines this operator's node: an in-place operator uses the functional
        one's node, if there is one."""
        functional = self.functional
        return self if functional is None or not functional.derivatives else functional

    @property
    def identifier(self) -> str:
        """`mul_Tensor` for `mul.Tensor`: what generated names end in."""
        return self.schema.full_name.replace(".", "_")

    @property
    def python_name(self) -> str:
        return self.schema.name

    @property
    def is_factory(self) -> bool:
        """Makes a tensor from no tensor: has a Device argument and no Tensor argument."""
        bases = [argument.type.base for argument in self.schema.arguments]
        return "Device" in bases and "Tensor" not in bases

    @property
    def takes_requires_grad(self) -> bool:
        """Whether the public function has a `requires_grad` argument, as factories do."""
        names = {argument.name for argument in self.schema.arguments}
        if not {"dtype", "device"} <= names or self.schema.is_view:
            return False
        name = self.schema.name
        return self.is_factory or name.endswith("_like") or name.startswith("new_")

    @property
    def is_method(self) -> bool:
        """Whether tensors have it as a method: it must have an argument called `self`."""
        names = [argument.name for argument in self.schema.arguments]
        return "method" in self.variants and "self" in names

    @property
    def is_function(self) -> bool:
        return "function" in self.variants

    def tensor_arguments(self) -> list[Argument]:
        return [argument for argument in self.schema.arguments if argument.type.base == "Tensor"]


def parse_entries(family: str, data: Any) -> list[Entry]:
    """The entries of one YAML file, in-place variants included, in order."""
    if not isinstance(data, Sequence) or isinstance(data, str):
        raise EntryError(f"{family}.yaml: expected a list of operators, got {type(data).__name__}")
    entries: list[Entry] = []
    for item in data:
        entry = _parse_entry(family, item)
        entries.append(entry)
        if "inplace" in entry.variants:
            entries.append(_inplace(entry))
    return entries


def _parse_entry(family: str, item: Any) -> Entry:
    if not isinstance(item, Mapping) or "func" not in item:
        raise EntryError(f"{family}.yaml: every entry needs a 'func:' with a schema, got {item!r}")
    where = f"{family}.yaml: {item['func']}"
    for key in item:
        if key not in ENTRY_KEYS:
            near = get_close_matches(str(key), ENTRY_KEYS, 1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise EntryError(f"{where}: unknown key {key!r}{hint}")
    schema = parse_schema(str(item["func"]))
    variants = frozenset(item.get("variants", ("function", "method")))
    _choose(where, "variants", variants, VARIANTS)
    _choose(where, "structure", {item.get("structure", "")}, STRUCTURES)
    _choose(where, "result", {item.get("result", "promote")}, RESULTS)
    _choose(where, "level", {item.get("level", "full")}, LEVELS)
    settings = _settings(where, schema, item)
    entry = Entry(
        family=family,
        schema=schema,
        variants=variants,
        dunder=tuple(item.get("dunder", ())),
        structure=item.get("structure", ""),
        result=item.get("result", "promote"),
        settings=settings,
        prepare=item.get("prepare", ""),
        composite=item.get("composite", ""),
        explicit=item.get("explicit", ""),
        derivatives=_derivatives(where, schema, item.get("derivatives", {}), settings),
        forward=_forward(where, item, settings),
        differentiable=bool(item.get("differentiable", True)),
        overwrites=tuple(item.get("overwrites", ())),
        deprecated=tuple(tuple(order) for order in item.get("deprecated", ())),
        number_first=bool(item.get("number_first", False)),
        numbers=bool(item.get("numbers", False))
        or (item.get("structure") == ELEMENTWISE and _has_operands(schema)),
        node=item.get("node", ""),
        doc=str(item.get("doc", "")).strip(),
        args=_args(where, schema, item.get("args", {})),
        example=str(item.get("example", "")).strip("\n"),
        example_inplace=str(item.get("example_inplace", "")).strip("\n"),
        source=str(item.get("source", "")).strip(),
        level=item.get("level", "full"),
    )
    if entry.result == "complex" and entry.structure != ELEMENTWISE:
        raise EntryError(f"{where}: 'result: complex' is for 'structure: {ELEMENTWISE}'")
    if entry.example_inplace and "inplace" not in entry.variants:
        raise EntryError(f"{where}: 'example_inplace:' is for 'variants: [inplace]'")
    if not entry.doc and not schema.name.startswith("_"):
        raise EntryError(f"{where}: a public operator needs a 'doc:'")
    said = [bool(entry.derivatives), bool(entry.composite), not entry.differentiable]
    if sum(said) != 1:
        raise EntryError(
            f"{where}: say exactly one of 'derivatives:', 'composite:' and 'differentiable: false'"
        )
    if entry.overwrites and entry.differentiable:
        raise EntryError(f"{where}: 'overwrites:' goes with 'differentiable: false'")
    tensors = tuple(argument.name for argument in entry.tensor_arguments())
    _choose(where, "overwrites", entry.overwrites, tensors)
    if schema.is_inplace and not entry.differentiable:
        return _overwriting(entry)
    return entry


def _args(where: str, schema: FunctionSchema, given: Any) -> tuple[tuple[str, str], ...]:
    if not isinstance(given, Mapping):
        raise EntryError(f"{where}: args must be a mapping from arguments to texts; got {given!r}")
    _choose(where, "args", given, tuple(argument.name for argument in schema.arguments))
    return tuple((name, " ".join(str(text).split())) for name, text in given.items())


def _choose(where: str, key: str, given: Any, valid: tuple[str, ...]) -> None:
    for value in given:
        if value not in valid:
            raise EntryError(
                f"{where}: {key} must be among {', '.join(filter(None, valid))}; got {value!r}"
            )


def _settings(where: str, schema: FunctionSchema, item: Mapping[str, Any]) -> Settings | None:
    if "settings" not in item:
        return None
    try:
        return parse_settings(schema, str(item["settings"]))
    except (ValueError, SyntaxError) as error:
        raise EntryError(f"{where}: {error}") from error


def _expanded(where: str, expression: Any, settings: Settings | None) -> str:
    text = str(expression).strip()
    try:
        return text if settings is None else expand(settings, text)
    except SyntaxError as error:
        raise EntryError(f"{where}: {error.msg}: {text!r}") from error


def _has_operands(schema: FunctionSchema) -> bool:
    """Whether there are several tensors, so that numbers can stand for some of them."""
    return sum(argument.type.base == "Tensor" for argument in schema.arguments) > 1


def _derivatives(
    where: str, schema: FunctionSchema, given: Mapping[str, Any], settings: Settings | None
) -> tuple[tuple[tuple[str, ...], str], ...]:
    tensors = {argument.name for argument in schema.arguments if argument.type.base == "Tensor"}
    found: list[tuple[tuple[str, ...], str]] = []
    for names, expression in given.items():
        inputs = tuple(name.strip() for name in names.split(","))
        for name in inputs:
            if name not in tensors:
                raise EntryError(
                    f"{where}: derivatives names {name!r}, which is not a Tensor argument"
                )
        found.append((inputs, _expanded(where, expression, settings)))
    return tuple(found)


def _forward(
    where: str, item: Mapping[str, Any], settings: Settings | None
) -> tuple[tuple[str, str], ...] | None:
    if "forward" not in item:
        return None
    given = item["forward"]
    derivatives = item.get("derivatives", {})
    if not derivatives:
        raise EntryError(f"{where}: 'forward:' is for operators with 'derivatives:'")
    inputs = [name.strip() for names in derivatives for name in names.split(",")]
    if isinstance(given, str):
        if given == AUTO_ELEMENT_WISE:
            return tuple((name, AUTO_ELEMENT_WISE) for name in inputs)
        return (("", _expanded(where, given, settings)),)
    if not isinstance(given, Mapping):
        raise EntryError(
            f"{where}: forward must be {AUTO_LINEAR}, {AUTO_ELEMENT_WISE}, an expression, or a "
            f"mapping from inputs to these; got {given!r}"
        )
    for name in given:
        if name not in inputs:
            raise EntryError(f"{where}: forward names {name!r}, which has no derivative")
    return tuple((name, _expanded(where, text, settings)) for name, text in given.items())


def _inplace(entry: Entry) -> Entry:
    """`mul_.Tensor(Tensor(a!) self, ...) -> Tensor(a!)` for `mul.Tensor`."""
    schema = entry.schema
    first = schema.arguments[0]
    alias = Alias(("a",), True, ())
    written = SchemaType("Tensor", alias=alias)
    arguments = (Argument(first.name, written, None, False, False), *schema.arguments[1:])
    made = FunctionSchema(
        schema.namespace,
        schema.name + "_",
        schema.overload,
        arguments,
        (Return(written),),
    )
    inplace = replace(
        entry,
        schema=parse_schema(str(made)),
        variants=frozenset({"method", "function"}) & (entry.variants | {"method"}),
        dunder=tuple("i" + name for name in entry.dunder if name in AUGMENTED_DUNDERS),
        prepare="",
        explicit="",
        node="",
        doc=f"The in-place version of `{schema.name}`: writes the result into `input`.",
        example=entry.example_inplace,
        example_inplace="",
        functional=entry,
    )
    return inplace if entry.differentiable else _overwriting(inplace)


def _overwriting(entry: Entry) -> Entry:
    """An in-place operator without a gradient, with zero gradients for what it overwrites.

    The new value does not depend on the tensor's former value. The graph must show that: without a
    node the tensor would keep the grad_fn of its former elements.
    """
    names = entry.overwrites or (entry.schema.arguments[0].name,)
    return replace(
        entry,
        derivatives=tuple(((name,), "zeros_like(grad)") for name in names),
        forward=tuple((name, AUTO_ELEMENT_WISE) for name in names),
    )
