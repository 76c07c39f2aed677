"""Anomaly mode in backward: what is warned of and raised, by node, with its parents; nested."""

from __future__ import annotations

import gc
import itertools
import re
import threading
import warnings
import weakref
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest

import plugrad
from plugrad.autograd import set_detect_anomaly

FORWARD = "Traceback of forward call that caused the error:\n"


@pytest.fixture(autouse=True)
def mode_is_put_back() -> Iterator[None]:
    yield
    plugrad.set_anomaly_enabled(False)


def messages(caught: list[warnings.WarningMessage]) -> list[str]:
    """The texts of the warnings that the engine issued."""
    texts = [str(item.message) for item in caught]
    return [text for text in texts if not text.startswith("Anomaly Detection")]


class Fails(plugrad.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x.clone()

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        raise ValueError("in backward")


class GivesNaN(plugrad.autograd.Function):
    """The gradient number `which` is NaN."""

    @staticmethod
    def forward(ctx: Any, a: Any, b: Any, which: int) -> Any:
        ctx.which = which
        return a + b

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        grads = [grad, grad]
        grads[ctx.which] = grad * float("nan")
        return *grads, None


def test_a_nan_is_an_error_that_names_node_and_output() -> None:
    for which in (0, 1):
        x = plugrad.ones(2, requires_grad=True)
        y = plugrad.ones(2, requires_grad=True)
        with (
            set_detect_anomaly(True),
            pytest.warns(UserWarning, match="Error detected in GivesNaNBackward"),
            pytest.raises(
                RuntimeError,
                match=f"^Function 'GivesNaNBackward' returned nan values in its {which}th output.$",
            ),
        ):
            GivesNaN.apply(x, y, which).sum().backward()


def test_a_nan_of_an_operator_names_its_node() -> None:
    x = plugrad.zeros(1, requires_grad=True)
    with (
        set_detect_anomaly(True),
        pytest.warns(UserWarning, match="Error detected in SqrtBackward0"),
        pytest.raises(
            RuntimeError, match=r"Function 'SqrtBackward0' returned nan values in its 0th output\."
        ),
    ):
        (x.sqrt() * 0).backward()


def test_a_complex_nan_is_found() -> None:
    x = plugrad.ones(1, dtype=plugrad.complex64, requires_grad=True)
    with (
        set_detect_anomaly(True),
        pytest.warns(UserWarning, match="MulBackward0"),
        pytest.raises(RuntimeError, match="Function 'MulBackward0' returned nan values"),
    ):
        (x * float("nan")).real.sum().backward()


def test_infinities_pass() -> None:
    x = plugrad.zeros(1, requires_grad=True)
    with set_detect_anomaly(True):
        x.sqrt().backward()
    assert x.grad is not None
    assert x.grad.item() == float("inf")


def test_without_check_nan_a_nan_passes_and_errors_are_still_explained() -> None:
    x = plugrad.zeros(1, requires_grad=True)
    with set_detect_anomaly(True, check_nan=False):
        (x.sqrt() * 0).backward()
        with pytest.warns(UserWarning, match=FORWARD), pytest.raises(ValueError):
            Fails.apply(x).backward()
    assert x.grad is not None
    assert x.grad.isnan().item()


def test_when_it_is_off_a_nan_passes_and_nothing_is_noted() -> None:
    x = plugrad.zeros(1, requires_grad=True)
    y = x.sqrt() * 0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        y.backward()
        with pytest.raises(ValueError):
            Fails.apply(x).backward()
    assert y.grad_fn.metadata == {}


def test_the_warning_shows_the_line_that_made_the_node() -> None:
    x = plugrad.ones(1, requires_grad=True)
    with set_detect_anomaly(True):
        y = Fails.apply(x)  # the guilty line
        z = y * 2
        with (
            pytest.warns(UserWarning, match="Error detected|Previous calc") as caught,
            pytest.raises(ValueError, match="in backward"),
        ):
            z.backward()
    (text,) = messages(list(caught))
    assert text.startswith("Error detected in FailsBackward. " + FORWARD)
    # The last line is the user's own, on the interpreted core too.
    assert text.splitlines()[-1].strip() == "y = Fails.apply(x)  # the guilty line"
    assert caught[0].filename == __file__


def test_a_graph_made_without_it_has_no_information() -> None:
    x = plugrad.ones(1, requires_grad=True)
    y = Fails.apply(x)
    with (
        set_detect_anomaly(True),
        pytest.warns(UserWarning, match="Error detected|Previous calc") as caught,
        pytest.raises(ValueError),
    ):
        y.backward()
    assert messages(list(caught)) == [
        "Error detected in FailsBackward. No forward pass information available. Enable detect "
        "anomaly during forward pass for more information."
    ]


def test_a_node_made_in_backward_has_its_maker_as_parent() -> None:
    x = plugrad.ones(2, requires_grad=True)
    with set_detect_anomaly(True):
        y = x.exp()
        (grad,) = plugrad.autograd.grad(y.sum(), x, create_graph=True)
    assert grad.grad_fn.metadata["parent_"] is y.grad_fn
    assert "parent_" not in y.grad_fn.metadata


def test_parents_are_told_back_to_the_first() -> None:
    x = plugrad.full((2,), 2.0, requires_grad=True)
    with set_detect_anomaly(True):
        y = x**4  # first
        (first,) = plugrad.autograd.grad(y.sum(), x, create_graph=True)  # second
        (second,) = plugrad.autograd.grad(first.sum(), x, create_graph=True)  # third
        node = second.grad_fn
        node.register_prehook(fail)
        with (
            pytest.warns(UserWarning, match="Error detected|Previous calc") as caught,
            pytest.raises(ValueError),
        ):
            second.sum().backward()
    texts = messages(list(caught))
    assert len(texts) == 3
    assert texts[0].startswith(f"Error detected in {node.name()}. " + FORWARD)
    assert texts[0].rstrip().endswith("# third")
    for text, line in zip(texts[1:], ("# second", "# first"), strict=True):
        assert re.match(
            r"\n\nPrevious calculation was induced by \w+Backward0\. Traceback of forward call that"
            r" induced the previous calculation:\n",
            text,
        )
        assert text.rstrip().endswith(line)


def fail(grads: Any) -> None:
    raise ValueError("in a hook")


def test_a_failing_hook_counts_for_its_node() -> None:
    x = plugrad.ones(1, requires_grad=True)
    with set_detect_anomaly(True):
        y = x * 2
        y.grad_fn.register_prehook(fail)
        with (
            pytest.warns(UserWarning, match="Error detected in MulBackward0"),
            pytest.raises(ValueError, match="in a hook"),
        ):
            y.backward()


def test_a_nan_that_a_post_hook_puts_in_is_found() -> None:
    x = plugrad.ones(1, requires_grad=True)
    with set_detect_anomaly(True):
        y = x * 2
        y.grad_fn.register_hook(lambda outs, _: tuple(g and g * float("nan") for g in outs))
        with (
            pytest.warns(UserWarning, match="Error detected|Previous calc"),
            pytest.raises(RuntimeError, match="'MulBackward0'"),
        ):
            y.backward()


def test_nested_backward_tells_of_inner_and_outer_node() -> None:
    class Outer(plugrad.autograd.Function):
        @staticmethod
        def forward(ctx: Any, a: Any) -> Any:
            return a.clone()

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            with plugrad.enable_grad():
                inner = plugrad.ones(1, requires_grad=True)
                Fails.apply(inner).backward()

    x = plugrad.ones(1, requires_grad=True)
    with (
        set_detect_anomaly(True),
        pytest.warns(UserWarning, match="Error detected|Previous calc") as caught,
        pytest.raises(ValueError),
    ):
        Outer.apply(x).backward()
    starts = [text.split(". ")[0] for text in messages(list(caught))]
    assert starts == [
        "Error detected in FailsBackward",
        "\n\nPrevious calculation was induced by OuterBackward",
        "Error detected in OuterBackward",
    ]


def test_nodes_made_between_backwards_have_no_parent() -> None:
    x = plugrad.ones(1, requires_grad=True)
    with set_detect_anomaly(True):
        with (
            pytest.warns(UserWarning, match="Error detected|Previous calc"),
            pytest.raises(ValueError),
        ):
            Fails.apply(x).backward()
        assert "parent_" not in (x * 2).grad_fn.metadata


def test_warnings_as_errors_do_not_replace_the_error(capsys: pytest.CaptureFixture[str]) -> None:
    x = plugrad.ones(1, requires_grad=True)
    with set_detect_anomaly(True), warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ValueError, match="in backward"):
            Fails.apply(x).backward()
    assert "Error detected in FailsBackward" in capsys.readouterr().err


def test_what_the_user_put_into_metadata_stays() -> None:
    x = plugrad.ones(1, requires_grad=True)
    y = x * 2
    y.grad_fn.metadata["mine"] = 1
    with set_detect_anomaly(True):
        y.backward()
    assert y.grad_fn.metadata["mine"] == 1


def test_notes_go_with_the_graph() -> None:
    class Canary:
        pass

    def made() -> tuple[plugrad.Tensor, weakref.ref[Canary]]:
        x = plugrad.rand(2, 2, requires_grad=True)
        y = x.exp()
        with set_detect_anomaly(True):
            (grad,) = plugrad.autograd.grad(y, x, plugrad.ones_like(y), create_graph=True)
        # grad -> its node -> "parent_" -> y's node -> the canary
        canary = Canary()
        y.grad_fn.metadata["canary"] = canary
        return grad, weakref.ref(canary)

    gc.disable()
    try:
        grad, alive = made()
        assert alive() is not None
        del grad
        assert alive() is None
    finally:
        gc.enable()


def test_a_node_on_a_devices_thread_is_explained_and_is_a_parent(second_backend: str) -> None:
    threads: list[str] = []

    class Remote(Fails):
        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            threads.append(threading.current_thread().name)
            if grad.requires_grad:
                return grad * 2
            raise ValueError("in backward")

    x = plugrad.ones(1, device=second_backend, requires_grad=True)
    with set_detect_anomaly(True):
        y = Remote.apply(x)  # made here
        seed = plugrad.ones(1, device=second_backend, requires_grad=True)
        (grad,) = plugrad.autograd.grad(y, x, seed, create_graph=True)
        assert grad.grad_fn.metadata["parent_"] is y.grad_fn
        with (
            pytest.warns(UserWarning, match="Error detected in RemoteBackward") as caught,
            pytest.raises(ValueError, match="in backward"),
        ):
            y.backward()
        with (
            pytest.warns(UserWarning, match="Error detected in SqrtBackward0"),
            pytest.raises(RuntimeError, match="'SqrtBackward0' returned nan values"),
        ):
            ((x - 1).sqrt() * 0).backward()
    assert messages(list(caught))[0].rstrip().endswith("# made here")
    assert threading.current_thread().name not in threads


def program(lib: Any) -> list[tuple[str, str]]:
    """First lines of what is warned of, and last source lines; and the errors."""

    class Double(lib.autograd.Function):  # type: ignore[misc, name-defined]
        @staticmethod
        def forward(ctx: Any, a: Any) -> Any:
            ctx.save_for_backward(a)
            return a.sqrt().sum()

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            (a,) = ctx.saved_tensors
            return grad * (a - 1).sqrt()

    found: list[tuple[str, str]] = []
    for check in (True, False):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            with lib.autograd.detect_anomaly(check_nan=check):
                x = lib.ones(3, requires_grad=True)
                y = Double.apply(x) * 0
                (grad,) = lib.autograd.grad(y, x, create_graph=True)
                try:
                    grad.sum().backward()
                except RuntimeError as error:
                    found.append(("error", str(error)))
                z = lib.zeros(1, requires_grad=True)
                w = z.sqrt() * 0
                with lib.autograd.set_detect_anomaly(False):
                    w = w * 3
                try:
                    w.backward()
                except RuntimeError as error:
                    found.append(("error", str(error)))
        for item in caught:
            text = re.sub(r" ?\(Triggered internally.*\)", "", str(item.message)).strip()
            lines = [line for line in text.splitlines() if "^^^" not in line]
            mine = [after.strip() for line, after in itertools.pairwise(lines) if __file__ in line]
            found.append((lines[0].strip(), mine[-1] if mine else ""))
    return found


def test_the_same_program_is_told_the_same_as_by_pytorch(torch_oracle: ModuleType) -> None:
    mine = program(plugrad)
    assert ("error", "Function 'SqrtBackward0' returned nan values in its 0th output.") in mine
    assert mine == program(torch_oracle)
