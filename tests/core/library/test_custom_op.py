"""custom_op: definition, arguments, results, kernels by backend; on plugrad and on PyTorch."""

import inspect
import logging
import unittest
from typing import Any

import numpy as np
import pytest

import plugrad
from plugrad.library import CustomOpDef, Tag, custom_op


def test_it_is_called_like_the_function(lib: Any, ns: str) -> None:
    def scaled(x: lib.Tensor, by: float = 2.0, *, offset: int = 0) -> lib.Tensor:  # type: ignore[name-defined]
        return x * by + offset

    op = lib.library.custom_op(f"{ns}::scaled", scaled, mutates_args=())
    x = lib.ones(2)
    assert op(x).tolist() == [2.0, 2.0]
    assert op(x, 3).tolist() == [3.0, 3.0]
    assert op(x=x, by=3, offset=1).tolist() == [4.0, 4.0]
    assert getattr(lib.ops, ns).scaled(x, offset=1).tolist() == [3.0, 3.0]
    assert getattr(lib.ops, ns).scaled.default(x).tolist() == [2.0, 2.0]
    assert repr(op) == f"<CustomOpDef({ns}::scaled)>"


def test_the_function_gets_python_types(lib: Any, ns: str) -> None:
    seen: list[Any] = []

    @lib.library.custom_op(f"{ns}::f", mutates_args=())
    def f(
        xs: list[lib.Tensor],  # type: ignore[name-defined]
        sizes: list[int],
        by: float,
        device: lib.device,  # type: ignore[name-defined]
        text: str = "t",
        dtype: lib.dtype = lib.float64,  # type: ignore[name-defined]
    ) -> None:
        seen.extend([xs, sizes, by, device, text, dtype])

    assert f((lib.ones(1),), (1, 2), 3, "cpu") is None
    assert [type(value) for value in seen[:3]] == [list, list, float]
    assert seen[1:] == [[1, 2], 3.0, lib.device("cpu"), "t", lib.float64]


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ((3, 2.0), "f\\(\\) Expected a value of type 'Tensor' for argument 'x' but instead found"),
        (("x", "s"), "Expected a value of type 'float' for argument 's' but instead found type 's"),
        (("x",), "f\\(\\) is missing value for argument 's'"),
        (("x", 1.0, 2, 3), "expected at most 3 argument\\(s\\) but received 4 argument\\(s\\)"),
    ],
)
def test_arguments_are_checked(args: Any, message: str, lib: Any, ns: str) -> None:
    @lib.library.custom_op(f"{ns}::f", mutates_args=())
    def f(x: lib.Tensor, s: float, n: int = 1) -> lib.Tensor:  # type: ignore[name-defined]
        return x.clone()

    given = [lib.ones(1) if value == "x" else value for value in args]
    with pytest.raises(RuntimeError, match=message):
        f(*given)
    with pytest.raises(RuntimeError, match="Unknown keyword argument 'zz' for operator"):
        f(lib.ones(1), 1.0, zz=3)


def test_several_results(lib: Any, ns: str) -> None:
    @lib.library.custom_op(f"{ns}::f", mutates_args=())
    def f(x: lib.Tensor) -> tuple[lib.Tensor, list[lib.Tensor], int]:  # type: ignore[name-defined]
        return x + 1, [x + 2, x + 3], 4

    first, several, number = f(lib.zeros(1))
    assert (first.item(), [item.item() for item in several], number) == (1, [2, 3], 4)


@pytest.mark.parametrize("how", ["itself", "view", "twice"])
def test_results_must_not_share_memory(how: str, lib: Any, ns: str) -> None:
    @lib.library.custom_op(f"{ns}::f", mutates_args=())
    def f(x: lib.Tensor) -> list[lib.Tensor]:  # type: ignore[name-defined]
        y = x.clone()
        return {"itself": [x], "view": [x.view(-1)], "twice": [y, y.view(-1)]}[how]

    with pytest.raises(RuntimeError, match=r"\(2\) may not alias any inputs to this custom oper"):
        f(lib.ones(2, 2))


def test_a_write_counts(lib: Any, ns: str) -> None:
    @lib.library.custom_op(f"{ns}::double_", mutates_args={"x"})
    def double(x: lib.Tensor, y: lib.Tensor) -> None:  # type: ignore[name-defined]
        x.mul_(2)

    x, y = lib.ones(2), lib.ones(2)
    assert double(x, y) is None
    assert x.tolist() == [2.0, 2.0]
    assert (x._version, y._version) == (2, 0)


def test_a_write_is_noticed_by_those_who_saved_the_tensor(lib: Any, ns: str) -> None:
    @lib.library.custom_op(f"{ns}::fill", mutates_args={"x"})
    def fill(x: lib.Tensor) -> None:  # type: ignore[name-defined]
        np.asarray(x.numpy()).fill(3)

    w = lib.ones(2, requires_grad=True)
    x = lib.ones(2)
    y = w * x
    fill(x)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_an_operator_without_tensors_goes_by_its_device(lib: Any, ns: str) -> None:
    @lib.library.custom_op(f"{ns}::make", mutates_args=(), device_types="cpu")
    def make(n: int, device: lib.device) -> lib.Tensor:  # type: ignore[name-defined]
        return lib.full((n,), 7.0)

    assert make(2, "cpu").tolist() == [7.0, 7.0]
    with pytest.raises(RuntimeError, match="make does not have a kernel registered for meta"):
        make(2, "meta")

    def no_device(n: int) -> lib.Tensor:  # type: ignore[name-defined]
        return lib.ones(n)

    with pytest.raises(ValueError, match="Functions without tensor inputs are required to have a"):
        lib.library.custom_op(f"{ns}::f", no_device, mutates_args=(), device_types="cpu")


def test_a_kernel_may_be_switched_off(lib: Any, ns: str) -> None:
    @lib.library.custom_op(f"{ns}::f", mutates_args=())
    def f(x: lib.Tensor) -> lib.Tensor:  # type: ignore[name-defined]
        return lib.zeros(1)

    assert f(lib.ones(1)).item() == 0.0

    @f.register_kernel("cpu")
    def _(x: Any) -> Any:
        return lib.ones(1)

    assert f(lib.ones(1)).item() == 1.0
    with f.set_kernel_enabled("cpu", enabled=False):
        assert f(lib.ones(1)).item() == 0.0
        with f.set_kernel_enabled("cpu", enabled=True):
            assert f(lib.ones(1)).item() == 1.0
        assert f(lib.ones(1)).item() == 0.0
    assert f(lib.ones(1)).item() == 1.0
    log = logging.getLogger(type(f).__module__)
    with unittest.TestCase().assertLogs(log, logging.WARNING) as logs, f.set_kernel_enabled("cpu"):
        pass
    assert "already enabled" in logs.output[0]


def test_a_second_definition_replaces_the_first(lib: Any, ns: str) -> None:
    def one(x: lib.Tensor) -> lib.Tensor:  # type: ignore[name-defined]
        return x + 1

    def two(x: lib.Tensor, n: int) -> lib.Tensor:  # type: ignore[name-defined]
        return x + n

    lib.library.custom_op(f"{ns}::f", one, mutates_args=())
    lib.library.custom_op(f"{ns}::f", two, mutates_args=())
    assert getattr(lib.ops, ns).f(lib.ones(1), 2).item() == 3.0


def test_numbers_may_be_given_as_tensors_and_bools(lib: Any, ns: str) -> None:
    seen: list[Any] = []
    op = lib.library.custom_op(
        f"{ns}::f",
        lambda x, by, n: seen.append((by, n)) or x * by,
        mutates_args=(),
        schema="(Tensor x, float by, int n) -> Tensor",
    )
    x = lib.ones(1)
    for by, n in ((lib.tensor(2.0), True), (lib.tensor([2]), lib.tensor([1])), (2, lib.tensor(1))):
        op(x, by, n)
    assert seen == [(2.0, 1)] * 3
    assert {type(value) for value in seen[0]} == {float, int}
    for by in (lib.ones(2), lib.tensor(1j)):
        with pytest.raises(RuntimeError, match="Expected a value of type 'float' for argument"):
            op(x, by, 1)


def test_schema_and_mutated_arguments_must_agree(lib: Any, ns: str) -> None:
    with pytest.raises(
        ValueError, match="Attempted to create a custom op with `mutates_args="
    ) as _:
        lib.library.custom_op(
            f"{ns}::f", lambda x: x, mutates_args=("x",), schema="(Tensor x) -> Tensor"
        )
    op = lib.library.custom_op(
        f"{ns}::g", lambda x, n: x + n, mutates_args=(), schema="(Tensor x, int n) -> Tensor"
    )
    assert op(lib.ones(1), 2).item() == 3.0


def test_tensors_are_not_keyword_only(lib: Any, ns: str) -> None:
    with pytest.raises(NotImplementedError, match="custom_op with kwarg-only Tensor args"):
        lib.library.custom_op(
            f"{ns}::f", lambda x, y: x, mutates_args=(), schema="(Tensor x, *, Tensor y) -> Tensor"
        )


def _tag(lib: Any, name: str) -> Any:
    return getattr(Tag if lib is plugrad else lib.Tag, name)


def test_an_inplace_operator_returns_its_first_argument(lib: Any, ns: str) -> None:
    tag = _tag(lib, "inplace")

    @lib.library.custom_op(f"{ns}::add_", mutates_args={"x"}, tags=tag)
    def add_(x: lib.Tensor, n: int) -> lib.Tensor:  # type: ignore[name-defined]
        x.add_(n)
        return x if n else x.clone()

    x = lib.ones(1)
    assert add_(x, 2) is x
    assert x.item() == 3.0
    with pytest.raises(RuntimeError, match="must return its first argument"):
        add_(x, 0)
    assert tag in getattr(lib.ops, ns).add_.default.tags


def test_an_out_operator_returns_what_it_writes_to(lib: Any, ns: str) -> None:
    @lib.library.custom_op(f"{ns}::sine", mutates_args={"out"}, tags=_tag(lib, "out"))
    def sine(x: lib.Tensor, *, out: lib.Tensor) -> lib.Tensor:  # type: ignore[name-defined]
        out.copy_(x.sin())
        return out

    x, out = lib.zeros(2), lib.ones(2)
    assert sine(x, out=out) is out
    assert out.tolist() == [0.0, 0.0]
    with pytest.raises(RuntimeError, match="don't support automatic differentiation"):
        sine(x.clone().requires_grad_(), out=out)


# What PyTorch does not have.


def test_a_definition_that_was_replaced_calls_the_one_in_its_place(ns: str) -> None:
    # PyTorch's object keeps the handle of an operator that is gone, and may end in an assertion.
    first = custom_op(f"{ns}::f", lambda x: x + 1, mutates_args=(), schema="(Tensor x) -> Tensor")
    schema = "(Tensor x, int n) -> Tensor"
    custom_op(f"{ns}::f", lambda x, n: x + n, mutates_args=(), schema=schema)
    assert first(plugrad.ones(1), 2).item() == 3.0


def test_a_raw_kernel_works_on_arrays(ns: str) -> None:
    @custom_op(f"{ns}::cube", mutates_args=())
    def cube(x: plugrad.Tensor) -> plugrad.Tensor:
        return x * x * x

    seen: list[type] = []

    @cube.register_kernel("cpu", raw=True)
    def _(array: Any) -> Any:
        seen.append(type(array))
        return array**3

    assert cube(plugrad.full((2,), 2.0)).tolist() == [8.0, 8.0]
    assert seen == [np.ndarray]
    with cube.set_kernel_enabled("cpu", enabled=False):
        assert cube(plugrad.full((2,), 3.0)).tolist() == [27.0, 27.0]
    assert len(seen) == 1
    with pytest.raises(ValueError, match="arrays belong to a backend"):
        cube.register_kernel(None, raw=True)


def test_a_raw_kernel_may_write(ns: str) -> None:
    @custom_op(f"{ns}::fill", mutates_args={"x"})
    def fill(x: plugrad.Tensor, value: float) -> None:
        x.fill_(value)

    fill.register_kernel("cpu", lambda array, value: array.fill(value + 1), raw=True)
    x = plugrad.zeros(2)
    assert fill(x, 1.0) is None
    assert x.tolist() == [2.0, 2.0]
    assert x._version == 1


def test_a_kernel_waits_for_its_backend(ns: str, request: pytest.FixtureRequest) -> None:
    @custom_op(f"{ns}::f", mutates_args=())
    def f(x: plugrad.Tensor) -> plugrad.Tensor:
        return x + 1

    f.register_kernel("second", lambda array: array + 2, raw=True)
    assert f(plugrad.zeros(1)).item() == 1.0
    request.getfixturevalue("second_backend")
    assert f(plugrad.zeros(1, device="second")).item() == 2.0


def test_what_is_no_tensor_is_refused(ns: str) -> None:
    @custom_op(f"{ns}::f", mutates_args=())
    def f(x: plugrad.Tensor) -> plugrad.Tensor:
        return x.numpy() + 1  # type: ignore[no-any-return]

    with pytest.raises(
        RuntimeError, match=r"expected a Tensor as result 0, got numpy\.ndarray; plugrad"
    ):
        f(plugrad.ones(1))


def test_tools_find_doc_and_signature(ns: str) -> None:
    def f(x: plugrad.Tensor, n: int = 2) -> plugrad.Tensor:
        """What it does."""
        return x + n

    op = custom_op(f"{ns}::f", f, mutates_args=())
    assert isinstance(op, CustomOpDef)
    assert op.__doc__ == "What it does."
    assert inspect.signature(op) == inspect.signature(f)
    packet = getattr(plugrad.ops, ns).f
    assert packet.__doc__.startswith("What it does.")
    assert str(inspect.signature(packet)) == "(x: 'Tensor', n: 'int' = 2) -> 'Tensor'"
    assert "f" in dir(getattr(plugrad.ops, ns))
