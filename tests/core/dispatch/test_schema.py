"""The schema parser, against the language as PyTorch writes it in native_functions.yaml."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plugrad.dispatch.schema import (
    BASE_TYPES,
    Alias,
    Argument,
    FunctionSchema,
    Return,
    SchemaError,
    SchemaType,
    parse_schema,
)
from tests.core.drawing import drawn


def traits(text: str) -> set[str]:
    schema = parse_schema(text)
    return {name for name in ("is_inplace", "is_view", "mutates") if getattr(schema, name)}


def only_type(text: str) -> SchemaType:
    return parse_schema(f"f({text} x) -> ()").arguments[0].type


def only_default(text: str) -> object:
    argument = parse_schema(f"f({text}) -> ()").arguments[0]
    assert argument.has_default
    return argument.default


def test_name_and_overload_form_the_full_name() -> None:
    schema = parse_schema("add.Tensor(Tensor self, Tensor other) -> Tensor")
    assert (schema.namespace, schema.name, schema.overload) == (None, "add", "Tensor")
    assert schema.full_name == "add.Tensor"


def test_operator_without_overload_has_its_name_as_full_name() -> None:
    assert parse_schema("exp(Tensor self) -> Tensor").full_name == "exp"


def test_namespace_is_kept_apart_from_the_name() -> None:
    schema = parse_schema("mine::scale(Tensor x) -> Tensor")
    assert (schema.namespace, schema.full_name) == ("mine", "scale")
    assert str(schema) == "mine::scale(Tensor x) -> Tensor"


@pytest.mark.parametrize(
    ("text", "optional", "is_list", "size", "element_optional"),
    [
        ("int", False, False, None, False),
        ("int?", True, False, None, False),
        ("int[]", False, True, None, False),
        ("int[2]", False, True, 2, False),
        ("int[1]?", True, True, 1, False),
        ("Tensor?[]", False, True, None, True),
        ("Tensor?[]?", True, True, None, True),
        ("Tensor[]?", True, True, None, False),
    ],
)
def test_suffixes_of_a_type(
    text: str, optional: bool, is_list: bool, size: int | None, element_optional: bool
) -> None:
    type = only_type(text)
    assert type.optional is optional
    assert type.is_list is is_list
    assert type.list_size == size
    assert type.element_optional is element_optional
    assert str(type) == text


@pytest.mark.parametrize("base", BASE_TYPES)
def test_every_base_type_is_read(base: str) -> None:
    assert only_type(base).base == base


@pytest.mark.parametrize(("symbolic", "plain"), [("SymInt[2]?", "int[2]?"), ("SymBool", "bool")])
def test_symbolic_types_mean_the_plain_ones(symbolic: str, plain: str) -> None:
    assert str(only_type(symbolic)) == plain


@pytest.mark.parametrize(
    ("text", "before", "is_write", "after"),
    [
        ("Tensor(a)", ("a",), False, ()),
        ("Tensor(a!)", ("a",), True, ()),
        ("Tensor(a|b)", ("a", "b"), False, ()),
        ("Tensor(a -> *)", ("a",), False, ("*",)),
        ("Tensor(a! -> a|b)", ("a",), True, ("a", "b")),
        ("Tensor(*)", ("*",), False, ()),
    ],
)
def test_alias_annotations(
    text: str, before: tuple[str, ...], is_write: bool, after: tuple[str, ...]
) -> None:
    type = only_type(text)
    assert type.alias is not None
    assert (type.alias.before, type.alias.is_write, type.alias.after) == (before, is_write, after)
    assert str(type) == text


def test_alias_stands_between_base_and_suffixes() -> None:
    type = only_type("Tensor(a!)?[]")
    assert type.alias == Alias(("a",), True, ())
    assert str(type) == "Tensor(a!)?[]"


def test_inplace_operator() -> None:
    text = "add_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)"
    assert traits(text) == {"is_inplace", "mutates"}


def test_view_operator() -> None:
    text = "view(Tensor(a) self, int[] size) -> Tensor(a)"
    assert traits(text) == {"is_view"}


def test_operator_with_several_views_is_a_view_operator() -> None:
    text = "unbind.int(Tensor(a -> *) self, int dim=0) -> Tensor(a)[]"
    assert traits(text) == {"is_view"}


def test_out_variant_mutates_but_is_not_inplace() -> None:
    text = "exp.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)"
    assert traits(text) == {"mutates"}


def test_functional_operator_has_none_of_the_alias_properties() -> None:
    text = "exp(Tensor self) -> Tensor"
    assert traits(text) == set()


def test_trailing_underscore_alone_does_not_make_an_operator_inplace() -> None:
    text = "odd_(Tensor self) -> Tensor"
    assert traits(text) == set()


def test_star_makes_the_following_arguments_keyword_only() -> None:
    schema = parse_schema("f(Tensor x, *, int a, bool b=False) -> ()")
    assert [argument.kwarg_only for argument in schema.arguments] == [False, True, True]


def test_argument_without_default_may_follow_one_with_default() -> None:
    schema = parse_schema("f(int a=1, Tensor x) -> ()")
    assert [argument.has_default for argument in schema.arguments] == [True, False]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("int x=3", 3),
        ("int x=-1", -1),
        ("SymInt x=2", 2),
        ("float x=0.5", 0.5),
        ("float x=1e-05", 1e-05),
        ("float x=-.5", -0.5),
        ("float x=inf", math.inf),
        ("float x=-inf", -math.inf),
        ("bool x=True", True),
        ("bool x=False", False),
        ("int? x=None", None),
        ("Tensor? x=None", None),
        ("Generator? x=None", None),
        ('str x="mean"', "mean"),
        ("str x='none'", "none"),
        ("str x=''", ""),
        (r"""str x='it\'s "so"'""", 'it\'s "so"'),
        ("int[] x=[]", ()),
        ("int[2] x=[0, 1]", (0, 1)),
        ("int[2] x=[-2,-1]", (-2, -1)),
        ("int[2] x=1", 1),
        ("int[1]? x=None", None),
        ("bool[2] x=[True, False]", (True, False)),
        ('str[] x=["a", "b"]', ("a", "b")),
        ("int x=Mean", "Mean"),
        ("MemoryFormat x=contiguous_format", "contiguous_format"),
        ("MemoryFormat? x=preserve_format", "preserve_format"),
        ("ScalarType x=long", "long"),
        ("Layout x=strided", "strided"),
        ('Device x="cpu"', "cpu"),
    ],
)
def test_default_values(text: str, value: object) -> None:
    default = only_default(text)
    assert default == value
    assert type(default) is type(value)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("Scalar x=1", int),
        ("Scalar x=1.0", float),
        ("Scalar x=True", bool),
        ("Scalar x=1e3", float),
        ("float x=1", float),
    ],
)
def test_number_defaults_have_the_type_of_the_argument(text: str, kind: type) -> None:
    assert type(only_default(text)) is kind


def test_nan_default() -> None:
    default = only_default("float x=nan")
    assert isinstance(default, float)
    assert math.isnan(default)


def test_missing_default_differs_from_default_none() -> None:
    missing, none = parse_schema("f(int? a, int? b=None) -> ()").arguments
    assert (missing.default, missing.has_default) == (None, False)
    assert (none.default, none.has_default) == (None, True)


def test_returns_nothing() -> None:
    schema = parse_schema("f(Tensor x) -> ()")
    assert schema.returns == ()
    assert str(schema) == "f(Tensor x) -> ()"


def test_several_named_returns() -> None:
    schema = parse_schema("max.dim(Tensor self, int dim) -> (Tensor values, Tensor indices)")
    assert [returned.name for returned in schema.returns] == ["values", "indices"]


def test_several_returns_without_names() -> None:
    schema = parse_schema("f(Tensor x) -> (Tensor, Tensor[])")
    assert [str(returned.type) for returned in schema.returns] == ["Tensor", "Tensor[]"]


def test_parentheses_around_a_single_return_are_dropped() -> None:
    assert str(parse_schema("f() -> (Tensor)")) == "f() -> Tensor"


def test_name_of_a_single_return_is_kept() -> None:
    assert str(parse_schema("f() -> Tensor grid")) == "f() -> (Tensor grid)"


@pytest.mark.parametrize(
    "text",
    [
        "sum.dim_IntList(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None)"
        " -> Tensor",
        "conv2d(Tensor input, Tensor weight, Tensor? bias=None, int[2] stride=1, int[2] padding=0,"
        " int[2] dilation=1, int groups=1) -> Tensor",
        "index_put_(Tensor(a!) self, Tensor?[] indices, Tensor values, bool accumulate=False)"
        " -> Tensor(a!)",
        "sort.values(Tensor self, *, Tensor(a!) values, Tensor(b!) indices)"
        " -> (Tensor(a!) values, Tensor(b!) indices)",
        'gelu(Tensor self, *, str approximate="none") -> Tensor',
        "mine::f(*, Device? device=None) -> ()",
    ],
)
def test_canonical_text_round_trips(text: str) -> None:
    assert str(parse_schema(text)) == text


def test_whitespace_and_line_breaks_do_not_matter() -> None:
    loose = "add . Tensor (Tensor  self ,\n  Tensor other,*,Scalar alpha = 1)->Tensor"
    assert str(parse_schema(loose)) == (
        "add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor"
    )


def test_schemas_are_equal_by_canonical_text() -> None:
    schema = parse_schema("f(int x=1) -> ()")
    assert schema == parse_schema("f(SymInt x = 1)->()")
    assert hash(schema) == hash(parse_schema("f(int x=1) -> ()"))
    assert schema != parse_schema("f(int x=2) -> ()")
    assert schema != "f(int x=1) -> ()"


def test_repr_shows_the_text() -> None:
    assert repr(parse_schema("f(*, int x) -> ()").arguments[0]) == "Argument('*, int x')"
    assert repr(parse_schema("f() -> ()")) == "FunctionSchema('f() -> ()')"


names = st.from_regex(r"[a-z][a-z0-9_]{0,8}", fullmatch=True).filter(lambda name: name != "default")
finite = st.floats(allow_nan=False)
sets = st.lists(st.sampled_from("abcd"), min_size=1, max_size=3, unique=True).map(tuple)
aliases = st.builds(Alias, sets, st.booleans(), st.just(()) | st.just(("*",)) | sets)
defaults: dict[str, st.SearchStrategy[object]] = {
    "int": st.integers() | st.just("Mean"),
    "float": finite,
    "bool": st.booleans(),
    "Scalar": st.booleans() | st.integers() | finite,
    "str": st.text(),
    "ScalarType": st.sampled_from(["long", "float32"]),
    "MemoryFormat": st.sampled_from(["contiguous_format", "channels_last"]),
}


@st.composite
def types(draw: st.DrawFn, base: st.SearchStrategy[str], with_alias: bool = True) -> SchemaType:
    name = draw(base)
    is_list = draw(st.booleans())
    return SchemaType(
        name,
        optional=draw(st.booleans()),
        is_list=is_list,
        list_size=draw(st.none() | st.integers(1, 9)) if is_list else None,
        element_optional=is_list and draw(st.booleans()),
        alias=draw(st.none() | aliases) if name == "Tensor" and with_alias else None,
    )


@st.composite
def arguments(draw: st.DrawFn, name: str, kwarg_only: bool) -> Argument:
    type = draw(types(st.sampled_from(["Tensor", "Device", "Generator", *defaults])))
    value: object = None
    has_default = draw(st.booleans())
    if has_default and not (type.optional and draw(st.booleans())):
        has_default = type.base in defaults
        if has_default:
            elements = defaults[type.base]
            value = draw(st.lists(elements, max_size=3).map(tuple) if type.is_list else elements)
    return Argument(name, type, value, has_default, kwarg_only)


@st.composite
def schemas(draw: st.DrawFn) -> FunctionSchema:
    argument_names = draw(st.lists(names, max_size=5, unique=True))
    positional = draw(st.integers(0, len(argument_names)))
    return FunctionSchema(
        draw(st.none() | names),
        draw(names),
        draw(st.just("") | names),
        tuple(draw(arguments(name, i >= positional)) for i, name in enumerate(argument_names)),
        tuple(
            Return(draw(types(st.sampled_from(["Tensor", "int"]), with_alias=False)), name)
            for name in draw(st.lists(names, max_size=3, unique=True))
        ),
    )


@drawn(100)
@given(schemas())
def test_any_schema_round_trips_through_its_text(schema: FunctionSchema) -> None:
    parsed = parse_schema(str(schema))
    assert parsed == schema
    for argument, original in zip(parsed.arguments, schema.arguments, strict=True):
        assert argument.default == original.default
        assert argument.kwarg_only is original.kwarg_only


@drawn(100)
@given(st.text(alphabet="fTensorint()[],.*?!=->:|1\"' a_", max_size=40))
def test_any_text_is_a_schema_or_a_schema_error(text: str) -> None:
    try:
        schema = parse_schema(text)
    except SchemaError as error:
        column = error.column
    else:
        assert parse_schema(str(schema)) == schema
        column = 1
    assert 1 <= column <= len(text) + 1


def test_every_operator_of_pytorch_parses() -> None:
    torchgen = pytest.importorskip("torchgen", reason="PyTorch is the oracle of this test")
    yaml = pytest.importorskip("yaml")
    file = Path(torchgen.__file__).parent / "packaged/ATen/native/native_functions.yaml"
    entries = yaml.load(file.read_text(), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    for entry in entries:
        schema = parse_schema(entry["func"])
        assert parse_schema(str(schema)) == schema


@pytest.mark.parametrize(
    ("marked", "words"),
    [
        ("^", "expected an operator name, got the end"),
        ("f^", "expected '(' and the arguments, got the end"),
        ("f.^(Tensor x) -> ()", "expected an overload name after '.', got '('"),
        ("f.^default(Tensor x) -> ()", "'default' means the overload without"),
        ("f(^Tensro x) -> ()", "expected a type, got 'Tensro': did you mean 'Tensor'?"),
        ("f(^tensor x) -> ()", "did you mean 'Tensor'?"),
        ("f(^dtype x) -> ()", "expected a type, got 'dtype'"),
        ("f(Tensor^) -> ()", "expected an argument name after type 'Tensor', got ')'"),
        ("f(Tensor x ^y) -> ()", "expected ',' or ')' after argument 'x', got 'y'"),
        ("f(Tensor x,^) -> ()", "expected a type, got ')'"),
        ("f(Tensor x^", "expected ',' or ')' after argument 'x', got the end"),
        ("f(Tensor x) ^Tensor", "expected '->' and the returns, got 'Tensor'"),
        ("f(Tensor x) ->^", "expected a type, got the end"),
        ("f(Tensor x) -> () ^y", "expected the end of the schema, got 'y'"),
        ("f(Tensor x) -> Tensor^, Tensor", "expected the end of the schema, got ','"),
        ("f(int x, float ^x) -> ()", "expected a new argument name, got 'x' again"),
        ("f() -> (int y, int ^y)", "expected a new return name, got 'y' again"),
        ("f(Tensor x, *^) -> ()", "expected ',' and a keyword-only argument after '*'"),
        ("f(*, int x, ^*, int y) -> ()", "expected an argument, got a second '*'"),
        ("f(int[^x] x) -> ()", "expected ']' or the size of the list, got 'x'"),
        ("f(int[^0] x) -> ()", "expected ']' or the size of the list, got '0'"),
        ("f(int[2 ^x) -> ()", "expected ']' after the size of the list, got 'x'"),
        ("f(int^(a) x) -> ()", "expected no alias annotation on 'int'"),
        ("f(Tensor(^) x) -> ()", "expected an alias set, such as 'a', got ')'"),
        ("f(Tensor(a ^x) -> ()", "expected ')' after the alias annotation, got 'x'"),
        ("f(Tensor(a) x) -> ^Tensor(b)", "an alias set of an argument, got 'b'"),
        ("f(int x=^'a') -> ()", "a default of type 'int' (an int, Mean or Sum), got ''a''"),
        ("f(int x=^1.5) -> ()", "expected a default of type 'int'"),
        ("f(int x=^True) -> ()", "expected a default of type 'int'"),
        ("f(int x=^None) -> ()", "expected a default of type 'int', got 'None'"),
        ("f(bool x=^1) -> ()", "a default of type 'bool' (True or False), got '1'"),
        ("f(float x=^big) -> ()", "a default of type 'float' (a float), got 'big'"),
        ("f(float x=-^) -> ()", "expected a number or inf after '-', got ')'"),
        ("f(str x=^mean) -> ()", "a default of type 'str' (a string in quotes)"),
        ("f(str x=^'mean) -> ()", "expected a closing ', got the end"),
        ("f(Tensor x=^1) -> ()", "None, the only default of type 'Tensor', got '1'"),
        ("f(int[] x=^1) -> ()", "a default of type 'int[]', in '[' and ']', got '1'"),
        ("f(int[] x=[1 ^2]) -> ()", "expected ',' or ']' in the list, got '2'"),
        ("f(int[] x=[1, ^'a']) -> ()", "expected a default of type 'int[]'"),
        ("f(Layout x=^stided) -> ()", "(did you mean 'strided'?), got 'stided'"),
        ("f(int ^@x) -> ()", "unexpected character '@'"),
    ],
)
def test_error_points_at_the_column_and_says_what_was_expected(marked: str, words: str) -> None:
    """The mark stands before the place that the error must point at."""
    position = marked.index("^")
    text = marked.replace("^", "")
    with pytest.raises(SchemaError) as caught:
        parse_schema(text)
    _, shown, caret, problem = str(caught.value).split("\n")
    assert shown == f"  {text}"
    assert caret == f"  {' ' * position}^"
    assert problem.startswith(f"column {position + 1}: ")
    assert words in problem
    assert caught.value.column == position + 1


def test_error_in_a_text_of_several_lines_still_has_the_caret_below() -> None:
    with pytest.raises(SchemaError) as caught:
        parse_schema("f(Tensor x,\n  Tensro y) -> ()")
    _, shown, caret, _ = str(caught.value).split("\n")
    assert shown[caret.index("^") :].startswith("Tensro")
