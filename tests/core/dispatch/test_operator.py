"""Operators: which kernel serves a key set, registration, the cache."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from plugrad.dispatch import keys
from plugrad.dispatch.keys import KeySet, dispatch_key
from plugrad.dispatch.operator import (
    FALLTHROUGH,
    Operator,
    all_operators,
    declare,
    find_operator,
    register_fallback,
    retract,
)
from plugrad.dispatch.scope import ExcludeKeys, IncludeKeys
from plugrad.errors import OperatorNotFoundError

META = dispatch_key("Meta")
AUTOGRAD_META = dispatch_key("AutogradMeta")
AUTOGRAD = dispatch_key("Autograd")
IMPLICIT = dispatch_key("CompositeImplicitAutograd")
EXPLICIT = dispatch_key("CompositeExplicitAutograd")
TRACER = dispatch_key("Tracer")
PYTHON = dispatch_key("PythonMode")
INPLACE_OR_VIEW = dispatch_key("ADInplaceOrView")
DENSE = KeySet.of(META).mask
TENSOR = keys.tensor_keyset(keys.META)


@pytest.fixture
def op() -> Iterator[Operator]:
    """An operator without kernels."""
    made = declare(
        Operator("dispatchtest", "f", "x", "f.x(Tensor self, int n=3, *, int k=4) -> Tensor")
    )
    yield made
    retract(made)


def answer(text: str) -> Any:
    """A kernel that returns what it is called."""
    return lambda keyset, *args: text


def run(op: Operator, keyset: int) -> Any:
    return op.lookup(keyset)(keyset)


def test_names(op: Operator) -> None:
    assert op.full_name == "f.x"
    assert op.qualified_name == "dispatchtest::f.x"
    assert repr(op) == "<OpOverload(op='dispatchtest.f', overload='x')>"
    assert find_operator("dispatchtest::f.x") is op
    assert op in all_operators()


def test_a_name_can_be_declared_once(op: Operator) -> None:
    with pytest.raises(RuntimeError, match=r"dispatchtest::f\.x is defined already"):
        declare(Operator("dispatchtest", "f", "x", "f.x() -> ()"))


def test_a_retracted_operator_is_unknown() -> None:
    made = declare(Operator("dispatchtest", "gone", "", "gone() -> ()"))
    retract(made)
    assert find_operator("dispatchtest::gone") is None
    declare(made)
    retract(made)


def test_the_highest_key_with_a_kernel_serves(op: Operator) -> None:
    op.register(META, answer("dense"))
    assert run(op, TENSOR) == "dense"
    op.register(AUTOGRAD_META, answer("autograd"))
    assert run(op, TENSOR) == "autograd"
    op.register(PYTHON, answer("python"))
    assert run(op, TENSOR) == "autograd"
    assert run(op, TENSOR | PYTHON.mask) == "python"


def test_resolve_key_names_the_serving_key(op: Operator) -> None:
    op.register(META, answer("dense"))
    op.register(AUTOGRAD, answer("autograd"))
    assert op.resolve_key(TENSOR) == "AutogradMeta"
    assert op.resolve_key(TENSOR & keys.AFTER_AUTOGRAD) == "Meta"


def test_redispatch_goes_on_below(op: Operator) -> None:
    op.register(META, answer("dense"))

    def autograd(keyset: int, *args: Any) -> Any:
        return "autograd of " + op.redispatch(keyset & keys.AFTER_AUTOGRAD, *args)

    op.register(AUTOGRAD, autograd)
    assert run(op, TENSOR) == "autograd of dense"


def test_the_autograd_alias_serves_every_backend(op: Operator) -> None:
    op.register(AUTOGRAD, answer("alias"))
    assert run(op, TENSOR) == "alias"
    op.register(AUTOGRAD_META, answer("own"))
    assert run(op, TENSOR) == "own"


def test_an_implicit_composite_serves_autograd_and_dense(op: Operator) -> None:
    op.register(IMPLICIT, answer("implicit"))
    assert run(op, TENSOR) == "implicit"
    assert run(op, DENSE) == "implicit"
    assert op.resolve_key(TENSOR) == "AutogradMeta"


def test_a_backend_kernel_overrides_a_composite(op: Operator) -> None:
    op.register(IMPLICIT, answer("implicit"))
    op.register(META, answer("dense"))
    assert run(op, DENSE) == "dense"
    # With a kernel of its own, the gradient is no longer that of the decomposition.
    assert run(op, TENSOR) == "dense"


def test_an_explicit_composite_serves_dense_only(op: Operator) -> None:
    op.register(EXPLICIT, answer("explicit"))
    op.register(IMPLICIT, answer("implicit"))
    assert run(op, DENSE) == "explicit"


def test_an_explicit_composite_comes_before_the_implicit_one(op: Operator) -> None:
    op.register(EXPLICIT, answer("explicit"))
    assert op.resolve_key(DENSE) == "Meta"
    assert run(op, DENSE) == "explicit"


def test_without_a_kernel_the_error_names_operator_backend_and_what_there_is(op: Operator) -> None:
    op.register(TRACER, answer("tracer"))
    expected = r"Could not run 'dispatchtest::f\.x' with arguments from the 'Meta' backend.*Tracer"
    with pytest.raises(OperatorNotFoundError, match=expected):
        op.lookup(TENSOR)
    with pytest.raises(NotImplementedError):
        op.lookup(DENSE)


def test_fallthrough_lets_dispatch_go_on(op: Operator) -> None:
    op.register(META, answer("dense"))
    op.register(AUTOGRAD, answer("autograd"))
    with op.register(AUTOGRAD_META, FALLTHROUGH):
        assert run(op, TENSOR) == "dense"
    assert run(op, TENSOR) == "autograd"


def test_a_later_registration_wins_until_it_is_removed(op: Operator) -> None:
    op.register(META, answer("first"))
    second = op.register(META, answer("second"))
    third = op.register(META, answer("third"))
    assert run(op, DENSE) == "third"
    second.remove()
    assert run(op, DENSE) == "third"
    third.remove()
    third.remove()
    assert run(op, DENSE) == "first"


def test_removing_the_last_kernel_removes_the_key(op: Operator) -> None:
    with op.register(META, answer("dense")):
        assert op.registered_keys() == [META]
        assert run(op, DENSE) == "dense"
    assert op.registered_keys() == []
    assert op.kernel_for(META) is None
    with pytest.raises(OperatorNotFoundError):
        op.lookup(DENSE)


def test_decisions_are_cached(op: Operator) -> None:
    op.register(META, answer("dense"))
    assert op.resolved == {}
    kernel = op.lookup(TENSOR)
    assert op.resolved == {TENSOR: kernel}
    assert op.lookup(TENSOR) is kernel


def test_a_registration_drops_the_cache(op: Operator) -> None:
    op.register(META, answer("dense"))
    assert run(op, TENSOR) == "dense"
    handle = op.register(AUTOGRAD, answer("autograd"))
    assert run(op, TENSOR) == "autograd"
    handle.remove()
    assert run(op, TENSOR) == "dense"


def test_removal_drops_the_cache_of_an_operator_nobody_declared() -> None:
    op = Operator("dispatchtest", "loose", "", "loose(Tensor self) -> Tensor")
    op.register(META, answer("first"))
    handle = op.register(META, answer("second"))
    assert run(op, DENSE) == "second"
    handle.remove()
    assert run(op, DENSE) == "first"


def test_a_fallback_serves_operators_without_a_kernel_for_its_key(op: Operator) -> None:
    op.register(META, answer("dense"))
    with_tracer = TENSOR | TRACER.mask

    def fallback(called: Operator, keyset: int, *args: Any) -> Any:
        below = keyset & ~TRACER.mask
        return f"fallback for {called.name} of " + called.redispatch(below, *args)

    assert run(op, with_tracer) == "dense"
    with register_fallback(TRACER, fallback):
        assert run(op, with_tracer) == "fallback for f of dense"
        with op.register(TRACER, answer("own")):
            assert run(op, with_tracer) == "own"
    assert run(op, with_tracer) == "dense"


def test_a_fallthrough_fallback_hides_an_earlier_one(op: Operator) -> None:
    op.register(META, answer("dense"))
    with register_fallback(TRACER, lambda called, keyset, *args: "fallback"):
        with register_fallback(TRACER, FALLTHROUGH):
            assert run(op, TENSOR | TRACER.mask) == "dense"
        assert run(op, TENSOR | TRACER.mask) == "fallback"


@pytest.mark.parametrize("first", [True, False])
def test_a_fallback_may_come_before_a_decomposition(op: Operator, first: bool) -> None:
    class Fallback:
        def precedes(self, called: Operator) -> bool:
            return first and called is op

        def __call__(self, called: Operator, keyset: int, *args: Any) -> str:
            return "fallback"

    op.register(EXPLICIT, answer("composed"))
    with register_fallback(META, Fallback()):
        assert run(op, DENSE) == ("fallback" if first else "composed")
        with op.register(META, answer("own")):
            assert run(op, DENSE) == "own"
    assert run(op, DENSE) == "composed"


def test_a_fallback_for_an_alias_is_refused() -> None:
    with pytest.raises(ValueError, match="alias CompositeImplicitAutograd"):
        register_fallback(IMPLICIT, FALLTHROUGH)


def test_arguments_are_bound_as_the_schema_says(op: Operator) -> None:
    assert op.bind(("t",), {}) == ("t", 3, 4)
    assert op.bind(("t", 5), {"k": 6}) == ("t", 5, 6)
    assert op.bind((), {"self": "t", "n": 7}) == ("t", 7, 4)


@pytest.mark.parametrize(
    ("args", "kwargs", "message"),
    [
        ((), {}, "missing required argument 'self'"),
        (("t", 1, 2), {}, "takes 2 positional arguments but 3 were given"),
        (("t",), {"self": "t"}, "got multiple values for argument 'self'"),
        (("t",), {"z": 1}, "got an unexpected keyword argument 'z'"),
    ],
)
def test_wrong_arguments_are_named(
    op: Operator, args: tuple[Any, ...], kwargs: dict[str, Any], message: str
) -> None:
    with pytest.raises(TypeError, match=message) as caught:
        op.bind(args, kwargs)
    assert "f.x(" in str(caught.value)


def test_included_keys_are_added_and_excluded_ones_taken_out(op: Operator) -> None:
    op.register(TRACER, answer("tracer"))
    op.register(IMPLICIT, answer("implicit"))
    op.register(META, answer("dense"))
    assert op(None) == "implicit"
    with IncludeKeys(TRACER.mask | META.mask):
        assert op(None) == "tracer"
        with ExcludeKeys(TRACER.mask):
            assert op(None) == "dense"
        assert op(None) == "tracer"
    assert op(None) == "implicit"


def test_excluding_wins_over_including(op: Operator) -> None:
    op.register(TRACER, answer("tracer"))
    op.register(META, answer("dense"))
    with ExcludeKeys(TRACER.mask), IncludeKeys(TRACER.mask | META.mask):
        assert op(None) == "dense"


def test_guards_nest_and_restore_after_an_exception(op: Operator) -> None:
    op.register(TRACER, answer("tracer"))
    op.register(META, answer("dense"))
    guard = IncludeKeys(META.mask | TRACER.mask)
    with pytest.raises(KeyError), guard, guard:
        raise KeyError
    with pytest.raises(OperatorNotFoundError):
        op(None)


def test_guards_belong_to_their_thread(op: Operator) -> None:
    op.register(IMPLICIT, answer("implicit"))
    op.register(TRACER, answer("tracer"))
    seen: list[str] = []
    with IncludeKeys(TRACER.mask):
        thread = threading.Thread(target=lambda: seen.append(op(None)))
        thread.start()
        thread.join()
        assert op(None) == "tracer"
    assert seen == ["implicit"]


def test_registration_while_other_threads_call(op: Operator) -> None:
    op.register(META, answer("base"))
    stop = threading.Event()
    failures: list[BaseException] = []

    def call() -> None:
        try:
            while not stop.is_set():
                assert run(op, TENSOR) in ("base", "other")
        except BaseException as error:
            failures.append(error)

    callers = [threading.Thread(target=call) for _ in range(3)]
    for thread in callers:
        thread.start()
    for _ in range(300):
        with op.register(META, answer("other")):
            assert run(op, TENSOR) == "other"
        assert run(op, TENSOR) == "base"
    stop.set()
    for thread in callers:
        thread.join()
    assert not failures


def test_threads_that_register_lose_nothing(op: Operator) -> None:
    names = ("Meta", "Tracer", "PythonMode", "AutogradMeta")
    barrier = threading.Barrier(len(names))

    def work(name: str) -> None:
        barrier.wait()
        for _ in range(50):
            op.register(dispatch_key(name), answer(name))

    threads = [threading.Thread(target=work, args=(name,)) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {key.name for key in op.registered_keys()} == set(names)


def test_inplace_or_view_lies_between_autograd_and_dense(op: Operator) -> None:
    op.register(META, answer("dense"))
    op.register(INPLACE_OR_VIEW, answer("view"))
    assert run(op, TENSOR) == "view"
    assert run(op, TENSOR & keys.AFTER_AD_INPLACE_OR_VIEW) == "dense"
