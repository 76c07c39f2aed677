"""plugrad.library: operators and kernels that come and go."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import plugrad
from plugrad.dispatch import SchemaError, find_operator, keys
from plugrad.errors import OperatorNotFoundError
from plugrad.library import Library


@pytest.fixture
def own() -> Iterator[Library]:
    """A library that owns the namespace libtest."""
    with Library("libtest", "DEF") as library:
        yield library


def test_define_and_call(own: Library) -> None:
    assert own.define("twice(Tensor self) -> Tensor") == "twice"
    own.impl("twice", lambda x: x + x, "CompositeImplicitAutograd")
    assert plugrad.ops.libtest.twice(plugrad.ones(2)).tolist() == [2.0, 2.0]


def test_define_returns_the_name_with_its_overload(own: Library) -> None:
    assert own.define("f.other(Tensor self) -> Tensor") == "f.other"


def test_an_implicit_composite_is_differentiable(own: Library) -> None:
    own.define("cube(Tensor self) -> Tensor")
    own.impl("cube", lambda x: x * x * x)
    x = plugrad.tensor(2.0, requires_grad=True)
    plugrad.ops.libtest.cube(x).backward()
    assert x.grad.item() == 12.0


def test_a_backend_kernel_gets_arrays(own: Library) -> None:
    own.define("double(Tensor self) -> Tensor")
    seen: list[type] = []

    def kernel(array: Any) -> Any:
        seen.append(type(array))
        return array * 2

    own.impl("double", kernel, "CPU")
    out = plugrad.ops.libtest.double(plugrad.ones(2))
    assert isinstance(out, plugrad.Tensor)
    assert out.tolist() == [2.0, 2.0]
    assert seen == [np.ndarray]


def test_an_autograd_kernel_may_redispatch(own: Library) -> None:
    own.define("double(Tensor self) -> Tensor")
    own.impl("double", lambda array: array * 2, "CPU")
    calls: list[str] = []

    def autograd(keyset: int, x: Any) -> Any:
        calls.append("autograd")
        op = find_operator("libtest::double")
        assert op is not None
        return op.redispatch(keyset & keys.AFTER_AUTOGRAD, x)

    own.impl("double", autograd, "AutogradCPU", with_keyset=True)
    assert plugrad.ops.libtest.double(plugrad.ones(2)).tolist() == [2.0, 2.0]
    assert calls == ["autograd"]


def test_a_kernel_for_a_known_operator_overrides_it_until_removed() -> None:
    x = plugrad.ones(2)
    with Library("plugrad", "IMPL") as patch:
        message = "plugrad::exp has a kernel for CPU already, from plugrad-cpu .*allow_override"
        with pytest.raises(RuntimeError, match=message):
            patch.impl("exp", lambda array: array + 41, "CPU")
        patch.impl("exp", lambda array: array + 41, "CPU", allow_override=True)
        assert x.exp().tolist() == [42.0, 42.0]
    assert x.exp().tolist() == pytest.approx([np.e, np.e])


def test_a_handle_removes_its_kernel(own: Library) -> None:
    own.define("f(Tensor self) -> Tensor")
    handle = own.impl("f", lambda x: x + 1)
    assert plugrad.ops.libtest.f(plugrad.ones(1)).item() == 2.0
    handle.remove()
    with pytest.raises(OperatorNotFoundError):
        plugrad.ops.libtest.f(plugrad.ones(1))


def test_a_fallback_sees_the_operator(own: Library) -> None:
    seen: list[str] = []

    def fallback(op: Any, keyset: int, *args: Any) -> Any:
        seen.append(op.qualified_name)
        return op.redispatch(keyset & ~(1 << keys.TRACER), *args)

    own.fallback(fallback, "Tracer", with_keyset=True)
    x = plugrad.ones(2)
    from plugrad.dispatch import IncludeKeys

    with IncludeKeys(1 << keys.TRACER):
        assert x.exp().tolist() == pytest.approx([np.e, np.e])
    assert seen == ["plugrad::exp"]


def test_the_end_of_a_library_is_the_end_of_its_operators() -> None:
    with Library("brieflived", "DEF") as library:
        library.define("f(Tensor self) -> Tensor")
        assert find_operator("brieflived::f") is not None
    assert find_operator("brieflived::f") is None
    with Library("brieflived", "DEF"):
        pass


def test_one_library_owns_a_namespace(own: Library) -> None:
    with pytest.raises(RuntimeError, match="Only a single library can be a DEF"):
        Library("libtest", "DEF")
    with Library("libtest", "FRAGMENT") as fragment:
        fragment.define("more(Tensor self) -> Tensor")


def test_the_core_namespace_is_reserved() -> None:
    with pytest.raises(ValueError, match="reserved namespace"):
        Library("plugrad", "DEF")


@pytest.mark.parametrize(
    ("ns", "kind", "message"),
    [("a", "NOPE", "Unsupported library kind"), ("not an id", "DEF", "must be an identifier")],
)
def test_wrong_libraries_are_refused(ns: str, kind: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Library(ns, kind)


def test_an_impl_library_cannot_define() -> None:
    with Library("libtest2", "IMPL") as library, pytest.raises(RuntimeError, match="DEF"):
        library.define("f() -> ()")


def test_a_bad_schema_is_pointed_at(own: Library) -> None:
    with pytest.raises(SchemaError):
        own.define("f(Tensor self -> Tensor")


def test_a_foreign_namespace_in_the_schema_is_refused(own: Library) -> None:
    with pytest.raises(ValueError, match="'elsewhere'"):
        own.define("elsewhere::f(Tensor self) -> Tensor")


def test_an_operator_is_defined_once(own: Library) -> None:
    own.define("f(Tensor self) -> Tensor")
    with pytest.raises(RuntimeError, match="libtest::f is defined already"):
        own.define("f(Tensor self) -> Tensor")


def test_a_kernel_needs_its_operator(own: Library) -> None:
    with pytest.raises(RuntimeError, match="no operator 'libtest::missing'"):
        own.impl("missing", lambda x: x)


def test_a_kernel_must_be_callable(own: Library) -> None:
    own.define("f(Tensor self) -> Tensor")
    with pytest.raises(TypeError, match="must be callable"):
        own.impl("f", 3)


def test_a_second_kernel_for_a_key_must_be_meant(own: Library) -> None:
    own.define("f(Tensor self) -> Tensor")
    own.impl("f", lambda x: x)
    with pytest.raises(RuntimeError, match="allow_override=True"):
        own.impl("f", lambda x: x)
    own.impl("f", lambda x: x + 1, allow_override=True)
    assert plugrad.ops.libtest.f(plugrad.ones(1)).item() == 2.0


def test_an_unknown_dispatch_key_is_named(own: Library) -> None:
    own.define("f(Tensor self) -> Tensor")
    with pytest.raises(ValueError, match="unknown dispatch key 'Nope'"):
        own.impl("f", lambda x: x, "Nope")


def test_module_level_functions() -> None:
    plugrad.library.define("libtest3::add_one", "(Tensor self) -> Tensor")

    @plugrad.library.impl("libtest3::add_one", "default")
    def add_one(x: Any) -> Any:
        return x + 1

    assert plugrad.ops.libtest3.add_one(plugrad.ones(1)).item() == 2.0
    with pytest.raises(ValueError, match="namespace::name"):
        plugrad.library.define("nonamespace", "() -> ()")


def test_backward_through_an_operator_without_a_gradient_raises(own: Library) -> None:
    own.define("half(Tensor self) -> Tensor")
    own.impl("half", lambda array: array / 2, "CPU")
    x = plugrad.ones(2, requires_grad=True)
    y = plugrad.ops.libtest.half(x)
    assert y.tolist() == [0.5, 0.5]
    with pytest.raises(RuntimeError, match="autograd kernel was not registered"):
        y.sum().backward()


def test_an_operator_without_a_gradient_computes_under_no_grad(own: Library) -> None:
    own.define("half(Tensor self) -> Tensor")
    own.impl("half", lambda array: array / 2, "CPU")
    with plugrad.no_grad():
        assert not plugrad.ops.libtest.half(plugrad.ones(2, requires_grad=True)).requires_grad


def test_a_missing_kernel_is_told_with_what_helps(ns: str, second_backend: str) -> None:
    with Library(ns, "DEF") as own:
        own.define("f(Tensor x) -> Tensor")
        op = getattr(plugrad.ops, ns).f
        with pytest.raises(OperatorNotFoundError) as on_cpu:
            op(plugrad.ones(1))
        with pytest.raises(OperatorNotFoundError, match="or have the host compute it"):
            op(plugrad.ones(1, device="second"))
    assert str(on_cpu.value).endswith(f"Give backend 'cpu' a kernel named '{ns}::f'.")
