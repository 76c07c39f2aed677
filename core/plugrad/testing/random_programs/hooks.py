"""Statements of random programs that register and remove hooks."""

from __future__ import annotations

from typing import Final

from plugrad.testing.random_programs.choice import Choice
from plugrad.testing.random_programs.model import Draft


def _register(draft: Draft, choice: Choice, expression: str, uses: list[str]) -> None:
    for x in uses:
        if any(v.name == x and v.view for v in draft.variables):
            # PyTorch crashes on views after a write to their base, unless this is read before.
            draft.add(f"{x}.grad_fn", [x])
    handle = f"h{draft.fresh()}"
    draft.add(f"{handle} = {expression}", uses, [handle])
    draft.handles.append(handle)


def tensor_hook(draft: Draft, choice: Choice) -> None:
    x = choice.grad_variable(draft)
    if x is None:
        return
    kinds = ("look", "look", "replace", "nested", *(("fail",) if choice.fault(4) else ()))
    kind = choice.one_of(kinds)
    name = f"hook {draft.fresh()} of {x.name}"
    _register(draft, choice, f"{x.name}.register_hook(hook({name!r}, {kind!r}))", [x.name])


def retain(draft: Draft, choice: Choice) -> None:
    x = choice.grad_variable(draft)
    if x is not None:
        draft.add(f"{x.name}.retain_grad()", [x.name])


def after_accumulation(draft: Draft, choice: Choice) -> None:
    x = choice.grad_variable(draft)
    if x is None:
        return
    name = f"post hook {draft.fresh()} of {x.name}"
    made = f"post_hook({name!r}, {choice.chance(3)})"
    _register(draft, choice, f"{x.name}.register_post_accumulate_grad_hook({made})", [x.name])


def node_hook(draft: Draft, choice: Choice) -> None:
    x = choice.grad_variable(draft, lambda v: v.node)
    if x is None:
        return
    before = choice.chance(2)
    number, replace = draft.fresh(), choice.chance(3)
    if before:
        made = f"register_prehook(node_prehook('prehook {number} of {x.name}', {replace}))"
    else:
        made = f"register_hook(node_hook('node hook {number} of {x.name}', {replace}))"
    _register(draft, choice, f"{x.name}.grad_fn.{made}", [x.name])


def multi_grad_hook(draft: Draft, choice: Choice) -> None:
    x, y = choice.grad_variable(draft), choice.grad_variable(draft)
    if x is None or y is None:
        return
    draft.several_roots = True
    mode = choice.one_of(("all", "any"))
    name = f"{mode} hook {draft.fresh()}"
    call = "lib.autograd.graph.register_multi_grad_hook"
    made = f"{call}(({x.name}, {y.name}), multi_hook({name!r}), mode={mode!r})"
    _register(draft, choice, made, [x.name, y.name])


def remove(draft: Draft, choice: Choice) -> None:
    if draft.handles:
        handle = choice.one_of(draft.handles)
        draft.add(f"{handle}.remove()", [handle])


WRITERS: Final = [tensor_hook, retain, tensor_hook, after_accumulation, node_hook]
WRITERS.append(multi_grad_hook)
WRITERS.append(remove)
