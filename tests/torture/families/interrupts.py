"""KeyboardInterrupt at a random time: afterwards all state is what it was, and plugrad works.

Half of the interrupts are raised between two bytecodes of one of plugrad's interpreted modules, the
other half by a signal.
"""

from __future__ import annotations

import functools
import gc
import random
import signal
import sys
from pathlib import Path
from types import CodeType, FrameType, FunctionType
from typing import Any

from plugrad.dispatch.local_state import current_state
from tests.torture.finding import Finding, counts
from tests.torture.state import differences, insanity, restore, state

NAME = "interrupts"
INTERRUPTS = 25
"""How many of them a case raises, in one program."""
SANE_EVERY = 5
"""After so many interrupts fresh gradients are computed."""

# Blocks around others; `x` is a leaf of shape (3,), `model` and `optimizer` fit it.
BLOCKS = (
    "with plugrad.no_grad():",
    "with plugrad.enable_grad():",
    "with plugrad.inference_mode():",
    "with plugrad.set_grad_enabled({flag}):",
    "with autograd.set_multithreading_enabled({flag}):",
    "with autograd.enforce_grad_layout_policy({flag}):",
    "with autograd._force_original_view_tracking({flag}):",
    "with autograd.set_detect_anomaly(True):",
    "with autograd.detect_anomaly(check_nan=False):",
    "with autograd.graph.saved_tensors_hooks(lambda t: t.detach(), lambda t: t):",
    "with autograd.graph.save_on_cpu():",
    "with autograd.graph.disable_saved_tensors_hooks('not here'):",
    "with autograd.graph.allow_mutation_on_saved_tensors():",
    "with autograd._unsafe_preserve_version_counter(x):",
    "with checkpoint.set_checkpoint_early_stop({flag}):",
    "with checkpoint.set_checkpoint_debug_enabled({flag}):",
    "with recomputation.GraphExecGroup():",
    "with fwAD.dual_level():",
    "with fwAD._set_fwd_grad_enabled({flag}):",
    "with plugrad.autocast('cpu', enabled={flag}):",
    "with plugrad.device('cpu'):",
    "with plugrad.random.fork_rng():",
    "with Mode():",
    "with overrides.DisablePlugradFunction():",
    "with overrides.DisablePlugradFunctionSubclass():",
    "with plugrad.show_dispatch_trace(file=io.StringIO()):",
    "with plugrad.record_dispatch_trace():",
    "with profiler.profile(record_shapes={flag}):",
    "with profiler.record_function('block'):",
    "with plugrad.profiler.profile():",
    "with plugrad.config.set(fallback='cpu'):",
    "with x.register_hook(lambda g: g * 1):",
    "with Plugins():",
)
WORKS = (
    "(x * x).sum().backward()",
    "autograd.grad((x.exp() * x).sum(), x, create_graph={flag})",
    "func.grad(lambda v: (v * v).sum())(d)",
    "func.jvp(lambda v: v.sin() * v, (d,), (d,))",
    "func.vjp(lambda v: v.exp(), d)[1](d)",
    "func.vmap(lambda v: v * v)(d)",
    "func.vmap(func.grad(lambda v: v * v))(d)",
    "func.jacrev(lambda v: v * v)(d)",
    "func.jacfwd(lambda v: v * v)(d)",
    "func.hessian(lambda v: (v * v).sum())(d)",
    "func.linearize(lambda v: v * v, d)[1](d)",
    "func.functionalize(lambda v: (v * 2).add_(1))(d)",
    "func.functional_call(model, {{'weight': w}}, (d,))",
    "func.vmap(lambda v: v + plugrad.rand(()), randomness='different')(d)",
    "autograd.functional.jvp(lambda v: v * v, d, d)",
    "autograd.functional.hessian(lambda v: (v * v).sum(), d)",
    "checkpoint.checkpoint(lambda v: v.sin().exp(), x, use_reentrant=False).sum().backward()",
    "checkpoint.checkpoint(lambda v: v.sin() * v.rsqrt(), x, use_reentrant=True).sum().backward()",
    "model(d).sum().backward(); optimizer.step(); optimizer.zero_grad()",
    "optimizer.step(lambda: model(d).sum())",
    "Double.apply(x).sum().backward()",
    "func.vmap(func.grad(lambda v: Double.apply(v)))(d)",
    "func.jvp(Double.apply, (d,), (d,))",
    "decorated(x)",
    "list(generated(x))",
    "plugrad.capture(lambda v: (v * v).sum(), d)(d)",
    "fwAD.unpack_dual(fwAD.make_dual(d, d) * 2)",
    "operators.three(x).sum().backward()",
    "amp_decorated(d)",
    "plugrad.gradcheck(lambda v: v * v, x.detach().double().requires_grad_())",
    "nn.functional.dropout(x, 0.5).sum().backward()",
    "nn.utils.clip_grad_norm_(model.parameters(), 1.0)",
)
PREAMBLE = """\
import io, warnings
import plugrad
import plugrad.autograd.forward_ad as fwAD
from plugrad import amp, autograd, func, nn, optim, overrides
from plugrad.autograd import checkpoint, profiler
from plugrad.autograd.checkpoint import recomputation
import plugrad.profiler
from plugrad.plugins import scopes

warnings.simplefilter("ignore")
x = plugrad.tensor([1.0, 2.0, 3.0], requires_grad=True)
d, w = plugrad.tensor([1.0, 2.0, 3.0]), plugrad.ones(2, 3)
model = nn.Linear(3, 2)
optimizer = optim.SGD(model.parameters(), lr=0.1)

class Mode(overrides.PlugradFunctionMode):
    def __plugrad_function__(self, function, types, args=(), kwargs=None):
        return function(*args, **(kwargs or {}))

class Plugins(scopes.Scope):
    def read(self, state):
        return plugrad.get_default_dtype()
    def change(self, state):
        plugrad.set_default_dtype(plugrad.float64)
    def restore(self, state, before):
        plugrad.set_default_dtype(before)

class Double(autograd.Function):
    generate_vmap_rule = True
    @staticmethod
    def forward(x):
        return x * 2
    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)
    @staticmethod
    def backward(ctx, grad):
        return grad * 2
    @staticmethod
    def jvp(ctx, tangent):
        return tangent * 2

@plugrad.no_grad()
def decorated(x):
    return x * 2

@plugrad.inference_mode()
def generated(x):
    for _ in range(3):
        yield x * 2

@plugrad.autocast("cpu")
def amp_decorated(x):
    return x.outer(x) @ x

class operators:
    try:
        three = plugrad.library.custom_op(
            "torture::three", lambda x: x * 3, mutates_args=(), schema="(Tensor x) -> Tensor"
        )
        three.register_autograd(lambda ctx, grad: grad * 3)
    except plugrad.errors.DuplicateDefinitionError:
        three = plugrad.ops.torture.three
"""


def is_of_core(path: str) -> bool:
    """Whether a file is one of plugrad's core."""
    return "plugrad" in Path(path).parts and path.endswith(".py")


@functools.cache
def is_interpreted(path: str) -> bool:
    """Whether a module of plugrad stays interpreted where the core is compiled."""
    parts = Path(path).parts
    if any(name in parts for name in ("plugrad_nn", "plugrad_jax", "plugrad_cuda")):
        return True
    if not is_of_core(path):
        return False
    place = len(parts) - 1 - parts[::-1].index("plugrad")
    folders = ("testing", "plugins", "library", "overrides", "amp", "transforms")
    if parts[place + 1] in folders:
        return True
    return parts[place + 1] != "_generated" and "\n# Interpreted: " in Path(path).read_text()


@functools.cache
def traced(code: CodeType) -> bool:
    """Whether an interrupt may come between the bytecodes of a function."""
    return is_interpreted(code.co_filename)


class Interrupts:
    """Raises them in a function.

    Attributes:
        place: where the last one came.
    """

    def __init__(self) -> None:
        self._left = 0
        self.place = ""
        self._armed = False

    def trace(self, event: int, program: Any) -> bool:
        """Interrupt at a bytecode; whether it came."""
        self._left = event
        self.place = ""
        sys.settrace(self._call)
        try:
            program()
        except KeyboardInterrupt:
            pass
        except Exception as error:
            error.__traceback__ = None
        finally:
            sys.settrace(None)
        return bool(self.place)

    def _call(self, frame: FrameType, kind: str, argument: object) -> Any:
        if not traced(frame.f_code):
            return None
        frame.f_trace_opcodes = True
        frame.f_trace_lines = False
        return self._step

    def _step(self, frame: FrameType, kind: str, argument: object) -> Any:
        self._left -= 1
        if self._left == 0:
            code = frame.f_code
            self.place = f"{code.co_filename}:{frame.f_lineno} ({code.co_qualname})"
            raise KeyboardInterrupt
        return self._step

    def signal(self, seconds: float, program: Any) -> bool:
        """Interrupt after so many seconds; whether that was before the end."""
        self.place = ""
        former = signal.signal(signal.SIGALRM, self._handle)
        came = False
        try:
            self._armed = True
            signal.setitimer(signal.ITIMER_REAL, seconds)
            try:
                program()
            finally:
                self._armed = False
        except KeyboardInterrupt:
            came = True
        except Exception as error:
            error.__traceback__ = None
        self._armed = False
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, former)
        return came

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if not self._armed or frame is None:
            return
        code = frame.f_code
        path = code.co_filename
        compiled = is_of_core(path) and not is_interpreted(path)
        if compiled or path == __file__ or "jax" in path:
            # Where it is compiled, no signal comes there: a little later, then.
            signal.setitimer(signal.ITIMER_REAL, 1e-5)
            return
        self._armed = False
        self.place = f"{code.co_filename}:{frame.f_lineno} ({code.co_qualname})"
        raise KeyboardInterrupt


def body_of(chance: random.Random) -> list[str]:
    """Statements: works within blocks within blocks."""
    lines: list[str] = []

    def fill(depth: int, room: int) -> None:
        indent = "    " * depth
        for _ in range(chance.randint(1, 2)):
            if depth < 3 and room and chance.random() < 0.7:
                lines.append(indent + chance.choice(BLOCKS).format(flag=chance.random() < 0.5))
                fill(depth + 1, room - 1)
            else:
                work = chance.choice(WORKS).format(flag=chance.random() < 0.5)
                lines.append(indent + "try:")
                lines.append(indent + f"    {work}")
                lines.append(indent + "except Exception: pass")

    fill(0, 3)
    return lines


@functools.cache
def block_names() -> dict[str, Any]:
    """What the names in `BLOCKS` and `WORKS` mean."""
    names: dict[str, Any] = {"__name__": "torture_interrupts"}
    exec(compile(PREAMBLE, "<torture>", "exec"), names)
    return names


def program_of(seed: int) -> str:
    chance = random.Random(seed)
    chance.random()  # how it is interrupted
    return "\n".join([PREAMBLE, *body_of(chance), f"# interrupts: case {seed}"])


def run_case(seed: int) -> Finding | None:
    chance = random.Random(seed)
    by_signal = chance.random() < 0.5
    lines = body_of(chance)
    text = "def program():\n" + "\n".join(f"    {line}" for line in lines) + "\n"
    names = dict(block_names())
    exec(compile(text, "<torture>", "exec"), names)
    program = names["program"]
    interrupts = Interrupts()
    before = state()
    interrupts.trace(-1, program)  # what is made at the first use is no state
    what = differences(before)
    if what:
        restore(before)
        return _finding(seed, lines, "no interrupt", what)
    for number in range(INTERRUPTS):
        if by_signal:
            came = interrupts.signal(10.0 ** chance.uniform(-4.5, -2.0), program)
        else:
            came = interrupts.trace(int(10.0 ** chance.uniform(0.0, 3.8)), program)
        counts["interrupts" if came else "interrupts that came too late"] += 1
        what = _left(before)
        if not what and number % SANE_EVERY == 0:
            what = insanity()
        if what:
            restore(before)
            return _finding(seed, lines, interrupts.place, what)
    return None


def _left(before: dict[str, Any]) -> str:
    what = differences(before)
    if what and is_interpreted_core():
        # There the state is put back when the exception goes, which may be part of a cycle.
        gc.collect()
        what = differences(before)
    return what


def is_interpreted_core() -> bool:
    return isinstance(current_state, FunctionType)


def _finding(seed: int, lines: list[str], place: str, what: str) -> Finding:
    field = what.partition(":")[0]
    return Finding(
        f"interrupts: {field} is left, interrupted at {place}: {what}",
        f"{PREAMBLE}\ndef program():\n"
        + "".join(f"    {line}\n" for line in lines)
        + f"\n# Interrupted at {place}, what is left is: {what}\n"
        + "# from a checkout's root:\n"
        + "from tests.torture.families.interrupts import run_case\n"
        + f"print(run_case({seed}).summary)\n",
        group=f"interrupts: {field} at {Path(place.partition(' ')[2] or place).name}",
    )
