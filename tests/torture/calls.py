"""Calls as data: run on either library, and judged by both results."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import plugrad
from tests.torture import hostile, messages, specs
from tests.torture.finding import Finding, counts, oracle
from tests.torture.known.refusals import known_refusal


@dataclass
class Call:
    path: str
    args: list[Any]
    kwargs: dict[str, Any]
    then: str = ""
    more: list[Any] = field(default_factory=list)

    def lines(self) -> list[str]:
        made = [f"x{i} = {specs.text(arg)}" for i, arg in enumerate(self.args)]
        kwargs = [f"{name}={specs.text(value)}" for name, value in self.kwargs.items()]
        first, names = f"lib.{self.path}", [f"x{i}" for i in range(len(self.args))]
        return [*made, f"y = {first}({', '.join([*names, *kwargs])})", *self.after()]

    def after(self) -> list[str]:
        text = ", ".join(specs.text(arg) for arg in self.more)
        return [f"z = y{self.then}({text})"] if self.then else []

    def program(self) -> str:
        lines = "\n        ".join(self.lines())
        return (
            "import numpy as np\nimport plugrad, torch\nfor lib in (plugrad, torch):\n    try:\n"
            f"        {lines}\n        print(y)\n"
            "    except Exception as error:\n        print(type(error).__name__, error)"
        )


def on_a_device(call: Call) -> Call | None:
    """The call with its tensors on "meta" made with data; None if it has none."""

    def changed(value: Any) -> Any:
        if not isinstance(value, hostile.Source):
            return value
        return hostile.Source(value.source.replace(', device="meta"', ""))

    args, more = [changed(arg) for arg in call.args], [changed(arg) for arg in call.more]
    kwargs = {name: changed(value) for name, value in call.kwargs.items()}
    made = replace(call, args=args, kwargs=kwargs, more=more)
    return None if made.lines() == call.lines() else made


class Unmade(Exception):
    """The arguments could not be made."""


def perform(call: Call, lib: Any) -> Any:
    """Make the call; an exception if the arguments themselves cannot be made is none of it."""
    try:
        args = [specs.make(arg, lib) for arg in call.args]
        kwargs = {name: specs.make(value, lib) for name, value in call.kwargs.items()}
        more = [specs.make(arg, lib) for arg in call.more]
        function = hostile.Source(f"lib.{call.path}").make(lib)
    except Exception as error:
        raise Unmade from error
    result = function(*args, **kwargs)
    if call.then:
        then = getattr(result, call.then[1:], None)
        if then is None:
            raise Unmade
        result = then(*more)
    return result


def silence() -> None:
    """No warning is shown; one of NumPy's that a kernel lets through is an error."""
    warnings.simplefilter("ignore")
    warnings.filterwarnings("error", category=RuntimeWarning, module="plugrad")


def error_of(call: Call, lib: Any) -> BaseException | None:
    with warnings.catch_warnings():
        silence()
        try:
            if perform(call, lib) is NotImplemented:
                return TypeError("not supported between these types")
        except Exception as error:
            return error
        except BaseException as error:
            if type(error).__name__ == "KeyboardInterrupt":
                raise
            return error
    return None


def put_back() -> None:
    """What a call may have switched is switched back."""
    plugrad.set_grad_enabled(True)


def judge(
    family: str, call: Call, theirs: str = "", shown: Callable[[str], str] = str
) -> Finding | None:
    """Make a call: it must neither fail from inside nor refuse what PyTorch takes.

    Args:
        theirs: the path of PyTorch's function, if it is another one.
        shown: what becomes of the program that a finding shows.
    """
    counts["calls"] += 1
    error = error_of(call, plugrad)
    put_back()
    if error is None:
        counts["accepted"] += 1
        return None
    if isinstance(error, Unmade):
        return None
    import torch

    with oracle():
        expected = error_of(replace(call, path=theirs or call.path), torch)
    if why := messages.internal(error, expected):
        kind = f"{why} {messages.place(error)}"
    elif expected is None and not messages.says_not_implemented(error):
        kind = f"PyTorch accepts it {call.path}"
        if known_refusal(call, error):
            return None
        # Tensors on "meta" are checked like others; PyTorch checks less.
        other = on_a_device(call)
        if other is not None:
            with oracle():
                if error_of(replace(other, path=theirs or call.path), torch) is not None:
                    return None
    else:
        return None
    return Finding(
        f"{family}: {call.lines()[len(call.args)]}: {kind}: {type(error).__name__}: "
        f"{str(error)[:300]}\nPyTorch: {type(expected).__name__}: {str(expected)[:300]}",
        shown(call.program()),
        kind,
    )
