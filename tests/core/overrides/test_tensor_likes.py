"""Classes that are no Tensors and take functions over."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

import plugrad
from plugrad.overrides import is_tensor_like

CALLS: list[tuple[Any, tuple[Any, ...], tuple[Any, ...], dict[str, Any]]] = []


class Like:
    """Answers every function with the function's name."""

    @classmethod
    def __plugrad_function__(cls, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        CALLS.append((func, types, args, kwargs))
        return func.__name__


class Below(Like):
    pass


class Other:
    @classmethod
    def __plugrad_function__(cls, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        return "other"


class Unwilling:
    @classmethod
    def __plugrad_function__(cls, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        return NotImplemented


class ByTheOtherName:
    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        return "torch"


@pytest.fixture(autouse=True)
def forget_calls() -> None:
    CALLS.clear()


FIRST_CONTACTS = {
    "add(like, 1)": "add",
    "add(plugrad.ones(1), like)": "add",
    "relu(like)": "relu",
    "stack([plugrad.ones(1), like])": "stack",
    "where(like, 1, 2)": "where",
    "max(like, 0)": "max",
    "split(like, 1)": "split",
    "einsum('i,i', like, plugrad.ones(1))": "einsum",
    "tensordot(like, plugrad.ones(1))": "tensordot",
    "result_type(like, 1)": "result_type",
    "ones(1) + like": "add",
    "ones(1) - like": "sub",
    "ones(1).mul(like)": "mul",
    "ones(1).clamp(min=like)": "clamp",
    "ones(1)[like]": "__getitem__",
    "nn.functional.relu(like)": "relu",
    "nn.functional.mse_loss(plugrad.ones(1), like)": "mse_loss",
}


@pytest.mark.parametrize("call", FIRST_CONTACTS)
def test_the_first_tensor_like_of_a_process_is_found(call: str) -> None:
    program = (
        "import plugrad\n"
        "class Like:\n"
        "    @classmethod\n"
        "    def __plugrad_function__(cls, func, types, args=(), kwargs=None):\n"
        "        return func.__name__\n"
        "like = Like()\n"
        "from plugrad.tensor.calls.overridable import OVERRIDES\n"
        "assert not OVERRIDES.active\n"
        f"print(plugrad.{call})\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.strip() == FIRST_CONTACTS[call], done.stderr


def test_nothing_looks_before_somebody_overrides() -> None:
    program = (
        "import sys, plugrad, plugrad.nn\n"
        "from plugrad.tensor.calls.overridable import OVERRIDES\n"
        "layer = plugrad.nn.Linear(2, 2)\n"
        "layer(plugrad.ones(1, 2)).sum().backward()\n"
        "assert not OVERRIDES.active\n"
        "assert 'plugrad._generated.signatures' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_arguments_are_passed_on_without_those_left_out() -> None:
    like = Like()
    plugrad.add(like, 2, alpha=3)
    plugrad.sum(like)
    plugrad.sum(like, axis=1, keepdims=True)
    plugrad.permute(like, 1, 0)
    plugrad.max(like, dim=0)
    assert [call[2:] for call in CALLS] == [
        ((like, 2), {"alpha": 3}),
        ((like,), {}),
        ((like, 1, True), {}),
        ((like, 1, 0), {}),
        ((like,), {"dim": 0}),
    ]


def test_the_function_itself_is_passed() -> None:
    plugrad.mean(Like())
    plugrad.ones(1).mul(Like())
    plugrad.ones(1) * Like()
    assert [call[0] for call in CALLS] == [plugrad.mean, plugrad.Tensor.mul, plugrad.Tensor.mul]


def test_types_are_of_those_that_override_each_once() -> None:
    plugrad.stack([Like(), plugrad.ones(1), Like()])
    assert CALLS[0][1] == (Like,)


def test_a_subclass_is_asked_before_its_base() -> None:
    plugrad.stack([Like(), Other(), Below()])
    assert CALLS[0][1] == (Below, Like, Other)


def test_others_are_asked_from_left_to_right() -> None:
    assert plugrad.add(Other(), Like()) == "other"
    assert plugrad.add(Like(), Other()) == "add"


def test_the_next_is_asked_after_not_implemented() -> None:
    assert plugrad.add(Unwilling(), Like()) == "add"


def test_all_not_implemented() -> None:
    message = (
        r"no implementation found for 'plugrad.add' on types that implement "
        r"__plugrad_function__: \[<class '.*Unwilling'>\]"
    )
    with pytest.raises(TypeError, match=message):
        plugrad.add(Unwilling(), 1)
    with pytest.raises(TypeError, match=r"'plugrad.Tensor.add'"):
        plugrad.ones(1).add(Unwilling())
    with pytest.raises(TypeError, match=r"'plugrad.nn.functional.relu'"):
        plugrad.nn.functional.relu(Unwilling())


def test_operators_leave_the_error_to_python() -> None:
    with pytest.raises(TypeError, match=r"unsupported operand type\(s\) for \+"):
        plugrad.ones(1) + Unwilling()


def test_a_reflected_operator_is_tried_after_not_implemented() -> None:
    class Reflecting(Unwilling):
        def __radd__(self, other: Any) -> str:
            return "reflected"

    assert plugrad.ones(1) + Reflecting() == "reflected"


def test_arguments_are_checked_before_anybody_is_asked() -> None:
    with pytest.raises(TypeError, match="argument 'other'"):
        plugrad.add(Like(), "text")
    with pytest.raises(TypeError, match="invalid combination of arguments"):
        plugrad.max(Like(), "text", 3)
    assert CALLS == []


def test_torch_function_is_another_name() -> None:
    assert plugrad.add(ByTheOtherName(), 1) == "torch"
    assert plugrad.ones(1) + ByTheOtherName() == "torch"


def test_an_override_on_the_instance_is_warned_of() -> None:
    class Plain:
        def __plugrad_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
            return 1

    with pytest.warns(UserWarning, match="as a plain method is deprecated"):
        assert plugrad.add(Plain(), 1) == 1


def test_an_override_may_return_anything() -> None:
    class Nothing:
        @classmethod
        def __plugrad_function__(cls, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
            return None

    assert plugrad.add(Nothing(), 1) is None
    assert plugrad.ones(1).add(Nothing()) is None
    assert plugrad.ones(1) + Nothing() is None


def test_errors_of_an_override_come_through() -> None:
    class Failing:
        @classmethod
        def __plugrad_function__(cls, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
            raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match="mine"):
        plugrad.add(Failing(), 1)
    with pytest.raises(ZeroDivisionError, match="mine"):
        plugrad.ones(1) + Failing()


def test_a_class_is_no_tensor_like_argument() -> None:
    with pytest.raises(TypeError, match="must be Tensor, not type"):
        plugrad.relu(Like)


def test_functions_of_a_third_party_are_overridable() -> None:
    from plugrad.codegen import load

    ops = load(
        """
- func: twice(Tensor self, *, int times=1) -> Tensor
  composite: twice
  doc: Twice the input.
- func: pick(Tensor self) -> Tensor
  composite: pick
  doc: One of two.
- func: pick.other(Tensor self, Tensor other, str how) -> Tensor
  composite: pick
  doc: The other.
""",
        namespace="overridden",
        functions={"twice": lambda x, times: x + x, "pick": lambda *args: args[0]},
    )
    like = Like()
    assert ops.twice(like, times=2) == "twice"
    assert ops.pick(like) == "pick"
    assert [call[0] for call in CALLS] == [ops.twice, ops.pick]
    assert CALLS[0][2:] == ((like,), {"times": 2})


def test_is_tensor_like() -> None:
    assert is_tensor_like(plugrad.ones(1))
    assert is_tensor_like(Like())
    assert is_tensor_like(ByTheOtherName())
    assert not is_tensor_like(1)
