"""A registration in several steps takes effect completely or not at all, wherever it is
interrupted.

The oracle is what calls give before it and after it: no intermediate state may be visible, and the
same registration works afterwards.
"""

from __future__ import annotations

from typing import Any

import pytest

import plugrad
from plugrad import library
from plugrad.codegen.load import _families
from plugrad.dispatch.operator import find_operator
from plugrad.library.custom_op import definition_of
from plugrad.ops.namespace import TAGS
from tests.core.dispatch.test_scope import interrupted

SCHEMA = "(Tensor x) -> Tensor"
YAML = """
- func: loaded(Tensor x) -> Tensor
  composite: f
  doc: d.
- func: other(Tensor x) -> Tensor
  composite: f
  doc: d.
"""
FORMER = """
made = library.custom_op("zz_cut::made", lambda x: x * 2, mutates_args=(), schema=SCHEMA)
made.register_kernel("cpu", lambda x: x * 3)
made.register_fake(lambda x: x.new_empty(2))
made.register_autograd(lambda ctx, grad: grad * 2)
made.register_vmap(lambda info, dims, x: (x * 5, dims[0]))
lib = library.Library("zz_cut", "FRAGMENT")
lib.define("plain(Tensor x) -> Tensor")
lib.impl("plain", lambda x: x + 1, "CompositeExplicitAutograd")
"""
REGISTRATIONS = {
    "custom_op anew": 'library.custom_op("zz_cut::made", lambda x: x * 7, mutates_args=(), '
    'schema=SCHEMA, tags=library.Tag.pointwise, device_types=["cpu", "meta"])',
    "custom_op of another schema": 'library.custom_op("zz_cut::made", lambda x, n=1: x * 7, '
    'mutates_args=(), schema="(Tensor x, int n=1) -> Tensor")',
    "custom_op for the first time": 'library.custom_op("zz_cut::first", lambda x: x * 7, '
    "mutates_args=(), schema=SCHEMA)",
    "register_kernel": 'made.register_kernel(["cpu", None, "meta"], lambda x: x * 11)',
    "register_kernel by name": 'library.register_kernel("zz_cut::plain", ["cpu", "meta"], '
    "lambda x: x * 11, lib=lib)",
    "register_fake": "made.register_fake(lambda x: x.new_empty(3))",
    "register_autograd": "made.register_autograd(lambda ctx, grad: grad * 3 + ctx.n, "
    'setup_context=lambda ctx, inputs, output: setattr(ctx, "n", 1))',
    "register_vmap": "made.register_vmap(lambda info, dims, x: (x * 13, dims[0]))",
    "define": 'lib.define("writes_(Tensor(a!) self) -> Tensor(a!)", tags=library.Tag.inplace)',
    "load": 'lib.load(YAML, {"f": lambda x: x * 17}, name="cut")',
    "impl": 'lib.impl("plain", lambda x: x * 19, "CPU")',
    "a library": 'kept.append(library.Library("zz_cut_owner", "DEF"))',
}


def outcome(call: Any) -> Any:
    try:
        return call()
    except (RuntimeError, AttributeError) as error:
        return type(error)


def observed(names: dict[str, Any]) -> list[Any]:
    """All that the registrations change, as programs see it."""
    ops: Any = plugrad.ops.zz_cut
    x = plugrad.ones(2, requires_grad=True)
    meta = plugrad.ones(2, device="meta")
    return [
        outcome(lambda: ops.made(x).tolist()),
        outcome(lambda: names["made"](x).tolist()),
        outcome(lambda: plugrad.autograd.grad(ops.made(x).sum(), x)[0].tolist()),
        outcome(lambda: plugrad.vmap(ops.made)(plugrad.ones(2, 1)).tolist()),
        outcome(lambda: ops.made(meta).shape),
        outcome(lambda: str(ops.made.default._schema)),
        outcome(lambda: ops.first(x).tolist()),
        outcome(lambda: ops.plain(x).tolist()),
        outcome(lambda: ops.plain(meta).shape),
        [
            sorted(key.name for key in op.registered_keys())
            for op in (find_operator("zz_cut::made"), find_operator("zz_cut::writes_"))
            if op is not None
        ],
        definition_of("zz_cut::first") is None,
        find_operator("zz_cut::loaded") is None,
        find_operator("zz_cut::other") is None,
        [family.__name__ for family in _families.get("zz_cut", [])],
        {name: tags for name, tags in TAGS.items() if name.startswith("zz_cut")},
        library.library._owners.get("zz_cut_owner") is None,
    ]


def fresh() -> dict[str, Any]:
    names: dict[str, Any] = {"library": library, "SCHEMA": SCHEMA, "YAML": YAML, "kept": []}
    exec(FORMER, names)
    return names


def forget(names: dict[str, Any]) -> None:
    names["lib"]._destroy()
    for name in ("made", "first"):
        made = definition_of(f"zz_cut::{name}")
        if made is not None:
            made._lib._destroy()
    owner = library.library._owners.get("zz_cut_owner")
    if owner is not None:
        owner._destroy()


@pytest.mark.filterwarnings("ignore:vmap")
@pytest.mark.parametrize("what", REGISTRATIONS)
def test_an_interrupted_registration_is_whole_or_was_never_there(what: str) -> None:
    program = compile(REGISTRATIONS[what], "<program>", "exec")
    names = fresh()
    before = observed(names)
    exec(program, names)
    after = observed(names)
    forget(names)
    assert before != after
    names, event, seen = fresh(), 1, 0
    while interrupted(program, event, names):
        found = observed(names)
        assert found in (before, after), f"at bytecode {event}"
        seen += found == before
        if found == after:
            forget(names)
            names = fresh()
        event += 1 + event // 12
    forget(names)
    assert seen > 5


def test_a_rule_whose_removal_is_interrupted_is_gone_or_not_removed() -> None:
    program = compile("handle.remove()", "<program>", "exec")
    names, event, came = fresh(), 1, True
    while came:
        rule = lambda info, dims, x: (x, dims[0])  # noqa: E731
        library.register_vmap("zz_cut::plain", rule, lib=names["lib"])
        handle = names["lib"]._handles[-1]
        came = interrupted(program, event, {"handle": handle})
        known = library.get_vmap_rule("zz_cut::plain")
        assert not (handle.is_removed and known is not None), f"at bytecode {event}"
        handle.remove()
        assert library.get_vmap_rule("zz_cut::plain") is None
        event += 1
    forget(names)
    assert event > 10
