"""infer_schema: type annotations become schemas, as in PyTorch; `SymInt` is `int` here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, List, Optional  # noqa: UP035  # what is tested

import pytest

import plugrad


def _functions(lib: Any) -> dict[str, Callable[..., Any]]:
    Tensor, dtype, device = lib.Tensor, lib.dtype, lib.device
    Number = plugrad.library.Number if lib is plugrad else lib.types.Number

    def plain(x: Tensor, y: Tensor) -> Tensor: ...
    def optional(x: Optional[Tensor], y: Tensor | None = None) -> None: ...  # noqa: UP045
    def lists(
        a: list[Tensor],
        b: list[int],
        c: Sequence[float],
        d: Sequence[Tensor | None],
        e: List[Optional[Tensor]],  # noqa: UP006, UP045
    ) -> List[Tensor]: ...  # noqa: UP006
    def optional_lists(a: list[int] | None, b: Optional[Sequence[float]] = None) -> int: ...  # noqa: UP045
    def numbers(a: int, b: float, c: bool, d: str, e: Number) -> float: ...
    def defaults(
        a: int = 3, b: float = 0.5, c: bool = True, d: str = "x y", e: int | None = None
    ) -> bool: ...
    def places(
        a: dtype,
        b: device,
        c: dtype | None = None,
        d: dtype = lib.float32,
        e: device = lib.device("cpu"),  # noqa: B008
    ) -> Tensor: ...
    def keywords(x: Tensor, *, n: int, m: int = 1) -> tuple[Tensor, Tensor]: ...
    def mixed(x: Tensor) -> tuple[Tensor, int, list[Tensor], Number]: ...

    made = [plain, optional, lists, optional_lists, numbers, defaults, places, keywords, mixed]
    names = {"Tensor": Tensor, "dtype": dtype, "device": device, "Number": Number, "lib": lib}
    for function in made:
        annotations = {**globals(), **names}
        function.__annotations__ = {
            key: eval(text, annotations) for key, text in function.__annotations__.items()
        }
    return {function.__name__: function for function in made}


NAMES = [
    "plain", "optional", "lists", "optional_lists", "numbers", "defaults", "places", "keywords",
    "mixed",
]  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_schemas_are_those_of_torch(name: str, torch_oracle: Any) -> None:
    ours = plugrad.library.infer_schema(_functions(plugrad)[name], mutates_args=())
    theirs = torch_oracle.library.infer_schema(_functions(torch_oracle)[name], mutates_args=())
    assert ours == theirs.replace("SymInt", "int")


@pytest.mark.parametrize(
    ("name", "mutates"),
    [("plain", {"y"}), ("plain", "unknown"), ("lists", {"a"}), ("keywords", {"x"})],
)
def test_mutated_arguments_are_those_of_torch(name: str, mutates: Any, torch_oracle: Any) -> None:
    ours = plugrad.library.infer_schema(
        _functions(plugrad)[name], mutates_args=mutates, op_name="f"
    )
    theirs = torch_oracle.library.infer_schema(
        _functions(torch_oracle)[name], mutates_args=mutates, op_name="f"
    )
    assert ours == theirs.replace("SymInt", "int")


@pytest.mark.parametrize("name", NAMES)
def test_what_is_inferred_can_be_read(name: str) -> None:
    text = plugrad.library.infer_schema(_functions(plugrad)[name], mutates_args=(), op_name="f")
    assert str(plugrad.dispatch.parse_schema(text)) == text


def test_annotations_may_be_strings() -> None:
    def f(x: plugrad.Tensor, n: "int") -> "plugrad.Tensor": ...  # type: ignore[empty-body]  # noqa: UP037

    assert plugrad.library.infer_schema(f, mutates_args=()) == "(Tensor x, int n) -> Tensor"


def _bad(lib: Any) -> dict[str, tuple[Any, Any]]:
    Tensor = lib.Tensor

    def no_annotation(x) -> None: ...  # type: ignore[no-untyped-def]
    def no_return(x: Tensor): ...  # type: ignore[no-untyped-def]
    def varargs(*x: Tensor) -> None: ...
    def positional_only(x: Tensor, /) -> None: ...
    def unsupported(x: Tensor, y: dict) -> None: ...  # type: ignore[type-arg]
    def a_tuple(x: tuple[int, int]) -> None: ...
    def bad_return(x: Tensor) -> str: ...  # type: ignore[empty-body]
    def bad_tuple(x: Tensor) -> tuple[Tensor, dict]: ...  # type: ignore[empty-body, type-arg]
    def no_tensor(x: Tensor, n: int) -> None: ...
    def bad_default(x: list[int] = [1]) -> None: ...  # noqa: B006
    def unknown_name(x: Nowhere) -> None: ...  # type: ignore[name-defined]  # noqa: F821

    found = {}
    for function in (no_annotation, no_return, varargs, positional_only, unsupported, a_tuple,
                     bad_return, bad_tuple, no_tensor, bad_default, unknown_name):  # fmt: skip
        names = {**globals(), "Tensor": Tensor}
        function.__annotations__ = {
            key: text if "Nowhere" in text else eval(text, names)
            for key, text in function.__annotations__.items()
        }
        found[function.__name__] = function
    return {
        "no_annotation": (found["no_annotation"], "Parameter x must have a type annotation"),
        "no_return": (found["no_return"], "No return type annotation was provided"),
        "varargs": (found["varargs"], "positional-only args, varargs, or varkwargs"),
        "positional_only": (found["positional_only"], "positional-only args, varargs"),
        "unsupported": (found["unsupported"], "Parameter y has unsupported type"),
        "a_tuple": (found["a_tuple"], "We do not support Tuple inputs in schema"),
        "bad_return": (found["bad_return"], "Return has unsupported type"),
        "bad_tuple": (found["bad_tuple"], "Return has unsupported type"),
        "no_tensor": (found["no_tensor"], "only Tensors or collections of Tensors can be mutated"),
        "bad_default": (found["bad_default"], "unsupported default value type"),
        "unknown_name": (found["unknown_name"], "Unsupported type annotation Nowhere"),
    }


@pytest.mark.parametrize("case", [*_bad(plugrad)])
def test_errors_are_those_of_torch(case: str, lib: Any) -> None:
    function, message = _bad(lib)[case]
    mutates = {"n"} if case == "no_tensor" else ()
    with pytest.raises(ValueError, match=message):
        lib.library.infer_schema(function, mutates_args=mutates)


def test_names_that_are_no_arguments(lib: Any) -> None:
    function = _functions(lib)["plain"]
    with pytest.raises(ValueError, match="in mutates_args were not found in the custom op's sig"):
        lib.library.infer_schema(function, mutates_args={"z"})
    with pytest.raises(ValueError, match="or the string 'unknown'"):
        lib.library.infer_schema(function, mutates_args="x")
