"""Custom Functions that random programs apply: one for each thing that a Function may do."""

# The base class comes from the library that the program runs on.
# mypy: allow-subclassing-any

from __future__ import annotations

from typing import Any


def make_functions(lib: Any, log: Any) -> dict[str, Any]:
    """Functions of the library `lib`, by name; `log(tag, value)` gets the values that backward
    receives."""
    base: Any = lib.autograd.Function

    class Scale(base):
        """Saves its input; not linear, so that double backward differs."""

        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            log("Scale", grad)
            (x,) = ctx.saved_tensors
            return grad * 2.0 * x

    class SaveOutput(base):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            y = x.tanh()
            ctx.save_for_backward(y)
            return y

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            (y,) = ctx.saved_tensors
            return grad * (1.0 - y * y)

    class Setup(base):
        """Two inputs, separate forward and setup_context; None for inputs that need no gradient."""

        @staticmethod
        def forward(x: Any, y: Any) -> Any:
            return x * y

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            ctx.save_for_backward(*inputs)

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            log("Setup needs", ctx.needs_input_grad)
            x, y = ctx.saved_tensors
            first, second = ctx.needs_input_grad
            return grad * y if first else None, grad * x if second else None

    class Several(base):
        """Two outputs; missing gradients arrive as zeros."""

        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x.sin(), x * 2.0

        @staticmethod
        def backward(ctx: Any, first: Any, second: Any) -> Any:
            log("Several", first)
            log("Several", second)
            (x,) = ctx.saved_tensors
            return first * x.cos() + second * 2.0

    class Sparing(base):
        """Two outputs; missing gradients arrive as None, and None may be returned."""

        @staticmethod
        def forward(ctx: Any, x: Any, y: Any) -> Any:
            ctx.set_materialize_grads(False)
            return x * 3.0, y - 1.0

        @staticmethod
        def backward(ctx: Any, first: Any, second: Any) -> Any:
            log("Sparing", first)
            log("Sparing", second)
            return (None if first is None else first * 3.0), second

    class Dirty(base):
        """Writes to its input."""

        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            x.mul_(2.0)
            ctx.mark_dirty(x)
            return x

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            log("Dirty", grad)
            return grad * 2.0

    class DirtyAndMore(base):
        """Writes to its first input and has another output."""

        @staticmethod
        def forward(ctx: Any, x: Any, y: Any) -> Any:
            x.add_(1.0)
            ctx.mark_dirty(x)
            ctx.save_for_backward(x, y)
            return x, y * 2.0

        @staticmethod
        def backward(ctx: Any, first: Any, second: Any) -> Any:
            x, y = ctx.saved_tensors
            log("DirtyAndMore", x)
            log("DirtyAndMore", y)
            return first, second * 2.0

    class NotDifferentiable(base):
        """Its second output carries no gradient."""

        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            rounded = (x * 4.0).detach()
            ctx.mark_non_differentiable(rounded)
            return x * 4.0, rounded

        @staticmethod
        def backward(ctx: Any, first: Any, second: Any) -> Any:
            log("NotDifferentiable", second)
            return first * 4.0

    class Nothing(base):
        """Has no gradient for its second input."""

        @staticmethod
        def forward(ctx: Any, x: Any, y: Any) -> Any:
            return x + 2.0 * y

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return grad, None

    class AsIs(base):
        """Returns its input."""

        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            log("AsIs", grad)
            return grad * 0.5

    class ViewOf(base):
        """Returns a view of its input."""

        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x.view_as(x)

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return grad * 3.0

    class Once(base):
        """Cannot be differentiated twice."""

        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        @lib.autograd.function.once_differentiable  # type: ignore[untyped-decorator]
        def backward(ctx: Any, grad: Any) -> Any:
            return grad * ctx.saved_tensors[0] * 2.0

    class WrongCount(base):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 1.0

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return grad, grad

    class WrongShape(base):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 1.0

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return lib.ones(5, 7, dtype=grad.dtype)

    class Fails(base):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 1.0

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            raise ValueError("a fault in backward")

    class Nested(base):
        """Runs forward and backward again inside its backward, as checkpointing does."""

        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x.sin() * x

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            (x,) = ctx.saved_tensors
            with lib.enable_grad():
                inner = x.detach().requires_grad_()
                result = inner.sin() * inner
            lib.autograd.backward([result], [grad.detach()])
            return inner.grad

    functions = (
        *(Scale, SaveOutput, Setup, Several, Sparing, Dirty, DirtyAndMore, NotDifferentiable),
        *(Nothing, AsIs, ViewOf, Once, WrongCount, WrongShape, Fails, Nested),
    )
    return {function.__name__: function for function in functions}


# Name, number of inputs, number of outputs; those that write to their first input; those that fail.
SIGNATURES: tuple[tuple[str, int, int], ...] = (
    ("Scale", 1, 1),
    ("SaveOutput", 1, 1),
    ("Setup", 2, 1),
    ("Several", 1, 2),
    ("Sparing", 2, 2),
    ("Dirty", 1, 1),
    ("DirtyAndMore", 2, 2),
    ("NotDifferentiable", 1, 2),
    ("Nothing", 2, 1),
    ("AsIs", 1, 1),
    ("ViewOf", 1, 1),
    ("Once", 1, 1),
    ("Nested", 1, 1),
    ("WrongCount", 1, 1),
    ("WrongShape", 1, 1),
    ("Fails", 1, 1),
)
