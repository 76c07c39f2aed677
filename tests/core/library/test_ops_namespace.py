"""`plugrad.ops`: what tools and people find of an operator; PyTorch is the oracle."""

import inspect
from typing import Any

import pytest

import plugrad
from plugrad.library import Library, Tag


@pytest.fixture
def own(lib: Any, ns: str) -> Any:
    """A library with an operator that has two overloads."""
    made = lib.library.Library(ns, "FRAGMENT")
    made.define("twice(Tensor x, int n=2) -> Tensor")
    made.define("twice.by(Tensor x, *, Scalar factor) -> Tensor")
    made.impl("twice", lambda x, n=2: x * n, "CompositeImplicitAutograd")
    made.impl("twice.by", lambda x, factor: x * factor, "CompositeImplicitAutograd")
    yield made
    made._destroy()


def test_names(lib: Any, ns: str, own: Any) -> None:
    packet = getattr(lib.ops, ns).twice
    assert str(packet) == f"{ns}.twice"
    assert repr(packet) == f"<OpOverloadPacket(op='{ns}.twice')>"
    assert sorted(packet.overloads()) == ["by", "default"]
    assert repr(packet.default) == f"<OpOverload(op='{ns}.twice', overload='default')>"
    assert (str(packet.default), packet.default.name()) == (f"{ns}.twice.default", f"{ns}::twice")
    assert (str(packet.by), packet.by.name()) == (f"{ns}.twice.by", f"{ns}::twice.by")
    assert packet.by.namespace == ns
    assert packet.by._overloadname == "by"
    assert str(packet.by.overloadpacket) == str(packet)
    assert packet.by._overloadpacket is packet.by.overloadpacket
    assert packet.by == getattr(lib.ops, ns).twice.by
    with pytest.raises(AttributeError, match=r"nope"):
        _ = packet.nope


def test_schema_and_kernels(lib: Any, ns: str, own: Any) -> None:
    overload = getattr(lib.ops, ns).twice.by
    assert [argument.name for argument in overload._schema.arguments] == ["x", "factor"]
    assert overload.has_kernel_for_dispatch_key("CompositeImplicitAutograd")
    assert not overload.has_kernel_for_dispatch_key("CPU")


def test_calls(lib: Any, ns: str, own: Any) -> None:
    packet = getattr(lib.ops, ns).twice
    x = lib.ones(1)
    assert packet(x).item() == 2.0
    assert packet.default(x, n=3).item() == 3.0
    assert packet.by(x, factor=1.5).item() == 1.5
    assert packet(x, factor=1.5).item() == 1.5


def test_an_operator_may_be_given_for_its_name(lib: Any, ns: str, own: Any) -> None:
    own.define("f(Tensor x) -> Tensor")
    own.impl(getattr(lib.ops, ns).f.default, lambda x: x + 1, "CompositeImplicitAutograd")
    assert getattr(lib.ops, ns).f(lib.zeros(1)).item() == 1.0


def test_invalid_definitions(lib: Any, ns: str, own: Any) -> None:
    with pytest.raises(RuntimeError, match="Invalid alias_analysis type WRONG"):
        own.define("g(Tensor x) -> Tensor", "WRONG")
    with pytest.raises(ValueError, match="expected schema to look like"):
        lib.library.define(f"{ns}::g", "g(Tensor x) -> Tensor")
    with pytest.raises(ValueError, match="Expected `qualname` to be of"):
        lib.library.define("g", "(Tensor x) -> Tensor")
    with pytest.raises(ValueError, match="expected qualname to be instance of str"):
        lib.library.define(3, "(Tensor x) -> Tensor")


@pytest.mark.parametrize(
    ("schema", "tag", "message"),
    [
        ("f_(Tensor x) -> Tensor", "inplace", "first positional argument"),
        ("f_(Tensor(a!) x) -> Tensor", "inplace", "must return the first mutable argument"),
        ("f_(Tensor(a!) x, Tensor(b!) y) -> Tensor(a!)", "inplace", "first positional argument"),
        ("f(Tensor x) -> Tensor", "out", "mutable argument"),
        ("f(Tensor x, Tensor(a!) out) -> Tensor(a!)", "out", "keyword-only"),
        ("f(Tensor x, *, Tensor(a!) out) -> ()", "out", "must return all mutable arguments"),
    ],
)
def test_tags_ask_for_a_schema(
    schema: str, tag: str, message: str, lib: Any, ns: str, own: Any
) -> None:
    with pytest.raises(ValueError, match=message):
        own.define(schema, tags=getattr(Tag if lib is plugrad else lib.Tag, tag))


# What Python's own tools see; PyTorch's operators have no signature.


def test_documentation_and_signature(ns: str) -> None:
    with Library(ns, "DEF") as own:
        own.define("f(Tensor x, int[2] size=1, *, float? p=None, str s='a') -> (Tensor, Tensor)")
        packet = getattr(plugrad.ops, ns).f
        assert packet.__doc__.startswith(f"Schema: {ns}::f(Tensor x, int[2] size")
        assert packet.__name__ == "f"
        signature = inspect.signature(packet.default)
        assert signature == inspect.signature(packet)
        assert [parameter.default for parameter in signature.parameters.values()] == [
            inspect.Parameter.empty,
            (1, 1),
            None,
            "a",
        ]
        assert signature.parameters["p"].kind is inspect.Parameter.KEYWORD_ONLY
        assert signature.return_annotation == "(Tensor, Tensor)"


def test_completion(ns: str) -> None:
    with Library(ns, "DEF") as own:
        own.define("first(Tensor x) -> Tensor")
        own.define("first.other(Tensor x, int n) -> Tensor")
        namespace = getattr(plugrad.ops, ns)
        assert "first" in dir(namespace)
        assert {"default", "other"} <= set(dir(namespace.first))


def test_tags_are_listed(ns: str) -> None:
    with Library(ns, "DEF") as own:
        own.define("f(Tensor x) -> Tensor", tags=(Tag.pointwise, Tag.pointwise))
        assert getattr(plugrad.ops, ns).f.default.tags == [Tag.pointwise]
        with pytest.raises(TypeError, match=r"expected a plugrad\.library\.Tag, got str"):
            own.define("g(Tensor x) -> Tensor", tags=("pointwise",))
    assert plugrad.ops.plugrad.mul.Tensor.tags == []
