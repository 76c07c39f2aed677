"""Observes a run of a function and makes nodes for the operators that it calls.

Operators are recorded below autocast, so its casts are nodes, if they have a derivative or a kernel
of their own. A purely composite operator (CompositeImplicitAutograd) is recorded as its parts.
Calls inside a recorded operator are not recorded again. Nodes of a backward pass call operators
too, which are recorded in the same way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from plugrad.dispatch.keys import COMPOSITE_IMPLICIT_AUTOGRAD, FUNCTIONALIZE_BIT
from plugrad.dispatch.local_state import current_state
from plugrad.dispatch.operator import Operator
from plugrad.graph.forward_kernel import ForwardKernel
from plugrad.levels.dispatching import TransformsKernel
from plugrad.ops.autocast import AutocastKernel
from plugrad.ops.namespace import overload_of
from plugrad.tensor.base import TensorBase, needs_grad, version_of
from plugrad.transforms.capture.errors import CaptureError, at_line, user_line
from plugrad.transforms.capture.modules import Modules, Scope
from plugrad.transforms.capture.naming import Names
from plugrad.transforms.capture.node import Constant, Input, Meta, Node, Ref, meta_of, names_in
from plugrad.transforms.capture.undo import written


def current_mode() -> str:
    """How this thread records operations: "grad", "no_grad" or "inference"."""
    state = current_state()
    if state.inference_mode:
        return "inference"
    return "grad" if state.grad_enabled else "no_grad"


@dataclass
class Frame:
    """A composite operator that runs; `read` is a tensor in it with values that Python read."""

    read: TensorBase | None = None
    line: str = ""


class Recorder(Names):
    """Records a run as nodes.

    Attributes:
        nodes: what was recorded so far.
        passes: whether a backward pass ran.
        functions: the names of the `autograd.Function`s whose backward the graph would lose;
            `met_functions` is whether there was any.
        grads_asked: the leaves to which a backward pass added gradients, and whether they had one
            before.
    """

    def __init__(self, inputs: list[TensorBase], reserved: Iterable[str] = ()) -> None:
        super().__init__(inputs, reserved)
        self.mode = current_mode()
        self.nodes: list[Node] = []
        self.passes = False
        self.functions: list[str] = []
        self.met_functions = False
        self.grads_asked: dict[str, bool] = {}
        self._reads: list[tuple[frozenset[str], str]] = []
        self._written: set[str] = set()
        self._frames: list[Frame] = []
        # Copies that operators make for their gradients, which may not be needed.
        self._copies: set[str] = set()
        self._arguments: tuple[Any, ...] = ()
        self._version = 0
        self._level = current_state().level
        self._modules = Modules()
        # By the id of autograd's nodes, which are kept so that ids stay unique: the scope of their
        # forward.
        self._scopes: dict[int, tuple[Any, Scope]] = {}
        self._backward_scope: Scope | None = None

    # Operators

    def dispatch(self, kind: str, op: Operator, keyset: int, args: tuple[object, ...]) -> Any:
        if self.inside:
            result = super().dispatch(kind, op, keyset, args)
            if kind == "call" and op.qualified_name == "plugrad::clone":
                self._note_copy(op, args, result)
            return result
        kernel = op.lookup(keyset)
        if current_state().level is not self._level or isinstance(kernel, TransformsKernel):
            # A function that is transformed: the operators that it calls are recorded.
            return super().dispatch(kind, op, keyset, args)
        if isinstance(kernel, (AutocastKernel, ForwardKernel)):
            # It casts the arguments, or computes tangents beside the result, and continues: the
            # later calls are recorded.
            return super().dispatch(kind, op, keyset, args)
        if kernel is op.kernel_for(COMPOSITE_IMPLICIT_AUTOGRAD):
            return self._composite(kind, op, keyset, args)
        return self._whole(kind, op, keyset, args)

    def _whole(self, kind: str, op: Operator, keyset: int, args: tuple[object, ...]) -> Any:
        """An operator that is recorded itself, whatever it calls."""
        refs = self._refs(args)
        self._version = sum(version_of(tensor) for tensor in _tensors(args))
        self._arguments = args
        self.inside += 1
        try:
            result = super().dispatch(kind, op, keyset, args)
        finally:
            self.inside -= 1
        self._finish(op, refs, args, result)
        return result

    def _composite(self, kind: str, op: Operator, keyset: int, args: tuple[object, ...]) -> Any:
        """Run a composite operator."""
        return self._by_parts(op, args, partial(super().dispatch, kind, op, keyset, args))

    def _by_parts(self, op: Operator, args: tuple[object, ...], run: Callable[[], Any]) -> Any:
        """Record what `run` calls. The operator itself if its result comes from elsewhere, or if
        Python has seen values."""
        refs = self._refs(args)
        mark = len(self.nodes)
        frame = Frame()
        self._frames.append(frame)
        try:
            result = run()
        finally:
            self._frames.pop()
        found = _tensors(result)
        if not found or frame.read is not None or any(self._is_unknown(each) for each in found):
            if not found and frame.read is not None:
                self._check_read(frame.read, frame.line)
            elif found:
                self._forget(mark)
                self._finish(op, refs, args, result)
        return result

    def _is_unknown(self, tensor: TensorBase) -> bool:
        return id(tensor) not in self._names and id(tensor) in self.own

    def _forget(self, mark: int) -> None:
        """Take back what was recorded since: an operator is recorded in its place."""
        for node in self.nodes[mark:]:
            for name in node.defines():
                tensor = self._tensors[name]
                self._names.pop(id(tensor), None)
                if self._by_array.get(id(tensor._backend_array)) == name:
                    del self._by_array[id(tensor._backend_array)]
                self.own[id(tensor)] = True
        del self.nodes[mark:]

    def _note_copy(self, op: Operator, args: tuple[Any, ...], result: TensorBase) -> None:
        """An operator copies a tensor before it overwrites it, since backward may need the copy."""
        source = self._names.get(id(args[0]))
        now = sum(version_of(tensor) for tensor in _tensors(self._arguments))
        if source is None or now != self._version or id(result) in self._names:
            return
        self.append(op, (Ref(source), *args[1:]), args, result)
        self._copies.add(self._names[id(result)])

    def _finish(self, op: Operator, refs: tuple[Any, ...], args: Any, result: Any) -> None:
        if not _tensors(result) and not op.schema.mutates:
            if any(self._is_tainted(name) for name in names_in(refs)):
                self._refuse(f"{op.name}() gives Python a value")
            return
        self.append(op, refs, args, result)

    def append(self, op: Operator, refs: tuple[Any, ...], args: Any, result: Any) -> None:
        """A node for a call."""
        single = not isinstance(result, (list, tuple))
        results = [result] if single else list(result)
        read = list(dict.fromkeys(names_in(refs)))
        writes = tuple(dict.fromkeys(self._names[id(each)] for each in written(op, args)))
        random = any(argument.type.base == "Generator" for argument in op.schema.arguments)
        tainted = random or any(self._is_tainted(name) for name in read)
        shares = _shared(op, refs, args, results, self._tensors)
        name = self._fresh_name(op.name)
        names: list[str | None] = []
        for number, each in enumerate(results):
            if not isinstance(each, TensorBase):
                names.append(None)
            elif id(each) in self._names:
                names.append(self._names[id(each)])
            else:
                own = name if single else self._fresh_name(f"{name}_{number}")
                roots = [self._roots[other] for other in shares[number]]
                self._roots[own] = frozenset([own] if not roots else []).union(*roots)
                self._name(each, own)
                if needs_grad(each):
                    self._recorded.add(own)
                if tainted:
                    self._tainted |= self._roots[own]
                names.append(own)
        self._note_writes(writes, tainted)
        scope = self._scope_of(results)
        node = Node(
            op=overload_of(op),
            values=_settled(op, refs, results),
            name=name,
            results=tuple(names),
            single=single,
            metas=tuple([meta_of(t) if isinstance(t, TensorBase) else None for t in results]),
            mode=current_mode(),
            writes=writes,
            shares=shares,
            random=random,
            scope=scope,
            backward=self._backward_scope is not None,
        )
        if self.mode == "inference" and node.mode != "inference":
            raise CaptureError(
                "capture(): inference mode ends within the function, which a graph cannot record"
                f"{at_line(user_line())}"
            )
        self.nodes.append(node)

    def _scope_of(self, results: list[Any]) -> Scope:
        """The modules being called; during a node's backward, the modules of its forward."""
        scope = self._backward_scope
        if scope is None:
            scope = self._modules.running()
        if scope:
            for each in results:
                meta = each._autograd_meta if isinstance(each, TensorBase) else None
                if meta is not None and meta.grad_fn is not None:
                    self._scopes.setdefault(id(meta.grad_fn), (meta.grad_fn, scope))
        return scope

    def _note_writes(self, writes: tuple[str, ...], tainted: bool) -> None:
        for name in writes:
            roots = self._roots[name]
            self._written |= roots
            external = any(root in self.inputs or root in self.constants for root in roots)
            # A constant that is written to has another value in the next run.
            if tainted or external:
                self._tainted |= roots
            tensor = self._tensors[name]
            self._kept.append(tensor._backend_array)
            self._array_of[name] = tensor._backend_array
            self._by_array.setdefault(id(tensor._backend_array), name)

    # Values

    def _is_tainted(self, name: str) -> bool:
        roots = self._roots.get(name)
        return roots is not None and not roots.isdisjoint(self._tainted)

    def read(self, tensor: Any) -> None:
        """Python may read values that no other run could change."""
        if self.inside:
            return
        if self._frames:
            frame = self._frames[-1]
            frame.read, frame.line = tensor, user_line()
            return
        self._check_read(tensor, user_line())

    def _check_read(self, tensor: TensorBase, line: str) -> None:
        name = self.name_of(tensor)
        if self._is_tainted(name):
            self._refuse(f"the value of {name} is read", line)
        self._reads.append((self._roots[name], line))

    def _refuse(self, what: str, line: str = "") -> None:
        raise CaptureError(
            f"capture(): {what}{at_line(line or user_line())}. A graph has operators only, so it "
            "would be the same in every run: choose between values with plugrad.where, return the "
            "tensor and look at it outside, or leave this part out of the function"
        )

    def check_reads(self) -> None:
        """Raise if Python saw a constant that the graph writes to later."""
        for roots, line in self._reads:
            if not roots.isdisjoint(self._written):
                names = ", ".join(sorted(roots & self._written))
                self._refuse(f"the value of {names}, which the graph writes to, is read", line)

    # Autograd

    def run_node(self, node: Any, grads: Any) -> Any:
        self.passes = True
        leaf = getattr(node, "variable", None)
        if isinstance(leaf, TensorBase) and id(leaf) not in self.own:
            name = self.name_of(leaf)
            before = self.before[id(leaf)]
            meta = leaf._autograd_meta
            # What the function has put there itself is the same in every run.
            if meta is not None and meta.grad is before.grad:
                self.grads_asked.setdefault(name, before.grad is not None)
        outer = self._backward_scope
        known = self._scopes.get(id(node))
        self._backward_scope = () if known is None else known[1]
        try:
            return super().run_node(node, grads)
        finally:
            self._backward_scope = outer

    def enter_function(
        self, ctx: Any, name: str, inputs: tuple[object, ...], recorded: bool
    ) -> None:
        self.met_functions = True
        if recorded:
            self.functions.append(name)
        super().enter_function(ctx, name, inputs, recorded)

    # Afterwards

    def finished_inputs(self, positions: list[int]) -> tuple[Input, ...]:
        """The inputs, as they were before the run."""
        made: list[Input] = []
        for (name, tensor), position in zip(self.inputs.items(), positions, strict=True):
            first = self._names[id(tensor)]
            before = self.before[id(tensor)]
            meta = Meta(tuple(before.array.shape), before.dtype, before.device)
            same = "" if first == name else first
            made.append(Input(name, position, meta, before.requires_grad, same))
        return tuple(made)

    def gradients(self) -> dict[str, str | None]:
        """The inputs and constants that have another gradient after the run, with its name."""
        found: dict[str, str | None] = {}
        for before in list(self.before.values()):
            meta = before.tensor._autograd_meta
            grad = None if meta is None else meta.grad
            if grad is not before.grad:
                found[self.name_of(before.tensor)] = None if grad is None else self.name_of(grad)
        return found

    def held(self) -> dict[str, Constant]:
        """The constants; gradients have the names of their tensors, and tensors of modules have the
        modules' names for them."""
        for before in list(self.before.values()):
            if id(before.grad) in self._names:
                self._holders[id(before.grad)] = self.name_of(before.tensor)
        for constant in list(self.constants.values()):
            holder = self._holders.get(id(constant.value))
            if holder is not None:
                self.constants[constant.name] = replace(constant, grad_of=holder)
            elif label := self._modules.tensors.get(id(constant.value)):
                self.constants[constant.name] = replace(constant, label=label)
        self._modules.forget()
        self._scopes.clear()
        return self.constants

    def check_arrays(self) -> None:
        """Raise if a tensor got other memory without an operator."""
        for before in self.before.values():
            tensor = before.tensor
            name = self._names.get(id(tensor))
            if name is None or tensor._backend_array is before.array or name in self._written:
                continue
            if not tensor._keyset & FUNCTIONALIZE_BIT:
                self._refuse_data(name)

    def makes_leaves(self) -> bool:
        """Whether the run has made tensors that require grad by themselves, or had others cease."""
        for before in self.before.values():
            name = self._names.get(id(before.tensor))
            if name not in self._written and needs_grad(before.tensor) != before.requires_grad:
                return True
        for tensor in self._tensors.values():
            meta = tensor._autograd_meta
            own = id(tensor) in self.own
            if own and meta is not None and meta.requires_grad and meta.grad_fn is None:
                return True
        return False

    def used_nodes(self, kept: set[str]) -> list[Node]:
        """The nodes without unused copies; `kept` are the names of needed values."""
        needed = set(kept)
        found: list[Node] = []
        for node in reversed(self.nodes):
            if self._copies.isdisjoint(node.defines()) or not needed.isdisjoint(node.defines()):
                needed.update(node.reads())
                found.append(node)
        return found[::-1]


def _tensors(value: Any) -> list[TensorBase]:
    """The tensors in arguments or in a result."""
    if isinstance(value, TensorBase):
        return [value]
    if isinstance(value, (list, tuple)):
        return [tensor for item in value for tensor in _tensors(item)]
    return []


def _shared(
    op: Operator, refs: tuple[Any, ...], args: Any, results: list[Any], tensors: dict[str, Any]
) -> tuple[tuple[str, ...], ...]:
    """For each result the arguments that it shares memory with: by the schema, and by sight."""
    schema = op.schema
    by_set: dict[str, list[str]] = {}
    for argument, ref in zip(schema.arguments, refs, strict=True):
        alias = argument.type.alias
        for letter in () if alias is None else (*alias.before, *alias.after):
            by_set.setdefault(letter, []).extend(names_in(ref))
    read = list(dict.fromkeys(names_in(refs)))
    found: list[tuple[str, ...]] = []
    for number, result in enumerate(results):
        names: list[str] = []
        if not schema.returns:
            found.append(())
            continue
        returned = schema.returns[number] if len(schema.returns) > 1 else schema.returns[0]
        alias = returned.type.alias
        for letter in () if alias is None else alias.before:
            names += by_set.get(letter, read if letter == "*" else [])
        if isinstance(result, TensorBase):
            names += [
                name
                for name in read
                if isinstance(tensors.get(name), TensorBase)
                and (
                    tensors[name] is result or tensors[name]._backend_array is result._backend_array
                )
            ]
        found.append(tuple(dict.fromkeys(names)))
    return tuple(found)


def _settled(op: Operator, refs: tuple[Any, ...], results: list[Any]) -> tuple[Any, ...]:
    """Arguments of an operator that makes tensors of nothing: dtype and device are those it took
    by default, whatever the defaults are when the graph runs."""
    arguments = op.schema.arguments
    first = results[0] if results else None
    if any(argument.type.base == "Tensor" for argument in arguments) or first is None:
        return refs
    return tuple(
        [
            first.dtype
            if value is None and argument.type.base == "ScalarType"
            else first.device
            if value is None and argument.type.base == "Device"
            else value
            for argument, value in zip(arguments, refs, strict=True)
        ]
    )
