"""`infer_schema`: an operator's schema from the type annotations of a Python function."""

from __future__ import annotations

import inspect
import types
import typing
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from plugrad.device import Device
from plugrad.dtype import DType
from plugrad.library.tags import Tag, as_tags
from plugrad.tensor.base import TensorBase

_Error = Callable[[str], ValueError]

_UNKNOWN: Final = "unknown"

# Annotation for a Python number of any kind: a schema's Scalar.
Number = int | float | bool

_NUMBERS: Final = (Number, int | float, int | float | complex, int | float | complex | bool)


def infer_schema(
    prototype_function: Callable[..., object],
    /,
    *,
    mutates_args: str | Iterable[str],
    op_name: str | None = None,
    tags: Any = (),
) -> str:
    """The schema that a function's type annotations spell out.

    Parameters may be annotated as `Tensor`, `int`, `float`, `bool`, `str`, `Number`
    (of plugrad.library, or `int | float | complex`), `dtype` and `device`; as an
    Optional of these; and as `list[...]` or `Sequence[...]` of Tensor (or Optional[Tensor]), int,
    float, bool and Number. Results are `Tensor`, `list[Tensor]`, `int`, `float`, `bool`, `Number`,
    a tuple of these, or None.

    Args:
        prototype_function: annotated in full; defaults and keyword-only parameters are kept.
        mutates_args: names of the arguments that the function writes to, or "unknown": all Tensors.
        op_name: the operator's name, which the schema then begins with.
        tags: `Tag.inplace` and `Tag.out` mean that the tensors that are written to are also
            returned.

    Raises:
        ValueError: an annotation is missing, cannot be read, or has no counterpart in schemas.

    >>> import plugrad
    >>> from plugrad.library import infer_schema
    >>> def scaled(x: plugrad.Tensor, by: float = 2.0, *, dims: list[int] | None = None
    ...            ) -> tuple[plugrad.Tensor, plugrad.Tensor]: ...
    >>> infer_schema(scaled, mutates_args=())
    '(Tensor x, float by=2.0, *, int[]? dims=None) -> (Tensor, Tensor)'
    >>> infer_schema(scaled, mutates_args={"x"}, op_name="scaled_")
    'scaled_(Tensor(a0!) x, float by=2.0, *, int[]? dims=None) -> (Tensor, Tensor)'
    """
    signature = inspect.signature(prototype_function)
    chosen = as_tags(tags)

    def fail(what: str) -> ValueError:
        return ValueError(f"infer_schema(func): {what} Got func with signature {signature}")

    if isinstance(mutates_args, str) and mutates_args != _UNKNOWN:
        raise ValueError(
            "mutates_args must either be a sequence of the names of the arguments that are mutated "
            "or the string 'unknown'."
        )
    mutated = None if isinstance(mutates_args, str) else set(mutates_args)
    names = _names_of(prototype_function)
    parts: list[str] = []
    returned: list[str] = []
    for index, parameter in enumerate(signature.parameters.values()):
        text = _parameter_type(parameter, names, fail)
        is_tensor = text.startswith("Tensor")
        if parameter.name in (mutated or ()) and not is_tensor:
            raise fail(
                f"Parameter {parameter.name} is in mutates_args but only Tensors or collections of "
                "Tensors can be mutated."
            )
        if is_tensor and (mutated is None or parameter.name in mutated):
            returned.append(f"Tensor(a{index}!)")
            text = returned[-1] + text.removeprefix("Tensor")
        if parameter.kind is parameter.KEYWORD_ONLY and "*" not in parts:
            parts.append("*")
        parts.append(f"{text} {parameter.name}{_default(parameter, fail)}")
    unknown = (mutated or set()) - set(signature.parameters)
    if unknown:
        raise fail(
            f"{unknown} in mutates_args were not found in the custom op's signature. mutates_args "
            "should contain the names of all args that the custom op mutates, or just the string "
            "'unknown' if you don't know."
        )
    result = _returns(_evaluated(signature.return_annotation, names, fail), fail)
    if Tag.inplace in chosen or Tag.out in chosen:
        plain = ", ".join(["Tensor"] * len(returned))
        if result != (plain if len(returned) == 1 else f"({plain})"):
            raise fail("The return annotation must match the mutable arguments that are returned.")
        result = returned[0] if len(returned) == 1 else f"({', '.join(returned)})"
    return f"{op_name or ''}({', '.join(parts)}) -> {result}"


def _base_types() -> dict[Any, str]:
    from plugrad._tensor.classes import Tensor, device

    return {
        Tensor: "Tensor",
        TensorBase: "Tensor",
        int: "int",
        float: "float",
        bool: "bool",
        str: "str",
        **dict.fromkeys(_NUMBERS, "Scalar"),
        DType: "ScalarType",
        device: "Device",
        Device: "Device",
    }


# Which have lists, lists of optional elements, and optional lists.
_IN_LISTS: Final = ("Tensor", "int", "float", "bool", "Scalar")
_OPTIONAL_IN_LISTS: Final = ("Tensor",)
_OPTIONAL_LISTS: Final = ("int", "float", "bool")


def _parameter_table() -> dict[Any, str]:
    table: dict[Any, str] = {}
    for python, schema in _base_types().items():
        optional: Any = typing.Optional[python]  # noqa: UP045  # a value here, no annotation
        table[python] = schema
        table[optional] = f"{schema}?"
        lists = [list[python], Sequence[python], typing.List[python], typing.Sequence[python]]  # type: ignore[valid-type]  # noqa: UP006
        optionals = [
            list[optional],
            Sequence[optional],
            typing.List[optional],  # noqa: UP006
            typing.Sequence[optional],
        ]
        for sequence in lists if schema in _IN_LISTS else ():
            table[sequence] = f"{schema}[]"
            if schema in _OPTIONAL_LISTS:
                table[typing.Optional[sequence]] = f"{schema}[]?"  # noqa: UP045
        for sequence in optionals if schema in _OPTIONAL_IN_LISTS else ():
            table[sequence] = f"{schema}?[]"
    return table


def _names_of(function: Callable[..., object]) -> dict[str, Any]:
    """What names in annotations that are strings mean."""
    inner = inspect.unwrap(function)
    names = dict(getattr(inner, "__globals__", {}))
    if isinstance(inner, types.FunctionType):
        names.update(inspect.getclosurevars(inner).nonlocals)
    return names


def _evaluated(annotation: Any, names: dict[str, Any], fail: _Error) -> Any:
    """An annotation as the object that it names, with strings in it evaluated, too."""
    if isinstance(annotation, str):
        try:
            return _evaluated(eval(annotation, names), names, fail)
        except Exception as error:
            raise fail(
                f"Unsupported type annotation {annotation}. It is not a type. "
                f"({type(error).__name__}: {error}). With 'from __future__ import annotations', "
                "types must be imported in the module, not inside a local function."
            ) from error
    if isinstance(annotation, typing.ForwardRef):
        return _evaluated(annotation.__forward_arg__, names, fail)
    origin = typing.get_origin(annotation)
    args = typing.get_args(annotation)
    if origin in (list, tuple, Sequence) and any(isinstance(item, str) for item in args):
        return origin[tuple(_evaluated(item, names, fail) for item in args)]
    return annotation


def _parameter_type(parameter: inspect.Parameter, names: dict[str, Any], fail: _Error) -> str:
    if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
        raise fail("We do not support positional-only args, varargs, or varkwargs.")
    if parameter.annotation is parameter.empty:
        raise fail(f"Parameter {parameter.name} must have a type annotation.")
    annotation = _evaluated(parameter.annotation, names, fail)
    table = _parameter_table()
    found = table.get(annotation) if _hashable(annotation) else None
    if found is not None:
        return found
    hint = ""
    if typing.get_origin(annotation) is tuple or annotation is tuple:
        items = [item for item in typing.get_args(annotation) if item is not ...]
        listed = list[items[0]] if len(set(items)) == 1 else None  # type: ignore[valid-type]
        hint = "We do not support Tuple inputs in schema; use a list instead"
        hint += f", for example {listed}. " if listed in table else ". "
    valid = ", ".join(dict.fromkeys(table.values()))
    raise fail(
        f"Parameter {parameter.name} has unsupported type {parameter.annotation}. {hint}The valid "
        f"types match the schema's {valid}."
    )


def _hashable(value: object) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True


def _default(parameter: inspect.Parameter, fail: _Error) -> str:
    value = parameter.default
    if value is parameter.empty:
        return ""
    if value is None or isinstance(value, int | float):
        return f"={value}"
    if isinstance(value, str | Device):
        text = str(value).replace("\\", "\\\\").replace('"', '\\"')
        return f'="{text}"'
    if isinstance(value, DType):
        return f"={str(value).rpartition('.')[2]}"
    raise fail(
        f"Parameter {parameter.name} has an unsupported default value type {type(value)}; "
        "give it None and fill it in inside."
    )


def _returns(annotation: Any, fail: _Error) -> str:
    if annotation is None:
        return "()"
    if annotation is inspect.Parameter.empty:
        raise fail("No return type annotation was provided. Please add one.")
    plain = {
        python: schema
        for python, schema in _base_types().items()
        if schema in ("Tensor", "int", "float", "bool", "Scalar")
    }
    lists: dict[Any, str] = {
        made: "Tensor[]"
        for python, schema in plain.items()
        if schema == "Tensor"
        for made in (list[python], typing.List[python])  # type: ignore[valid-type]  # noqa: UP006
    }
    table = {**plain, **lists}
    several = typing.get_origin(annotation) is tuple
    items = typing.get_args(annotation) if several else (annotation,)
    if not items or any(not _hashable(item) or item not in table for item in items):
        valid = ", ".join(dict.fromkeys(table.values()))
        raise fail(
            f"Return has unsupported type {annotation}. The valid types are None, types for the "
            f"schema's {valid}, and tuples of these."
        )
    result = ", ".join(table[item] for item in items)
    return f"({result})" if several else result
