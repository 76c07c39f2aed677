"""Properties of an operator's schema that registration needs."""

from __future__ import annotations

from typing import Any

from plugrad.dispatch.schema import Argument, FunctionSchema
from plugrad.library.tags import Tag
from plugrad.tensor.base import TensorBase


def is_written(argument: Argument) -> bool:
    """Whether the operator writes to an argument, according to the schema."""
    alias = argument.type.alias
    return alias is not None and alias.is_write


def is_functional(schema: FunctionSchema, *, allow_view: bool = False) -> bool:
    """Whether an operator does not write and returns a new tensor, or a view if allowed."""
    if schema.mutates:
        return False
    if schema.is_view:
        tensors = [item for item in schema.arguments if item.type.base == "Tensor"]
        return allow_view and len(tensors) == 1 and len(schema.returns) == 1
    return bool(schema.returns)


def has_tensor_argument(schema: FunctionSchema) -> bool:
    return any(argument.type.base == "Tensor" for argument in schema.arguments)


def has_keyword_tensor(schema: FunctionSchema) -> bool:
    return any(item.kwarg_only and item.type.base == "Tensor" for item in schema.arguments)


def split_keywords(
    schema: FunctionSchema, values: tuple[Any, ...]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Arguments in schema order as Python passes them: positional ones, keyword-only ones."""
    keywords = {
        argument.name: value
        for argument, value in zip(schema.arguments, values, strict=True)
        if argument.kwarg_only
    }
    return values[: len(values) - len(keywords)], keywords


def tensors_in(values: Any) -> list[TensorBase]:
    """The tensors among values and in lists among them."""
    found: list[TensorBase] = []
    for value in values:
        if isinstance(value, TensorBase):
            found.append(value)
        elif isinstance(value, list | tuple):
            found.extend(tensors_in(value))
    return found


def written_tensors(schema: FunctionSchema, values: tuple[Any, ...]) -> list[TensorBase]:
    """The tensors that the operator writes to, among its arguments."""
    return tensors_in(
        value
        for argument, value in zip(schema.arguments, values, strict=True)
        if is_written(argument)
    )


def check_tags(schema: FunctionSchema, tags: tuple[Tag, ...]) -> None:
    """ValueError if a schema is none of an operator with these tags."""
    if Tag.inplace in tags and Tag.out in tags:
        raise ValueError(f"Tag.inplace and Tag.out are mutually exclusive. Got: {schema}")
    written = [argument for argument in schema.arguments if is_written(argument)]
    returned = [item.type.alias for item in schema.returns]
    expected = [argument.type.alias for argument in written]
    if Tag.inplace in tags:
        first = schema.arguments[0] if schema.arguments else None
        if first is None or first.kwarg_only or written != [first] or first.type.is_list:
            raise ValueError(
                "Schema tagged with Tag.inplace must write to its first positional argument, a "
                f"Tensor, and to no other. Got: {schema}"
            )
        if returned != expected:
            raise ValueError(
                "Schema tagged with Tag.inplace must return the first mutable argument. Got: "
                f"{schema}"
            )
    if Tag.out in tags:
        if not written or any(not item.kwarg_only or item.type.is_list for item in written):
            raise ValueError(
                "Schema tagged with Tag.out must have mutable arguments, all of them keyword-only "
                f"Tensors. Got: {schema}"
            )
        if returned != expected:
            raise ValueError(
                f"Schema tagged with Tag.out must return all mutable arguments. Got: {schema}"
            )
